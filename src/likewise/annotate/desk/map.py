"""The map: items in the plane, near where they are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POINTS = 5000
"""Items on the map, at most."""


def flat_map(
    X: NDArray[np.floating], points: int = POINTS, seed: int = 0
) -> tuple[list[int], list[tuple[float, float]]]:
    """Some items, and where they are: the first two principal components, each from 0 to 1.

    >>> items, places = flat_map(np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.1]]))
    >>> items, sorted(x for x, _ in places)
    ([0, 1, 2], [0.0, 0.2498, 1.0])
    """
    n = len(X)
    if n > points:
        items = np.sort(np.random.default_rng(seed).choice(n, points, replace=False))
    else:
        items = np.arange(n)
    rows = np.asarray(X[items], dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(rows.T @ rows)
    vectors = vectors[:, ::-1][:, :2]
    # A component has no sign of its own: the map should not flip from one fit to the next.
    strongest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    flat = rows @ (vectors * np.where(strongest < 0, -1.0, 1.0))
    if flat.shape[1] < 2:
        flat = np.c_[flat, np.zeros(n)]
    low, high = flat.min(axis=0), flat.max(axis=0)
    flat = (flat - low) / np.maximum(high - low, 1e-12)
    return items.tolist(), [(round(x, 4), round(y, 4)) for x, y in flat.tolist()]
