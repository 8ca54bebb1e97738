"""Thumbnails of a sample in one picture, inside the page."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SIDE = 48
"""Pixels of a thumbnail; smaller images keep their own size."""


@dataclass(frozen=True)
class Sprite:
    """All thumbnails side by side.

    url: the picture as a data URL.
    columns, rows: thumbnails across and down.
    side: pixels of one.
    """

    url: str
    columns: int
    rows: int
    side: int

    @property
    def name(self) -> str:
        """The same for the same pictures: runs on the same images share one."""
        return "p" + hashlib.sha256(self.url.encode()).hexdigest()[:10]

    def place(self, index: int) -> str:
        """CSS: where the thumbnail lies, whatever size it is shown at.

        >>> Sprite("", 5, 2, 48).place(7)
        '50% 100%'
        """
        row, column = divmod(index, self.columns)
        across = 100 * column / max(self.columns - 1, 1)
        down = 100 * row / max(self.rows - 1, 1)
        return f"{across:.4g}% {down:.4g}%"


def sprite(pixels: Tensor, *, quality: int = 80) -> Sprite:
    """One WebP picture of all images, uint8 (n, 3, S, S).

    >>> found = sprite(torch.zeros(5, 3, 8, 8, dtype=torch.uint8))
    >>> found.columns, found.rows, found.side, found.url[:22]
    (3, 2, 8, 'data:image/webp;base64')
    """
    from PIL import Image

    n, _, height, _ = pixels.shape
    side = min(SIDE, height)
    if height > side:
        small = torch.nn.functional.interpolate(
            pixels.float(), size=(side, side), mode="bilinear", antialias=True
        )
        pixels = small.round().clamp(0, 255).to(torch.uint8)
    columns = math.ceil(math.sqrt(n))
    rows = math.ceil(n / columns)
    sheet = np.zeros((rows * side, columns * side, 3), dtype=np.uint8)
    for index, image in enumerate(pixels.permute(0, 2, 3, 1).numpy()):
        row, column = divmod(index, columns)
        sheet[row * side : (row + 1) * side, column * side : (column + 1) * side] = image
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "WEBP", quality=quality, method=4)
    url = "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
    return Sprite(url, columns, rows, side)
