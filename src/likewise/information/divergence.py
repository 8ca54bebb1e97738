"""Matrix Kullback-Leibler divergence and matrix cross-entropy."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.information import checks
from likewise.information.checks import Method
from likewise.information.derivatives import log_divided_differences, with_gradient
from likewise.information.logarithm import taylor_log
from likewise.information.precision import frobenius, rounding, without_autocast
from likewise.information.spectrum import Spectrum, check_semidefinite, decompose, round_off

_SYMMETRIZE = "pass symmetrize=True to take (Q + Q^T) / 2, or method='taylor'"
_SYMMETRIC_P = "pass its symmetric part (p + p.mT) / 2"


@without_autocast
def matrix_cross_entropy(
    p: Tensor,
    q: Tensor,
    *,
    ridge: float = 0.0,
    method: Method = "exact",
    order: int = 4,
    symmetrize: bool = False,
) -> Tensor:
    r"""Matrix cross-entropy MCE(P, Q) = tr(-P log Q + Q), with P + ridge I and Q + ridge I.

    The ridge goes to both matrices, as in equations 16 and 17, so that Q = P stays the minimiser
    whatever the ridge. Without one the value is +inf unless the range of P lies in the range of
    Q; where it does, it is exact. Gradients: -log Q in P, and
    I - U [(U^T P U) o L] U^T in Q (Daleckii-Krein), finite and right at repeated eigenvalues; on
    the kernel of Q, and where the value is +inf, they use 8 eps \|Q\|_F for a zero eigenvalue.

    Paper: matrix-ssl, equation 11.
    Errata: the printed gradient -P Q^{-1} + I is right only if P and Q commute; the printed
    log(0) := 0 is not used.

    Args:
        p: positive semi-definite matrices (..., d, d).
        q: positive semi-definite matrices (..., d, d); leading dimensions broadcast. The Taylor
            methods take any square matrix.
        ridge: multiple of the identity that is added to P and to Q first.
        method: ``"exact"``; ``"taylor"``, which puts the polynomial of
            :func:`matrix_log` for log Q; or ``"taylor-shifted"``, which is MCE(I + P, I + Q) with
            the polynomial for log(I + Q): the same as ``"taylor"`` with the ridge 1.
        order: order of the Taylor polynomial.
        symmetrize: take (Q + Q^T) / 2 first, for a cross-covariance.

    Returns:
        Cross-entropies (...).

    Example:
        >>> import torch
        >>> p = torch.diag(torch.tensor([0.5, 0.5]))
        >>> q = torch.diag(torch.tensor([0.75, 0.25]))
        >>> matrix_cross_entropy(p, q)
        tensor(1.8370)
        >>> matrix_cross_entropy(p, torch.diag(torch.tensor([1.0, 0.0])))
        tensor(inf)
    """
    ridge, method, order = _options(ridge, method, order)
    left, right = _pair(p, q, symmetrize)
    if method != "exact":
        return taylor_cross_entropy(left, right, order, _shift(method, ridge))
    right = checks.symmetric(right, "q", q.dtype, _SYMMETRIZE)
    spectrum = decompose(right, "q", q.dtype, ridge)
    _check_semidefinite_quickly(left, p.dtype, ridge)
    rotated = _rotated(left, spectrum, ridge)
    mass = rotated.diagonal(dim1=-2, dim2=-1)
    infinite = _leaves_range(rotated, spectrum, left, p.dtype)
    terms = spectrum.values - torch.where(spectrum.kernel, 0.0, mass * spectrum.floored.log())
    return with_gradient(
        torch.where(infinite, torch.inf, terms.sum(-1)),
        (left, -spectrum.compose(spectrum.floored.log())),
        (right, _gradient_in_q(rotated, spectrum, infinite)),
    )


@without_autocast
def matrix_kl(
    p: Tensor,
    q: Tensor,
    *,
    ridge: float = 0.0,
    method: Method = "exact",
    order: int = 4,
    symmetrize: bool = False,
) -> Tensor:
    r"""Matrix KL divergence MKL(P || Q) = tr(P log P - P log Q - P + Q).

    As in :func:`matrix_cross_entropy` the ridge goes to both matrices, and the value is +inf
    unless the range of P + ridge I lies in that of Q + ridge I. With P = V p V^T and Q = U q U^T
    the exact value is sum_ij (v_i . u_j)^2 (p_i log(p_i / q_j) - p_i + q_j): no term is negative,
    and P = Q gives 0 without cancellation. Gradients: log P - log Q in P, that of the
    cross-entropy in Q, with 8 eps times the Frobenius norm in place of a zero eigenvalue.

    Paper: matrix-ssl, equation 10.
    Errata: with the printed log(0) := 0 a singular Q would score below P itself, MKL(I || 0) = -d;
    the quantum KL of section 3.3 has the sign +tr(A log A - A log B).

    Args:
        p: positive semi-definite matrices (..., d, d).
        q: positive semi-definite matrices (..., d, d); leading dimensions broadcast.
        ridge: multiple of the identity that is added to P and to Q first.
        method: ``"exact"``, or the Taylor polynomials of :func:`matrix_cross_entropy` for both
            logarithms.
        order: order of the Taylor polynomial.
        symmetrize: take (Q + Q^T) / 2 first, for a cross-covariance.

    Returns:
        Divergences (...).

    Example:
        >>> import torch
        >>> p = torch.diag(torch.tensor([0.5, 0.5]))
        >>> q = torch.diag(torch.tensor([0.75, 0.25]))
        >>> matrix_kl(p, q)
        tensor(0.1438)
        >>> matrix_kl(p, p)
        tensor(0.)
    """
    ridge, method, order = _options(ridge, method, order)
    left, right = _pair(p, q, symmetrize)
    if method != "exact":
        return taylor_kl(left, right, order, _shift(method, ridge))
    right = checks.symmetric(right, "q", q.dtype, _SYMMETRIZE)
    of_q = decompose(right, "q", q.dtype, ridge)
    of_p = decompose(left, "p", p.dtype, ridge)
    rotated = _rotated(left, of_q, ridge)
    infinite = _leaves_range(rotated, of_q, left, p.dtype)
    overlap = (of_p.vectors.mT @ of_q.vectors).square()
    terms = overlap * _scalar_kl(of_p.values[..., :, None], of_q.floored[..., None, :])
    value = torch.where(of_q.kernel[..., None, :], 0.0, terms).sum((-2, -1))
    log_q = of_q.compose(of_q.floored.log())
    return with_gradient(
        torch.where(infinite, torch.inf, value),
        (left, of_p.compose(of_p.floored.log()) - log_q),
        (right, _gradient_in_q(rotated, of_q, infinite)),
    )


@without_autocast
def uniform_cross_entropy(
    q: Tensor, *, weight: float | None = None, ridge: float = 0.0, symmetrize: bool = False
) -> Tensor:
    r"""Cross-entropy MCE(w I, Q) = -w log det Q + tr Q to a multiple of the identity.

    Equal to ``matrix_cross_entropy(w * I, q, ridge=ridge)`` in value and gradient
    (I - w Q^{-1}), but a Cholesky factor replaces the eigenvectors. With a ridge it is
    equation 16: MCE((w + ridge) I, Q + ridge I). A singular Q without a ridge gives +inf.

    Paper: matrix-ssl, equations 16 and 20.
    Errata: the ridge of equation 16 must be positive when there are fewer rows than dimensions;
    with the paper's log(0) := 0 and no ridge, a collapsed batch would score best.

    Args:
        q: positive semi-definite matrices (..., d, d).
        weight: w, by default 1 / d.
        ridge: multiple of the identity that is added to w I and to Q first.
        symmetrize: take (Q + Q^T) / 2 first, for a cross-covariance.

    Returns:
        Cross-entropies (...); the least is reached at Q = w I.

    Example:
        >>> import torch
        >>> uniform_cross_entropy(torch.eye(4) / 4)  # log 4 + 1
        tensor(2.3863)
    """
    matrix = checks.square(q, "q")
    ridge = checks.non_negative(ridge, "ridge")
    size = matrix.shape[-1]
    share = (1 / size if weight is None else checks.positive(weight, "weight")) + ridge
    if symmetrize:
        matrix = checks.symmetric_part(matrix)
    matrix = checks.symmetric(matrix, "q", q.dtype, "pass symmetrize=True to take (Q + Q^T) / 2")
    identity = torch.eye(size, dtype=matrix.dtype, device=matrix.device)
    lifted = matrix.detach() + ridge * identity
    known = _log_det_and_inverse(lifted, q.dtype)
    if known is not None:
        log_det, inverse = known
        value = _trace(lifted) - share * log_det
    else:  # close to singular: only the eigenvalues can tell
        spectrum = decompose(matrix, "q", q.dtype, ridge)
        value = (spectrum.values - share * spectrum.floored.log()).sum(-1)
        value = torch.where(spectrum.kernel.any(-1), torch.inf, value)
        inverse = spectrum.compose(1 / spectrum.floored)
    return with_gradient(value, (matrix, identity - share * inverse))


def _log_det_and_inverse(a: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
    """By Cholesky, or None if an eigenvalue may be zero to working precision."""
    factor, failed = torch.linalg.cholesky_ex(a)
    if bool(failed.any()):
        return None
    inverse = torch.cholesky_inverse(factor)
    least = 1 / frobenius(inverse)  # no eigenvalue is smaller
    if not bool((least > rounding(dtype) * frobenius(a)).all()):
        return None
    return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1), inverse


def _options(ridge: float, method: str, order: int) -> tuple[float, Method, int]:
    return checks.non_negative(ridge, "ridge"), checks.method(method), checks.order(order)


def _pair(p: Tensor, q: Tensor, symmetrize: bool) -> tuple[Tensor, Tensor]:
    left, right = checks.square(p, "p"), checks.square(q, "q")
    if left.shape[-1] != right.shape[-1]:
        raise ValueError(
            f"p and q must have the same size, got {tuple(p.shape)} and "
            f"{tuple(q.shape)}; compare d x d with d x d covariances."
        )
    left = checks.symmetric(left, "p", p.dtype, _SYMMETRIC_P)
    dtype = torch.promote_types(left.dtype, right.dtype)
    shape = torch.broadcast_shapes(left.shape, right.shape)
    left, right = left.to(dtype).expand(shape), right.to(dtype).expand(shape)
    return left, checks.symmetric_part(right) if symmetrize else right


def _trace(a: Tensor) -> Tensor:
    return a.diagonal(dim1=-2, dim2=-1).sum(-1)


def _shift(method: Method, ridge: float) -> float:
    return ridge + float(method == "taylor-shifted")


def taylor_cross_entropy(p: Tensor, q: Tensor, order: int, shift: float) -> Tensor:
    """tr(-(P + s I) log(Q + s I) + Q + s I) with the polynomial for the logarithm.

    Nothing is checked, so that nothing is read back from a GPU: objectives call it every step.
    """
    log = taylor_log(q, order, shift)
    return _trace(q) + shift * q.shape[-1] - shift * _trace(log) - _inner(p, log)


def taylor_kl(p: Tensor, q: Tensor, order: int, shift: float) -> Tensor:
    """MKL(P + s I || Q + s I) with polynomials for both logarithms; nothing is checked."""
    logs = taylor_log(p, order, shift) - taylor_log(q, order, shift)
    return shift * _trace(logs) + _inner(p, logs) + _trace(q - p)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """tr(A B), without the product."""
    return (a * b.mT).sum((-2, -1))


def _check_semidefinite_quickly(p: Tensor, dtype: torch.dtype, ridge: float) -> None:
    """Raise unless P + ridge I is positive semi-definite: Cholesky, and eigenvalues in doubt."""
    p = p.detach()
    identity = torch.eye(p.shape[-1], dtype=p.dtype, device=p.device)
    lift = rounding(dtype) * frobenius(p)[..., None, None] + ridge
    if bool((torch.linalg.cholesky_ex(p + lift * identity).info != 0).any()):
        values = torch.linalg.eigvalsh(p)
        check_semidefinite(values, round_off(values, dtype), "p", ridge)


def _rotated(p: Tensor, of_q: Spectrum, ridge: float) -> Tensor:
    """U^T (P + ridge I) U, in the eigenvectors of Q."""
    inner = of_q.vectors.mT @ p.detach() @ of_q.vectors
    inner.diagonal(dim1=-2, dim2=-1).add_(ridge)
    return inner


def _leaves_range(rotated: Tensor, of_q: Spectrum, p: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether P has mass on the kernel of Q, (...): the block of U^T P U there is not round-off.

    Round-off turns the kernel by an angle of at most floor / gap, where gap is the least non-zero
    eigenvalue of Q, and moves a share of the square of it onto the kernel.
    """
    inside = of_q.kernel[..., :, None] & of_q.kernel[..., None, :]
    mass = frobenius(torch.where(inside, rotated, 0.0))
    gap = torch.where(of_q.kernel, torch.inf, of_q.values).amin(-1)
    turn = (of_q.floor[..., 0] / gap).square().clamp_max(torch.finfo(p.dtype).eps ** 0.5)
    allowed: Tensor = frobenius(p.detach()) * (rounding(dtype) + turn)
    return mass > allowed


def _gradient_in_q(rotated: Tensor, of_q: Spectrum, infinite: Tensor) -> Tensor:
    """I - U [(U^T P U) o L] U^T; round-off of P on the kernel of Q is left out."""
    kernel = of_q.kernel & ~infinite[..., None]
    outside = kernel[..., :, None] | kernel[..., None, :]
    inner = torch.where(outside, 0.0, rotated * log_divided_differences(of_q.floored))
    identity = torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
    return identity - of_q.vectors @ inner @ of_q.vectors.mT


def _scalar_kl(p: Tensor, q: Tensor) -> Tensor:
    """p log(p / q) - p + q for p >= 0, q > 0: never negative, 0 at p = q."""
    x = (p - q) / q
    near = x.abs() < 0.5
    close = torch.where(near, x, 0.0)
    apart = torch.xlogy(p, p) - p * q.log() - p + q
    return torch.where(near, q * ((1 + close) * close.log1p() - close), apart).clamp_min(0)
