"""What follows from "alike" and "different" where nobody errs: groups, and which of them differ.

Alike is transitive: groups are the connected components of the answers "alike". Different is
inherited: one answer "different" between two groups tells all their items apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Index = NDArray[np.int64]


class Closure:
    """Groups of n items under answers that are added, in any order and in any batches.

    Attributes:
        root: (n,) the smallest item of every item's group.
        keys: sorted; lo * n + hi for every two groups (by their roots lo < hi) known to differ.

    >>> closure = Closure(5)
    >>> closure.add(np.array([0, 3]), np.array([1, 4]), np.array([1, 2]), np.array([2, 3]))
    >>> closure.root.tolist()
    [0, 0, 2, 3, 3]
    >>> closure.pairs()
    (array([0, 2]), array([2, 3]))
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.root: Index = np.arange(n)
        self.keys: Index = np.zeros(0, dtype=np.int64)

    def add(self, a: Index, b: Index, c: Index, d: Index) -> None:
        """Learn that the items a are alike to the items b, and c different from d."""
        self._join(a, b)
        low, high = self._ordered(self.root[c], self.root[d])
        new = (low * self.n + high)[low != high]
        if len(new):
            self.keys = merged(self.keys, np.unique(new))

    def pairs(self) -> tuple[Index, Index]:
        """The roots of the groups that are known to differ, each two once."""
        return self.keys // self.n, self.keys % self.n

    def relation(self, i: int, others: Index) -> NDArray[np.int8]:
        """+1 same group, -1 groups that differ, 0 unknown: one item with many."""
        mine, theirs = self.root[i], self.root[others]
        low, high = self._ordered(np.full_like(theirs, mine), theirs)
        known = contains(self.keys, low * self.n + high)
        return np.where(mine == theirs, 1, -known.astype(np.int8)).astype(np.int8)

    def _join(self, a: Index, b: Index) -> None:
        first, second = self.root[a], self.root[b]
        apart = first != second
        if not apart.any():
            return
        # Only the groups that are touched take part; each is renamed to the smallest of its roots.
        roots, places = np.unique(
            np.concatenate([first[apart], second[apart]]), return_inverse=True
        )
        i, j = np.split(places, 2)
        edges = csr_array((np.ones(len(i), dtype=bool), (i, j)), shape=(len(roots),) * 2)
        count, component = connected_components(edges, directed=False)
        smallest = np.full(count, self.n)
        np.minimum.at(smallest, component, roots)
        renamed = np.arange(self.n)
        renamed[roots] = smallest[component]
        self.root = renamed[self.root]
        self._rename(renamed)

    def _rename(self, renamed: Index) -> None:
        first, second = self.pairs()
        moved = (renamed[first] != first) | (renamed[second] != second)
        if moved.any():
            low, high = self._ordered(renamed[first[moved]], renamed[second[moved]])
            # A group that differs from itself is a contradiction, which the answers still hold.
            new = (low * self.n + high)[low != high]
            self.keys = merged(self.keys[~moved], np.unique(new))

    @staticmethod
    def _ordered(first: Index, second: Index) -> tuple[Index, Index]:
        return np.minimum(first, second), np.maximum(first, second)


def merged(first: Index, second: Index) -> Index:
    """Two sorted arrays as one, every number once."""
    both = np.concatenate([first, second])
    both.sort(kind="stable")  # two runs in order: a merge, not a sort
    return both[np.concatenate([[True], both[1:] != both[:-1]])] if len(both) else both


def contains(keys: Index, wanted: Index) -> NDArray[np.bool_]:
    """Which of some numbers a sorted array holds."""
    if not len(keys):
        return np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return keys[place] == wanted
