"""Operations that only some rows of a batch undergo."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def column(values: Tensor) -> Tensor:
    """One number per row, to be multiplied with images: (rows, 1, 1, 1)."""
    return values[:, None, None, None]


def selects_rows(images: Tensor) -> bool:
    """Whether it pays to compute the chosen rows only: on a CPU, without compilation.

    Compiled code and GPUs compute all rows and select from the results: it fuses, and nothing
    waits to learn how many rows were chosen.
    """
    return images.device.type == "cpu" and not torch.compiler.is_compiling()


def on_rows(
    chosen: Tensor, operation: Callable[..., Tensor], images: Tensor, *parameters: Tensor
) -> Tensor:
    """`operation(images, *parameters)` on the chosen rows; the others stay as they are.

    Where :func:`selects_rows`, they are written into `images`: pass images that nobody else holds.

    >>> images, ones = torch.zeros(2, 3, 1, 1), torch.ones(2, 3, 1, 1)
    >>> on_rows(torch.tensor([True, False]), torch.add, images, ones)[:, 0, 0, 0]
    tensor([1., 0.])
    """
    if not selects_rows(images):
        return torch.where(column(chosen), operation(images, *parameters), images)
    rows = chosen.nonzero()[:, 0]
    if len(rows) == 0:
        return images
    changed = operation(images[rows], *(values[rows] for values in parameters))
    return images.index_copy_(0, rows, changed)
