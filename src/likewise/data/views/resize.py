r"""Crop, resize and flip as two small matrices per view.

A resize is linear and separable, so a view of an image X is

.. math::
    Y = W_y X W_x^\top

where the rows of :math:`W_y` (S x H) and :math:`W_x` (S x W) hold the weights with which pixels of
the crop enter a pixel of the view. One batched product makes any number of different crops.
"""

from __future__ import annotations

import torch
from torch import Tensor


def resize_matrix(
    start: Tensor,
    length: Tensor,
    size: int,
    pixels: int,
    flip: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""W (rows, size, pixels): takes `length` pixels from `start` on, and makes `size` of them.

    .. math::
        W_{ij} \propto \max\Big(0,\; 1 - \frac{|j + \tfrac12 - c_i|}{\max(1, l/S)}\Big),
        \quad c_i = a + (i + \tfrac12)\, l / S,
        \quad a \le j < a + l

    with start a, length l, and rows that sum to 1: the triangle filter of
    ``torchvision.transforms.functional.resized_crop(..., antialias=True)``, for enlarging and for
    shrinking. Where `flip` is set the rows come in reverse order.

    Args:
        start: first pixel taken, one per row.
        length: how many pixels are taken, at least 1, one per row.

    >>> resize_matrix(torch.tensor([1]), torch.tensor([2]), 1, 4)
    tensor([[[0.0000, 0.5000, 0.5000, 0.0000]]])
    """
    place = torch.arange(size, dtype=dtype, device=start.device).expand(len(start), size)
    if flip is not None:
        place = torch.where(flip[:, None], size - 1 - place, place)
    scale = (length.to(dtype) / size)[:, None]
    # Measured from the start of the crop, so that the numbers stay small and exact.
    centre = ((place + 0.5) * scale)[:, :, None]
    pixel = torch.arange(pixels, dtype=dtype, device=start.device) + 0.5 - start[:, None]
    inside = (pixel > 0) & (pixel < length[:, None])
    distance = (pixel[:, None, :] - centre).abs() / scale.clamp(min=1)[:, :, None]
    weight = (1 - distance).clamp(min=0) * inside[:, None, :]
    return weight / weight.sum(dim=-1, keepdim=True)


def centre_square(height: int, width: int) -> tuple[int, int, int]:
    """Top, left and side of the largest square in the middle.

    >>> centre_square(32, 48)
    (0, 8, 32)
    """
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side


def resized_crops(images: Tensor, vertical: Tensor, horizontal: Tensor) -> Tensor:
    """All views of all images: (n * V, 3, S, S), sample-major, from images (n, 3, H, W).

    Args:
        images: floats. Best laid out in memory as (n, H, 3, W): then nothing is copied.
        vertical: W_y, (n * V, S, H).
        horizontal: W_x, (n * V, S, W).

    An image is not repeated for its views: their matrices are stacked.
    """
    n, channels, height, width = images.shape
    rows, size, _ = vertical.shape
    # Rows of pixels in the middle dimension: both products are then plain batched ones.
    lines = images.permute(0, 2, 1, 3).reshape(n, height, channels * width)
    lines = torch.bmm(vertical.reshape(n, -1, height), lines)
    views = torch.bmm(lines.view(rows, size * channels, width), horizontal.transpose(1, 2))
    return views.view(rows, size, channels, -1).permute(0, 2, 1, 3)


def filtered(images: Tensor, matrix: Tensor) -> Tensor:
    """M X M^T for every channel of every row: `matrix` is (rows, S, S)."""
    return resized_crops(images, matrix, matrix)
