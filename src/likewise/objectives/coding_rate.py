"""Coding rates: embeddings that fill as many dimensions as they can.

A rate is a log-determinant, hence a sum over dimensions: `reduction` leaves it alone.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from torch import Tensor

from likewise.information import coding_rate
from likewise.objectives.base import Objective, Reduction, one_of, positive
from likewise.objectives.batch import Batch, unit_rows
from likewise.objectives.similarity import pair_mean

Views = Literal["stacked", "separate", "mean"]


class TotalCodingRate(Objective):
    r"""Total coding rate (TCR), with an optional pull between those alike.

    .. math::
        -\tfrac12 \log\det\Bigl(I + \frac{d}{N\epsilon^2} Z^\top Z\Bigr)
        + w\, \frac{\sum_{ij} A_{ij} (1 - \cos(z_i, z_j))}{\sum_{ij} |A_{ij}|}

    on rows of norm 1. Without the second term, the graph only says which rows are views of one
    sample, and nothing makes those alike similar; with it the objective trains alone (NMCE, Li et
    al. 2022). A pair that is different (A < 0) is pushed apart; a cosine is bounded, so that no
    margin is needed.

    Paper: matrix-ssl, equation 6.
    Errata: the proof of theorem 4.4 prints the rate with the opposite sign; equation 6 is right.

    Args:
        epsilon: the distortion that the code allows; smaller weighs small eigenvalues more.
        views: "stacked" takes one rate over all rows, "separate" the mean of one rate a view,
            "mean" the rate of every sample's mean over its views, brought back to norm 1.
        invariance_weight: w; 0 leaves the term out. "sum" sums it over pairs of rows.
        reduction: see :class:`Objective`.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.eye(4).repeat_interleave(2, dim=0)
        >>> TotalCodingRate()(z, Graph.identity(4).views(2))  # -4/2 log(1 + 1 / 0.25)
        tensor(-3.2189)
    """

    def __init__(
        self,
        epsilon: float = 0.5,
        views: Views = "stacked",
        invariance_weight: float = 0.0,
        *,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.epsilon = positive("epsilon", epsilon)
        self.views = one_of("views", views, ("stacked", "separate", "mean"))
        self.invariance_weight = positive("invariance_weight", invariance_weight, zero=True)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        terms = {"rate": -coding_rate(row_sets(batch, self.views), self.epsilon).mean()}
        if self.invariance_weight:
            gap = pair_mean(batch, cosine_gap(batch), self.reduction)
            terms["invariance"] = self.invariance_weight * gap
        elif batch.has_teacher:
            raise ValueError(
                "target is given, but invariance_weight is 0 and nothing is compared with it: "
                "give an invariance_weight above 0, or leave the target out"
            )
        return terms


class EMPSSL(Objective):
    r"""Extreme multi-patch SSL: each view fills the space, and meets the mean of those alike.

    .. math::
        -\frac1V \sum_v R(Z_v) - w\, \frac1N \sum_i \cos(z_i, \bar z_i),
        \qquad \bar z = D^{-1} G z,
        \qquad R(Z) = \tfrac12 \log\det\Bigl(I + \frac{d}{n\epsilon^2} Z^\top Z\Bigr)

    on rows of norm 1; :math:`\bar z_i` is the mean of those alike to i, itself included: with
    ``Graph.identity(n).views(V)`` the mean of the sample's views. Those that are different count
    with their sign. Rows that are alike to nobody stay out of the mean over i.

    Paper: Tong et al. 2023 (EMP-SSL), and matrix-ssl, equation 9.
    Errata: equation 9 adds an nd x nd matrix to I_d; the forms that hold are the mean of one rate
    a view, and :math:`I_{Vd}` with :math:`Vd/(n\epsilon^2)` on concatenated views.

    Args:
        epsilon: the distortion that the code allows; EMP-SSL's squared distortion is 0.2.
        invariance_weight: w.
        rate: "mean" is EMP-SSL's own mean of one rate a view, "concatenated" is equation 9 (with
            mu = 1/2): the rate of rows that hold all views of a sample side by side.
        reduction: "sum" sums the cosines over the rows; see :class:`Objective`.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.eye(4).repeat_interleave(2, dim=0)
        >>> terms = EMPSSL().terms(z, Graph.identity(4).views(2))
        >>> {name: round(value.item(), 4) for name, value in terms.items()}
        {'rate': -3.5835, 'invariance': -200.0}
    """

    self_pairs = True
    accepts_target = False

    def __init__(
        self,
        epsilon: float = math.sqrt(0.2),
        invariance_weight: float = 200.0,
        rate: Literal["mean", "concatenated"] = "mean",
        *,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.epsilon = positive("epsilon", epsilon)
        self.invariance_weight = positive("invariance_weight", invariance_weight, zero=True)
        self.rate = one_of("rate", rate, ("mean", "concatenated"))

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        unit = unit_rows(batch.z)
        sets = (
            row_sets(batch, "separate")
            if self.rate == "mean"
            else unit.reshape(1, batch.n_samples, -1)
        )
        # A cosine does not see the degree by which the sum over those alike is divided.
        cosines = (unit * unit_rows(batch.graph @ unit)).sum()
        if self.reduction == "mean":
            cosines = cosines / _rows_alike_to_any(batch).clamp_min(1)
        return {
            "rate": -coding_rate(sets, self.epsilon).mean(),
            "invariance": -self.invariance_weight * cosines,
        }


def row_sets(batch: Batch, views: str) -> Tensor:
    """The rows of norm 1 as (sets, rows, d): one set of all rows, one a view, or the means."""
    unit = unit_rows(batch.z)
    if views == "stacked":
        return unit[None]
    grouped = unit.reshape(batch.n_samples, batch.views, -1)
    return unit_rows(grouped.mean(dim=1))[None] if views == "mean" else grouped.transpose(0, 1)


def cosine_gap(batch: Batch) -> Tensor:
    """:math:`\\sum_{ij} A_{ij} (1 - \\cos(z_i, t_j))`.

    1 - cos is half the squared difference of unit rows, which keeps its digits where views are
    close."""
    z = unit_rows(batch.z)
    target = unit_rows(batch.target) if batch.has_teacher else z
    # A row of zeros is similar to nothing: its cosine is 0, but |0 - t|^2 / 2 = 1/2 and not 1.
    zeros = (batch.z == 0).all(dim=1).to(z.dtype)
    other = (batch.target == 0).all(dim=1).to(z.dtype)
    missing = (batch.pairs.row_sums(z.dtype) * zeros).sum() + (batch.pairs @ other[:, None]).sum()
    return (batch.pairs.energy(z, target) + missing) / 2


def _rows_alike_to_any(batch: Batch) -> Tensor:
    """How many rows have an edge, also where its weights cancel."""
    weight = batch.pairs.row_sums(batch.z.dtype)
    if not batch.pairs.nonnegative:
        rows, _, negative = batch.pairs.negative_pairs(batch.z.dtype)
        weight = weight.index_add(0, rows, negative, alpha=2)
    return (weight > 0).sum()
