"""Pixels in, and what is asked of them; and images as evaluation wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.data.views.colour import normalized
from likewise.data.views.resize import centre_square


def unit_floats(pixels: Tensor) -> Tensor:
    """uint8 (n, 3, H, W) as float32 from 0 to 1, in memory (n, H, 3, W) as the crops want it."""
    lines = pixels.permute(0, 2, 1, 3).to(torch.float32, memory_format=torch.contiguous_format)
    return (lines / 255).permute(0, 2, 1, 3)


def prepare(pixels: Tensor, size: int, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Images for evaluation: the centre square, resized to `size` and normalised; not random.

    Args:
        pixels: uint8 (n, 3, height, width).
        size: side of the result in pixels; resizing is bilinear with antialiasing.
        mean: per channel, on the scale 0 to 1.
        std: per channel.

    >>> pixels = torch.full((2, 3, 64, 48), 255, dtype=torch.uint8)
    >>> images = prepare(pixels, 32, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    >>> images.shape, images.unique()
    (torch.Size([2, 3, 32, 32]), tensor([2.]))
    """
    mean, std = check_statistics(mean, std)
    size = check_size("size", size)
    check_pixels(pixels)
    top, left, side = centre_square(*pixels.shape[2:])
    images = pixels[:, :, top : top + side, left : left + side].float() / 255
    if side != size:
        images = F.interpolate(
            images, (size, size), mode="bilinear", align_corners=False, antialias=True
        )
    return normalized(images, mean, std)


def check_pixels(pixels: Tensor, canvas: tuple[int, int] | None = None) -> None:
    """Refuse what is not uint8 (n, 3, height, width), of the canvas's size where one is given."""
    if pixels.dtype != torch.uint8:
        raise ValueError(f"pixels are {pixels.dtype}: give torch.uint8, values from 0 to 255")
    if pixels.ndim != 4 or pixels.shape[1] != 3:
        raise ValueError(
            f"pixels have shape {tuple(pixels.shape)}: give (n, 3, height, width); "
            "repeat the channel of grey images three times"
        )
    if 0 in pixels.shape:
        raise ValueError(f"pixels have shape {tuple(pixels.shape)}: give at least one image")
    height, width = pixels.shape[2:]
    if canvas is not None and (height, width) != canvas:
        raise ValueError(
            f"pixels are {height} x {width} but the views were made for {canvas[0]} x {canvas[1]}: "
            f"give canvas=({height}, {width}) to Views"
        )


def check_size(name: str, size: int) -> int:
    """A whole number of pixels, at least 1."""
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"{name} is {size!r}: give a whole number of pixels, at least 1")
    return int(size)


def check_statistics(
    mean: Sequence[float], std: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Three finite means and three positive deviations."""
    for name, values in (("mean", mean), ("std", std)):
        if len(values) != 3 or not all(math.isfinite(value) for value in values):
            raise ValueError(f"{name} is {values!r}: give three numbers, one per channel")
    if min(std) <= 0:
        raise ValueError(f"std is {std!r}: give positive numbers (pixels are from 0 to 1)")
    return tuple(float(value) for value in mean), tuple(float(value) for value in std)
