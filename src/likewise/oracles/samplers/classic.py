"""The classic rules: least sure, least margin, most dispute, most change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.samplers.base import ScoringSampler
from likewise.oracles.samplers.state import State


class Uncertainty(ScoringSampler):
    """The items of which the classifier is least sure: 1 - max_c p_c (Lewis and Gale 1994)."""

    name = "uncertainty"

    def scores(self, state: State) -> NDArray[np.floating]:
        """1 less the largest probability."""
        return 1.0 - state.pool.max(axis=1)


class Margin(ScoringSampler):
    """The items nearest to a decision boundary: the smallest p_(1) - p_(2) (Scheffer 2001)."""

    name = "margin"

    def scores(self, state: State) -> NDArray[np.floating]:
        """Minus the margin between the two likeliest classes."""
        if state.n_classes < 2:
            return 1.0 - state.pool.max(axis=1)
        top = np.sort(state.pool, axis=1)
        return top[:, -2] - top[:, -1]


class Disagreement(ScoringSampler):
    """The items of which a committee disagrees (Seung 1992), by the entropy of the mean vote less
    the mean entropy of the votes (Houlsby 2011).

    Args:
        members: classifiers, each trained on the known items drawn with replacement.
    """

    name = "disagreement"

    def __init__(self, *, members: int = 5) -> None:
        if members < 2:
            raise ValueError(f"members is {members}: a committee has at least 2")
        self.members = members

    def scores(self, state: State) -> NDArray[np.floating]:
        """The information that the members' identity gives about the class."""
        known = np.flatnonzero(state.labels >= 0)
        votes = []
        for _ in range(self.members):
            kept = state.rng.choice(known, len(known))
            labels = np.full(state.n, -1)
            labels[kept] = state.labels[kept]
            votes.append(state.probe.fit(labels, state.n_classes).pool)
        mean = np.mean(votes, axis=0)
        return entropy(mean) - np.mean([entropy(vote) for vote in votes], axis=0)


class ExpectedChange(ScoringSampler):
    """The items whose answer would change the predictions of all most (Roy and McCallum 2001).

    sum_c p_c(i) mean_j |P(j | i is c) - P(j)|_1, in closed form: one column of the kernel is added.

    Args:
        shortlist: among so many items of the highest entropy times reach.
    """

    name = "expected-change"

    def __init__(self, *, shortlist: int = 48) -> None:
        if shortlist < 1:
            raise ValueError(f"shortlist is {shortlist}: give at least 1")
        self.shortlist = shortlist

    def scores(self, state: State) -> NDArray[np.floating]:
        """The expected change; minus infinity off the shortlist."""
        smoothness, balance = state.fitted.way
        kernel = state.probe.kernel(smoothness)
        items = state.probe.items
        placed = np.flatnonzero(state.labels[items] >= 0)
        codes = np.zeros((len(placed), state.n_classes), dtype=np.float32)
        codes[np.arange(len(placed)), state.labels[items[placed]]] = 1.0
        scores = kernel[:, placed] @ codes
        mass = np.maximum(scores.sum(axis=0), 1e-12)
        before = _shares(scores, mass, balance)
        found = np.full(len(items), -np.inf)
        worth = np.where(state.open, entropy(state.pool) + 1e-6, -1.0) * kernel.sum(axis=1)
        for place in np.argsort(-worth)[: self.shortlist]:
            column, total = kernel[:, place], 0.0
            for c in np.flatnonzero(state.pool[place] > 0.01):
                then, heavier = scores.copy(), mass.copy()
                then[:, c] += column
                heavier[c] += column.sum()
                change = np.abs(_shares(then, heavier, balance) - before).sum(axis=1).mean()
                total += float(state.pool[place, c] * change)
            found[place] = total
        return found


def entropy(probabilities: NDArray[np.floating]) -> NDArray[np.floating]:
    """Of every row, in bits.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    return -(probabilities * np.log2(np.clip(probabilities, 1e-12, 1.0))).sum(axis=1) + 0.0


def _shares(
    scores: NDArray[np.floating], mass: NDArray[np.floating], balance: float
) -> NDArray[np.floating]:
    shares = scores / mass**balance
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
