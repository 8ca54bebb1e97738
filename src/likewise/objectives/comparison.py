"""Who is compared with whom in a contrastive objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from likewise.objectives.batch import Batch
from likewise.objectives.denominators import PositiveWeights


@dataclass(frozen=True)
class Comparison:
    """Anchors and what they are compared with: everybody, or everybody in one view."""

    batch: Batch
    queries: Tensor
    target: Tensor
    keys: Tensor
    negatives: Tensor | None
    rows: Tensor | None
    """The row numbers of the anchors; None means all rows."""
    columns: Tensor | None
    """The row numbers of the keys in the target; None means all rows."""
    scale: float | Tensor
    all_degrees: Tensor | None = None
    """The total weight of the anchors' positives in all views, where this is one of them."""

    @property
    def numbers(self) -> Tensor:
        """The row numbers of the anchors."""
        if self.rows is not None:
            return self.rows
        return torch.arange(len(self.queries), device=self.queries.device)

    def against_view(self, view: int) -> Comparison:
        """The keys of one view, and the anchors that are in another one."""
        rows = self.numbers
        columns = torch.arange(view, len(self.target), self.batch.target_views, device=rows.device)
        keep = rows % self.batch.views != view
        return replace(
            self,
            queries=self.queries[keep],
            keys=self.target[columns],
            rows=rows[keep],
            columns=columns,
            scale=self.scale[keep] if isinstance(self.scale, Tensor) else self.scale,
        )

    @cached_property
    def _in_view(self) -> Tensor | None:
        """1 for the target's rows in the view, (M, 1)."""
        if self.columns is None:
            return None
        mask = self.target.new_zeros(len(self.target), 1)
        mask[self.columns] = 1.0
        return mask

    @cached_property
    def degrees(self) -> Tensor:
        """d_i, the total weight of the positives of every anchor."""
        pairs = self.batch.pairs
        if self._in_view is None:
            degrees = pairs.positive_row_sums(self.target.dtype)
        else:
            degrees = pairs.positive_sums(self._in_view)[:, 0]
        return degrees if self.rows is None else degrees[self.rows]

    @cached_property
    def positive_sums(self) -> Tensor:
        """sum_j A+_ij t_j for every anchor, by a graph product."""
        target = self.target if self._in_view is None else self.target * self._in_view
        sums = self.batch.pairs.positive_sums(target)
        return sums if self.rows is None else sums[self.rows]

    @property
    def positive_weights(self) -> PositiveWeights:
        """A+ tile by tile, where the similarity is not linear."""
        return PositiveWeights(self.batch.pairs, self.rows, self.columns)
