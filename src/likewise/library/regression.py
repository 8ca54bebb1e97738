"""Ridge regression in closed form on whitened rows: what reads rows beside their neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.library.exact import Rows

Matrix = NDArray[np.float64]


class Whitening:
    r"""Rows centred, with directions scaled to like variance, at length 1.

    :math:`x \mapsto \mathrm{normalise}((x - m) V (W + f w_1 I)^{-1/2})`, with the covariance
    :math:`V W V^T` of some rows: a few directions of an encoder's rows drown the others.

    Args:
        rows: (m, d), to measure the covariance on.
        floor: f; directions with less than this share of the largest variance are not blown up.

    >>> rows = np.array([[3, 0], [-3, 0], [0, 1], [0, -1]], np.float32)
    >>> Whitening(rows)(rows[:1]).round(2).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, rows: Rows, floor: float = 0.03) -> None:
        given = rows.astype(np.float64)
        self._mean = given.mean(axis=0)
        given -= self._mean
        values, vectors = np.linalg.eigh(given.T @ given / max(len(given), 1))
        self._scaled = vectors / np.sqrt(np.maximum(values, 0) + floor * values[-1] + 1e-12)

    def __call__(self, rows: Rows) -> Rows:
        """(q, d) of any rows."""
        found = (rows - self._mean) @ self._scaled
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found.astype(np.float32)


class Landmarks:
    r"""Features whose inner products are about those of a Gaussian kernel (Nystrom's method).

    :math:`k(x, y) = e^{-|x - y|^2 / 2s}`, s the median squared distance of the landmarks.

    Args:
        rows: (m, d), from which landmarks are drawn.
        most: so many landmarks at most.
        seed: of the draw.
    """

    def __init__(self, rows: Rows, most: int = 500, seed: int = 0) -> None:
        drawn = np.random.default_rng(seed).permutation(len(rows))[:most]
        self._rows = rows[drawn].astype(np.float64)
        away = self._away(self._rows)
        self._scale = 2.0 * max(float(np.median(away)), 1e-12)
        values, vectors = np.linalg.eigh(np.exp(-away / self._scale))
        self._turn = vectors / np.sqrt(np.maximum(values, 1e-4))

    def _away(self, rows: Matrix) -> Matrix:
        squares = (rows**2).sum(axis=1)[:, None] + (self._rows**2).sum(axis=1)
        return np.maximum(squares - 2 * rows @ self._rows.T, 0.0)

    def __call__(self, rows: Rows) -> Matrix:
        """(q, features) of any rows."""
        found: Matrix = np.exp(-self._away(rows.astype(np.float64)) / self._scale) @ self._turn
        return found


class Ridge:
    r"""Ridge regression of class probabilities on rows, each with a weight.

    With F the rows centred by weight and :math:`A = F^T W F + sI`, predictions are
    :math:`F A^{-1} F^T W P`.

    Args:
        rows: (m, d).
        targets: (m, classes) probabilities.
        weights: (m,), positive.
        strength: s, as a share of the mean eigenvalue of F^T W F.

    >>> ridge = Ridge(np.array([[0.0], [1.0]]), np.eye(2), np.ones(2), strength=0.0)
    >>> ridge.predict(np.array([[0.25]])).round(6).tolist()
    [[0.75, 0.25]]
    """

    def __init__(
        self, rows: Matrix, targets: Matrix, weights: Matrix, strength: float = 0.1
    ) -> None:
        share = weights / weights.sum()
        self._mean, self._middle = share @ rows, share @ targets
        centred = rows - self._mean
        weighted = centred * share[:, None]
        inner = centred.T @ weighted
        size = max(float(np.trace(inner)) / len(inner), 1e-12)
        inner[np.diag_indices_from(inner)] += strength * size + 1e-12
        self._slope = np.linalg.solve(inner, weighted.T @ (targets - self._middle))

    def predict(self, rows: Matrix) -> Matrix:
        """(q, classes) of any rows: numbers that add up to 1, some below 0 or above 1."""
        found: Matrix = (rows - self._mean) @ self._slope + self._middle
        return found
