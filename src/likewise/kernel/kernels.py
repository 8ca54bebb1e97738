"""Similarities between rows of features: kernels by name, from scikit-learn, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    euclidean_distances,
    pairwise_kernels,
)

Matrix = NDArray[np.floating[Any]]
Kernel = str | Callable[..., Any]

OURS = ("laplace", "gaussian", "linear", "polynomial")
SHIFT_INVARIANT = ("laplace", "gaussian")
NEAR = 1e-6
"""Squared distances below this share of a row's squared norm are computed from differences,"""
NEAR_PAIRS = 1 << 16
"""so many at a time."""
MEDIAN_ROWS = 500
"""Rows whose distances give the default bandwidth."""


def check_kernel(kernel: Kernel) -> None:
    """Refuse a kernel that is neither a function nor a name that is known."""
    if callable(kernel):
        return
    names = sorted({*OURS, *PAIRWISE_KERNEL_FUNCTIONS} - {"precomputed"})
    if kernel not in names:
        raise ValueError(f"kernel is {kernel!r}: give a function of two rows, or one of {names}")


def median_distance(X: Matrix, seed: int = 0) -> float:
    """The median distance between two rows (of at most 500): the default bandwidth."""
    if len(X) > MEDIAN_ROWS:
        X = X[np.random.default_rng(seed).choice(len(X), MEDIAN_ROWS, replace=False)]
    distances = pdist(X)
    positive = distances[distances > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def kernel_matrix(
    kernel: Kernel,
    X: Matrix,
    Y: Matrix,
    *,
    bandwidth: float,
    parameters: dict[str, Any] | None = None,
) -> Matrix:
    r"""The matrix k(x_i, y_j).

    - "laplace": :math:`\exp(-\|x - y\| / \sigma)` (Euclidean, as in ``pal``; scikit-learn's
      "laplacian" has the Manhattan distance)
    - "gaussian": :math:`\exp(-\|x - y\|^2 / 2 \sigma^2)`
    - "linear": :math:`x^\top y`; "polynomial": :math:`(x^\top y + c)^p`, with `degree` p = 3 and
      `coef0` c = 1
    - any of scikit-learn's names, or a function of two rows, with its `parameters`

    >>> kernel_matrix("laplace", np.zeros((1, 2)), np.array([[3.0, 4.0]]), bandwidth=5.0).round(4)
    array([[0.3679]])
    """
    given = dict(parameters or {})
    if kernel in SHIFT_INVARIANT and not given:
        distances = _distances(X, Y, squared=kernel == "gaussian")
        scale = -0.5 / bandwidth**2 if kernel == "gaussian" else -1.0 / bandwidth
        distances *= scale
        return np.exp(distances, out=distances)
    if kernel == "linear" and not given:
        return X @ Y.T
    if kernel == "polynomial":
        given = {"degree": 3, "coef0": 1.0, "gamma": 1.0, **given}
    elif kernel in SHIFT_INVARIANT:
        raise ValueError(
            f"kernel_params is {given}, but the {kernel} kernel has only a bandwidth: give "
            "bandwidth=..."
        )
    return np.asarray(pairwise_kernels(X, Y, metric=kernel, filter_params=False, **given))


def _distances(X: Matrix, Y: Matrix, *, squared: bool) -> Matrix:
    """Euclidean distances that depend neither on the origin nor on whether X is Y.

    :math:`|x|^2 + |y|^2 - 2 x^\\top y` loses the digits of rows that are close, and a root makes
    that large: those pairs are computed anew, from differences.
    """
    middle = Y.mean(axis=0)
    left, right = X - middle, Y - middle
    distances: Matrix = euclidean_distances(left, right, squared=True)
    if squared:
        return distances
    near = NEAR * np.square(left).sum(axis=1, keepdims=True)
    i, j = np.nonzero(distances <= near)
    for start in range(0, len(i), NEAR_PAIRS):
        part = slice(start, start + NEAR_PAIRS)
        distances[i[part], j[part]] = np.square(left[i[part]] - right[j[part]]).sum(axis=1)
    return np.sqrt(distances, out=distances)
