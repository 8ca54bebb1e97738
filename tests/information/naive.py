"""A second implementation, in NumPy and float64, with loops where a loop is plainest."""

from __future__ import annotations

import math
import warnings

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]


def array(x: Tensor) -> Array:
    return x.detach().double().numpy()


def log(a: Tensor) -> Array:
    with warnings.catch_warnings():  # scipy warns of errors above 1e-13
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.real(scipy.linalg.logm(array(a)))


def taylor(x: Array, order: int) -> Array:
    """sum_k (-1)^{k+1} X^k / k."""
    total = np.zeros_like(x)
    for k in range(1, order + 1):
        total = total + (-1) ** (k + 1) * np.linalg.matrix_power(x, k) / k
    return total


def entropy(a: Tensor) -> float:
    """-tr(A log A) + tr A, one eigenvalue after another."""
    total = 0.0
    for value in np.linalg.eigvalsh(array(a)):
        if value > 1e-13:
            total += -value * math.log(value) + value
    return total


def kl(p: Tensor, q: Tensor) -> float:
    left, right = array(p), array(q)
    return float(np.trace(left @ log(p) - left @ log(q) - left + right))


def cross_entropy(p: Tensor, q: Tensor) -> float:
    left, right = array(p), array(q)
    return float(np.trace(-left @ log(q) + right))


def exponential_entropy(weights: Array) -> float:
    total = 0.0
    for weight in weights / weights.sum():
        if weight > 1e-13:
            total -= weight * math.log(weight)
    return math.exp(total)


def log_det(z: Tensor, scale: float) -> float:
    """log det(I + scale Z^T Z) in the d x d form, from the eigenvalues."""
    rows = array(z)
    return float(np.log1p(scale * np.linalg.eigvalsh(rows.T @ rows).clip(0)).sum())


def numerical_gradient(function, a: Tensor, step: float = 1e-6) -> Array:  # type: ignore[no-untyped-def]
    """Central differences over symmetric directions: entry ij moves together with ji."""
    size = a.shape[0]
    gradient = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            direction = torch.zeros_like(a)
            direction[i, j] += 0.5
            direction[j, i] += 0.5
            high, low = function(a + step * direction), function(a - step * direction)
            gradient[i, j] = (high - low) / (2 * step)
    return gradient


def positive_definite(size: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(2 * size, size, generator=generator, dtype=torch.float64)
    return (rows.T @ rows / (2 * size)).to(dtype)


def repeated(values: list[float], seed: int) -> Tensor:
    """A matrix with the given eigenvalues in a random basis."""
    return (
        rotation(len(values), seed)
        @ torch.diag(torch.tensor(values, dtype=torch.float64))
        @ rotation(len(values), seed).T
    )


def rotation(size: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0]


def unit_rows(n: int, dims: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, dims, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(rows, dim=1).to(dtype)
