"""Near cluster centres while little is known, far from them later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.samplers.base import ScoringSampler
from likewise.oracles.samplers.state import State


class Pruning(ScoringSampler):
    """k-means, then items near centres or far from them (``pal`` algorithm 5; Sorscher 2022).

    Distances are 1 - cosine to an item's own centre.

    Args:
        clusters: k of k-means.
        few: far items are asked about from so many known items a cluster on.
        seed: of k-means.
    """

    name = "pruning"

    def __init__(self, *, clusters: int = 10, few: float = 10.0, seed: int = 0) -> None:
        if clusters < 1:
            raise ValueError(f"clusters is {clusters}: give at least 1")
        self.clusters, self.few, self.seed = clusters, few, seed
        self._of: tuple[object, NDArray[np.floating]] | None = None

    def scores(self, state: State) -> NDArray[np.floating]:
        """The cosine with the centre, or minus that."""
        cosine = self._cosines(state)
        known = int((state.labels >= 0).sum())
        return cosine if known < self.few * self.clusters else -cosine

    def _cosines(self, state: State) -> NDArray[np.floating]:
        if self._of is None or self._of[0] is not state.probe:  # k-means once a pool
            from sklearn.cluster import KMeans

            rows = state.probe.graph.rows
            k = min(self.clusters, len(rows))
            fitted = KMeans(k, n_init=1, random_state=self.seed).fit(rows)
            centers = fitted.cluster_centers_[fitted.labels_]
            lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(centers, axis=1)
            self._of = (state.probe, (rows * centers).sum(axis=1) / np.maximum(lengths, 1e-12))
        return self._of[1]
