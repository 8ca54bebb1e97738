"""Rows of past batches: MoCo's negatives, NNCLR's support set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from likewise.information.precision import at_least_float32, without_autocast

_TILE = 1 << 26  # similarities held at a time: 256 MiB of float32


class Nearest(NamedTuple):
    """What :meth:`Queue.nearest` finds, a row per query."""

    rows: Tensor
    """(n, dim): the nearest row."""
    similarity: Tensor
    """(n,): its cosine with the query."""
    samples: Tensor
    """(n,): the number of the sample that it came from, -1 where that is not known."""


class Queue(nn.Module):
    """The last `size` rows that were pushed, oldest out first.

    Rows, the place of the next one and the fill are buffers and survive a checkpoint. Under
    several processes push the rows of all ranks in rank order (:func:`likewise.distributed
    .gather_rows`): the queue is then the same everywhere. Nothing waits for the device.

    Args:
        dim: the width of a row.
        size: how many rows are kept (MoCo: 65,536; NNCLR: 98,304).
        seed: start full, with random unit rows from this seed, as MoCo does: the shape of
            ``rows()`` is then the same from the first step. Default: start empty.

    >>> queue = Queue(dim=2, size=3)
    >>> queue.push(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), samples=torch.tensor([7, 8]))
    >>> queue.rows()
    tensor([[1., 0.],
            [0., 1.]])
    >>> queue.nearest(torch.tensor([[0.1, 3.0]])).samples
    tensor([8])
    """

    buffer: Tensor
    samples: Tensor
    position: Tensor
    filled: Tensor

    def __init__(self, dim: int, size: int, *, seed: int | None = None) -> None:
        super().__init__()
        for name, value in (("dim", dim), ("size", size)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}: give a whole number of at least 1")
        self.dim = dim
        self.size = size
        start = torch.zeros(size, dim)
        if seed is not None:
            generator = torch.Generator().manual_seed(seed)
            start = F.normalize(torch.randn(size, dim, generator=generator), dim=1)
        # The counters are kept twice: in buffers, which a checkpoint saves, and as numbers, so
        # that no step has to read them back from the device.
        self._position = 0
        self._filled = 0 if seed is None else size
        self.register_buffer("buffer", start)
        self.register_buffer("samples", torch.full((size,), -1))
        self.register_buffer("position", torch.tensor(self._position))
        self.register_buffer("filled", torch.tensor(self._filled))

    def __len__(self) -> int:
        return self._filled

    @torch.no_grad()
    def push(self, rows: Tensor, samples: Tensor | None = None) -> None:
        """Put rows in, in place of the oldest.

        Args:
            rows: (n, dim), any number; of more than `size` rows the last ones stay.
            samples: (n,) whole numbers: which sample each row came from. Default: -1, unknown.
        """
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise ValueError(f"rows has shape {tuple(rows.shape)}: give (n, {self.dim})")
        if samples is not None and samples.shape != rows.shape[:1]:
            raise ValueError(
                f"samples has shape {tuple(samples.shape)}: give one number a row, ({len(rows)},)"
            )
        # As if pushed one by one: where there are too many, the first are overwritten.
        surplus = max(len(rows) - self.size, 0)
        self._position = (self._position + surplus) % self.size
        rows = rows[surplus:].to(self.buffer.dtype)
        samples = None if samples is None else samples[surplus:]
        first = min(self.size - self._position, len(rows))
        self._write(self._position, rows[:first], samples if samples is None else samples[:first])
        self._write(0, rows[first:], samples if samples is None else samples[first:])
        self._position = (self._position + len(rows)) % self.size
        self._filled = min(self._filled + len(rows), self.size)
        self.position.fill_(self._position)
        self.filled.fill_(self._filled)

    def _write(self, start: int, rows: Tensor, samples: Tensor | None) -> None:
        self.buffer[start : start + len(rows)] = rows
        self.samples[start : start + len(rows)] = -1 if samples is None else samples

    def rows(self) -> Tensor:
        """A copy of the rows that were pushed, (filled, dim), in no order of age.

        A copy, so that a push between a loss and its backward leaves the gradient alone.
        """
        return self.buffer[: self._filled].clone()

    @torch.no_grad()
    def nearest(self, queries: Tensor) -> Nearest:
        """The row with the largest cosine for every query (n, dim); float32 at least, in tiles."""
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise ValueError(f"queries has shape {tuple(queries.shape)}: give (n, {self.dim})")
        if self._filled == 0:
            raise ValueError("the queue is empty: push rows first, or give a seed")
        similarity, place = _nearest(queries, self.buffer[: self._filled])
        return Nearest(self.buffer[place], similarity, self.samples[place])

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self._position = int(self.position)
        self._filled = int(self.filled)

    def extra_repr(self) -> str:
        """Width, size and fill."""
        return f"dim={self.dim}, size={self.size}, filled={self._filled}"


@without_autocast
def _nearest(queries: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The largest cosine of every query and the place of its row."""
    rows = F.normalize(at_least_float32(rows), dim=1)
    queries = F.normalize(at_least_float32(queries), dim=1).to(rows.dtype)
    chunk = max(_TILE // len(rows), 1)
    found = [(part @ rows.T).max(dim=1) for part in queries.split(chunk)]
    return torch.cat([f.values for f in found]), torch.cat([f.indices for f in found])
