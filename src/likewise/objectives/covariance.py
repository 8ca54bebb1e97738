"""Objectives on the covariance of the columns: VICReg and Barlow Twins."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from likewise.graph.pairs import Pairs
from likewise.objectives.base import Objective, Reduction, one_of, positive
from likewise.objectives.batch import Batch
from likewise.objectives.grams import product_energy
from likewise.objectives.similarity import mean_distance

Views = Literal["separate", "stacked"]


class VICReg(Objective):
    r"""Alike rows together, every column spread out, no two columns alike (``pal`` eq. 2,
    ``matrix-ssl`` eq. 5; Bardes et al. 2022):

    .. math::
        \lambda \frac{\sum_{ij} A_{ij} |z_i - t_j|^2}{\sum_{ij} |A_{ij}|}
        + \mu \sum_k \max\big(0, \gamma - \sqrt{C_{kk} + \epsilon}\big)
        + \nu \sum_{k \ne l} C_{kl}^2, \qquad \gamma^2 = \text{covariance target}

    C is the covariance of z; with ``views="separate"`` every view has its own and their terms are
    averaged. Where n < d the squares of C come from the n x n Gram matrix, and C is never built.
    A target takes part in the first term only.

    Against other statements of VICReg: sums over dimensions are kept here, as in ``pal``. The
    value of its own paper (eq. 6) is that of ``VICReg(lambda, 2 mu / d, 2 nu / d)``; the value of
    its public code is that of ``VICReg(lambda, mu, 2 nu)`` divided by d.

    Errata: the first term is weighted by the graph, with its signs (``pal`` C.1 ignores both).

    Args:
        invariance_weight: :math:`\lambda`.
        variance_weight: :math:`\mu`.
        covariance_weight: :math:`\nu`.
        variance: "hinge" as above; "squared" for :math:`\sum_k (C_{kk} - \gamma^2)^2`.
        views: "separate" as the original, or "stacked" for one covariance of all rows
            (``pal`` eq. 2).
        covariance_target: the variance :math:`\gamma^2` that every column is to have: "identity"
            (1: Z^T Z = N I), "degree" (the graph's mean degree over N: Z^T Z = D), or a number.
            With "degree", ``variance="squared"``, ``views="stacked"``, no centring and ddof 0, a
            graph of equal degrees gives VIC2 up to a constant.
        ddof: C divides by the number of rows minus this.
        centered: whether columns are centred before C is taken.
        epsilon: what stands inside the square root; it shifts the value, and keeps the gradient
            finite at collapse.
        margin: the distance at which rows that are different (-1) stop repelling.
        reduction: "mean", or "sum" for :math:`\sum_{ij}` over ordered pairs and for the sum over
            views, where "mean" has averages.

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> z = z.repeat_interleave(2, dim=0)
    >>> terms = VICReg(ddof=0, epsilon=0.0).terms(z, Graph.identity(4).views(2))
    >>> {name: term.item() for name, term in terms.items()}
    {'invariance': 0.0, 'variance': 0.0, 'covariance': 0.0}
    """

    def __init__(
        self,
        invariance_weight: float = 25.0,
        variance_weight: float = 25.0,
        covariance_weight: float = 1.0,
        *,
        variance: Literal["hinge", "squared"] = "hinge",
        views: Views = "separate",
        covariance_target: float | Literal["identity", "degree"] = "identity",
        ddof: int = 1,
        centered: bool = True,
        epsilon: float = 1e-4,
        margin: float = 1.0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.invariance_weight = positive("invariance_weight", invariance_weight, zero=True)
        self.variance_weight = positive("variance_weight", variance_weight, zero=True)
        self.covariance_weight = positive("covariance_weight", covariance_weight, zero=True)
        self.variance = one_of("variance", variance, ("hinge", "squared"))
        self.views = one_of("views", views, ("separate", "stacked"))
        if isinstance(covariance_target, str):
            one_of("covariance_target", covariance_target, ("identity", "degree"))
        else:
            covariance_target = positive("covariance_target", covariance_target)
        self.covariance_target = covariance_target
        if ddof not in (0, 1):
            raise ValueError(f"ddof is {ddof!r}: give 0 or 1")
        self.ddof = ddof
        self.centered = centered
        self.epsilon = positive("epsilon", epsilon, zero=True)
        self.margin = positive("margin", margin)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        distance = mean_distance(batch, batch.z, batch.target, self.margin, self.reduction)
        if self.views == "stacked":
            views = [batch.z]
        else:
            views = [batch.view(index) for index in range(batch.views)]
        divisor = len(views[0]) - self.ddof
        if divisor < 1:
            raise ValueError(
                f"every view has {len(views[0])} sample and ddof is {self.ddof}: a covariance "
                "needs at least 2 samples; give a larger batch, or views='stacked'"
            )
        spread = self._covariance_target(batch)
        variance, covariance = batch.z.new_zeros(()), batch.z.new_zeros(())
        for rows in views:
            if self.centered:
                rows = rows - rows.mean(dim=0)
            own = rows.square().sum(dim=0) / divisor
            if self.variance == "hinge":
                variance = variance + (spread**0.5 - _root(own, self.epsilon)).relu().sum()
            else:
                variance = variance + (own - spread).square().sum()
            covariance = covariance + product_energy(rows, diagonal=False) / divisor**2
        share = 1 / len(views)
        return {
            "invariance": self.invariance_weight * distance,
            "variance": self.variance_weight * share * variance,
            "covariance": self.covariance_weight * share * covariance,
        }

    def _covariance_target(self, batch: Batch) -> Tensor | float:
        if self.covariance_target == "degree":
            return batch.graph._degrees(True, batch.z.dtype).mean() / batch.n_rows
        return 1.0 if isinstance(self.covariance_target, str) else self.covariance_target


class BarlowTwins(Objective):
    r"""The cross-correlation of two branches should be the identity (Zbontar et al. 2021;
    ``pal`` eq. 4):

    .. math:: \sum_k (1 - C_{kk})^2 + \lambda \sum_{k \ne l} C_{kl}^2

    With ``views="separate"``, C is the correlation over the batch of a view with (what is alike
    to it in) another one, both standardised; the average over pairs of views. With
    ``views="stacked"`` all rows are standardised together, and

    .. math:: C = \tilde Z^\top \hat A \tilde T, \qquad \hat A = D^{-1/2} A D^{-1/2},

    where A are the pairs of the graph without those of a row with itself (``pal`` theorem 1).
    Where nothing is compared, the value is 0.

    Errata: theorem 1 prints the graph with its diagonal and without degrees, where a perfect
    solution costs :math:`d (V - 1)^2`; here it costs 0. Eq. 4 of ``matrix-ssl`` leaves out the
    standardisation.

    Args:
        off_diagonal_weight: :math:`\lambda`.
        views: "separate" as the original, or "stacked".
        centered: whether columns are centred (``pal`` eq. 4 does not).
        epsilon: added to the variance of a column before it is divided by its root, as batch
            normalisation does; with 0, a constant column counts as 0.
        reduction: "mean", or "sum" for the sum over pairs of views.

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> z = z.repeat_interleave(2, dim=0)
    >>> BarlowTwins(epsilon=0.0)(z, Graph.identity(4).views(2))
    tensor(0.)
    """

    def __init__(
        self,
        off_diagonal_weight: float = 0.005,
        *,
        views: Views = "separate",
        centered: bool = True,
        epsilon: float = 1e-5,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.off_diagonal_weight = positive("off_diagonal_weight", off_diagonal_weight, zero=True)
        self.views = one_of("views", views, ("separate", "stacked"))
        self.centered = centered
        self.epsilon = positive("epsilon", epsilon, zero=True)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        if self.views == "separate":
            branches = [
                (self._standardized(left), self._standardized(right))
                for left, right in batch.branches
            ]
        else:
            left = self._standardized(batch.z)
            right = self._standardized(batch.target) if batch.has_teacher else left
            branches = [(left, _average_of_alike(batch, right))]
        diagonal, off_diagonal = batch.z.new_zeros(()), batch.z.new_zeros(())
        for left, right in branches:
            own = (left * right).sum(dim=0)
            diagonal = diagonal + (1 - own).square().sum()
            off_diagonal = off_diagonal + product_energy(left, right, diagonal=False)
        share = 0.0 if batch.pairs.empty else 1.0 / len(branches)
        return {
            "diagonal": share * diagonal,
            "off_diagonal": self.off_diagonal_weight * share * off_diagonal,
        }

    def _standardized(self, rows: Tensor) -> Tensor:
        """Columns of squared norm 1 (less where epsilon counts)."""
        if self.centered:
            rows = rows - rows.mean(dim=0)
        variance = rows.square().mean(dim=0)
        root = _root(variance, self.epsilon) * len(rows) ** 0.5
        return rows / (root if self.epsilon > 0 else torch.where(root > 0, root, torch.inf))


def _average_of_alike(batch: Batch, rows: Tensor) -> Tensor:
    """The pairs, divided by the roots of their row and column sums, times `rows`."""
    pairs, dtype = batch.pairs, rows.dtype
    mirrored = Pairs(pairs.samples, pairs.target_views, pairs.views, self_pairs=pairs.self_pairs)
    outgoing, incoming = pairs.row_sums(dtype), mirrored.row_sums(dtype)
    if not pairs.nonnegative:
        # Degrees count what is different as well: |A| = A + 2 A^-.
        first, second, weight = pairs.negative_pairs(dtype)
        outgoing = outgoing.index_add(0, first, weight, alpha=2)
        incoming = incoming.index_add(0, second, weight, alpha=2)
    outgoing, incoming = (
        torch.where(sums > 0, sums, torch.inf).rsqrt()[:, None] for sums in (outgoing, incoming)
    )
    return outgoing * (pairs @ (incoming * rows))


def _root(variance: Tensor, epsilon: float) -> Tensor:
    """sqrt(variance + epsilon), with the gradient 0 at 0."""
    shifted = variance + epsilon
    if epsilon > 0:
        return shifted.sqrt()
    return torch.where(shifted > 0, shifted, 1.0).sqrt() * (shifted > 0)
