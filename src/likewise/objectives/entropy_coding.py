"""Log-determinants of the covariances of two branches: maximum entropy coding and CorInfoMax."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from likewise.information import has_principal_log, log_det_identity_plus
from likewise.information.logarithm import taylor_log
from likewise.objectives.base import Objective, Reduction, one_of, positive
from likewise.objectives.batch import Batch, unit_rows
from likewise.objectives.similarity import mean_distance

Covariance = Literal["cross", "symmetric", "auto"]


class MaximumEntropyCoding(Objective):
    r"""Maximum entropy coding (MEC): the two branches together fill the space.

    .. math:: -\mu \log\det\Bigl(I + \frac{d}{B\epsilon^2} Z_1^\top Z_2\Bigr)

    on B rows of norm 1, averaged over the pairs of branches: the views of a sample, or by a graph
    over samples, a view and the mean :math:`D^{-1/2} G D^{-1/2} Z_v` of those alike in another.

    The matrix is not symmetric, and its determinant is negative where the branches disagree
    enough; the Taylor polynomial is defined everywhere, and is the method of the original paper.
    Where an eigenvalue of :math:`\frac{d}{B\epsilon^2} Z_1^\top Z_2` exceeds 1 the polynomial is
    no logarithm any more, but with an even order it pulls that eigenvalue back. `reduction`
    changes nothing: a log-determinant is a sum over dimensions.

    Paper: Liu et al. 2022 (MEC), and matrix-ssl, equation 8.
    Errata: equation 8 needs a matrix without eigenvalues on the negative axis; a determinant that
    is not positive raises here.

    Args:
        epsilon: the distortion that the code allows; by default from the next.
        distortion: :math:`\epsilon^2 / d`. With the 0.06 of the original paper the series converges
            once 17 dimensions are filled evenly, and with 0.25 once 4 are.
        mu: the factor, by default (B + d) / 2.
        covariance: "cross" is the equation; "symmetric" takes :math:`(C + C^\top)/2` of
            :math:`C = Z_1^\top Z_2`, and with "exact" must be positive definite; "auto" is the mean
            over the two branches of their own :math:`Z_i^\top Z_i`, always defined, but it does not
            tie the branches to one another.
        logarithm: "taylor", or "exact" for the log-determinant itself.
        order: the order of the Taylor polynomial.
        reduction: see :class:`Objective`.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.eye(4).repeat_interleave(2, dim=0)
        >>> objective = MaximumEntropyCoding(epsilon=2.0, logarithm="exact")
        >>> objective(z, Graph.identity(4).views(2))  # -(4 + 4)/2 * 4 log(1 + 1 / 4)
        tensor(-3.5703)
    """

    def __init__(
        self,
        epsilon: float | None = None,
        mu: float | None = None,
        covariance: Covariance = "cross",
        logarithm: Literal["taylor", "exact"] = "taylor",
        order: int = 4,
        *,
        distortion: float = 0.06,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.epsilon = None if epsilon is None else positive("epsilon", epsilon)
        self.distortion = positive("distortion", distortion)
        self.mu = None if mu is None else positive("mu", mu)
        self.covariance = one_of("covariance", covariance, ("cross", "symmetric", "auto"))
        self.logarithm = one_of("logarithm", logarithm, ("taylor", "exact"))
        self.order = whole("order", order)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        branches = unit_batch(batch).branches
        rows, dim = branches[0][0].shape
        squared = self.distortion * dim if self.epsilon is None else self.epsilon**2
        scale = dim / (rows * squared)
        mu = (rows + dim) / 2 if self.mu is None else self.mu
        values = [self._log_det(left, right, scale) for left, right in branches]
        return {"coding": -mu * torch.stack(values).mean()}

    def _log_det(self, left: Tensor, right: Tensor, scale: float) -> Tensor:
        if self.covariance == "auto":
            both = torch.stack([left, right])
            if self.logarithm == "exact":
                return log_det_identity_plus(both, scale).mean()
            return torch.stack([self._log_det_of(z, z, scale) for z in both]).mean()
        if self.covariance == "cross":
            return self._log_det_of(left, right, scale)
        if self.logarithm == "exact":
            return _symmetric_log_det(left, right, scale)
        # (Z1^T Z2 + Z2^T Z1) / 2 is itself a product of two stacks of rows.
        return self._log_det_of(torch.cat([left, right]), torch.cat([right, left]) / 2, scale)

    def _log_det_of(self, left: Tensor, right: Tensor, scale: float) -> Tensor:
        """log det(I + scale L^T R), in the smaller of its two forms (Sylvester)."""
        rows, dim = left.shape
        product = scale * (left.T @ right if dim <= rows else right @ left.T)
        if self.logarithm == "taylor":
            return taylor_log(product, self.order, ridge=1.0).trace()
        identity = torch.eye(len(product), dtype=product.dtype, device=product.device)
        if not has_principal_log(identity + product):
            raise ValueError(
                "I + d / (B epsilon^2) Z1^T Z2 has an eigenvalue that is not positive, so that it "
                "has no logarithm: the branches disagree too much. Give logarithm='taylor' or "
                "covariance='auto', which are always defined, or a larger epsilon"
            )
        return torch.linalg.slogdet(identity + product).logabsdet


class CorInfoMax(Objective):
    r"""Correlative information maximisation (CorInfoMax): each view fills the space, pairs agree.

    .. math::
        -\frac2V \sum_v \log\det(\mathrm{Cov}(Z_v) + \epsilon I)
        + w\, \frac{\sum_{ij} A_{ij} |z_i - z_j|^2}{\sum_{ij} |A_{ij}|},
        \qquad w = \frac2\epsilon \text{ by default}

    which for two views is equation 7. Those that are different (A < 0) are pushed apart up to a
    margin. With a teacher, covariances are those of z and distances are to the teacher.

    Paper: Ozsoy et al. 2022 (CorInfoMax), and matrix-ssl, equation 7 ("ColorInfoMax").
    Errata: equation 7 prints the alignment with a minus, which drives the views apart.

    Args:
        epsilon: what is added to every eigenvalue of a covariance.
        covariance_weight: a factor on the log-determinants (Ozsoy et al.: 1 / d).
        invariance_weight: w, by default 2 / epsilon as in the equation.
        normalize: bring every row to norm 1 first, as both papers do; without it only the
            distances keep the scale of z from growing.
        centered: subtract the mean of each view from its rows.
        ddof: a covariance of n rows is divided by n - ddof.
        margin: the distance up to which rows that are different repel.
        momentum: the weight of what is remembered of the covariance of earlier batches (Ozsoy et
            al.: 0.01), at first no more than a plain mean of the batches gives it; the gradient
            goes through the present batch alone. Nothing is stored in evaluation mode.
        dim: the dimensions of z; needed to remember a covariance.
        reduction: "sum" sums the distances over pairs of rows; see :class:`Objective`.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.cat([torch.eye(2), -torch.eye(2)]).repeat_interleave(2, dim=0)
        >>> terms = CorInfoMax(epsilon=0.5).terms(z, Graph.identity(4).views(2))
        >>> [round(term.item(), 4) for term in terms.values()]  # the covariance is I / 2
        [0.0, 0.0]
    """

    running_covariance: Tensor
    batches: Tensor

    def __init__(
        self,
        epsilon: float = 0.01,
        covariance_weight: float = 1.0,
        invariance_weight: float | None = None,
        *,
        normalize: bool = True,
        centered: bool = True,
        ddof: int = 0,
        margin: float = 1.0,
        momentum: float = 0.0,
        dim: int | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.epsilon = positive("epsilon", epsilon)
        self.covariance_weight = positive("covariance_weight", covariance_weight, zero=True)
        self.invariance_weight = (
            2 / self.epsilon
            if invariance_weight is None
            else positive("invariance_weight", invariance_weight, zero=True)
        )
        self.normalize = normalize
        self.centered = centered
        self.ddof = whole("ddof", ddof, least=0)
        self.margin = positive("margin", margin)
        self.momentum = positive("momentum", momentum, zero=True)
        self.dim = dim
        if self.momentum >= 1:
            raise ValueError(f"momentum is {momentum!r}: give a number from 0 to below 1")
        if self.momentum and dim is None:
            raise ValueError(
                f"momentum is {momentum!r}, but dim is None: give the dimensions of z, for which "
                "a covariance is kept"
            )
        if self.momentum and dim is not None:
            size = whole("dim", dim)
            self.register_buffer("running_covariance", torch.zeros(size, size))
            self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        batch = unit_batch(batch) if self.normalize else batch
        distance = mean_distance(batch, batch.z, batch.target, self.margin, self.reduction)
        log_det = self._log_dets(batch).mean()
        return {
            "covariance": -2 * self.covariance_weight * log_det,
            "invariance": self.invariance_weight * distance,
        }

    def _log_dets(self, batch: Batch) -> Tensor:
        """log det(Cov(Z_v) + epsilon I) of every view, (V,)."""
        z = batch.z.reshape(batch.n_samples, batch.views, -1).transpose(0, 1)
        z = z - z.mean(dim=1, keepdim=True) if self.centered else z
        count = covariance_count(batch.n_samples, self.ddof)
        if not self.momentum:
            constant = batch.dim * math.log(self.epsilon)
            return log_det_identity_plus(z, 1 / (count * self.epsilon)) + constant
        if batch.dim != self.dim:
            raise ValueError(
                f"z has {batch.dim} dimensions, but dim is {self.dim}: give the dimensions of z"
            )
        batches = self.batches.to(z.dtype)
        momentum = (batches / (batches + 1)).clamp_max(self.momentum)
        remembered = momentum * self.running_covariance.to(z.dtype)
        covariance = remembered + (1 - momentum) * (z.mT @ z / count)
        if self.training:
            self.running_covariance.copy_(covariance.detach().mean(dim=0))
            self.batches += 1
        return _lifted_log_det(covariance, self.epsilon)


def unit_batch(batch: Batch) -> Batch:
    """The same batch with rows of norm 1."""
    z = unit_rows(batch.z)
    return replace(batch, z=z, target=unit_rows(batch.target) if batch.has_teacher else z)


def covariance_count(rows: int, ddof: int) -> int:
    """What a covariance of this many rows is divided by, or an error."""
    if rows <= ddof:
        raise ValueError(
            f"a covariance of {rows} samples with ddof {ddof} would divide by {rows - ddof}: give "
            "more samples, or ddof=0"
        )
    return rows - ddof


def whole(name: str, value: int, *, least: int = 1) -> int:
    """`value`, or an error that names it: it must be a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}: give a whole number of at least {least}")
    return value


def _symmetric_log_det(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """log det(I + scale (L^T R + R^T L) / 2), which must be positive definite."""
    product = left.T @ right
    matrix = torch.eye(len(product), dtype=product.dtype, device=product.device)
    matrix = matrix + scale * (product + product.T) / 2
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if bool(failed):
        raise ValueError(
            "I + d / (B epsilon^2) times the symmetric part of Z1^T Z2 is not positive definite, "
            "so that it has no logarithm: the branches disagree too much. Give logarithm='taylor' "
            "or covariance='auto', which are always defined, or a larger epsilon"
        )
    return 2 * factor.diagonal().log().sum()


def _lifted_log_det(covariance: Tensor, epsilon: float) -> Tensor:
    """log det(C + epsilon I), also where round-off has made C slightly indefinite."""
    identity = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    factor, failed = torch.linalg.cholesky_ex(covariance + epsilon * identity)
    if not bool(failed.any()):
        return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return (torch.linalg.eigvalsh(covariance).clamp_min(0) + epsilon).log().sum(-1)
