"""Ridge regression in closed form on whitened rows: what reads embeddings beside their neighbours.

The constants were chosen on the embeddings of the benchmark's Fashion-MNIST and CIFAR-10, one seed
of each (docs/oracles.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Whitening:
    """Rows centred, with directions scaled to like variance, at length 1.

    x -> normalise((x - mean) V (W + f w_1 I)^-1/2), with the covariance V W V^T of some rows.

    Args:
        rows: (m, d).
        floor: f: directions with less than this share of the largest variance are not blown up.

    >>> Whitening(np.array([[3.0, 0], [-3, 0], [0, 1], [0, -1]]))([[6.0, 0]]).round(2).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, rows: ArrayLike, floor: float = 0.03) -> None:
        given = np.asarray(rows, dtype=np.float64)
        self._mean = given.mean(axis=0)
        centred = given - self._mean
        values, vectors = np.linalg.eigh(centred.T @ centred / max(len(given), 1))
        self._scaled = vectors / np.sqrt(np.maximum(values, 0) + floor * values[-1] + 1e-12)

    def __call__(self, rows: ArrayLike) -> NDArray[np.float64]:
        """(q, d) of any rows."""
        found = (np.asarray(rows, dtype=np.float64) - self._mean) @ self._scaled
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


class Landmarks:
    """Features whose inner products are about those of a Gaussian kernel (Nystrom).

    k(x, y) = exp(-\\|x - y\\|^2 / (2 s)), where s is the median squared distance of the landmarks.

    Args:
        rows: (m, d), from which landmarks are drawn.
        most: so many landmarks at most.
        seed: of the draw.
    """

    def __init__(self, rows: NDArray[np.floating], most: int = 500, seed: int = 0) -> None:
        drawn = np.random.default_rng(seed).permutation(len(rows))[:most]
        self._rows = rows[drawn]
        away = self._away(self._rows)
        self._scale = 2.0 * max(float(np.median(away)), 1e-12)
        values, vectors = np.linalg.eigh(np.exp(-away / self._scale))
        self._turn = vectors / np.sqrt(np.maximum(values, 1e-4))
        self.own = self(rows)
        """(m, features) of the rows given."""

    def _away(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        squares = (rows**2).sum(axis=1)[:, None] + (self._rows**2).sum(axis=1)
        return np.maximum(squares - 2 * rows @ self._rows.T, 0.0)

    def __call__(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        """(q, features) of any rows."""
        return np.exp(-self._away(rows) / self._scale) @ self._turn


class Ridge:
    """Ridge regression of class probabilities on rows, each with a weight.

    With F the rows centred by weight and A = F^T W F + s I, predictions are
    F A^-1 F^T W P; a row that is left out of its own prediction gets (y_i - h_i p_i) / (1 - h_i)
    with h_i = w_i f_i^T A^-1 f_i.

    Args:
        rows: (m, d).
        targets: (m, classes) probabilities.
        weights: (m,), positive.
        strength: s, as a share of the mean eigenvalue of F^T W F.

    >>> ridge = Ridge(np.array([[0.0], [1.0]]), np.eye(2), np.ones(2), strength=0.0)
    >>> ridge.predict([[0.25]]).round(6).tolist()
    [[0.75, 0.25]]
    """

    def __init__(
        self,
        rows: NDArray[np.floating],
        targets: NDArray[np.floating],
        weights: NDArray[np.floating],
        strength: float = 0.1,
    ) -> None:
        share = weights / weights.sum()
        self._mean, self._middle = share @ rows, share @ targets
        self._centred, self._targets = rows - self._mean, targets - self._middle
        weighted = self._centred * share[:, None]
        inner = self._centred.T @ weighted
        size = max(float(np.trace(inner)) / len(inner), 1e-12)
        inner[np.diag_indices_from(inner)] += strength * size + 1e-12
        self._inner, self._weighted = inner, weighted
        self._slope = np.linalg.solve(inner, weighted.T @ self._targets)

    def predict(self, rows: ArrayLike) -> NDArray[np.floating]:
        """(q, classes) of any rows: numbers that sum to 1, some of them below 0 or above 1."""
        return (np.asarray(rows) - self._mean) @ self._slope + self._middle

    def fitted(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """(m, classes) of its own rows, and each of them left out of its own."""
        found = self._centred @ self._slope
        solved = np.linalg.solve(self._inner, self._weighted.T)
        own = np.einsum("md,dm->m", self._centred, solved)[:, None]
        without = (found - own * self._targets) / np.maximum(1 - own, 1e-6)
        return found + self._middle, without + self._middle
