"""Sparse signed pairs: answers and neighbours."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from likewise.graph.arrays import Array, as_tensor, floating, is_numpy
from likewise.graph.base import Graph

ENERGY_CHUNK = 1 << 18
"""Edges whose differences are held at a time: 10,000,000 edges must not cost 10,000,000 rows."""


class _EdgeEnergy(torch.autograd.Function):
    """sum_k w_k |z_{i_k} - t_{j_k}|^2 in chunks, with differences recomputed in the backward."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, t: Tensor, i: Tensor, j: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(z, t, i, j, weight)
        total = z.new_zeros(())
        for a, b, w in _chunks(i, j, weight):
            total = total + ((z[a] - t[b]).square().sum(dim=1) * w).sum()
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        z, t, i, j, weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Asked for a second derivative: give autograd the plain form to differentiate.
            difference = (z[i] - t[j]) * (2 * gradients[0] * weight)[:, None]
            return (
                torch.zeros_like(z).index_add(0, i, difference),
                torch.zeros_like(t).index_add(0, j, -difference),
                None,
                None,
                None,
            )
        dz, dt = torch.zeros_like(z), torch.zeros_like(t)
        for a, b, w in _chunks(i, j, weight):
            difference = (z[a] - t[b]) * (2 * gradients[0] * w)[:, None]
            dz.index_add_(0, a, difference)
            dt.index_add_(0, b, difference, alpha=-1)
        return dz, dt, None, None, None


def _chunks(i: Tensor, j: Tensor, weight: Tensor) -> Any:
    return zip(
        i.split(ENERGY_CHUNK), j.split(ENERGY_CHUNK), weight.split(ENERGY_CHUNK), strict=True
    )


def edge_energy(z: Tensor, target: Tensor, i: Tensor, j: Tensor, weight: Tensor) -> Tensor:
    """:math:`\\sum_k w_k |z_{i_k} - t_{j_k}|^2` over a list of ordered pairs."""
    return _EdgeEnergy.apply(z, target, i, j, weight)


class EdgeGraph(Graph):
    """A sparse symmetric matrix: every unordered pair (i <= j) is stored once, in order."""

    def __init__(self, i: Tensor, j: Tensor, weight: Tensor, n: int) -> None:
        self.n = n
        self.i = i
        self.j = j
        self.weight = weight

    @property
    def device(self) -> torch.device:
        """Where the edges live."""
        return self.i.device

    @property
    def n_edges(self) -> int:
        """The number of unordered pairs stored."""
        return len(self.i)

    @cached_property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether no edge says "different"."""
        return bool((self.weight >= 0).all())

    @cached_property
    def _keys(self) -> Tensor:
        return self.i * self.n + self.j

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Both directions of every edge by row: (row pointers, columns, edge numbers)."""
        with torch.inference_mode(False):
            return self._compute_rows()

    def _compute_rows(self) -> tuple[Tensor, Tensor, Tensor]:
        edge = torch.arange(self.n_edges, device=self.device)
        mirrored = edge[self.i != self.j]
        rows = torch.cat([self.i, self.j[mirrored]])
        columns = torch.cat([self.j, self.i[mirrored]])
        edge = torch.cat([edge, mirrored])
        order = torch.argsort(rows * self.n + columns)
        counts = torch.bincount(rows, minlength=self.n)
        pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return pointers, columns[order], edge[order]

    def _sparse(self, dtype: torch.dtype) -> Tensor:
        pointers, columns, edge = self._rows
        with warnings.catch_warnings():
            # PyTorch calls its compressed matrices beta, and warns that it does not check what is
            # right by construction; the one product used here is tested.
            warnings.filterwarnings("ignore", message="Sparse (CSR tensor|invariant checks)")
            return torch.sparse_csr_tensor(
                pointers,
                columns,
                self.weight[edge].to(dtype),
                size=(self.n, self.n),
                check_invariants=False,
            )

    def _product(self, z: Tensor) -> Tensor:
        return self._sparse(z.dtype) @ z

    def _matches(self, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Positions (a, b) with an edge between rows[a] and columns[b], and its number.

        Costs the degrees of `rows`, not the number of edges; repeats are matched as often as
        they occur."""
        pointers, neighbours, edge = self._rows
        start, count = pointers[rows], pointers[rows + 1] - pointers[rows]
        a = torch.repeat_interleave(torch.arange(len(rows), device=self.device), count)
        within = torch.arange(len(a), device=self.device) - (count.cumsum(0) - count)[a]
        slot = start[a] + within
        ordered, order = torch.sort(columns, stable=True)
        low = torch.searchsorted(ordered, neighbours[slot])
        hits = torch.searchsorted(ordered, neighbours[slot], right=True) - low
        a, low, slot = (torch.repeat_interleave(value, hits) for value in (a, low, slot))
        first = torch.repeat_interleave(hits.cumsum(0) - hits, hits)
        b = order[low + torch.arange(len(a), device=self.device) - first]
        return a, b, edge[slot]

    def _block(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        block = torch.zeros(len(rows), len(columns), dtype=dtype, device=self.device)
        a, b, edge = self._matches(rows, columns)
        block[a, b] = self.weight[edge].to(dtype)
        return block

    def _entries(self, i: Tensor, j: Tensor, dtype: torch.dtype) -> Tensor:
        if self.n_edges == 0:
            return torch.zeros(len(i), dtype=dtype, device=self.device)
        keys = torch.minimum(i, j) * self.n + torch.maximum(i, j)
        position = torch.searchsorted(self._keys, keys).clamp_max(self.n_edges - 1)
        found = self._keys[position] == keys
        return torch.where(found, self.weight[position].to(dtype), 0.0)

    def _subset(self, rows: Tensor) -> Graph:
        a, b, edge = self._matches(rows, rows)
        keep = a <= b
        a, b, weight = a[keep], b[keep], self.weight[edge[keep]]
        order = torch.argsort(a * len(rows) + b)
        return EdgeGraph(a[order], b[order], weight[order], len(rows))

    def _scaled(self, scale: Tensor) -> Graph:
        weight = self.weight * scale[self.i] * scale[self.j]
        return EdgeGraph(self.i, self.j, weight, self.n)

    def _times(self, factor: float) -> Graph:
        return EdgeGraph(self.i, self.j, self.weight * factor, self.n)

    def _known(self) -> Graph:
        return EdgeGraph(self.i, self.j, torch.ones_like(self.weight), self.n)

    def _to(self, device: torch.device) -> Graph:
        return EdgeGraph(self.i.to(device), self.j.to(device), self.weight.to(device), self.n)

    def _degrees(self, absolute: bool, dtype: torch.dtype) -> Tensor:
        weight = (self.weight.abs() if absolute else self.weight).to(dtype)
        degrees = torch.zeros(self.n, dtype=dtype, device=self.device)
        degrees.index_add_(0, self.i, weight)
        off = self.i != self.j
        return degrees.index_add_(0, self.j[off], weight[off])

    def _negative_entries(self) -> tuple[Tensor, Tensor]:
        i, j = self.i[self.weight < 0], self.j[self.weight < 0]
        off = i != j
        return torch.cat([i, j[off]]), torch.cat([j, i[off]])

    def _energy(self, z: Tensor, target: Tensor) -> Tensor:
        weight = self.weight.to(z.dtype)
        if target is z:
            return 2 * edge_energy(z, z, self.i, self.j, weight)
        off = self.i != self.j
        return edge_energy(z, target, self.i, self.j, weight) + edge_energy(
            z, target, self.j[off], self.i[off], weight[off]
        )


def from_edges(i: Array, j: Array, weight: Any = 1.0, *, n: int | None = None) -> Graph:
    """Answers: an edge between i and j of weight +1 (alike), -1 (different) or any other.

    Each unordered pair counts once: the same pair twice with the same weight is one edge, with
    another weight an error (a symmetric graph has one value for a pair). An explicit weight of 0
    is a known pair; a pair that is not listed is unknown (``pal`` eq. 15).

    >>> import torch
    >>> graph = from_edges(torch.tensor([0, 1]), torch.tensor([1, 2]), torch.tensor([1.0, -1.0]))
    >>> graph.dense().int().tolist()
    [[0, 1, 0], [1, 0, -1], [0, -1, 0]]
    """
    first, second = as_tensor(i), as_tensor(j)
    for name, value in (("i", first), ("j", second)):
        if value.ndim != 1 or value.is_floating_point() or value.dtype == torch.bool:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)} and dtype {value.dtype}: give a list of "
                "node numbers"
            )
    if len(first) != len(second):
        raise ValueError(f"i has {len(first)} ends and j has {len(second)}: give one j for every i")
    first, second = first.long(), second.long().to(first.device)
    weights = floating(as_tensor(weight, first.device))
    if weights.ndim == 0:
        weights = weights.expand(len(first))
    if weights.shape != first.shape:
        raise ValueError(
            f"weight has shape {tuple(weights.shape)} for {len(first)} edges: give one weight per "
            "edge, or a single number"
        )
    if not bool(torch.isfinite(weights).all()):
        raise ValueError("weight holds NaN or infinity: leave out pairs whose answer is unknown")
    largest = int(torch.maximum(first, second).max()) if len(first) else -1
    if n is None:
        n = largest + 1
    if len(first) and (int(torch.minimum(first, second).min()) < 0 or largest >= n):
        raise ValueError(
            f"the edges name nodes from {int(torch.minimum(first, second).min())} to {largest}, "
            f"but n is {n}: nodes are numbered 0 to n - 1"
        )
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    keys, order = torch.sort(low * max(n, 1) + high)
    weights = weights[order]
    repeated = keys[1:] == keys[:-1]
    if bool(repeated.any()):
        clash = repeated & (weights[1:] != weights[:-1])
        if bool(clash.any()):
            at = int(clash.nonzero()[0])
            raise ValueError(
                f"the pair ({int(keys[at]) // n}, {int(keys[at]) % n}) is given twice, with "
                f"weights {float(weights[at])} and {float(weights[at + 1])}: the graph is "
                "symmetric and a pair has one weight; resolve conflicting answers first"
            )
        keep = torch.cat([repeated.new_ones(1), ~repeated])
        keys, weights = keys[keep], weights[keep]
    low = torch.div(keys, max(n, 1), rounding_mode="floor")
    graph = EdgeGraph(low, keys - low * max(n, 1), weights.contiguous(), n)
    graph.answers_numpy = is_numpy(i, j)
    return graph
