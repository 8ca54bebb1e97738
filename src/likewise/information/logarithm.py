"""The matrix logarithm: exact through eigenvalues, or a Taylor polynomial."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.information import checks
from likewise.information.checks import Method
from likewise.information.derivatives import log_divided_differences, spectral_function
from likewise.information.precision import without_autocast
from likewise.information.spectrum import decompose


@without_autocast
def matrix_log(
    a: Tensor,
    *,
    method: Method = "exact",
    order: int = 4,
    ridge: float = 0.0,
    symmetrize: bool = False,
) -> Tensor:
    r"""Principal logarithm of the symmetric positive definite matrix A + ridge I.

    - ``"exact"``: U diag(log l) U^T for A = U diag(l) U^T. The gradient uses Daleckii-Krein
      divided differences, so that it is finite and right at repeated eigenvalues (A = I / d).
    - ``"taylor"``: sum_{k=1..order} (-1)^{k+1} (A - I)^k / k, a polynomial about I.
    - ``"taylor-shifted"``: the series of log(I + A): sum_{k=1..order} (-1)^{k+1} A^k / k. It is
      ``"taylor"`` with the ridge 1.

    The polynomials take any square matrix, also one that is not symmetric, and are close to the
    logarithm only if every eigenvalue of what is raised to powers is smaller than 1 in size.

    Paper: matrix-ssl, definition 3.1 (principal logarithm) and section F.1 (Taylor order).
    Errata: the paper sets log(0) := 0, which rewards collapse in a loss; here a singular matrix
    raises. At A = I / d the order-4 series about I is off by 0.22, 2.80, 5.54 for d = 5, 128, 2048.

    Args:
        a: matrices (..., d, d); half precision is computed in float32.
        method: how the logarithm is taken.
        order: order of the Taylor polynomial, at least 1; unused by ``"exact"``.
        ridge: multiple of the identity that is added first.
        symmetrize: take (A + A^T) / 2 first; without it ``"exact"`` raises for a matrix that
            is not symmetric.

    Raises:
        ValueError: with ``"exact"`` if A + ridge I has a negative eigenvalue, or is singular to
            working precision and there is no ridge.

    Example:
        >>> import torch
        >>> a = torch.diag(torch.tensor([1.0, 4.0]))
        >>> matrix_log(a)
        tensor([[0.0000, 0.0000],
                [0.0000, 1.3863]])
        >>> matrix_log(0.1 * a, method="taylor-shifted").diagonal()
        tensor([0.0953, 0.3349])
    """
    matrix = checks.square(a, "a")
    method, order = checks.method(method), checks.order(order)
    ridge = checks.non_negative(ridge, "ridge")
    if symmetrize:
        matrix = checks.symmetric_part(matrix)
    if method != "exact":
        return taylor_log(matrix, order, ridge + float(method == "taylor-shifted"))
    matrix = checks.symmetric(
        matrix, "a", a.dtype, "pass symmetrize=True to take (A + A^T) / 2, or method='taylor'"
    )
    spectrum = decompose(matrix, "a", a.dtype, ridge)
    if bool(spectrum.kernel.any()):
        largest = float(spectrum.values.max())
        raise ValueError(
            f"a must not be singular, got eigenvalues from {float(spectrum.values.min()):.3g} to "
            f"{largest:.3g}, where {float(spectrum.floor.max()):.3g} is zero to working "
            f"precision in {matrix.dtype}; pass ridge={1e-4 * (largest or 1.0):.1g}, for example."
        )
    differences = log_divided_differences(spectrum.values)
    return spectral_function(matrix, spectrum.vectors, spectrum.values.log(), differences)


def taylor_log(a: Tensor, order: int, ridge: float) -> Tensor:
    """Taylor polynomial of log(A + ridge I) about I, by Horner's rule.

    No product has the identity in it: where X = A + (ridge - 1) I is small, products in reduced
    precision (TF32) are off by a share of X, not of I.
    """
    x = a + (ridge - 1) * torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    log = x / order
    for k in range(order - 1, 0, -1):
        log = x / k - x @ log
    return log


def has_principal_log(a: Tensor) -> bool:
    """Whether a square matrix, symmetric or not, has a principal logarithm.

    It has none with an eigenvalue on (-inf, 0]. A positive determinant does not tell: an even
    number of negative eigenvalues has one.

    >>> has_principal_log(torch.diag(torch.tensor([2.0, 1.0])))
    True
    >>> has_principal_log(torch.diag(torch.tensor([-2.0, -1.0])))
    False
    """
    matrix = a.detach().to("cpu", torch.float64)
    if not bool(matrix.isfinite().all()):
        # LAPACK may take the whole process down on one.
        raise ValueError("a holds NaN or infinity, and has no eigenvalues")
    eigenvalues = torch.linalg.eigvals(matrix)
    round_off = 1e-12 * float(eigenvalues.abs().max()) if eigenvalues.numel() else 0.0
    on_the_cut = (eigenvalues.imag.abs() <= round_off) & (eigenvalues.real <= round_off)
    return not bool(on_the_cut.any())
