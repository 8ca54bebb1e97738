"""Differentiable gather and reduce.

Every collective here is a linear map and its backward is that map's exact adjoint. The sum of
what all ranks return is then differentiated as written: when each of W ranks returns the global
loss L and calls ``backward``, every rank holds W dL/dz for its own rows, and DDP's averaging over
W ranks leaves dL/dw, the gradient of one process on the global batch.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    """The number of processes that train together (1 when none were started)."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process among them."""
    return dist.get_rank() if world_size() > 1 else 0


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, counts: tuple[int, ...]) -> Tensor:
        ctx.counts = counts
        # A collective moves equal shapes: pad to the longest rank, then cut.
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows
        received = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(received, padded)
        return torch.cat([part[:count] for part, count in zip(received, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        # The adjoint of "everybody receives all rows" is "the owner sums what all send back";
        # averaging instead is the known trap.
        total = sum_over_ranks(gradients[0])
        first = sum(ctx.counts[: rank()])
        return total[first : first + ctx.counts[rank()]], None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.contiguous().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return sum_over_ranks(gradients[0])


def row_counts(rows: Tensor) -> tuple[int, ...]:
    """How many rows every rank holds, in rank order."""
    if world_size() == 1:
        return (rows.shape[0],)
    own = torch.tensor([len(rows)], device=rows.device)
    received = [torch.empty_like(own) for _ in range(world_size())]
    dist.all_gather(received, own)
    return tuple(int(count) for count in torch.cat(received))


def gather_rows(rows: Tensor, counts: tuple[int, ...] | None = None) -> Tensor:
    """The rows of all ranks, in rank order; the gradient of every row returns to its owner.

    Ranks may hold different numbers of rows.

    >>> gather_rows(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if world_size() == 1:
        return rows
    gathered: Tensor = _Gather.apply(rows, counts or row_counts(rows))
    return gathered


def sum_over_ranks(value: Tensor) -> Tensor:
    """The sum of a tensor over all ranks, with its exact adjoint as the backward.

    >>> sum_over_ranks(torch.tensor(2.0))
    tensor(2.)
    """
    if world_size() == 1:
        return value
    total: Tensor = _Sum.apply(value)
    return total
