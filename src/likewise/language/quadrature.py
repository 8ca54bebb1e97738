"""e^T log(Q) e and its derivative from a Krylov basis: Gauss quadrature with bounds on both sides.

In an orthonormal basis that begins with e, T = V^T Q V. The Gauss rule e_1^T log(T) e_1 is never
below e^T log(Q) e, since the logarithm is operator concave. A second rule is never above it: the
target's own term q_t e_t e_t^T makes e_t^T Q^+ e_t at most 1 / q_t, and the rule with one more
node whose inverse moment is exactly 1 / q_t is the Gauss rule of x log x for the matrix
diag(sqrt q) E E^T diag(sqrt q), a function that is operator convex.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.information.derivatives import log_divided_differences

LOWEST_LOG = -30.0
"""Below this log-probability of the target the value is continued along its tangent."""


@dataclass
class Estimate:
    """-x^T log(Q) x at c positions, and how it depends on Q."""

    value: Tensor
    """(c,)."""
    lower: Tensor
    upper: Tensor
    error: Tensor
    """Estimate of the error of `value`."""
    rotation: Tensor
    """R, (c, k, r): the basis V as it is, times R, is orthonormal and has T diagonal."""
    middle: Tensor
    """M, (c, r, r), with d(-x^T log(Q) x) = -tr(M R^T V^T dQ V R): divided differences."""
    own: Tensor
    """x^T D x for D = V R M R^T V^T: minus the derivative in the probability of x itself, (c,)."""
    log_vector: Tensor
    """log(Q) x over the basis as it is, (c, k)."""

    def rows(self, index: Tensor) -> Estimate:
        """The same at some of the positions."""
        return Estimate(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def estimate(gram: Tensor, rest: Tensor, residual: Tensor, log_share: Tensor | None) -> Estimate:
    """The quadrature, given V^T V, V^T Q V (both (c, k, k), float64) and the next off-diagonal.

    Args:
        gram: V^T V; the first vector is x up to a positive factor that is divided out for a
            token (|e| = 1) and kept for a probe.
        rest: V^T Q V, without the target's own term where `log_share` is given.
        residual: length of the next Lanczos vector, (c,).
        log_share: log q_t of the target, floored at `LOWEST_LOG`; None for a probe, which has no
            upper bound.
    """
    k = gram.shape[-1]
    broken = ~(torch.isfinite(gram).all((-1, -2)) & torch.isfinite(rest).all((-1, -2)))
    T, inverse_factor = _orthonormal(gram, rest, broken)
    share = None if log_share is None else log_share.double().exp()
    if share is not None:
        T[:, 0, 0] += share
    stack = [_padded(T, k + 1), _padded(T[:, :-1, :-1], k + 1)]
    if share is not None:
        stack.append(_bordered(T, residual.double(), share, k + 1))
        before = T[:, -1, -2].abs() if k > 1 else torch.zeros_like(share)
        stack.append(_bordered(T[:, :-1, :-1], before, share, k + 1))
    matrices = torch.stack(stack)
    values, vectors = torch.linalg.eigh(matrices)
    floor = torch.finfo(torch.float64).eps * values[..., -1:]
    values = values.clamp_min(0).maximum(floor * 1e-2)
    logs = -(vectors[..., 0, :].square() * values.log()).sum(-1)
    return _assembled(values[0], vectors[0], logs, inverse_factor, gram, broken, share is None)


def _assembled(
    values: Tensor,
    vectors: Tensor,
    logs: Tensor,
    inverse_factor: Tensor,
    gram: Tensor,
    broken: Tensor,
    probe: bool,
) -> Estimate:
    k = gram.shape[-1]
    first = vectors[:, 0]
    middle = log_divided_differences(values) * first[:, :, None] * first[:, None, :]
    own = torch.einsum("ci,cij,cj->c", first, middle, first)
    log_vector = (vectors * (first * values.log())[:, None]).sum(-1)[:, :k]
    lower, before = logs[0], logs[1]
    if probe:
        # A probe keeps its length: x^T log(Q) x = |x|^2 e_1^T log(T) e_1.
        square = gram[:, 0, 0]
        lower, before = square * lower, square * before
        value, upper, error = lower, torch.full_like(lower, torch.inf), (lower - before).abs()
        middle, log_vector = middle * square[:, None, None], log_vector * square.sqrt()[:, None]
    else:
        upper = logs[2].maximum(lower)
        value, error = _between(lower, upper, lower - before, logs[3] - upper)
    nan = torch.where(broken, torch.nan, 0.0)
    return Estimate(
        value + nan,
        lower + nan,
        upper + nan,
        torch.where(broken, 0.0, error),
        inverse_factor.mT @ vectors[:, :k],
        middle,
        own,
        (inverse_factor.mT @ log_vector[:, :, None])[:, :, 0],
    )


def _between(lower: Tensor, upper: Tensor, risen: Tensor, fallen: Tensor) -> tuple[Tensor, Tensor]:
    """Where the two bounds will meet, if each has as far to go as it has just come.

    That is an extrapolation, and a bound may stand still before it moves (a tiny eigenvalue is
    not seen until the space is exhausted): the error counts as a twentieth of the gap at least.
    """
    risen, fallen = risen.clamp_min(0), fallen.clamp_min(0)
    total = risen + fallen
    share = torch.where(total > 0, risen / torch.where(total > 0, total, 1.0), 0.5)
    gap = upper - lower
    return lower + gap * share, gap * torch.minimum(share, 1 - share).clamp_min(0.05)


def _orthonormal(gram: Tensor, rest: Tensor, broken: Tensor) -> tuple[Tensor, Tensor]:
    """V^T Q V over the orthonormalised basis, and C^-1 of V^T V = C C^T.

    A vector of length zero (the space was exhausted) becomes one on its own, with eigenvalue 1.
    """
    size = gram.diagonal(dim1=-2, dim2=-1)
    missing = (size <= 0) | broken[:, None]
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    outside = missing[:, :, None] | missing[:, None, :]
    factor, _ = torch.linalg.cholesky_ex(torch.where(outside, identity, gram))
    inverse = torch.linalg.solve_triangular(factor, identity.expand_as(factor), upper=False)
    T = inverse @ torch.where(outside, identity, rest) @ inverse.mT
    return (T + T.mT) / 2, inverse


def _padded(T: Tensor, size: int) -> Tensor:
    """T as the leading block of an identity matrix."""
    out = torch.eye(size, dtype=T.dtype, device=T.device).repeat(len(T), 1, 1)
    k = T.shape[-1]
    out[:, :k, :k] = T
    return out


def _bordered(T: Tensor, beta: Tensor, share: Tensor, size: int) -> Tensor:
    """T with one more node, such that (T^-1)_11 = 1 / q_t."""
    k = T.shape[-1]
    out = _padded(T, size)
    if k == 0:
        out[:, 0, 0] = share
        return out
    identity = torch.eye(k, dtype=T.dtype, device=T.device)
    floor = torch.finfo(T.dtype).eps * T.diagonal(dim1=-2, dim2=-1).sum(-1)
    factor, _ = torch.linalg.cholesky_ex(T + floor[:, None, None] * identity)
    inverse = torch.cholesky_inverse(factor)
    missing = (1 / share - inverse[:, 0, 0]).clamp_min(torch.finfo(T.dtype).tiny)
    node = beta.square() * (inverse[:, 0, -1].square() / missing + inverse[:, -1, -1])
    exhausted = (beta <= 0) | ~torch.isfinite(node)
    node, beta = torch.where(exhausted, 1.0, node), torch.where(exhausted, 0.0, beta)
    # The largest eigenvalue of Q is at most 1; a node far above it has no weight left to tell.
    node = node.clamp_max(1e6)
    out[:, k, k] = node
    out[:, k, k - 1] = beta
    out[:, k - 1, k] = beta
    return out
