"""Attract the own prototype, repel the nearest other one."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from likewise.distributed import sum_over_ranks
from likewise.graph.kind import TILE_ROWS
from likewise.objectives.base import Objective, Reduction, one_of, positive
from likewise.objectives.batch import Batch, unit_rows


class PrototypeContrast(Objective):
    r"""The supervised objective that contrastive losses approximate, ``balanced`` eq. 3-7.

    .. math::
        \frac1N \sum_i \Big[ -s(z_i, \mu_i) + \lambda \max_{j \text{ not alike}} s(z_i, \mu_j)
        \Big], \qquad \mu_i = \frac{\sum_k G^+_{ik} t_k}{\sum_k G^+_{ik}}

    with s the cosine. On a label graph the :math:`\mu` are the class means (eq. 4-5); on
    ``Graph.identity(n).views(v)`` they are the means over an image's views, the surrogate
    prototypes of eq. 6. Ties of the maximum go to the lower index. A row that is alike to nobody
    contributes nothing, and nobody is repelled where all are alike.

    Args:
        weight: the paper's :math:`\lambda`.
        attract: "prototype" attracts :math:`\mu_i` (eq. 5), "views" the mean over the sample's own
            views (eq. 7: surrogate to attract, class prototypes to repel).

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> PrototypeContrast(weight=0.5)(z, Graph.from_labels(torch.tensor([0, 0, 1]))).item()
    -1.0
    """

    self_pairs = True

    def __init__(
        self,
        weight: float = 1.0,
        *,
        attract: Literal["prototype", "views"] = "prototype",
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.weight = positive("weight", weight)
        self.attract = one_of("attract", attract, ("prototype", "views"))

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        z = unit_rows(batch.z)
        target = unit_rows(batch.target) if batch.has_teacher else z
        means, exists = self._prototypes(batch, target)
        own = torch.arange(batch.own.start, batch.own.stop, device=z.device)
        attracted = means
        if self.attract == "views":
            grouped = target.reshape(batch.n_samples, batch.target_views, -1).mean(dim=1)
            attracted = unit_rows(grouped).repeat_interleave(batch.views, dim=0)
        pull = (z[own] * attracted[own]).sum(dim=1)
        attraction = -torch.where(exists[own], pull, 0.0).sum()
        # Only the nearest prototype is repelled: find it without a graph of derivatives.
        nearest, found = self._nearest_others(batch, z.detach(), means.detach(), exists, own)
        push = (z[own] * means[nearest]).sum(dim=1)
        repulsion = torch.where(found, push, 0.0).sum()
        factor = 1.0 / batch.n_rows if self.reduction == "mean" else 1.0
        return {
            "attraction": factor * sum_over_ranks(attraction),
            "repulsion": factor * self.weight * sum_over_ranks(repulsion),
        }

    def _prototypes(self, batch: Batch, target: Tensor) -> tuple[Tensor, Tensor]:
        """The prototype of every row (equal among those alike), and whether it has one."""
        degrees = batch.pairs.positive_row_sums(target.dtype)
        return unit_rows(batch.pairs.positive_sums(target)), degrees > 0

    def _nearest_others(
        self, batch: Batch, z: Tensor, means: Tensor, exists: Tensor, own: Tensor
    ) -> tuple[Tensor, Tensor]:
        """For every own row the row whose prototype is nearest among those not alike to it."""
        columns = _representatives(batch)
        columns = columns[exists[columns]]
        nearest, found = [], []
        for rows in own.split(TILE_ROWS):
            if len(columns) == 0:
                nearest.append(torch.zeros_like(rows))
                found.append(torch.zeros_like(rows, dtype=torch.bool))
                continue
            similarity = z[rows] @ means[columns].T
            alike = batch.graph.block(rows, columns, dtype=z.dtype) > 0
            similarity = similarity.masked_fill(alike, -torch.inf)
            best, at = similarity.max(dim=1)
            nearest.append(columns[at])
            found.append(torch.isfinite(best) & exists[rows])
        return torch.cat(nearest), torch.cat(found)


def _representatives(batch: Batch) -> Tensor:
    """One row for every prototype: the first of a class, or the first view of a sample."""
    rows = torch.arange(batch.n_rows, device=batch.z.device)
    labels = batch.graph.class_labels
    if labels is None:
        return rows[:: batch.views] if batch.graph._sample_graph() is not None else rows
    ordered, order = torch.sort(labels, stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return order[first].sort().values
