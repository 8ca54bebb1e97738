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

from likewise.language.tridiagonal import logarithm

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
    factor: Tensor
    """F, (c, k, r), with d(-x^T log(Q) x) = -tr(D dQ) and D = V F F^T V^T, over the basis V.

    Small eigenvalues of Q, whose reciprocals are large in D, meet small components of V^T e_j:
    squares of V F lose half as many digits to that as D itself would."""
    own: Tensor
    """x^T D x: minus the derivative in the probability of x itself, (c,)."""
    log_vector: Tensor
    """log(Q) x over the basis as it is, (c, k)."""
    signs: Tensor | None = None
    """(r,), where D = V F diag(signs) F^T V^T has negative parts (a Taylor polynomial)."""


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
    stack = [_padded(T[:, :-1, :-1], k + 1)]
    if share is not None:
        T[:, 0, 0] += share
        stack = _bounding(T, residual.double(), share)
    c = len(T)
    # A probe has no bound on its inverse moment: round-off stands in for it.
    least = 1e-15 * T.diagonal(dim1=-2, dim2=-1).sum(-1) if share is None else share
    matrices = torch.cat([_padded(T, k + 1), *stack])
    found = logarithm(matrices, least.repeat(1 + len(stack)), c)
    lower, *others = -found.corner.view(1 + len(stack), c)
    inner, column = found.derivative[:, :k, :k], found.column[:, :k]
    if share is None:
        # A probe keeps its length: x^T log(Q) x = |x|^2 e_1^T log(T) e_1.
        square = gram[:, 0, 0]
        lower = square * lower
        error = (lower - square * others[0]).abs()
        value, upper = lower, torch.full_like(lower, torch.inf)
        inner, column = inner * square[:, None, None], column * square.sqrt()[:, None]
    else:
        before, upper, above = others
        upper = upper.maximum(lower)
        value, error = between(lower, upper, lower - before, above - upper)
    nan = torch.where(broken, torch.nan, 0.0)
    return Estimate(
        value + nan,
        lower + nan,
        upper + nan,
        torch.where(broken, 0.0, error),
        inverse_factor.mT @ _factor(inner),
        inner[:, 0, 0],
        (inverse_factor.mT @ column[:, :, None])[:, :, 0],
    )


def _factor(inner: Tensor) -> Tensor:
    """F with F F^T = `inner`, whose directions without weight get a trace of round-off."""
    size = inner.diagonal(dim1=-2, dim2=-1)
    ridge = torch.diag_embed(1e-13 * size + 1e-300)
    return torch.linalg.cholesky_ex(inner + ridge).L


def between(lower: Tensor, upper: Tensor, risen: Tensor, fallen: Tensor) -> tuple[Tensor, Tensor]:
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


def _bounding(T: Tensor, residual: Tensor, share: Tensor) -> list[Tensor]:
    """The Gauss rule before the last product, and the upper rules after and before it.

    An upper rule is T with one more node, such that (T^-1)_11 = 1 / q_t.
    """
    k = T.shape[-1]
    identity = torch.eye(k, dtype=T.dtype, device=T.device)
    floor = torch.finfo(T.dtype).eps * T.diagonal(dim1=-2, dim2=-1).sum(-1)
    factor = torch.linalg.cholesky_ex(T + floor[:, None, None] * identity).L
    first = identity[:, :1].expand(len(T), -1, -1)
    # One factor tells of all leading blocks: (T^-1)_11 = |z|^2, (T^-1)_1k = z_k / L_kk.
    z = torch.linalg.solve_triangular(factor, first, upper=False)[:, :, 0]
    moments, pivots = z.square().cumsum(1), factor.diagonal(dim1=-2, dim2=-1)
    upper = [_padded(T, k + 1), _padded(T[:, :-1, :-1], k + 1)]
    betas = residual, (T[:, -1, -2].abs() if k > 1 else torch.zeros_like(share))
    for matrix, size, beta in zip(upper, (k, k - 1), betas, strict=True):
        if size == 0:
            matrix[:, 0, 0] = share
            continue
        last = size - 1
        missing = (1 / share - moments[:, last]).clamp_min(torch.finfo(T.dtype).tiny)
        node = (z[:, last].square() / missing + 1) * (beta / pivots[:, last]).square()
        exhausted = (beta <= 0) | ~torch.isfinite(node)
        # Eigenvalues of Q are at most 1: a node far above has no weight left to tell.
        matrix[:, size, size] = torch.where(exhausted, 1.0, node.clamp_max(1e3))
        coupling = torch.where(exhausted, 0.0, beta)
        matrix[:, size, last] = coupling
        matrix[:, last, size] = coupling
    return [_padded(T[:, :-1, :-1], k + 1), *upper]
