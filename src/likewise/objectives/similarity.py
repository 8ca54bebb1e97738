"""Weighted means over the pairs that are compared: SimSiam's cosine and BYOL's regression."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from likewise.objectives.base import Objective, Reduction, positive
from likewise.objectives.batch import Batch, unit_rows


class NegativeCosine(Objective):
    r"""Minus the mean cosine of the pairs that are alike (SimSiam; ``matrix-ssl`` eq. 2):

    .. math:: -\sum_{ij} A_{ij} \frac{z_i^\top t_j}{|z_i|\,|t_j|} \Big/ \sum_{ij} |A_{ij}|

    A are the pairs of the graph without those of a row with itself. With a target (SimSiam's
    stopped branch, where z is the predictor's output) rows are compared across views only. Pairs
    that are different (-1) are pushed apart to a cosine of -1. A zero row is similar to nothing.

    Errata: eq. 2 prints the sum over the batch; this is its mean, as SimSiam trains with.
    Nothing here prevents collapse: that is the stopped gradient's and the predictor's part.

    Args:
        reduction: "mean", or "sum" for :math:`-\sum_{ij} A_{ij} \cos(z_i, t_j)` over ordered
            pairs (twice eq. 2 for two views).

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.tensor([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> NegativeCosine()(z, Graph.identity(2).views(2))
    tensor(-1.)
    """

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        z = unit_rows(batch.z)
        target = unit_rows(batch.target) if batch.has_teacher else z
        similarity = (z * (batch.pairs @ target)).sum()
        return {"similarity": -pair_mean(batch, similarity, self.reduction)}


class BYOLRegression(Objective):
    r"""The mean squared distance of alike rows on the unit sphere (BYOL; ``matrix-ssl`` eq. 3):

    .. math::
        \Big(\sum_{ij} A^+_{ij} |\tilde z_i - \tilde t_j|^2
        + \sum_{ij} A^-_{ij} \max(0, m - |\tilde z_i - \tilde t_j|)^2\Big)
        \Big/ \sum_{ij} |A_{ij}|, \qquad \tilde z = z / |z|

    A are the pairs of the graph without those of a row with itself; with a target (the momentum
    teacher, where z is the predictor's output) rows are compared across views only. For pairs
    that are alike this is 2 - 2 cos, computed from differences: views 1e-3 apart keep their
    digits. Pairs that are different (-1) repel up to the margin m.

    Errata: eq. 3 prints the sum over the batch; this is its mean, as BYOL trains with.

    Args:
        margin: the distance m on the unit sphere at which rows that are different stop repelling;
            orthogonal rows are :math:`\sqrt 2` apart, opposite ones 2.
        reduction: "mean", or "sum" for the sums over ordered pairs (twice eq. 3 for two views).

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, 1.0], [0.0, 1.0]])
    >>> BYOLRegression()(z, Graph.identity(2).views(2))
    tensor(1.)
    """

    def __init__(self, *, margin: float = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = positive("margin", margin)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        z = unit_rows(batch.z)
        target = unit_rows(batch.target) if batch.has_teacher else z
        return {"distance": mean_distance(batch, z, target, self.margin, self.reduction)}


def mean_distance(
    batch: Batch, z: Tensor, target: Tensor, margin: float, reduction: Reduction
) -> Tensor:
    """The squared distances of rows that are alike, and the margin of those that are different,
    over all pairs compared (see :meth:`likewise.graph.pairs.Pairs.attraction`)."""
    pull, push = batch.pairs.attraction(z, target, margin)
    return pair_mean(batch, pull + push, reduction)


def pair_mean(batch: Batch, total: Tensor, reduction: Reduction) -> Tensor:
    """A sum over the pairs compared, divided by their weight; 0 where nothing is compared."""
    if reduction == "sum":
        return total
    return total * 0.0 if batch.pairs.empty else total / batch.pairs.total_weight
