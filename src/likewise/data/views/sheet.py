"""A sheet of example views, to look at what a policy does."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.data.views.views import Views

GAP = 2
"""Pixels between images."""


def view_sheet(views: Views, pixels: Tensor, generator: torch.Generator) -> Tensor:
    """An image of each sample (left) and all its views: uint8 (3, height, width), white between.

    >>> views = Views("simclr", 32, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    >>> pixels = torch.zeros(4, 3, 32, 32, dtype=torch.uint8)
    >>> view_sheet(views, pixels, torch.Generator().manual_seed(0)).shape
    torch.Size([3, 138, 104])
    """
    groups = views(pixels, generator=generator)
    mean, std = (
        torch.tensor(x, device=pixels.device)[:, None, None] for x in (views.mean, views.std)
    )
    lines = []
    for i, sample in enumerate(pixels):
        tiles = [sample]
        for (count, _), images in zip(views.crops, groups, strict=True):
            shown = images[i * count : (i + 1) * count] * std + mean
            tiles.extend((shown.clamp(0, 1) * 255).round().to(torch.uint8))
        lines.append(_side_by_side(tiles))
    sheet = torch.cat(lines, dim=1)
    return torch.nn.functional.pad(sheet, (GAP, 0, GAP, 0), value=255)


def _side_by_side(tiles: list[Tensor]) -> Tensor:
    """Tiles in a row with a gap to the right and below; smaller ones get more of it below."""
    height = max(tile.shape[1] for tile in tiles) + GAP
    framed = [
        torch.nn.functional.pad(tile, (0, GAP, 0, height - tile.shape[1]), value=255)
        for tile in tiles
    ]
    return torch.cat(framed, dim=2)
