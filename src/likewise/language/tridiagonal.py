"""e_1^T log(T) e_1 and its derivative for many small matrices at once, without eigenvalues.

    log T = integral over s > 0 of I / (1 + s) - (T + s)^-1,
    D     = integral over s > 0 of (T + s)^-1 e_1 e_1^T (T + s)^-1,

with s = exp(u) by the trapezoidal rule in u: the integrands' nearest poles are at a distance of pi
from the real line, so that the error is about exp(-2 pi^2 / h) for steps of h. With T tridiagonal
a resolvent is a recurrence of k steps over all matrices and all nodes together, where eigenvalue
solvers for batches of small matrices are slow on a GPU. D is a sum of positive terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

STEP = 0.75
"""h; the error of the rule is then 4e-12."""
LOWEST, HIGHEST = -62.0, 28.0
"""Range of u: eigenvalues from 1e-16 to 1, and as far again as the integrands need to vanish."""


@lru_cache
def nodes(device: torch.device) -> Tensor:
    """The values of s at which the integrands are taken, float64."""
    count = int((HIGHEST - LOWEST) / STEP) + 1
    return (torch.arange(count, dtype=torch.float64, device=device) * STEP + LOWEST).exp()


@dataclass
class Logarithm:
    """log(A) seen from e_1, for a batch (b,) of matrices k x k of which the first c count most."""

    corner: Tensor
    """e_1^T log(A) e_1, (b,)."""
    column: Tensor
    """log(A) e_1 of the first c, (c, k)."""
    derivative: Tensor
    """D of the first c, (c, k, k): e_1^T log(A) e_1 changes by tr(D S) along S."""


def logarithm(a: Tensor, least: Tensor, c: int) -> Logarithm:
    """The logarithm of `a` (b, k, k), given that (A^-1)_11 <= 1 / least, (b,)."""
    diagonal, off, turn = tridiagonal(a)
    s = nodes(a.device)
    pivots = _pivots(diagonal, off, s, least)
    weight = STEP * s
    # The constant is large and cancels, so the difference is taken first.
    corner = (weight * (1 / (1 + s) - 1 / pivots[0])).sum(-1)
    y = [1 / pivots[0][:c]]  # the first column of the resolvent, entry by entry
    for j in range(1, a.shape[-1]):
        y.append(y[-1] / pivots[j][:c] * -off[:c, j - 1, None])
    columns = torch.stack(y, 1)  # (c, k, nodes)
    column = -(columns @ weight)
    column[:, 0] = corner[:c]
    scaled = columns * weight.sqrt()
    turn = turn[:c]
    inner = turn @ torch.bmm(scaled, scaled.mT) @ turn.mT
    return Logarithm(corner, torch.bmm(turn, column[:, :, None])[:, :, 0], inner)


def tridiagonal(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Diagonals (b, k), off-diagonals (b, k - 1) and P (b, k, k) with A = P T P^T, P e_1 = e_1.

    Householder's reflections, all matrices of the batch at a time.
    """
    a = a.clone()
    k = a.shape[-1]
    turn = torch.eye(k, dtype=a.dtype, device=a.device).repeat(len(a), 1, 1)
    tiny = torch.finfo(a.dtype).tiny
    for j in range(k - 2):
        v = a[:, j + 1 :, j].clone()
        length = torch.linalg.vector_norm(v, dim=1)
        off = -torch.copysign(length, v[:, 0])
        v[:, 0] -= off  # away from the first entry, so that nothing cancels
        # I - u v^T is the reflection: u = v / (|v|^2 / 2) = v / (|off v_0|).
        u = v / (off * v[:, 0]).abs().clamp_min(tiny)[:, None]
        rest, v, u = a[:, j + 1 :, j + 1 :], v[:, :, None], u[:, :, None]
        p = torch.bmm(rest, u)
        w = p - v * (torch.bmm(u.mT, p) / 2)
        rest.sub_(torch.bmm(torch.cat([v, w], 2), torch.cat([w, v], 2).mT))
        a[:, j + 1, j] = off
        columns = turn[:, :, j + 1 :]
        columns.sub_(torch.bmm(torch.bmm(columns, u), v.mT))
    return a.diagonal(dim1=-2, dim2=-1), a.diagonal(-1, dim1=-2, dim2=-1), turn


def _pivots(diagonal: Tensor, off: Tensor, s: Tensor, least: Tensor) -> list[Tensor]:
    """Pivots of T + s, eliminated from the last row up, each (b, nodes).

    Round-off may leave T an eigenvalue at or below zero, with next to no weight on e_1, and a
    pivot that crosses zero would count as if it had some. The first pivot is 1 / ((T + s)^-1)_11,
    which is at least `least` + s (Jensen's inequality for x / (1 + s x) at x = 1 / eigenvalue);
    the others are kept above the round-off of T.
    """
    k = diagonal.shape[1]
    squares = off.square()
    floor = s + 1e-15 * diagonal.sum(1, keepdim=True)
    shifted = diagonal[:, :, None] + s
    pivots = [torch.maximum(shifted[:, k - 1], floor)]
    for j in range(k - 2, -1, -1):
        pivot = shifted[:, j] - squares[:, j, None] / pivots[-1]
        pivots.append(torch.maximum(pivot, floor if j else least[:, None] + s))
    return pivots[::-1]
