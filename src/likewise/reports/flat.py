"""Embeddings on a sheet of paper: a map in two dimensions in which neighbours stay neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEW = 12
"""Below so many items, their two main directions are the map."""


def flat_map(rows: NDArray[np.float32], *, seed: int = 0) -> tuple[NDArray[np.float64], str]:
    """(n, 2) places, from 0 to 1 across and to at most 1 down, and how they were found.

    t-SNE (van der Maaten and Hinton 2008) of rows of length 1, begun at their two main directions;
    the main directions themselves where there are few rows, or where all rows are equal. Distances
    between far groups, and the sizes of groups, mean nothing in it.

    Args:
        rows: (n, d), finite.
        seed: the same seed gives the same map.

    >>> places, how = flat_map(np.eye(5, dtype=np.float32))
    >>> places.shape, float(places.min()) >= 0, float(places.max()) <= 1, how
    ((5, 2), True, True, 'principal components')
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    centred = (unit - unit.mean(axis=0)).astype(np.float64)
    how = "principal components"
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(rows), 2))
    kept = min(2, len(values))
    places[:, :kept] = left[:, :kept] * values[:kept]
    if len(rows) >= FEW and values[0] > 1e-6:
        from sklearn.manifold import TSNE

        # The first 50 directions hold all that a neighbourhood depends on, and cost less.
        kept = min(50, len(values))
        perplexity = min(30.0, (len(rows) - 1) / 3)
        places = TSNE(
            init="pca", perplexity=perplexity, random_state=seed, learning_rate="auto"
        ).fit_transform((left[:, :kept] * values[:kept]).astype(np.float32))
        how = f"t-SNE, perplexity {perplexity:.0f}"
    low = places.min(axis=0)
    spread = places.max(axis=0) - low
    if spread[1] > spread[0]:  # lying, a map needs less of a page
        places, low, spread = places[:, ::-1], low[::-1], spread[::-1]
    size = float(spread[0])
    if size == 0:
        return np.full((len(rows), 2), 0.5), how
    return (places - low) / size, how
