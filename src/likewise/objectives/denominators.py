"""Who stands in the denominator of a contrastive objective, tile by tile."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from likewise.graph import Pairs
from likewise.graph.factored import FactoredGraph
from likewise.pairwise.reductions import PairWeights
from likewise.pairwise.tiles import NoSelf

Denominator = Literal["other-view", "negatives", "all", "all-and-self"]
DENOMINATORS = ("other-view", "negatives", "all", "all-and-self")


class DenominatorWeights:
    """The weight w_ik of column k in the denominator of row i.

    A pair counts 1 where it is a candidate, and a pair known to be different counts |A_ik| more.
    Candidates are all columns, less the row itself (unless "all-and-self"), less those alike
    (for "negatives" and "other-view"), less those of which nothing is known (unknown="ignore").
    Extra columns beyond the pairs are the queue: alike to nobody, weight 1.
    """

    def __init__(
        self,
        pairs: Pairs,
        known: Pairs | None,
        denominator: Denominator,
        *,
        rows: Tensor | None = None,
        columns: Tensor | None = None,
        in_batch: bool = True,
    ) -> None:
        self.pairs = pairs
        self.known = known
        self.with_self = denominator == "all-and-self"
        self.with_alike = denominator in ("all", "all-and-self")
        self.rows = rows
        self.columns = columns
        self.in_batch = in_batch
        self.width = pairs.shape[1] if columns is None else len(columns)
        self.needs_graph = (
            not self.with_alike or known is not None or not pairs.nonnegative or not in_batch
        )
        samples = pairs.samples
        # Alike only to itself: away from the diagonal there is nothing to look up.
        self.only_own_sample = (
            isinstance(samples, FactoredGraph)
            and samples.labels is None
            and samples.codes is None
            and known is None
            and in_batch
            and samples.nonnegative
        )
        self.symmetric = rows is None and columns is None and pairs.views == pairs.target_views

    def simplest(self, width: int) -> PairWeights | None:
        """The same weights for `width` columns in the form that costs least."""
        if self.needs_graph or not self.symmetric or width != self.width:
            return self
        return None if self.with_self else NoSelf()

    def tile(self, rows: slice, columns: slice, like: Tensor) -> Tensor | None:
        """The dense block of weights, or None where all are 1."""
        device = like.device
        width = min(columns.stop, self.width) - columns.start
        if width <= 0:
            return None
        if not self.needs_graph and self.with_self:
            return None
        if self.rows is None and self.columns is None and self._off_diagonal(rows, columns):
            return None
        row = _numbers(rows, self.rows, device)
        column = _numbers(slice(columns.start, columns.start + width), self.columns, device)
        weights = self._weights(row, column, like.dtype)
        extra = columns.stop - columns.start - width
        return torch.nn.functional.pad(weights, (0, extra), value=1.0) if extra else weights

    def _off_diagonal(self, rows: slice, columns: slice) -> bool:
        """Whether no row meets its own sample in this tile, and nothing else is special."""
        if self.needs_graph and not self.only_own_sample:
            return False
        views, others = self.pairs.views, self.pairs.target_views
        first, last = rows.start // views, (rows.stop - 1) // views
        return last < columns.start // others or (columns.stop - 1) // others < first

    def _weights(self, row: Tensor, column: Tensor, dtype: torch.dtype) -> Tensor:
        own = self.pairs.is_self(row[:, None], column[None, :])
        if not self.needs_graph:
            return (~own).to(dtype)
        block = self.pairs.block(row, column, dtype)
        if self.in_batch:
            weights = torch.ones_like(block)
            if self.known is not None:
                weights = (self.known.block(row, column, dtype) > 0).to(dtype)
                if self.with_self:
                    weights = weights.masked_fill(own, 1.0)
        else:
            weights = (block > 0).to(dtype)
        if not self.with_alike:
            weights = weights.masked_fill(block > 0, 0.0)
        if not self.pairs.nonnegative and self.in_batch:
            weights = weights + (-block).clamp_min(0)
        return weights if self.with_self else weights.masked_fill(own, 0.0)


class PositiveWeights:
    """The weight max(A_ik, 0) of column k among those alike to row i."""

    symmetric = False

    def __init__(self, pairs: Pairs, rows: Tensor | None, columns: Tensor | None) -> None:
        self.pairs = pairs
        self.rows = rows
        self.columns = columns

    def tile(self, rows: slice, columns: slice, like: Tensor) -> Tensor:
        """The dense block of weights."""
        row = _numbers(rows, self.rows, like.device)
        column = _numbers(columns, self.columns, like.device)
        return self.pairs.block(row, column, like.dtype).clamp_min(0)


def _numbers(span: slice, given: Tensor | None, device: torch.device) -> Tensor:
    if given is not None:
        return given[span]
    return torch.arange(span.start, span.stop, device=device)
