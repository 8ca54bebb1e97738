"""Matrix-SSL: uniformity and alignment as divergences between the covariances of two branches."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from likewise.information import (
    has_principal_log,
    matrix_cross_entropy,
    matrix_kl,
    uniform_cross_entropy,
)
from likewise.information.checks import symmetric_part
from likewise.information.divergence import taylor_cross_entropy, taylor_kl
from likewise.objectives.base import Objective, Reduction, one_of, positive
from likewise.objectives.batch import Batch
from likewise.objectives.entropy_coding import Covariance, covariance_count, unit_batch, whole

Logarithm = Literal["taylor-shifted", "exact", "taylor"]


class _BranchCovariances(Objective):
    """What uniformity and alignment share: how covariances are made, and their logarithms."""

    def __init__(
        self,
        *,
        normalize: bool,
        centered: bool,
        ddof: int,
        ridge: float | None,
        logarithm: str,
        order: int,
        reduction: Reduction,
    ) -> None:
        super().__init__(reduction=reduction)
        self.normalize = normalize
        self.centered = centered
        self.ddof = whole("ddof", ddof, least=0)
        self.ridge = None if ridge is None else positive("ridge", ridge, zero=True)
        self.logarithm = one_of("logarithm", logarithm, ("taylor-shifted", "exact", "taylor"))
        self.order = whole("order", order)

    def _branches(self, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        branches = (unit_batch(batch) if self.normalize else batch).branches
        if self.centered:
            branches = [(a - a.mean(dim=0), b - b.mean(dim=0)) for a, b in branches]
        return branches

    def _covariance(self, left: Tensor, right: Tensor) -> Tensor:
        return left.T @ right / covariance_count(len(left), self.ddof)

    def _shift(self) -> float:
        """The multiple of I that a series adds to both matrices."""
        return (self.ridge or 0.0) + float(self.logarithm == "taylor-shifted")

    def _ridge(self, dim: int) -> float:
        """What the exact logarithm adds to both matrices."""
        return 1 / dim if self.ridge is None else self.ridge

    def _finite(self, value: Tensor, rows: Tensor) -> Tensor:
        if not bool(torch.isfinite(value).all()):
            raise ValueError(
                f"a covariance of {len(rows)} rows in {rows.shape[1]} dimensions is singular, and "
                f"ridge is {self.ridge}: give a ridge above 0, or logarithm='taylor-shifted'"
            )
        return value


class MatrixUniformity(_BranchCovariances):
    r"""Matrix-KL-uniformity: the covariance between two branches is pushed to I / d.

    .. math:: \mathrm{MCE}\bigl(\tfrac1d I,\; C(Z_1, Z_2)\bigr) = \mathrm{tr}\bigl(-\tfrac1d
        \log C(Z_1, Z_2) + C(Z_1, Z_2)\bigr),
        \qquad C(Z_1, Z_2) = \frac{1}{B-1} Z_1^\top H Z_2

    averaged over the pairs of branches: the views of a sample, or by a graph over samples, a view
    and the mean of those alike in another. The cross-covariance ties the branches to one another,
    but is neither symmetric nor positive: without further choice it has no logarithm. The default
    is what the authors run: :math:`\mathrm{MCE}(I + \tfrac1d I, I + C)` with a polynomial, which
    is defined for all embeddings, also for fewer rows than dimensions, and has the same minimiser.

    Paper: matrix-ssl, equation 20 and appendix F.1.
    Errata: equation 20 holds near aligned branches only; the order-4 series about I is far from
    the logarithm at I / d (and pulls to collapse), that of log(I + C) is off by less than 2e-3.

    Args:
        covariance: "cross" is the equation. "symmetric" takes :math:`(C + C^\top) / 2`, whose exact
            logarithm exists if the ridge exceeds its most negative eigenvalue, else it raises.
            "auto" is the mean over the two branches of their own covariances: always defined, but
            it does not tie the branches to one another (nor does :class:`MatrixAlignment`).
        centered: subtract the mean of each branch from its rows (H).
        ddof: a covariance of B rows is divided by B - ddof.
        ridge: a multiple of I that is added to both matrices, as in equation 16. By default
            1 / d with "exact", which makes fewer rows than dimensions possible, and else 0.
        logarithm: "taylor-shifted" is the series of log(I + C); "exact" uses determinants ("cross"
            raises where the determinant is not positive); "taylor" is the series of log C about I.
        order: the order of the series.
        normalize: bring every row to norm 1 first; the series of log(I + C) then converges.
        reduction: changes nothing: a covariance is a mean, and a trace a sum over dimensions.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.cat([torch.eye(2), -torch.eye(2)]).repeat_interleave(2, dim=0)
        >>> objective = MatrixUniformity(logarithm="exact", ridge=0.0, ddof=0)
        >>> objective(z, Graph.identity(4).views(2))  # log 2 + 1, the least value
        tensor(1.6931)
    """

    def __init__(
        self,
        covariance: Covariance = "cross",
        *,
        centered: bool = True,
        ddof: int = 1,
        ridge: float | None = None,
        logarithm: Logarithm = "taylor-shifted",
        order: int = 4,
        normalize: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(
            normalize=normalize,
            centered=centered,
            ddof=ddof,
            ridge=ridge,
            logarithm=logarithm,
            order=order,
            reduction=reduction,
        )
        self.covariance = one_of("covariance", covariance, ("cross", "symmetric", "auto"))

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        return {"uniformity": self._mean(self._branches(batch))}

    def _mean(self, branches: list[tuple[Tensor, Tensor]]) -> Tensor:
        if self.covariance == "auto":
            branches = [(z, z) for branch in branches for z in branch]
        return torch.stack([self._value(left, right) for left, right in branches]).mean()

    def _value(self, left: Tensor, right: Tensor) -> Tensor:
        covariance = self._covariance(left, right)
        dim = len(covariance)
        identity = torch.eye(dim, dtype=covariance.dtype, device=covariance.device)
        symmetrize = self.covariance != "cross"
        if self.logarithm != "exact":
            matrix = symmetric_part(covariance) if symmetrize else covariance
            return taylor_cross_entropy(identity / dim, matrix, self.order, self._shift())
        if not symmetrize:
            return self._exact_cross(covariance + self._ridge(dim) * identity)
        try:
            value = uniform_cross_entropy(covariance, ridge=self._ridge(dim), symmetrize=True)
        except ValueError as error:
            raise ValueError(
                "the symmetric part of the cross-covariance is not positive definite: the branches "
                "disagree too much. Give logarithm='taylor-shifted' or covariance='auto', which "
                f"are always defined, or a larger ridge than {self._ridge(dim):.3g}"
            ) from error
        return self._finite(value, left)

    def _exact_cross(self, matrix: Tensor) -> Tensor:
        """tr(-p log Q + Q) = -p log det Q + tr Q, for a Q that need not be symmetric."""
        if not has_principal_log(matrix):
            raise ValueError(
                "the cross-covariance has an eigenvalue that is not positive, so that it has no "
                "logarithm: the branches disagree too much. Give logarithm='taylor-shifted' or "
                "covariance='auto', which are always defined, or a ridge"
            )
        log_det = torch.linalg.slogdet(matrix).logabsdet
        return matrix.trace() - (1 / len(matrix) + self._ridge(len(matrix))) * log_det


class MatrixAlignment(_BranchCovariances):
    r"""Matrix-KL-alignment: two branches have the same covariance.

    .. math:: \mathrm{MKL}\bigl(C(Z_1, Z_1) \,\|\, C(Z_2, Z_2)\bigr)

    averaged over the pairs of branches. Z_1 is the first view and Z_2 the second; with a teacher,
    Z_1 is the teacher and Z_2 is z; by a graph over samples, the other branch is the mean of those
    alike. It compares covariances, not pairs: shuffling the samples of one branch changes nothing.
    A term that ties pairs has to stand beside it, as in :class:`MatrixSSL`.

    Paper: matrix-ssl, equation 21.
    Errata: not an alignment of pairs; and without a ridge the divergence is infinite unless the
    range of the first covariance lies in that of the second.

    Args:
        divergence: "kl" is the equation; "cross-entropy" is MCE(C_1, C_2) with the gradient
            stopped in C_1, which then differs from it by a constant.
        symmetric: take the mean over both directions.
        centered, ddof, ridge, logarithm, order, normalize: see :class:`MatrixUniformity`; by
            default both matrices are I + C, with the series.
        reduction: changes nothing.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.eye(3).repeat_interleave(2, dim=0)  # both views are the same
        >>> round(MatrixAlignment()(z, Graph.identity(3).views(2)).item(), 4) + 0.0
        0.0
    """

    def __init__(
        self,
        divergence: Literal["kl", "cross-entropy"] = "kl",
        *,
        symmetric: bool = False,
        centered: bool = True,
        ddof: int = 1,
        ridge: float | None = None,
        logarithm: Logarithm = "taylor-shifted",
        order: int = 4,
        normalize: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(
            normalize=normalize,
            centered=centered,
            ddof=ddof,
            ridge=ridge,
            logarithm=logarithm,
            order=order,
            reduction=reduction,
        )
        self.divergence = one_of("divergence", divergence, ("kl", "cross-entropy"))
        self.symmetric = symmetric

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        return {"alignment": self._mean(self._branches(batch), batch.has_teacher)}

    def _mean(self, branches: list[tuple[Tensor, Tensor]], teacher: bool) -> Tensor:
        # The teacher is the right branch, and what is given comes first in a divergence.
        mirrored = [(right, left) for left, right in branches]
        ordered = branches + mirrored if self.symmetric else mirrored if teacher else branches
        return torch.stack([self._value(first, second) for first, second in ordered]).mean()

    def _value(self, first: Tensor, second: Tensor) -> Tensor:
        p, q = self._covariance(first, first), self._covariance(second, second)
        if self.divergence == "cross-entropy":
            p = p.detach()
        if self.logarithm != "exact":
            taylor = taylor_kl if self.divergence == "kl" else taylor_cross_entropy
            return taylor(p, q, self.order, self._shift())
        exact = matrix_kl if self.divergence == "kl" else matrix_cross_entropy
        return self._finite(exact(p, q, ridge=self._ridge(len(p))), first)


class MatrixSSL(Objective):
    r"""Matrix-SSL: :class:`MatrixUniformity` and :class:`MatrixAlignment` together.

    .. math:: \mathrm{MCE}\bigl(\tfrac1d I, C(Z_1, Z_2)\bigr)
        + \gamma\, \mathrm{MKL}\bigl(C(Z_1, Z_1) \,\|\, C(Z_2, Z_2)\bigr)

    Only the cross-covariance of the first part tells which rows are pairs: with
    ``covariance="auto"`` no part does.

    Paper: matrix-ssl, equation 22 (gamma = 1 in table 4).
    Errata: see the two parts.

    Args:
        alignment_weight: gamma.
        covariance: see :class:`MatrixUniformity`.
        divergence, symmetric: see :class:`MatrixAlignment`.
        centered, ddof, ridge, logarithm, order, normalize: see :class:`MatrixUniformity`; the same
            for both parts.
        reduction: changes nothing.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.cat([torch.eye(2), -torch.eye(2)]).repeat_interleave(2, dim=0)
        >>> terms = MatrixSSL(logarithm="exact", ddof=0).terms(z, Graph.identity(4).views(2))
        >>> {name: round(value.item(), 4) for name, value in terms.items()}
        {'uniformity': 2.0, 'alignment': 0.0}
    """

    def __init__(
        self,
        alignment_weight: float = 1.0,
        covariance: Covariance = "cross",
        divergence: Literal["kl", "cross-entropy"] = "kl",
        *,
        symmetric: bool = False,
        centered: bool = True,
        ddof: int = 1,
        ridge: float | None = None,
        logarithm: Logarithm = "taylor-shifted",
        order: int = 4,
        normalize: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.alignment_weight = positive("alignment_weight", alignment_weight, zero=True)
        shared: dict[str, Any] = {
            "centered": centered,
            "ddof": ddof,
            "ridge": ridge,
            "logarithm": logarithm,
            "order": order,
            "normalize": normalize,
        }
        self.uniformity = MatrixUniformity(covariance, **shared)
        self.alignment = MatrixAlignment(divergence, symmetric=symmetric, **shared)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        branches = self.uniformity._branches(batch)
        terms = {"uniformity": self.uniformity._mean(branches)}
        if self.alignment_weight:
            alignment = self.alignment._mean(branches, batch.has_teacher)
            terms["alignment"] = self.alignment_weight * alignment
        return terms
