"""Log-determinants of I + scale Z^T Z, and the coding rate."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.information import checks
from likewise.information.derivatives import needs_gradient, singular_values, with_gradient
from likewise.information.precision import rounding, wide, without_autocast


@without_autocast
def log_det_identity_plus(z: Tensor, scale: float | Tensor) -> Tensor:
    r"""log det(I + scale Z^T Z) for rows z, through the smaller of Z^T Z and Z Z^T.

    By Sylvester's identity both Gram matrices give the same value and gradient. The value is twice
    the sum of the logarithms of a Cholesky diagonal, so that nothing underflows. If scale \|Z\|^2
    is so large that round-off in the Gram matrix would hide the identity, float64 is used, and
    beyond that the singular values of Z.

    Paper: matrix-ssl, equation 6.
    Errata: the d x d and the B x B form are equal; use the smaller.

    Args:
        z: embeddings (..., n, d), one row per sample.
        scale: a number, or a tensor with one element, not negative; may carry a gradient.

    Returns:
        Log-determinants (...), not negative.

    Example:
        >>> import torch
        >>> log_det_identity_plus(torch.eye(3, 5), scale=1.0)  # 3 log 2
        tensor(2.0794)
    """
    z = checks.rows(z)
    if isinstance(scale, Tensor) and scale.numel() != 1:
        raise ValueError(
            f"scale must have one element, got shape {tuple(scale.shape)}; "
            "multiply the rows by its square root to scale matrices differently."
        )
    number = float(scale.detach()) if isinstance(scale, Tensor) else float(scale)
    checks.non_negative(number, "scale")
    largest = number * float(z.detach().square().sum((-2, -1)).max())
    rows = wide(z) if largest * rounding(z.dtype) > 0.05 else z
    factor = scale.reshape(()).to(rows) if isinstance(scale, Tensor) else rows.new_tensor(number)
    if largest * rounding(rows.dtype) > 0.05:
        value = torch.log1p(factor * singular_values(rows).square()).sum(-1)
    else:
        value = _by_cholesky(rows, factor)
    return value.to(z.dtype)


def _by_cholesky(rows: Tensor, scale: Tensor) -> Tensor:
    """log det(I + G) with G = scale T^T T, and its gradients 2 scale T (I + G)^-1 in T and
    (d - tr (I + G)^-1) / scale = tr(T^T T (I + G)^-1) in scale.
    """
    tall = rows if rows.shape[-2] >= rows.shape[-1] else rows.mT
    still, factor = tall.detach(), scale.detach()
    gram = still.mT @ still
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    root = torch.linalg.cholesky(identity + factor * gram)
    value = 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    if not needs_gradient(rows, scale):
        return value
    inverse = torch.cholesky_inverse(root)
    in_scale = (gram * inverse).sum((-2, -1))
    return with_gradient(
        value, (tall, 2 * factor * still @ inverse), (scale.expand(value.shape), in_scale)
    )


def coding_rate(z: Tensor, epsilon: float = 0.5) -> Tensor:
    r"""Coding rate R(Z) = 1/2 log det(I + d / (n epsilon^2) Z^T Z) of n rows in d dimensions.

    The total coding rate loss is -R: a larger rate means embeddings that fill more dimensions.

    Paper: matrix-ssl, equation 6 (L_TCR = -R).
    Errata: the proof of theorem 4.4 prints L_TCR with the sign of R; equation 6 is right.

    Args:
        z: embeddings (..., n, d), one row per sample; unit rows in the paper.
        epsilon: allowed distortion, positive.

    Returns:
        Rates (...), not negative.

    Example:
        >>> import torch
        >>> coding_rate(torch.eye(4))  # 4/2 log(1 + 1 / 0.25)
        tensor(3.2189)
    """
    rows, dims = checks.rows(z).shape[-2:]
    epsilon = checks.positive(epsilon, "epsilon")
    return log_det_identity_plus(z, dims / (rows * epsilon**2)) / 2
