"""The pairs that an objective compares: the rows of z against the rows of z or of a teacher."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from likewise.graph.base import Graph
from likewise.graph.edges import edge_energy
from likewise.graph.views import ViewsGraph, across_views, views_energy


class Pairs:
    """The rectangular matrix A = G kron 1_V 1_U^T of n V rows against n U rows.

    Without `self_pairs`, a row is not compared with itself: A is 0 where sample and view agree
    (with a teacher, that is the same view of the same sample).
    """

    def __init__(
        self, samples: Graph, views: int = 1, target_views: int = 1, *, self_pairs: bool = False
    ) -> None:
        self.samples = samples
        self.views = views
        self.target_views = target_views
        self.self_pairs = self_pairs
        self.shape = (samples.n * views, samples.n * target_views)
        self._row_sums: dict[tuple[torch.dtype, bool], Tensor] = {}
        self._positive_row_sums: dict[torch.dtype, Tensor] = {}
        self._weighted_degrees: dict[tuple[torch.dtype, float], Tensor] = {}
        self._negative_pairs: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}

    @classmethod
    def of(cls, graph: Graph, target_views: int | None = None, *, self_pairs: bool) -> Pairs:
        """The pairs of a graph over views, against `target_views` views (default: its own)."""
        if isinstance(graph, ViewsGraph) or graph.n_views == 1:
            views = graph.n_views
            return cls(graph.samples, views, target_views or views, self_pairs=self_pairs)
        if target_views not in (None, graph.n_views):
            raise ValueError(
                f"target has {target_views} views a sample, but single pairs of views were "
                f"changed in this graph, which has {graph.n_views}: give a graph made by "
                "views(v), or as many target views"
            )
        return cls(graph, self_pairs=self_pairs)

    @property
    def nonnegative(self) -> bool:
        """Whether no pair can be "different"."""
        return self.samples.nonnegative

    @property
    def _shared_views(self) -> int:
        return 0 if self.self_pairs else min(self.views, self.target_views)

    @cached_property
    def _own_weight(self) -> Tensor | None:
        """G_ii, (n, 1, 1), where a row could meet itself; None where all of them are 1."""
        with torch.inference_mode(False):
            diagonal = self.samples._diagonal(torch.float64)
        return None if bool((diagonal == 1).all()) else diagonal[:, None, None]

    def __matmul__(self, target: Tensor) -> Tensor:
        """A t: for every row, the weighted sum of the rows that it is compared with."""
        return self._times(target, self.samples.__matmul__)

    def constant_product(self, target: Tensor) -> Tensor:
        """A t without a gradient, and without a look at what t is."""
        return self._times(target, self.samples._product)

    def _times(self, target: Tensor, times: Callable[[Tensor], Tensor]) -> Tensor:
        grouped = target.reshape(self.samples.n, self.target_views, -1)
        total = grouped.sum(dim=1) if self.target_views > 1 else grouped[:, 0]
        product = times(total)[:, None]
        shared = self._shared_views
        if shared == self.views == self.target_views and self._own_weight is None:
            return (product - grouped).reshape(self.shape[0], -1)
        product = product.expand(-1, self.views, -1)
        if shared:
            own = grouped[:, :shared]
            if self._own_weight is not None:
                own = self._own_weight.to(target.dtype) * own
            if shared < self.views:
                own = torch.nn.functional.pad(own, (0, 0, 0, self.views - shared))
            product = product - own
        return product.reshape(self.shape[0], -1)

    def block(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        """The dense block A[rows][:, columns]."""
        block = self.samples._block(rows // self.views, columns // self.target_views, dtype)
        if self.self_pairs:
            return block
        return block.masked_fill(self.is_self(rows[:, None], columns[None, :]), 0.0)

    def is_self(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Whether row and column are the same view of the same sample."""
        if self.views == self.target_views:
            return rows == columns
        same_sample = rows // self.views == columns // self.target_views
        return same_sample & (rows % self.views == columns % self.target_views)

    def positive_sums(self, target: Tensor) -> Tensor:
        """A+ t, with A+ the pairs that are alike: A without its negative entries."""
        sums = self @ target
        if self.nonnegative:
            return sums
        rows, columns, weight = self.negative_pairs(target.dtype)
        return sums.index_add(0, rows, weight[:, None] * target[columns])

    def positive_row_sums(self, dtype: torch.dtype) -> Tensor:
        """The row sums of A+."""
        if dtype not in self._positive_row_sums:
            with torch.inference_mode(False):
                self._positive_row_sums[dtype] = self._compute_positive_row_sums().to(dtype)
        return self._positive_row_sums[dtype]

    def weighted_degrees(self, dtype: torch.dtype, factor: float) -> Tensor:
        """The row sums of A+, times a factor."""
        if (dtype, factor) not in self._weighted_degrees:
            with torch.inference_mode(False):
                self._weighted_degrees[dtype, factor] = self.positive_row_sums(dtype) * factor
        return self._weighted_degrees[dtype, factor]

    def _compute_positive_row_sums(self) -> Tensor:
        sums = self.row_sums(torch.float64)
        if not self.nonnegative:
            rows, _, weight = self.negative_pairs(torch.float64)
            sums = sums.index_add(0, rows, weight)
        # A difference of sums: what is left of nothing is round-off.
        whole = self.samples._degrees(True, torch.float64).repeat_interleave(self.views)
        return torch.where(sums > 1e-12 * self.target_views * whole, sums, 0.0)

    @cached_property
    def total_weight(self) -> float:
        """The sum of |A|, from the sum of A and what is negative in it."""
        total = float(self.row_sums(torch.float64).sum())
        if not self.nonnegative:
            total += 2 * float(self.negative_pairs(torch.float64)[2].sum())
        return total

    @cached_property
    def empty(self) -> bool:
        """Whether nothing is compared (of the sum less its diagonal, round-off may be left)."""
        whole = float(self.samples._degrees(True, torch.float64).sum())
        return self.total_weight <= 1e-12 * whole * self.views * self.target_views

    def row_sums(self, dtype: torch.dtype, *, absolute: bool = False) -> Tensor:
        """The total weight of the pairs of every row."""
        if (dtype, absolute) not in self._row_sums:
            with torch.inference_mode(False):
                self._row_sums[dtype, absolute] = self._compute_row_sums(dtype, absolute)
        return self._row_sums[dtype, absolute]

    def _compute_row_sums(self, dtype: torch.dtype, absolute: bool) -> Tensor:
        degrees = self.samples._degrees(absolute, dtype) * self.target_views
        sums = degrees[:, None].repeat(1, self.views)
        shared = self._shared_views
        if shared:
            own = self.samples._diagonal(dtype)
            sums[:, :shared] -= (own.abs() if absolute else own)[:, None]
        return sums.reshape(-1)

    def energy(self, z: Tensor, target: Tensor) -> Tensor:
        """:math:`\\sum_{ij} A_{ij} |z_i - t_j|^2`, from differences."""
        energy = views_energy(self.samples, z, target, self.views, self.target_views)
        shared = self._shared_views
        if shared and target is not z:
            rows = z.reshape(self.samples.n, self.views, -1)[:, :shared]
            columns = target.reshape(self.samples.n, self.target_views, -1)[:, :shared]
            own = (rows - columns).square().sum(dim=(1, 2))
            energy = energy - (self.samples._diagonal(z.dtype) * own).sum()
        return energy

    def negative_pairs(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs that are known to be different: rows, columns and their |weight|."""
        if dtype not in self._negative_pairs:
            with torch.inference_mode(False):
                self._negative_pairs[dtype] = self._find_negative_pairs(dtype)
        return self._negative_pairs[dtype]

    def _find_negative_pairs(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        i, j = self.samples._negative_entries()
        weight = -self.samples._entries(i, j, dtype)
        # What is negative by one order of summation may be 0 by another.
        i, j, weight = (column[weight > 0] for column in (i, j, weight))
        rows, columns = across_views(i, j, self.views, self.target_views)
        weight = weight.repeat_interleave(self.views * self.target_views)
        if not self.self_pairs:
            keep = ~self.is_self(rows, columns)
            rows, columns, weight = rows[keep], columns[keep], weight[keep]
        return rows, columns, weight

    def attraction(self, z: Tensor, target: Tensor, margin: float) -> tuple[Tensor, Tensor]:
        """What pulls and what pushes, with a margin: the sums over pairs of
        :math:`A^+_{ij} |z_i - t_j|^2` and of :math:`A^-_{ij} \\max(0, m - |z_i - t_j|)^2`
        (without a margin, a pair that is different would repel without bound)."""
        energy = self.energy(z, target)
        if self.nonnegative:
            return energy, z.new_zeros(())
        rows, columns, weight = self.negative_pairs(z.dtype)
        pull = energy + edge_energy(z, target, rows, columns, weight)
        squares = (z[rows] - target[columns]).square().sum(dim=1)
        # Two rows in one place have no direction to part in; the gradient there is 0, not NaN.
        distance = torch.where(squares > 0, squares, 1.0).sqrt() * (squares > 0)
        return pull, (weight * (margin - distance).clamp_min(0).square()).sum()
