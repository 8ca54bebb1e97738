"""Triton kernels for the passes over a tile that are bound by memory.

A tile of similarities is read once where plain PyTorch reads and writes it four or more times.
Only float32 on CUDA takes this path; everywhere else, and without Triton, :mod:`.tiles` does the
same with PyTorch's own operations.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.pairwise.products import DROPPED_BITS

try:
    import triton
    import triton.language as tl
except ImportError:  # no GPU build: the plain path serves
    triton = None

HEIGHT, WIDTH = 64, 128


def is_fused(tile: Tensor) -> bool:
    """Whether these kernels can work on the tile."""
    # Offsets in a tile are 32 bits wide, and a grid's second side counts 65,535 blocks.
    small = tile.numel() < 2**31 and tile.shape[-1] < 65_535 * WIDTH
    return triton is not None and tile.is_cuda and tile.dtype == torch.float32 and small


if triton is not None:

    @triton.jit
    def _exp_sums(  # type: ignore[no-untyped-def]
        tile, by_row, by_column, height, width, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
    ):
        i, j = tl.program_id(0), tl.program_id(1)
        rows, columns = i * HEIGHT + tl.arange(0, HEIGHT), j * WIDTH + tl.arange(0, WIDTH)
        inside = (rows[:, None] < height) & (columns[None, :] < width)
        at = rows[:, None] * width + columns[None, :]
        exponentials = tl.exp(tl.load(tile + at, mask=inside, other=-float("inf")))
        tl.store(by_row + j * height + rows, tl.sum(exponentials, 1), mask=rows < height)
        tl.store(by_column + i * width + columns, tl.sum(exponentials, 0), mask=columns < width)

    @triton.jit
    def _slopes(  # type: ignore[no-untyped-def]
        tile,
        high,
        row_factor,
        column_factor,
        height,
        width,
        DROPPED: tl.constexpr,
        SPLIT: tl.constexpr,
        HEIGHT: tl.constexpr,
        WIDTH: tl.constexpr,
    ):
        i, j = tl.program_id(0), tl.program_id(1)
        rows, columns = i * HEIGHT + tl.arange(0, HEIGHT), j * WIDTH + tl.arange(0, WIDTH)
        inside = (rows[:, None] < height) & (columns[None, :] < width)
        at = rows[:, None] * width + columns[None, :]
        first = tl.load(row_factor + rows, mask=rows < height, other=0.0)
        second = tl.load(column_factor + columns, mask=columns < width, other=0.0)
        value = tl.exp(tl.load(tile + at, mask=inside, other=0.0))
        value = value * (first[:, None] + second[None, :])
        if SPLIT:
            bits = value.to(tl.int32, bitcast=True) + (1 << (DROPPED - 1))
            rounded = ((bits >> DROPPED) << DROPPED).to(tl.float32, bitcast=True)
            tl.store(high + at, rounded, mask=inside)
            tl.store(tile + at, value - rounded, mask=inside)
        else:
            tl.store(tile + at, value, mask=inside)


def exp_sums(tile: Tensor) -> tuple[Tensor, Tensor]:
    """The row and column sums of exp(tile), in one read and a fixed order."""
    height, width = tile.shape
    grid = (-(-height // HEIGHT), -(-width // WIDTH))
    by_row = tile.new_empty(grid[1], height)
    by_column = tile.new_empty(grid[0], width)
    # A kernel is launched on the current device, which need not be the tile's.
    with torch.cuda.device(tile.device):
        _exp_sums[grid](tile, by_row, by_column, height, width, HEIGHT, WIDTH)
    return by_row.sum(0), by_column.sum(0)


def symmetric_slopes_(
    tile: Tensor, high: Tensor | None, row_factor: Tensor, column_factor: Tensor
) -> None:
    """tile <- exp(tile) (f_i + f_j), written as its TF32 part to `high` and the rest to `tile`
    (or whole to `tile`, without `high`)."""
    height, width = tile.shape
    grid = (-(-height // HEIGHT), -(-width // WIDTH))
    with torch.cuda.device(tile.device):
        _slopes[grid](
            tile,
            tile if high is None else high,
            row_factor,
            column_factor,
            height,
            width,
            DROPPED_BITS,
            high is not None,
            HEIGHT,
            WIDTH,
        )
