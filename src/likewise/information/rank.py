"""How many dimensions are in use, as a real number."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.information import checks
from likewise.information.derivatives import singular_values
from likewise.information.entropy import normalised_entropy, semidefinite_eigenvalues
from likewise.information.precision import without_autocast
from likewise.information.spectrum import round_off


@without_autocast
def effective_rank(a: Tensor) -> Tensor:
    r"""Effective rank exp H(p), p_i = l_i / sum_k l_k, of a positive semi-definite matrix.

    H is the Shannon entropy and l are the eigenvalues. Between 1 and the rank; the zero matrix,
    for which it is undefined, gives 0 (an all-zero class scatter spans nothing).

    Paper: matrix-ssl, equation 12 (Roy and Vetterli 2007).
    Errata: exp(ME(A) - 1) needs unit trace; for the trace t it is exp((ME(A) - t) / t + log t).

    Args:
        a: positive semi-definite matrices (..., d, d), a covariance or a Gram matrix.

    Returns:
        Effective ranks (...).

    Example:
        >>> import torch
        >>> effective_rank(torch.diag(torch.tensor([2.0, 2.0, 0.0])))
        tensor(2.)
    """
    values, floor = semidefinite_eigenvalues(
        a, "a", "pass its symmetric part (a + a.mT) / 2, or use rank_me for a general matrix"
    )
    return _exponential(values, floor)


@without_autocast
def rank_me(z: Tensor) -> Tensor:
    r"""RankMe exp H(p), p_i = s_i / sum_k s_k, of an embedding matrix with singular values s.

    No epsilon is added to p: a matrix of rank 1 reads 1, and the identity of size d reads d.
    It uses singular values of z, not eigenvalues of z^T z, and does not centre. All zeros give 0.
    Half-precision rows are taken as they are, their rounding included.

    Paper: matrix-ssl, equation 12 on the rows themselves (Garrido et al. 2023, RankMe).
    Errata: an epsilon added to the normalised p reads 1.27 for rank 1, and 2345 for full rank
    2048.

    Args:
        z: embeddings (..., n, d), one row per sample.

    Returns:
        Ranks (...), at most min(n, d).

    Example:
        >>> import torch
        >>> rank_me(torch.ones(100, 8))
        tensor(1.)
        >>> rank_me(torch.eye(6))
        tensor(6.)
    """
    values = singular_values(checks.rows(z))
    return _exponential(values, round_off(values, values.dtype))


def _exponential(weights: Tensor, floor: Tensor) -> Tensor:
    rank = normalised_entropy(weights, floor).exp()
    used = (weights.detach() > floor).any(-1)
    return torch.where(used, rank, 0.0).to(weights.dtype)
