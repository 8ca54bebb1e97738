"""Who is near whom among the rows: a sparse graph, for clusters and for spreading labels."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from likewise.library.exact import Places, Rows, search_rows

NEIGHBORS = 10
POOL = 20_000
"""Rows that a graph has at most: each of them is compared with all others of it."""


def centred(rows: Rows) -> Rows:
    """Rows less their mean, of length 1: what they all share says nothing about who is near."""
    moved = rows - rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    return np.divide(moved, lengths, out=np.zeros_like(moved), where=lengths > 1e-12)


def neighbors_of(rows: Rows, k: int) -> tuple[Rows, Places]:
    """Distances and places of the k nearest others of every row."""
    n = len(rows)
    near, places = search_rows([rows], rows, k + 1)
    own = places == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # copies of a row may push it out of its own list
    near, places = near[~own].reshape(n, -1), places[~own].reshape(n, -1)
    return np.sqrt(np.maximum(2 - 2 * near, 0)), places


class Neighborhood:
    r"""The symmetric graph of nearest neighbours, :math:`S = D^{-1/2} W D^{-1/2}`.

    :math:`w_{ij} = e^{-|x_i - x_j|^2 / (s_i s_j)}`, where s_i is the distance from i to its last
    neighbour (Zelnik-Manor and Perona 2004); a pair counts when one is among the other's.

    Args:
        rows: (n, d), of length 1.
        neighbors: of each row.

    >>> rows = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], np.float32)
    >>> Neighborhood(rows, 1).spread.toarray().round(2).tolist()[0]
    [0.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, rows: Rows, neighbors: int = NEIGHBORS) -> None:
        n = len(rows)
        self.rows = rows
        k = min(neighbors, max(n - 1, 0))
        if k == 0:
            self.scale = np.ones(n)
            self.spread = sparse.csr_matrix((n, n))
            return
        distances, places = neighbors_of(rows, k)
        scale = distances[:, -1]
        self.scale = np.maximum(scale, max(1e-3 * float(np.median(scale)), 1e-6))
        weights = np.exp(-(distances**2) / (self.scale[:, None] * self.scale[places]))
        rows_of = np.repeat(np.arange(n), k)
        graph = sparse.csr_matrix((weights.ravel(), (rows_of, places.ravel())), shape=(n, n))
        graph = graph.maximum(graph.T)
        degrees = np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12)
        root = sparse.diags(1 / np.sqrt(degrees))
        self.spread = sparse.csr_matrix(root @ graph @ root)

    def weights_of(self, queries: Rows, k: int = NEIGHBORS) -> tuple[Places, NDArray[np.float64]]:
        """Neighbours (q, k) of other rows, and weights that add up to 1."""
        near, places = search_rows([self.rows], queries, k)
        distances = np.sqrt(np.maximum(2 - 2 * near, 0)).astype(np.float64)
        scale = np.maximum(distances[:, -1:], 1e-6) * self.scale[places]
        weights = np.exp(-(distances**2) / scale) + 1e-12
        return places, weights / weights.sum(axis=1, keepdims=True)

    def propagate(self, codes: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
        r""":math:`(I - a S)^{-1} Y` by conjugate gradients (Zhou et al. 2004); a = `reach`."""
        found, rest = np.zeros_like(codes), codes.copy()
        step, square = rest.copy(), (rest * rest).sum(axis=0)
        enough = 1e-12 * np.maximum(square, 1e-30)
        for _ in range(200):
            pushed = step - reach * (self.spread @ step)
            length = square / np.maximum((step * pushed).sum(axis=0), 1e-30)
            found += length * step
            rest -= length * pushed
            new = (rest * rest).sum(axis=0)
            if (new <= enough).all():
                break
            step = rest + new / np.maximum(square, 1e-30) * step
            square = new
        return found


def pool_of(n: int, needed: NDArray[np.int64], seed: int, size: int = POOL) -> NDArray[np.int64]:
    """At most `size` places, those that are needed among them, the others drawn."""
    if n <= size:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    needed = needed if len(needed) <= size else np.sort(rng.permutation(needed)[:size])
    others = np.setdiff1d(np.arange(n), needed, assume_unique=True)
    drawn = rng.choice(others, size - len(needed), replace=False)
    return np.sort(np.concatenate([needed, drawn]))
