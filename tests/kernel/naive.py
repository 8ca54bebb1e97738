"""The formulas once more, with loops, in float64, without the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from likewise import Graph

N = 12
LABELS = [0, 2, 0, 1, 1, 2, 2, 0, 1, 2, 0, 0]
PARTIAL = [0, 2, -1, 1, 1, -1, 2, 0, -1, 2, 0, -1]
EDGES = [(0, 1, 1.0), (0, 2, -1.0), (3, 4, 1.0), (2, 7, 0.5), (5, 5, 2.0), (8, 11, 0.0)]


def points(n: int = N, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


# --- graphs, with their matrices by definition ----------------------------------------------------


def same(labels: Any) -> np.ndarray:
    return np.array([[float(a == b and a != -1) for b in labels] for a in labels])


def both_known(labels: Any) -> np.ndarray:
    return np.array([[float(a != -1 and b != -1) for b in labels] for a in labels])


def edge_matrix(edges: Any, n: int = N) -> np.ndarray:
    matrix = np.zeros((n, n))
    for i, j, weight in edges:
        matrix[i, j] = matrix[j, i] = weight
    return matrix


def edge_graph(edges: Any, n: int = N) -> Graph:
    i, j, weight = (np.array(column) for column in zip(*edges, strict=True))
    return Graph.from_edges(i, j, weight, n=n)


def neighbor_matrix(x: np.ndarray, k: int) -> np.ndarray:
    n = len(x)
    matrix = np.zeros((n, n))
    for a in range(n):
        order = sorted((np.linalg.norm(x[a] - x[b]), b) for b in range(n) if b != a)
        for _, b in order[:k]:
            matrix[a, b] = matrix[b, a] = 1.0
    return matrix


def signed_matrix(labels: Any) -> np.ndarray:
    return np.array([[1.0 if a == b else -1.0 for b in labels] for a in labels])


def random_matrix(n: int = N, seed: int = 5) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(n, n))
    return matrix + matrix.T


GRAPHS: dict[str, tuple[Callable[[], Graph], Callable[[], np.ndarray]]] = {
    "labels": (lambda: Graph.from_labels(np.array(LABELS)), lambda: same(LABELS)),
    "partial-labels": (lambda: Graph.from_labels(np.array(PARTIAL)), lambda: same(PARTIAL)),
    "signed-edges": (lambda: edge_graph(EDGES), lambda: edge_matrix(EDGES)),
    "mixed": (
        lambda: 0.7 * Graph.identity(N) + 0.3 * Graph.from_labels(np.array(PARTIAL)),
        lambda: 0.7 * np.eye(N) + 0.3 * same(PARTIAL),
    ),
    "neighbors": (
        lambda: Graph.identity(N) + Graph.from_neighbors(points(), 2),
        lambda: np.eye(N) + neighbor_matrix(points(), 2),
    ),
    "views": (
        lambda: Graph.identity(N // 2).views(2),
        lambda: np.array([[float(a // 2 == b // 2) for b in range(N)] for a in range(N)]),
    ),
    "indefinite": (lambda: Graph.from_matrix(random_matrix()), random_matrix),
}


# --- kernels --------------------------------------------------------------------------------------


def generalized_cauchy(x: np.ndarray, y: np.ndarray) -> float:
    return float(1 / (1 + np.square(x - y).sum()))


def _cosine(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


KERNELS: dict[str, tuple[dict[str, Any], Callable[[np.ndarray, np.ndarray], float]]] = {
    "laplace": (
        {"kernel": "laplace", "bandwidth": 1.3},
        lambda x, y: float(np.exp(-np.sqrt(np.square(x - y).sum()) / 1.3)),
    ),
    "gaussian": (
        {"kernel": "gaussian", "bandwidth": 0.9},
        lambda x, y: float(np.exp(-np.square(x - y).sum() / (2 * 0.9**2))),
    ),
    "linear": ({"kernel": "linear"}, lambda x, y: float(sum(a * b for a, b in zip(x, y)))),  # noqa: B905
    "polynomial": (
        {"kernel": "polynomial", "kernel_params": {"degree": 2, "coef0": 0.5}},
        lambda x, y: float((x @ y + 0.5) ** 2),
    ),
    "cosine": ({"kernel": "cosine"}, _cosine),
    "rbf": (
        {"kernel": "rbf", "kernel_params": {"gamma": 0.7}},
        lambda x, y: float(np.exp(-0.7 * np.square(x - y).sum())),
    ),
    "callable": ({"kernel": generalized_cauchy}, generalized_cauchy),
}


def kernel_by_loops(name: str, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    function = KERNELS[name][1]
    return np.array([[function(x, y) for y in Y] for x in X])


# --- the objective of section 5, and its minimum by a quasi-Newton method -------------------------


def graph_loss(Z: np.ndarray, G: np.ndarray, K: np.ndarray, regularization: float) -> float:
    r""":math:`\|ZZ^T - G\|_F^2 + 2 \lambda Tr(Z^T K^{-1} Z)`, for an invertible K."""
    penalty = np.trace(Z.T @ np.linalg.solve(K, Z))
    return float(np.square(Z @ Z.T - G).sum() + 2 * regularization * penalty)


def square_root(K: np.ndarray) -> np.ndarray:
    """F with F F^T = K: functions of the kernel's space are Z = F A, with squared norm |A|^2."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def minimum_by_descent(
    F: np.ndarray,
    G: np.ndarray,
    regularization: float,
    d: int,
    *,
    known: np.ndarray | float = 1.0,
    starts: int = 2,
) -> tuple[float, np.ndarray]:
    r"""The least :math:`\sum k_{ij} (z_i^T z_j - G_{ij})^2 + 2 \lambda |A|^2`, Z = F A, from random
    starts, and Z there."""

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        A = flat.reshape(F.shape[1], d)
        Z = F @ A
        residual = known * (Z @ Z.T - G)
        value = np.sum(residual * (Z @ Z.T - G)) + 2 * regularization * np.sum(A * A)
        return float(value), (4 * F.T @ residual @ Z + 4 * regularization * A).ravel()

    best, where = np.inf, None
    for seed in range(starts):
        begin = np.random.default_rng(seed).normal(size=F.shape[1] * d)
        found = minimize(
            loss,
            begin,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9},
        )
        if found.fun < best:
            best, where = float(found.fun), F @ found.x.reshape(F.shape[1], d)
    assert where is not None
    return best, where


def eigenvalues_of(Z: np.ndarray) -> np.ndarray:
    """Of Z Z^T: what can be compared between two optima."""
    return np.linalg.eigvalsh(Z.T @ Z)[::-1]
