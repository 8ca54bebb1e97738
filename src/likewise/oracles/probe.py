"""The closed-form classifier that is trained again after every answer.

Labels spread over the neighbour graph (:mod:`likewise.oracles.propagation`). With one known item a
class it is right on nine digits of ten, where a logistic regression is right on two of three
(``docs/oracles.md``): the items that nobody was asked about do most of the work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.oracles.propagation import Field, Index, Matrix, NeighborGraph

WAYS = ((0.99, 1.0), (0.9, 1.0), (0.9, 0.5))
"""(smoothness, balance) to choose from by leaving out: far-reaching for few labels, near for many;
a balance of 1 gives all classes the same mass, 0 lets those with many known items dominate."""


class Probe:
    """Label propagation over a pool of items, and from there to any row.

    Args:
        X: (n, d) rows.
        neighbors: of each item in the graph.
        pool: the graph holds so many items at most, drawn by the seed: its matrices are dense.
        ways: (smoothness, balance) among which leaving out chooses.
        seed: of the pool.
        items: the pool, where it is chosen already.

    >>> probe = Probe(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), neighbors=2)
    >>> fitted = probe.fit(np.array([0, -1, -1, 1, -1, -1]), 2)
    >>> fitted.pool.argmax(axis=1).tolist(), fitted.of([[4.0]]).argmax(axis=1).tolist()
    ([0, 0, 0, 1, 1, 1], [1])
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        *,
        neighbors: int = 6,
        pool: int = 4000,
        ways: tuple[tuple[float, float], ...] = WAYS,
        seed: int = 0,
        items: ArrayLike | None = None,
    ) -> None:
        if getattr(X, "ndim", 0) != 2 or not len(X):
            raise ValueError(f"X has shape {getattr(X, 'shape', None)}: give rows, (n, d)")
        if neighbors < 1 or pool < 2:
            raise ValueError(
                f"neighbors is {neighbors} and pool is {pool}: give at least 1 neighbour and a "
                "pool of at least 2 items"
            )
        self.X, self.neighbors, self.size, self.ways, self.seed = X, neighbors, pool, ways, seed
        n = len(X)
        if items is None:
            drawn = np.random.default_rng(seed).choice(n, pool, replace=False) if n > pool else n
            items = np.sort(drawn) if n > pool else np.arange(n)
        self.items: Index = np.asarray(items, dtype=np.int64)
        self.place = np.full(n, -1, dtype=np.int64)
        """(n,) where an item is in the pool; -1: it is not."""
        self.place[self.items] = np.arange(len(self.items))
        self.graph = NeighborGraph(np.asarray(X[self.items], dtype=np.float64), neighbors)
        self._kernels: dict[float, Matrix] = {}
        self._field: Field | None = None
        self._outside: dict[int, tuple[Index, NDArray[np.float64]]] = {}

    def kernel(self, smoothness: float) -> Matrix:
        """The kernel of the pool, computed once."""
        if smoothness not in self._kernels:
            self._kernels[smoothness] = self.graph.kernel(smoothness)
        return self._kernels[smoothness]

    @property
    def field(self) -> Field:
        """What is still open about the pool, as a covariance."""
        if self._field is None:
            self._field = Field(self.kernel(self.ways[0][0]))
        return self._field

    def renewed(self, labels: Index) -> Probe:
        """A probe over another pool, for when all of this one is known: half known, half not."""
        rng = np.random.default_rng([self.seed, int(self.items.sum())])
        known, unknown = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        keep = min(len(known), max(self.size // 2, self.size - len(unknown)))
        items = np.concatenate(
            [
                rng.choice(known, keep, replace=False),
                rng.choice(unknown, min(len(unknown), self.size - keep), replace=False),
            ]
        )
        return Probe(
            self.X,
            neighbors=self.neighbors,
            pool=self.size,
            ways=self.ways,
            seed=self.seed,
            items=np.sort(items),
        )

    def fit(self, labels: Index, n_classes: int) -> Fitted:
        """Spread known labels.

        Args:
            labels: (n,) class numbers; -1 where unknown.
            n_classes: how many classes there are.
        """
        m = len(self.items)
        if n_classes == 0:
            return Fitted(self, np.zeros((m, 0)), self.ways[0], np.zeros((m, 0)))
        known = np.flatnonzero(labels >= 0)
        inside = known[self.place[known] >= 0]
        places = self.place[inside]
        codes = np.zeros((m, n_classes), dtype=np.float32)
        codes[places, labels[inside]] = 1.0
        outside = known[self.place[known] < 0]
        if len(outside) > self.size:  # as many as the pool holds say enough
            outside = outside[np.linspace(0, len(outside) - 1, self.size).astype(np.int64)]
        if len(outside):
            near, weights = self._weights_outside(outside)
            np.add.at(
                codes,
                (near, np.repeat(labels[outside][:, None], near.shape[1], axis=1)),
                weights.astype(np.float32),
            )
        source = np.flatnonzero(codes.any(axis=1))
        best: tuple[float, Matrix, tuple[float, float]] | None = None
        for way in self.ways:
            kernel = self.kernel(way[0])
            scores = kernel[:, source] @ codes[source]
            right = _left_out(kernel, scores, places, labels[inside], way[1])
            # Few items left out say little: the first way stays unless another is clearly better.
            if best is None or right > best[0] + 0.5 / np.sqrt(max(len(places), 1)):
                best = (right, scores, way)
        assert best is not None
        _, scores, way = best
        mass = scores.sum(axis=0)
        pool = _normalised(scores, mass, way[1])
        without = pool.copy()
        own = scores[places]
        own[np.arange(len(places)), labels[inside]] -= self.kernel(way[0])[places, places]
        without[places] = _normalised(own, mass, way[1])
        pool[places] = codes[places] / codes[places].sum(axis=1, keepdims=True)
        return Fitted(self, pool, way, without)

    def _weights_outside(self, items: Index) -> tuple[Index, NDArray[np.float64]]:
        """What known items outside the pool stand for inside."""
        new = [int(item) for item in items if int(item) not in self._outside]
        if new:
            near, weights = self.graph.weights_of(np.asarray(self.X[new], dtype=np.float64))
            self._outside |= {item: (near[k], weights[k]) for k, item in enumerate(new)}
        found = [self._outside[int(item)] for item in items]
        return np.stack([near for near, _ in found]), np.stack([weights for _, weights in found])


@dataclass(frozen=True)
class Fitted:
    """The classifier as it stands after some answers.

    Attributes:
        pool: (m, classes) probabilities of the items of the pool.
        way: the smoothness and the balance that leaving out chose.
        without_own: (m, classes) the same, with every item predicted without its own label.
    """

    probe: Probe = field(repr=False)
    pool: NDArray[np.floating]
    way: tuple[float, float]
    without_own: NDArray[np.floating] = field(repr=False)

    def of(self, rows: ArrayLike, chunk: int = 20_000) -> NDArray[np.floating]:
        """(q, classes) probabilities of any rows, from their neighbours in the pool."""
        queries = np.atleast_2d(np.asarray(rows))
        parts = [np.zeros((0, self.pool.shape[1]))]
        for start in range(0, len(queries), chunk):
            near, weights = self.probe.graph.weights_of(queries[start : start + chunk])
            parts.append(np.einsum("qk,qkc->qc", weights, self.pool[near]))
        return np.concatenate(parts)

    def items(self, *, own: bool = True) -> NDArray[np.floating]:
        """(n, classes) probabilities of all items; without `own`, none of the pool sees its own
        label."""
        probe, pool = self.probe, self.pool if own else self.without_own
        if len(probe.items) == len(probe.X):
            return pool
        found = np.zeros((len(probe.X), pool.shape[1]))
        found[probe.items] = pool
        rest = np.flatnonzero(probe.place < 0)
        found[rest] = self.of(probe.X[rest])
        return found


def _normalised(
    scores: NDArray[np.floating], mass: NDArray[np.floating], balance: float
) -> NDArray[np.floating]:
    """Rows that sum to 1, with class masses evened out (Zhu et al. 2003, section 4)."""
    scores = np.maximum(scores, 0.0) / np.maximum(mass, 1e-12) ** balance
    total = scores.sum(axis=1, keepdims=True)
    return np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1])


def _left_out(
    kernel: Matrix, scores: Matrix, places: Index, labels: Index, balance: float
) -> float:
    """The share of known items that the others get right: F_i less what i gave itself."""
    if not len(places):
        return 0.0
    own = scores[places].copy()
    own[np.arange(len(places)), labels] -= kernel[places, places]
    guess = _normalised(own, scores.sum(axis=0), balance).argmax(axis=1)
    # Ties, where nothing reaches an item, are no success of any way.
    reached = own.max(axis=1) > 1e-9
    return float(np.mean((guess == labels) & reached))
