"""The best linear head on an embedding, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Matrix = NDArray[np.floating[Any]]


def ridge_head(
    Z: Matrix, Y: Matrix, regularization: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""W and b that minimise :math:`\frac1n \|ZW + 1b^\top - Y\|_F^2 + \lambda \|W\|_F^2`.

    ``supervised-theory`` appendix A.1 (rows are samples): :math:`W = (Z^\top H Z + n\lambda
    I)^{-1} Z^\top H Y` and b from the means.

    >>> W, b = ridge_head(np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]]), 0.0)
    >>> round(float(W[0, 0]), 6), round(float(b[0]), 6)
    (2.0, 1.0)
    """
    mean, target = Z.mean(axis=0, dtype=np.float64), Y.mean(axis=0, dtype=np.float64)
    centred = Z - mean
    gram = centred.T @ centred + len(Z) * regularization * np.eye(Z.shape[1])
    # Directions without variance (columns of zeros) have no weight, also without a penalty.
    size = np.trace(gram) / max(len(gram), 1)
    gram[np.diag_indices_from(gram)] += max(1e-12 * size, np.finfo(np.float64).tiny)
    weights = cho_solve(cho_factor(gram), centred.T @ (Y - target))
    return weights, target - mean @ weights
