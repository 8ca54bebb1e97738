"""Who is near whom: the kernel of a neighbour graph, and what of it is left once some are known.

Zhou et al. 2004, "Learning with local and global consistency": with W the neighbour graph and
S = D^-1/2 W D^-1/2, labels spread as F = (I - a S)^-1 Y. The matrix is also the covariance of a
Gaussian field over the items (Zhu, Lafferty and Ghahramani 2003), so that it tells, before anybody
is asked, how much an answer about one item would say about the others.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Index = NDArray[np.int64]

RIDGE = 1e-6


class NeighborGraph:
    """The symmetric graph of the nearest neighbours of some rows, with locally scaled weights.

    w_ij = exp(-|x_i - x_j|^2 / (s_i s_j)), where s_i is the distance from i to its last neighbour
    (Zelnik-Manor and Perona 2004): no bandwidth has to be chosen.

    Args:
        rows: (m, d).
        neighbors: of each row; a pair counts when one is among the other's.
    """

    def __init__(self, rows: NDArray[np.floating], neighbors: int) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.rows = rows
        m = len(rows)
        self.neighbors = min(neighbors, max(m - 1, 1))
        self._search = NearestNeighbors(n_neighbors=min(self.neighbors + 1, m)).fit(rows)
        self._scale = np.ones(m)
        self._places: Index = np.zeros((m, 0), dtype=np.int64)
        self._near = np.zeros((m, 0))
        if m > 1:
            distance, place = self._search.kneighbors(rows)
            # A row is its own nearest neighbour, unless there are copies of it: take it out.
            own = place == np.arange(m)[:, None]
            own[~own.any(axis=1), -1] = True
            distance = distance[~own].reshape(m, -1)
            self._places = place[~own].reshape(m, -1)
            scale = distance[:, -1]
            self._scale = np.maximum(scale, max(1e-3 * float(np.median(scale)), 1e-12))
            self._near = np.exp(-(distance**2) / (self._scale[:, None] * self._scale[self._places]))

    @cached_property
    def _normalised(self) -> NDArray[np.float64]:
        """S, dense: made with the first kernel, and never by those who keep kernels in a file."""
        m = len(self.rows)
        weights = np.zeros((m, m))
        np.put_along_axis(weights, self._places, self._near, axis=1)
        weights = np.maximum(weights, weights.T)
        degrees = np.maximum(weights.sum(axis=1), 1e-12)
        return weights / np.sqrt(degrees[:, None] * degrees)

    def kernel(self, smoothness: float) -> Matrix:
        """(I - a S)^-1 for a = `smoothness` in [0, 1): the larger, the farther labels reach."""
        inner = np.eye(len(self._normalised)) - smoothness * self._normalised
        return np.linalg.inv(inner).astype(np.float32)

    def weights_of(self, queries: NDArray[np.floating]) -> tuple[Index, NDArray[np.float64]]:
        """Neighbours (q, k) of new rows, and weights that sum to 1."""
        distance, place = self._search.kneighbors(queries, n_neighbors=self.neighbors)
        scale = np.maximum(distance[:, -1:], 1e-12) * self._scale[place]
        near = np.exp(-(distance**2) / scale) + 1e-12
        return place, near / near.sum(axis=1, keepdims=True)


class Field:
    """The covariance of the items given those that are known: C - C_K (C_KK)^-1 C_K^T.

    Args:
        kernel: (m, m), the covariance while nothing is known.

    >>> field = Field(np.array([[2.0, 1.0], [1.0, 2.0]], dtype=np.float32))
    >>> field.given(np.array([0])).round(2).tolist()
    [[0.0, 0.0], [0.0, 1.5]]
    """

    def __init__(self, kernel: Matrix) -> None:
        self._kernel = kernel
        self._left = kernel.copy()
        self._known = np.zeros(len(kernel), dtype=bool)

    @property
    def prior(self) -> NDArray[np.float32]:
        """(m,) the variances while nothing is known."""
        return np.diagonal(self._kernel)

    def given(self, known: Index) -> Matrix:
        """The covariance, given that some places are known. Do not write into it."""
        wanted = np.zeros(len(self._kernel), dtype=bool)
        wanted[known] = True
        fresh = np.flatnonzero(wanted & ~self._known)
        if (self._known & ~wanted).any():
            self._left, fresh = self._kernel.copy(), np.flatnonzero(wanted)
        if len(fresh):
            columns = self._left[:, fresh]
            inner = columns[fresh].astype(np.float64)
            inner += RIDGE * np.eye(len(fresh))
            self._left -= columns @ np.linalg.solve(inner, columns.T).astype(np.float32)
        self._known = wanted
        return self._left


def diverse(gains: NDArray[np.floating], covariance: Matrix, m: int, shortlist: int = 150) -> Index:
    """Greedily the places of the largest gains, each discounted by what those before explain.

    Args:
        gains: (m,) the worth of every place by itself; 0 and below is never taken.
        covariance: (m, m).
        m: how many to take, at most.
        shortlist: among so many with the largest gains.

    >>> diverse(np.array([3.0, 2.9, 1.0]), np.array([[1, 0.99, 0], [0.99, 1, 0], [0, 0, 1.0]]), 2)
    array([0, 2])
    """
    short = np.argsort(-gains, kind="stable")[:shortlist]
    short = short[gains[short] > 0]
    left = covariance[np.ix_(short, short)].astype(np.float64)
    before = np.maximum(np.diagonal(left), 1e-9).copy()
    worth = np.asarray(gains, dtype=np.float64)[short]
    taken: list[int] = []
    for _ in range(min(m, len(short))):
        discounted = worth * np.clip(np.diagonal(left) / before, 1e-6, 1.0)
        best = int(np.argmax(discounted))
        taken.append(best)
        worth[best] = -np.inf
        column = left[:, best].copy()
        left -= np.outer(column, column) / (column[best] + RIDGE)
    return short[taken]
