"""The canvas: every image as a square of one size, and what that takes of memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

DETAIL = 2
"""A JPEG is decoded at no less than this times the canvas, so that resizing sees enough of it."""

LONGEST = 8
"""Of an image that is longer than this times its shorter side, only the middle is resized: a line
of 1 x 100,000 pixels would grow to gigabytes."""


def canvas(image: Tensor, size: int) -> Tensor:
    """An image uint8 (3, H, W) as a square (3, size, size).

    Its shorter side is resized to `size` (bilinear, with antialiasing), and the middle is cut
    out. An image that is size x size already comes back bit for bit.

    >>> canvas(torch.zeros(3, 20, 40, dtype=torch.uint8), 8).shape
    torch.Size([3, 8, 8])
    """
    check_size(size)
    if image.ndim != 3 or image.shape[0] != 3 or image.dtype != torch.uint8:
        raise ValueError(
            f"image is {image.dtype} of shape {tuple(image.shape)}: give uint8 (3, H, W)"
        )
    height, width = image.shape[1:]
    if height == width == size:
        return image
    if max(height, width) > LONGEST * min(height, width):
        image = _middle(image, min(height, LONGEST * width), min(width, LONGEST * height))
        height, width = image.shape[1:]
    shorter, longer = min(height, width), max(height, width)
    if shorter != size:
        long_side = int(size * longer / shorter)
        shape = (long_side, size) if height > width else (size, long_side)
        image = F.interpolate(image[None], size=shape, mode="bilinear", antialias=True)[0]
    return _middle(image, size, size).contiguous()


def _middle(image: Tensor, height: int, width: int) -> Tensor:
    top = round((image.shape[1] - height) / 2)
    left = round((image.shape[2] - width) / 2)
    return image[:, top : top + height, left : left + width]


def check_size(size: int) -> None:
    """The side of a canvas is a whole number of pixels."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"size is {size!r}: give the side of the canvas in pixels (32, 224)")
