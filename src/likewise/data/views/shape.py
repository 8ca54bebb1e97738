"""Blur, rotation and cutout, with one parameter per row. Images are (rows, 3, side, side)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.data.views.resize import filtered
from likewise.data.views.rows import column


def blur_matrix(sigma: Tensor, kernel: int, size: int) -> Tensor:
    r"""B (rows, size, size): a Gaussian over `kernel` pixels, mirrored at the edges.

    .. math::
        B_{ij} = \sum_{t:\, \mathrm{mirror}(i + t) = j} g_t, \quad
        g_t \propto e^{-t^2 / 2 \sigma^2}, \quad |t| \le (k - 1) / 2

    >>> blur_matrix(torch.tensor([1e-3]), 3, 2)
    tensor([[[1., 0.],
             [0., 1.]]])
    """
    half = kernel // 2
    device = sigma.device
    taps = torch.arange(-half, half + 1, device=device)
    weight = torch.softmax(-(taps**2) / (2 * sigma[:, None] ** 2), dim=1)
    # Where tap t of pixel i reads: over the edge it comes back, without the edge pixel again.
    source = torch.arange(size, device=device) + taps[:, None]
    source = (size - 1) - ((size - 1) - source.abs()).abs()
    reads = source[:, :, None] == torch.arange(size, device=device)
    return (weight @ reads.to(weight.dtype).flatten(1)).view(-1, size, size)


def blur(images: Tensor, sigma: Tensor, kernel: int) -> Tensor:
    """Gaussian blur, as ``torchvision.transforms.functional.gaussian_blur``: B X B^T."""
    return filtered(images, blur_matrix(sigma, kernel, images.shape[-1]))


def rotate(images: Tensor, angle: Tensor) -> Tensor:
    """Turned counter-clockwise by `angle` degrees about the centre, bilinear, black outside.

    As ``torchvision.transforms.functional.rotate``.
    """
    rows, _, height, width = images.shape
    radians = torch.deg2rad(angle)
    cosine, sine = torch.cos(radians)[:, None, None], torch.sin(radians)[:, None, None]
    # Pixel centres, measured from the centre of the image.
    y = (torch.arange(height, dtype=images.dtype, device=images.device) - (height - 1) / 2)[:, None]
    x = torch.arange(width, dtype=images.dtype, device=images.device) - (width - 1) / 2
    source_x = (cosine * x - sine * y) * (2 / width)
    source_y = (sine * x + cosine * y) * (2 / height)
    grid = torch.stack([source_x, source_y], dim=-1)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def cutout(images: Tensor, box: Tensor, fill: tuple[float, ...]) -> Tensor:
    """Box (top, left, height, width) of each row filled with a colour; 0 high is no box."""
    top, left, height, width = box.unbind(dim=1)
    y = torch.arange(images.shape[2], device=images.device)
    x = torch.arange(images.shape[3], device=images.device)
    in_height = (y >= top[:, None]) & (y < (top + height)[:, None])
    in_width = (x >= left[:, None]) & (x < (left + width)[:, None])
    inside = in_height[:, :, None] & in_width[:, None, :]
    channels = [
        torch.where(inside, value, channel)
        for value, channel in zip(fill, images.unbind(dim=1), strict=True)
    ]
    return torch.stack(channels, dim=2).permute(0, 2, 1, 3)


def add_noise(images: Tensor, noise: Tensor, deviation: Tensor) -> Tensor:
    """Standard normal `noise` times `deviation` is added, and cut off at 0 and 1."""
    return (images + column(deviation) * noise).clamp(0, 1)
