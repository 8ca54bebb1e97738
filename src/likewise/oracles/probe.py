"""The closed-form classifier that is trained again after every answer.

Labels spread over the neighbour graph (:mod:`likewise.oracles.propagation`). With one known item a
class it is right on nine digits of ten, where a logistic regression is right on two of three
(``docs/oracles.md``): the items that nobody was asked about do most of the work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.library.regression import Landmarks, Ridge, Whitening
from likewise.oracles.propagation import Field, Index, Matrix, NeighborGraph

WAYS = ((0.99, 1.0), (0.9, 1.0), (0.9, 0.5))
"""(smoothness, balance) to choose from by leaving out: far-reaching for few labels, near for many;
a balance of 1 gives all classes the same mass, 0 lets those with many known items dominate."""

KNOWN_WEIGHT = 5.0
"""What a known item counts in a regression, beside one to which a label has spread for sure."""

LINE = 4.0
"""How much a regression says: its prediction s counts as exp(4 s)."""

Prepared: TypeAlias = tuple[Index, NDArray[np.float64]] | NDArray[np.float64]
"""Of rows: their neighbours in the pool with weights, or the features of ridge regression."""


class Probe:
    """Label propagation over a pool of items, and from there to any row.

    Args:
        X: (n, d) rows.
        neighbors: of each item in the graph.
        pool: the graph holds so many items at most, drawn by the seed: its matrices are dense.
        ways: (smoothness, balance) among which leaving out chooses.
        seed: of the pool.
        items: the pool, where it is chosen already.
        metric: neighbours by distance ("euclidean": features), or by the angle between rows that
            are centred and whitened ("whitened": embeddings of an encoder, a few directions of
            which drown the others, and whose lengths say little).
        reading: how rows outside the pool are predicted: from their "neighbors" in it, or by
            "kernel" ridge regression, fitted to all of the pool's predictions, which then has a
            say in the pool, too. Default: kernel for whitened rows, neighbors else.

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
        metric: Literal["euclidean", "whitened"] = "euclidean",
        reading: Literal["neighbors", "kernel"] | None = None,
    ) -> None:
        if getattr(X, "ndim", 0) != 2 or not len(X):
            raise ValueError(f"X has shape {getattr(X, 'shape', None)}: give rows, (n, d)")
        if neighbors < 1 or pool < 2:
            raise ValueError(
                f"neighbors is {neighbors} and pool is {pool}: give at least 1 neighbour and a "
                "pool of at least 2 items"
            )
        if metric not in ("euclidean", "whitened"):
            raise ValueError(f"metric is {metric!r}: give 'euclidean' or 'whitened'")
        self.X, self.neighbors, self.size, self.ways, self.seed = X, neighbors, pool, ways, seed
        if reading not in ("neighbors", "kernel", None):
            raise ValueError(f"reading is {reading!r}: give 'neighbors' or 'kernel'")
        self.metric = metric
        self.reading = reading or ("kernel" if metric == "whitened" else "neighbors")
        n = len(X)
        if items is None:
            drawn = np.random.default_rng(seed).choice(n, pool, replace=False) if n > pool else n
            items = np.sort(drawn) if n > pool else np.arange(n)
        self.items: Index = np.asarray(items, dtype=np.int64)
        self.place = np.full(n, -1, dtype=np.int64)
        """(n,) where an item is in the pool; -1: it is not."""
        self.place[self.items] = np.arange(len(self.items))
        self._whitening = Whitening(X[self.items]) if metric == "whitened" else None
        self.graph = NeighborGraph(self.rows(X[self.items]), neighbors)
        self._landmarks: Landmarks | None = None
        self._kernels: dict[float, Matrix] = {}
        self._field: Field | None = None
        self._outside: dict[int, tuple[Index, NDArray[np.float64]]] = {}

    def rows(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Rows as they are compared."""
        found = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        return found if self._whitening is None else self._whitening(found)

    @property
    def landmarks(self) -> Landmarks:
        """The features in which ridge regression is linear, and those of the pool."""
        if self._landmarks is None:
            self._landmarks = Landmarks(self.graph.rows, seed=self.seed)
        return self._landmarks

    def weights_of(self, rows: ArrayLike) -> tuple[Index, NDArray[np.float64]]:
        """Neighbours (q, k) of any rows in the pool, and weights that sum to 1."""
        return self.graph.weights_of(self.rows(rows))

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

    def prepared(self, rows: ArrayLike) -> Prepared:
        """What :meth:`Fitted.at` needs of some rows, whatever is known: to be computed once."""
        if self.reading == "kernel":
            return self.landmarks(self.rows(rows))
        return self.weights_of(rows)

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
        return self._like(self.X, np.sort(items))

    def over(self, X: NDArray[np.floating]) -> Probe:
        """A probe over the same items with other rows: the representation has changed."""
        return self._like(X, self.items)

    def _like(self, X: NDArray[np.floating], items: Index) -> Probe:
        return Probe(
            X,
            neighbors=self.neighbors,
            pool=self.size,
            ways=self.ways,
            seed=self.seed,
            items=items,
            metric=self.metric,
            reading=self.reading,
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
        line = None
        if self.reading == "kernel":
            pool, without, line = self._with_line(pool, without, codes, places)
        pool[places] = codes[places] / codes[places].sum(axis=1, keepdims=True)
        return Fitted(self, pool, way, without, line)

    def _with_line(
        self,
        pool: NDArray[np.floating],
        without: NDArray[np.floating],
        codes: Matrix,
        places: Index,
    ) -> tuple[NDArray[np.floating], NDArray[np.floating], Ridge]:
        """What has spread, times what kernel ridge regression makes of it, and that regression,
        fitted again to both.

        The two err on different items: their product is right more often than either."""

        def fitted(spread: NDArray[np.floating]) -> Ridge:
            # Propagated probabilities are too timid to fit to: their square is not.
            sharp = normalised(spread**2)
            sharp[places] = codes[places] / codes[places].sum(axis=1, keepdims=True)
            weights = sharp.max(axis=1)
            weights[places] = KNOWN_WEIGHT
            return Ridge(self.landmarks.own, sharp, weights)

        seen, left_out = fitted(pool).fitted()
        pool = normalised(pool * np.exp(LINE * seen))
        without = normalised(without * np.exp(LINE * left_out))
        return pool, without, fitted(pool)

    def _weights_outside(self, items: Index) -> tuple[Index, NDArray[np.float64]]:
        """What known items outside the pool stand for inside."""
        new = [int(item) for item in items if int(item) not in self._outside]
        if new:
            near, weights = self.weights_of(self.X[new])
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
        line: the regression that reads other rows, where the probe has one.
    """

    probe: Probe = field(repr=False)
    pool: NDArray[np.floating]
    way: tuple[float, float]
    without_own: NDArray[np.floating] = field(repr=False)
    line: Ridge | None = field(repr=False, default=None)

    def of(self, rows: ArrayLike, chunk: int = 20_000) -> NDArray[np.floating]:
        """(q, classes) probabilities of any rows, read off the pool."""
        queries = np.atleast_2d(np.asarray(rows))
        parts: list[NDArray[np.floating]] = [np.zeros((0, self.pool.shape[1]))]
        for start in range(0, len(queries), chunk):
            parts.append(self.at(self.probe.prepared(queries[start : start + chunk])))
        return np.concatenate(parts)

    def at(self, prepared: Prepared) -> NDArray[np.floating]:
        """(q, classes) probabilities of rows that :meth:`Probe.prepared` has seen."""
        if isinstance(prepared, tuple):
            near, weights = prepared
            return np.einsum("qk,qkc->qc", weights, self.pool[near])
        if self.line is None:  # no class is known
            return np.zeros((len(prepared), self.pool.shape[1]))
        return normalised(np.maximum(self.line.predict(prepared), 1e-6))

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


def normalised(table: NDArray[np.floating]) -> NDArray[np.floating]:
    """Rows that sum to 1."""
    return table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)


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
