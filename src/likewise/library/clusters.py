"""Clusters: kinds of images that nobody has named, and how many there seem to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.library.exact import Rows
from likewise.library.neighborhood import NEIGHBORS, Neighborhood, centred, pool_of

MOST = 30
"""Where the number of clusters is sought, up to this many are considered."""

SILHOUETTE_ROWS = 2000
"""It compares all pairs of these."""

DENSE = 400
"""Up to so many rows all eigenvectors are computed at once."""


@dataclass
class Clusters:
    """A cluster for every row.

    Attributes:
        cluster: (n,) numbers from 0, the largest cluster first.
        confidence: (n,) the share of a row's neighbours, by weight, that are in its cluster.
        k: how many clusters there are.
        found: whether k was found, not given.
        scores: of each k that was considered: modularity times silhouette; the largest is taken.
        notes: what a reader should know.
    """

    cluster: NDArray[np.int64]
    confidence: NDArray[np.float64]
    k: int
    found: bool
    scores: dict[int, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def sizes(self) -> list[int]:
        """How many rows each cluster has."""
        return np.bincount(self.cluster, minlength=self.k).tolist()

    def examples(self, rows: Rows, number: int, most: int = 12) -> list[int]:
        """Places of rows of a cluster, the most typical first: nearest to its mean."""
        inside = np.flatnonzero(self.cluster == number)
        middle = rows[inside].mean(axis=0)
        order = np.argsort(-(rows[inside] @ middle), kind="stable")
        return [int(place) for place in inside[order[:most]]]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without the rows."""
        return {
            "k": self.k,
            "k_found": self.found,
            "sizes": self.sizes,
            "scores": {str(k): round(score, 4) for k, score in self.scores.items()},
            "notes": self.notes,
        }


def find_clusters(rows: Rows, k: int | None = None, *, most: int = MOST, seed: int = 0) -> Clusters:
    """Cut the graph of nearest neighbours into clusters (Ng, Jordan and Weiss 2001).

    The k leading eigenvectors of the normalised graph, rows scaled to length 1, are clustered by
    k-means. Without k, every k from 2 to `most` is tried, and the one is taken for which the
    product of modularity (how many more edges lie within clusters than chance would have there:
    it favours many) and silhouette (how clearly the eigenvectors fall apart: it favours few) is
    largest. The largest gap between eigenvalues, which is the usual rule, found three kinds in
    Fashion-MNIST. Of more than 20,000 rows the graph holds a sample, and the others join the
    cluster of their neighbours in it.

    Args:
        rows: (n, d).
        k: how many clusters; None: as many as there seem to be.
        most: the largest k to consider.
        seed: of the sample and of the starts of k-means.

    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat(np.eye(3, 8), 20, axis=0) + 0.05 * rng.standard_normal((60, 8))
    >>> found = find_clusters(rows.astype(np.float32))
    >>> found.k, found.sizes
    (3, [20, 20, 20])
    """
    n = len(rows)
    if n < 3:
        raise ValueError(f"there are {n} images: give at least 3 to find clusters in")
    if k is not None and not 1 <= k < n:
        raise ValueError(f"k is {k}: give a number from 1 to {n - 1}, below the {n} images")
    if most < 2:
        raise ValueError(f"most is {most}: give at least 2")
    unit = centred(rows)
    pool = pool_of(n, np.zeros(0, np.int64), seed)
    graph = Neighborhood(unit[pool])
    wanted = min(most if k is None else k, len(pool) - 1)
    vectors = leading(graph, wanted, seed)[1]
    scores: dict[int, float] = {}
    chosen = k
    if chosen is None:
        scores = {
            j: _score(graph, vectors[:, :j], _kmeans(vectors[:, :j], j, seed, 2), seed)
            for j in range(2, wanted + 1)
        }
        chosen = max(scores, key=lambda j: scores[j])
    inside = _kmeans(vectors[:, :chosen], chosen, seed, 10)
    cluster, confidence = _joined(unit, pool, graph, inside, chosen)
    order = np.argsort(-np.bincount(cluster, minlength=chosen), kind="stable")
    rank = np.empty(chosen, dtype=np.int64)
    rank[order] = np.arange(chosen)
    notes = [f"{len(pool):,} of {n:,} images were clustered, the others joined"] * (len(pool) < n)
    return Clusters(rank[cluster], confidence, chosen, k is None, scores, notes)


def leading(
    graph: Neighborhood, count: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest eigenvalues of the normalised graph, and their vectors."""
    n = graph.spread.shape[0]
    if n <= DENSE or count > n // 3:
        values, vectors = np.linalg.eigh(graph.spread.toarray())
    else:
        from scipy.sparse.linalg import eigsh

        start = np.random.default_rng(seed).standard_normal(n)
        values, vectors = eigsh(graph.spread, k=count, which="LA", v0=start, tol=1e-5)
    order = np.argsort(-values)[:count]
    return values[order], vectors[:, order]


def _score(
    graph: Neighborhood,
    vectors: NDArray[np.float64],
    clusters: NDArray[np.int64],
    seed: int,
) -> float:
    """Modularity of the graph (Newman and Girvan 2004) times silhouette of the vectors."""
    from sklearn.metrics import silhouette_score

    codes = np.eye(int(clusters.max()) + 1)[clusters]
    within = codes.T @ (graph.spread @ codes)
    shares = within / max(float(within.sum()), 1e-12)
    modularity = float(np.trace(shares) - (shares.sum(axis=1) ** 2).sum())
    some = np.random.default_rng(seed).permutation(len(vectors))[:SILHOUETTE_ROWS]
    kinds = len(np.unique(clusters[some]))
    if not 2 <= kinds < len(some):
        return -1.0
    return modularity * max(float(silhouette_score(_unit(vectors[some]), clusters[some])), 0.0)


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _kmeans(vectors: NDArray[np.float64], k: int, seed: int, starts: int) -> NDArray[np.int64]:
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # Fewer different rows than clusters, where images are copies of one another.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(k, n_init=starts, random_state=seed).fit(_unit(vectors))
    return model.labels_.astype(np.int64)


def _joined(
    unit: Rows, pool: NDArray[np.int64], graph: Neighborhood, inside: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The cluster of every row, and how many of its neighbours share it."""
    n = len(unit)
    codes = np.eye(k)[inside]
    shares = np.asarray(graph.spread @ codes)
    total = shares.sum(axis=1)
    own = shares[np.arange(len(pool)), inside]
    cluster, confidence = np.zeros(n, dtype=np.int64), np.zeros(n)
    cluster[pool], confidence[pool] = inside, own / np.maximum(total, 1e-12)
    rest = np.setdiff1d(np.arange(n), pool, assume_unique=True)
    for begin in range(0, len(rest), 20_000):
        some = rest[begin : begin + 20_000]
        places, weights = graph.weights_of(unit[some], min(NEIGHBORS, len(pool)))
        votes = np.einsum("qk,qkc->qc", weights, codes[places])
        cluster[some], confidence[some] = votes.argmax(axis=1), votes.max(axis=1)
    return cluster, confidence
