"""The loss written from the formula, one position and one token at a time, in float64."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import scipy.linalg
import torch


def density(embedding, weights):
    """sum_j w_j e_j e_j^T."""
    rows = np.asarray(embedding, dtype=float)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for w, row in zip(np.asarray(weights), rows, strict=True):
        e = row / np.sqrt((row**2).sum())
        total += w * np.outer(e, e)
    return total


def matrix_cross_entropy(embedding, logits, label, smoothing=0.0):
    """tr(-P log Q + Q) through the eigenvalues of the Gram matrix: Q may be singular."""
    z = np.asarray(logits, dtype=float)
    q = np.exp(z - z.max())
    q = q / q.sum()
    Q = density(embedding, q)
    p = np.full(len(q), smoothing / len(q))
    p[label] += 1 - smoothing
    P = density(embedding, p)
    values, vectors = scipy.linalg.eigh(Q)
    inside = values > 1e-13
    logs = np.where(inside, np.log(np.where(inside, values, 1.0)), 0.0)
    log_q = (vectors * logs) @ vectors.T
    return np.trace(Q - P @ log_q)


def taylor(embedding, logits, label, order):
    """The same with log Q = -sum (I - Q)^i / i."""
    q = np.exp(logits - np.max(logits))
    Q = density(embedding, q / q.sum())
    off = np.eye(len(Q)) - Q
    log_q = -sum(np.linalg.matrix_power(off, i) / i for i in range(1, order + 1))
    onehot = np.zeros(len(q))
    onehot[label] = 1
    return np.trace(Q - density(embedding, onehot) @ log_q)


def precise(embedding, logits, label):
    """The value with 600 digits, for probabilities that no float can hold."""
    mpmath.mp.dps = 600
    n = len(logits)
    q = [mpmath.e ** mpmath.mpf(float(z)) for z in logits]
    q = [x / sum(q) for x in q]
    rows = [[mpmath.mpf(float(x)) for x in row] for row in embedding]
    rows = [[x / mpmath.sqrt(sum(y * y for y in row)) for x in row] for row in rows]
    A = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(n):
            A[i, j] = mpmath.sqrt(q[i] * q[j]) * sum(
                x * y for x, y in zip(rows[i], rows[j], strict=True)
            )
    values, vectors = mpmath.eigsy(A)
    total = sum(vectors[label, i] ** 2 * values[i] * mpmath.log(values[i]) for i in range(n))
    return float(1 - total / q[label])


def differences(function: Callable[[np.ndarray], float], at: torch.Tensor, step=1e-5):
    """The gradient by central differences."""
    x = at.detach().numpy().astype(float)
    gradient = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        gradient[i] = (function(high) - function(low)) / (2 * step)
    return torch.tensor(gradient)
