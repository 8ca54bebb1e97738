"""Entropy of a positive semi-definite matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.information import checks
from likewise.information.derivatives import eigenvalues, with_gradient
from likewise.information.precision import wide, without_autocast
from likewise.information.spectrum import check_semidefinite, round_off

_REMEDY = "pass its symmetric part (a + a.mT) / 2"


def semidefinite_eigenvalues(a: Tensor, name: str, remedy: str = _REMEDY) -> tuple[Tensor, Tensor]:
    """Eigenvalues (..., d) of a positive semi-definite matrix, and what counts as zero (..., 1)."""
    matrix = checks.symmetric(checks.square(a, name), name, a.dtype, remedy)
    values = eigenvalues(matrix)
    floor = round_off(values, a.dtype)
    check_semidefinite(values.detach(), floor, name)
    return values, floor


def normalised_entropy(weights: Tensor, floor: Tensor) -> Tensor:
    """H(p) with p = w / sum(w) over the last dimension; weights up to `floor` count as zero.

    The gradient -(log p_i + H) / sum(w) uses the floor in place of a smaller weight. All weights
    zero give 0 and no gradient. Computed and returned in float64.
    """
    weights, floor = wide(weights), wide(floor)
    kept = torch.where(weights.detach() > floor, weights.detach(), 0.0)
    total = kept.sum(-1, keepdim=True)
    known = total > 0
    total = torch.where(known, total, 1.0)
    entropy = torch.special.entr(kept / total).sum(-1)
    slope = -(torch.log(torch.maximum(kept, floor) / total) + entropy[..., None]) / total
    return with_gradient(entropy, (weights, torch.where(known, slope, 0.0)))


@without_autocast
def matrix_entropy(a: Tensor) -> Tensor:
    r"""Matrix entropy ME(A) = -tr(A log A) + tr A of a positive semi-definite matrix.

    0 log 0 = 0, and eigenvalues up to 8 eps \|A\|_F count as zero. The gradient is -log A, which
    is infinite on the kernel of A: there the eigenvalue 8 eps \|A\|_F is used in its place, in
    the gradient only.

    Paper: matrix-ssl, definition 3.1.
    Errata: the maximum is I / d among matrices of unit trace; without that constraint it is I.

    Args:
        a: positive semi-definite matrices (..., d, d).

    Returns:
        Entropies (...).

    Example:
        >>> import torch
        >>> matrix_entropy(torch.eye(4) / 4)  # log 4 + 1
        tensor(2.3863)
    """
    values, floor = semidefinite_eigenvalues(a, "a")
    kept = torch.where(values.detach() > floor, values.detach(), 0.0)
    entropy = (torch.special.entr(kept) + kept).sum(-1)
    floored = torch.maximum(kept, floor).clamp_min(torch.finfo(kept.dtype).tiny)
    return with_gradient(entropy, (values, -floored.log()))


@without_autocast
def von_neumann_entropy(a: Tensor) -> Tensor:
    r"""Von Neumann entropy VNE(A / tr A), VNE(X) = -tr(X log X).

    The matrix is divided by its trace first, so that any positive semi-definite matrix but zero
    may be passed; the value is unchanged where the trace is 1 already.

    Paper: matrix-ssl, definition 3.1.
    Errata: for any trace t, VNE(A / t) = (ME(A) - t) / t + log t; the paper's ME - 1 needs t = 1.

    Args:
        a: positive semi-definite matrices (..., d, d) with a positive trace.

    Returns:
        Entropies (...), between 0 and log d.

    Example:
        >>> import torch
        >>> von_neumann_entropy(3 * torch.eye(4))  # log 4
        tensor(1.3863)
    """
    values, floor = semidefinite_eigenvalues(a, "a")
    if bool((values.detach() <= floor).all(-1).any()):
        raise ValueError(
            "a must have a positive trace, got a matrix of zeros, which cannot be "
            "normalised; add a ridge, or leave it out."
        )
    return normalised_entropy(values, floor).to(values.dtype)
