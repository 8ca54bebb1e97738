"""Which answers cause a contradiction: shortest chains of "alike" between ends that "differ"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from likewise.oracles.answers import Answer
from likewise.oracles.beliefs.closure import Index
from likewise.oracles.beliefs.facts import Facts


class Chains:
    """Shortest chains of answers "alike" between items.

    Args:
        facts: the answers.
        threshold: from which value on an answer says "alike".
    """

    def __init__(self, facts: Facts, threshold: float) -> None:
        self._facts = facts
        numbers = np.flatnonzero(facts.value >= threshold)
        # The items that occur, so that a search costs the answers and not all n items.
        self._items = np.unique(np.concatenate([facts.a[numbers], facts.b[numbers]]))
        a = np.searchsorted(self._items, facts.a[numbers])
        b = np.searchsorted(self._items, facts.b[numbers])
        low, high = np.minimum(a, b), np.maximum(a, b)
        keys = low * len(self._items) + high
        self._keys, first = np.unique(keys, return_index=True)
        self._answer = numbers[first]
        ones = np.ones(len(self._keys), dtype=np.int8)
        size = len(self._items)
        self._edges = csr_array(
            (ones, (self._keys // max(size, 1), self._keys % max(size, 1))), shape=(size, size)
        )
        self._edges = csr_array(self._edges + self._edges.T)
        self._start = -1
        self._before: Index = np.zeros(0, dtype=np.int64)

    def between(self, i: int, j: int) -> list[Answer]:
        """The answers of a shortest chain from i to j, which have to be joined by one."""
        if i == j:
            return []
        start, end = np.searchsorted(self._items, [i, j])
        if start != self._start:  # questions come sorted by their first item
            _, self._before = breadth_first_order(self._edges, start, directed=False)
            self._start = int(start)
        chain = []
        while end != start:
            previous = int(self._before[end])
            key = min(previous, end) * len(self._items) + max(previous, end)
            chain.append(self._facts[int(self._answer[np.searchsorted(self._keys, key)])])
            end = previous
        return chain[::-1]


def joined_ends(
    facts: Facts, root: Index, threshold: float, limit: int | None = None
) -> Iterator[tuple[Answer, ...]]:
    """For every pair that was said to differ though a chain of "alike" joins it: one answer that
    says so, and a shortest such chain."""
    against = np.flatnonzero((facts.value <= -threshold) & (root[facts.a] == root[facts.b]))
    low = np.minimum(facts.a[against], facts.b[against])
    high = np.maximum(facts.a[against], facts.b[against])
    _, first = np.unique(low * facts.n + high, return_index=True)
    if not len(first):
        return
    chains = Chains(facts, threshold)
    for place in first[:limit]:
        answer = facts[int(against[place])]
        yield (answer, *chains.between(int(low[place]), int(high[place])))


def differing_groups(
    facts: Facts, root: Index, groups: tuple[int, ...], threshold: float
) -> tuple[Answer, ...]:
    """One answer "different" for every two of some groups (given by their roots) that differ."""
    group = np.full(facts.n, -1)
    group[list(groups)] = np.arange(len(groups))
    a, b = group[root[facts.a]], group[root[facts.b]]
    numbers = np.flatnonzero((facts.value <= -threshold) & (a >= 0) & (b >= 0) & (a != b))
    low, high = np.minimum(a[numbers], b[numbers]), np.maximum(a[numbers], b[numbers])
    _, first = np.unique(low * len(groups) + high, return_index=True)
    return tuple(facts[int(number)] for number in numbers[first])
