"""Encoded bytes or a file to RGB pixels, through Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

TRANSPARENT = (128, 128, 128)
"""What shows through: on mid-grey neither black nor white drawings vanish."""

ORIENTATION = 0x0112
"""The EXIF tag that says how the camera was held."""


def decode(encoded: bytes | memoryview | Path | str, enough: int = 0) -> Tensor:
    """An encoded image (or the path of one) as uint8 (3, H, W), RGB, upright.

    Grey, palette and CMYK become RGB; transparent pixels show mid-grey; 16 bits keep their upper
    eight; of an animation the first frame is taken; EXIF says which side is up. Pixels are those
    of Pillow. With `enough` > 0 see :meth:`likewise.data.Source.read`.

    Raises what Pillow raises where the image is truncated, unknown, or too large to be honest.

    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (5, 4), 7).save(file, "PNG")
    >>> decode(file.getvalue()).shape
    torch.Size([3, 4, 5])
    """
    from PIL import Image, ImageOps

    file = encoded if isinstance(encoded, (str, Path)) else io.BytesIO(encoded)
    with Image.open(file) as image:
        if enough > 0:
            # (enough, enough) is a lower bound to both sides; formats other than JPEG ignore it.
            image.draft(None, (enough, enough))
        image.load()
        if image.getexif().get(ORIENTATION, 1) != 1:
            ImageOps.exif_transpose(image, in_place=True)
        pixels = np.array(_to_rgb(image))
    if 0 in pixels.shape:
        raise ValueError("the image has no pixels")
    return torch.from_numpy(pixels).permute(2, 0, 1)


def _to_rgb(image: Image) -> Image:
    from PIL import Image as ImageModule

    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith("I") or image.mode == "F":
        return ImageModule.fromarray(_to_eight_bits(np.asarray(image))).convert("RGB")
    if image.has_transparency_data:
        over = image.convert("RGBA")
        under = ImageModule.new("RGBA", image.size, (*TRANSPARENT, 255))
        return ImageModule.alpha_composite(under, over).convert("RGB")
    return image.convert("RGB")


def _to_eight_bits(values: np.ndarray) -> np.ndarray:
    """Wide grey values as uint8; Pillow itself would cut everything above 255."""
    if values.dtype == bool or values.dtype.itemsize == 1:
        return values.astype(np.uint8)
    wide = values.astype(np.float64)
    if not np.isfinite(wide).all():
        raise ValueError("the image holds NaN or infinity")
    low, high = wide.min(), wide.max()
    if values.dtype.kind == "f":
        # Floats have no agreed range: [0, 1] is taken as such, and all else is stretched.
        low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    elif low >= 0 and high <= 0xFFFF:
        low, high = 0, 0xFFFF
    return np.round((wide - low) * (255 / max(high - low, 1e-12))).astype(np.uint8)
