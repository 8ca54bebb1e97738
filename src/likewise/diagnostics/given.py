"""What a diagnostic may be given: rows, views and labels, checked before work starts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from likewise.evaluation.task import class_indices
from likewise.graph.arrays import Array, as_tensor
from likewise.information.precision import at_least_float32

ROWS_AT_ONCE = 8192
"""Rows that are held in float64 at a time: 32 MiB for 512 dimensions."""


def rows_of(value: Array, name: str, *, at_least: int = 1) -> Tensor:
    """Rows (n, d) as they are (half precision as float32), finite, or an error naming `name`.

    A million rows are looked at in chunks and not copied.

    >>> rows_of(torch.ones(3, 2), "z").shape
    torch.Size([3, 2])
    """
    rows = as_tensor(value).detach()
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)}: give one row of numbers per sample, (n, d)"
        )
    if rows.is_complex() or not rows.is_floating_point():
        raise ValueError(f"{name} holds {rows.dtype} values: give real floating-point numbers")
    if len(rows) < at_least:
        raise ValueError(f"{name} has {len(rows)} rows: give at least {at_least}")
    for start, chunk in chunks(rows):
        if not bool(torch.isfinite(chunk).all()):
            row = start + int((~torch.isfinite(chunk)).any(dim=1).nonzero()[0])
            raise ValueError(
                f"{name} holds NaN or infinity (the first in row {row}): leave these rows out, or "
                "look for the step that diverged"
            )
    return at_least_float32(rows)


def chunks(rows: Tensor, size: int = ROWS_AT_ONCE) -> Iterator[tuple[int, Tensor]]:
    """(number of the first row, rows), `size` rows at a time."""
    for start in range(0, len(rows), size):
        yield start, rows[start : start + size]


def wide_chunks(rows: Tensor, *, unit: bool = False) -> Iterator[tuple[int, Tensor]]:
    """The same in float64, and with rows of length 1 where `unit`."""
    for start, chunk in chunks(rows):
        chunk = chunk.double()
        yield start, unit_rows(chunk) if unit else chunk


def unit_rows(rows: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros stays.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    smallest = torch.finfo(rows.dtype).tiny
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    # Squares of very long or short rows overflow or vanish: these are scaled first.
    safe = smallest**0.25
    zero = lengths == 0
    usual = bool(((lengths < 1 / safe) & ((lengths > safe) | zero)).all())
    if usual and not bool(rows[zero[:, 0]].any()):
        return rows / lengths.clamp_min(smallest)
    scaled = rows / rows.abs().amax(dim=1, keepdim=True).clamp_min(smallest)
    return scaled / torch.linalg.vector_norm(scaled, dim=1, keepdim=True).clamp_min(smallest)


def pair_of(
    first: Array, second: Array, first_name: str, second_name: str, *, at_least: int = 1
) -> tuple[Tensor, Tensor]:
    """Two views of the same samples: rows of equal shape."""
    one = rows_of(first, first_name, at_least=at_least)
    two = rows_of(second, second_name, at_least=at_least)
    if one.shape != two.shape:
        raise ValueError(
            f"{first_name} has shape {tuple(one.shape)} and {second_name} has {tuple(two.shape)}: "
            "give two views of the same samples, row for row"
        )
    return one, two.to(one.device)


def same_samples(first: Tensor, second: Tensor, first_name: str, second_name: str) -> None:
    """Raise unless both have one row for every sample."""
    if len(first) != len(second):
        raise ValueError(
            f"{first_name} has {len(first)} rows and {second_name} has {len(second)}: give both "
            "for the same samples, row for row"
        )


def labels_of(value: Any, n: int, name: str = "labels", device: Any = None) -> Tensor:
    """Class indices (n,), -1 where unknown, or an error naming `name`."""
    return class_indices(value, n, name, device)


def weight_of(value: Array, name: str = "weight") -> Tensor:
    """A weight (d_out, d_in) as nn.Linear holds it, in float64."""
    weight = as_tensor(value).detach()
    if weight.ndim != 2 or 0 in weight.shape:
        raise ValueError(
            f"{name} has shape {tuple(weight.shape)}: give the matrix (d_out, d_in) of a linear "
            "layer, as nn.Linear holds it"
        )
    weight = weight.double()
    if not bool(torch.isfinite(weight).all()):
        raise ValueError(f"{name} holds NaN or infinity: look for the step that diverged")
    return weight


def positive(name: str, value: float, example: str) -> float:
    """`value` as a finite number above 0, or an error."""
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} is {value!r}: give a positive number ({example})")
    return float(value)


def one_of(name: str, value: str, options: tuple[str, ...]) -> None:
    """Raise unless `value` is one of the options."""
    if value not in options:
        raise ValueError(f"{name} is {value!r}: give one of {', '.join(map(repr, options))}")


def drawn(n: int, most: int | None, seed: int, name: str) -> Tensor | None:
    """Row numbers of a random sample without replacement, in order; None for all n rows."""
    if most is None:
        return None
    if isinstance(most, bool) or not isinstance(most, int) or most < 2:
        raise ValueError(f"{name} is {most!r}: give how many to draw, at least 2, or None for all")
    if most >= n:
        return None
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return order[:most].sort().values
