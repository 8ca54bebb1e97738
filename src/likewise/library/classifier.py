"""A classifier from a few known items: labels spread over all items, and a regression on these."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from likewise.library.exact import Rows
from likewise.library.neighborhood import NEIGHBORS, Neighborhood, pool_of
from likewise.library.regression import Landmarks, Ridge, Whitening

REACH = 0.99
"""How far labels spread over the graph: (1 - reach) is lost at every step."""

SHARPER = 2
"""The power of what has spread that the regression is fitted to: as it is, it is too timid."""

KNOWN_WEIGHT = 5.0
"""What a known item counts in the regression, beside one to which a label has spread for sure."""

LINE = 4.0
"""How much the regression says: its prediction s counts as exp(4 s)."""

LEAST = 1e-6
"""The least probability that spreading gives a class: it may be wrong."""

ROWS_AT_ONCE = 20_000

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


class FewLabels:
    r"""Label propagation times kernel ridge regression, over all rows, known and unknown.

    .. math::
        l_{ic} = \log p_{ic} + 4 s_{ic}

    p spreads from the known items over the graph of nearest neighbours, s is a ridge regression
    that is fitted to it, by the known items first of all, and once more to the product of both.
    They err on different items, so their product is right more often than either. Neighbours are
    found, and the regression works, among whitened rows. It is the classifier
    by which :mod:`likewise.oracles` asks about embeddings; its constants are from there, and
    nothing is chosen by the answers: what is chosen by them does better on them than on others. Of
    more than 20,000 rows the graph holds the known ones and a sample; the others take what their
    neighbours in it have.

    Args:
        rows: (n, d) of length 1.
        needed: places that the graph has to hold: those of which a label is known.
        excluded: (n, classes) classes that an item is known not to be of.
        seed: of the sample and of the regression's landmarks.
    """

    def __init__(
        self,
        rows: Rows,
        needed: NDArray[np.int64],
        *,
        excluded: Mask | None = None,
        seed: int = 0,
    ) -> None:
        self.rows, self.excluded = rows, excluded
        self.pool = pool_of(len(rows), needed, seed)
        self._whitening = Whitening(rows[self.pool])
        unit = self._unit(self.pool)
        self.graph = Neighborhood(unit)
        self.place = np.full(len(rows), -1, dtype=np.int64)
        self.place[self.pool] = np.arange(len(self.pool))
        self._landmarks = Landmarks(unit, seed=seed)
        self._features = self._landmarks.own

    def _unit(self, at: NDArray[np.int64]) -> Rows:
        return self._whitening(self.rows[at]).astype(np.float32)

    def logits(
        self, known: NDArray[np.int64], labels: Labels, n_classes: int, at: NDArray[np.int64]
    ) -> Matrix:
        """(len(at), n_classes) from the known places and their labels.

        Classes of which no item is known, and those that are excluded, get the least probability.
        """
        present, codes = np.unique(labels, return_inverse=True)
        found = np.full((len(at), n_classes), np.log(LEAST) - LINE)
        if len(present) == 1:
            found[:, present[0]] = 0.0
            return found
        inside = self.place[known] >= 0
        places, codes = self.place[known[inside]], codes[inside]
        allowed = None if self.excluded is None else ~self.excluded[:, present]
        shares = self._spread(places, codes, len(present), allowed)
        first = self._line(shares, places, codes)
        both = _normalised(shares * np.exp(LINE * first.predict(self._features)))
        line = self._line(both, places, codes)
        for some, spread, features in self._read(at, shares):
            scores = np.log(np.maximum(spread, LEAST)) + LINE * line.predict(features)
            if allowed is not None:
                scores = np.where(allowed[at[some]], scores, np.log(LEAST) - LINE)
            found[np.ix_(some, present)] = scores
        return found

    def _spread(self, places: Labels, codes: Labels, size: int, allowed: Mask | None) -> Matrix:
        """(pool, size) what reaches every item of the pool, as shares."""
        start = np.zeros((len(self.pool), size))
        start[places, codes] = 1.0
        scores = np.maximum(self.graph.propagate(start, REACH), 0.0)
        # All classes get the same mass: one with more known items is not more frequent.
        scores /= np.maximum(scores.sum(axis=0), 1e-12)
        if allowed is not None:
            scores = scores * allowed[self.pool]
        total = scores.sum(axis=1, keepdims=True)
        return np.where(total > 1e-15, scores / np.maximum(total, 1e-15), 1.0 / size)

    def _line(self, shares: Matrix, places: Labels, codes: Labels) -> Ridge:
        """The regression on what is known and what has spread."""
        sharp = _normalised(shares**SHARPER)
        sharp[places] = 0.0
        sharp[places, codes] = 1.0
        weights = sharp.max(axis=1)
        weights[places] = KNOWN_WEIGHT
        return Ridge(self._features, sharp, weights)

    def _read(
        self, at: NDArray[np.int64], shares: Matrix
    ) -> Iterator[tuple[NDArray[np.int64], Matrix, Matrix]]:
        """Parts of `at`: their places in it, what has spread to them, and their features."""
        place = self.place[at]
        inside, outside = np.flatnonzero(place >= 0), np.flatnonzero(place < 0)
        yield inside, shares[place[inside]], self._features[place[inside]]
        for begin in range(0, len(outside), ROWS_AT_ONCE):
            some = outside[begin : begin + ROWS_AT_ONCE]
            unit = self._unit(at[some])
            near, weights = self.graph.weights_of(unit, NEIGHBORS)
            yield some, np.einsum("qk,qkc->qc", weights, shares[near]), self._landmarks(unit)


def _normalised(table: Matrix) -> Matrix:
    return table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
