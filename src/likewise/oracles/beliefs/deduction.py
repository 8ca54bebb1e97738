"""Not A, not B, ..., so C: what a closed list of k classes implies.

Whatever differs from k - 1 groups that all differ from one another is of the one class that is
left; two such groups are alike, also where nobody has named that class yet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.beliefs.closure import Closure, Index

STEPS = 50_000
"""Extensions of a set of groups that one search may try. To look for k - 1 groups that all differ
is to look for a clique, which may take for ever; answers against exemplars need a few steps."""


def deduce(
    closure: Closure, touched: NDArray[np.bool_], classes: int
) -> tuple[Index, Index, tuple[tuple[int, ...], ...]]:
    """The roots and the keys of a closure after all that k classes imply, and the groups (by
    their roots) that are more than k and all differ, if there are such.

    It is computed from the closure anew, so that it depends on nothing but the closure.
    """
    closed = Closure(closure.n)
    closed.root, closed.keys = closure.root, closure.keys
    while True:
        if classes == 1:
            roots = np.flatnonzero((closed.root == np.arange(closed.n)) & touched)
            clique: list[int] = []
            alike = roots.tolist()
        else:
            found = _search(closed, classes - 1)
            if found is None:
                return closed.root, closed.keys, ()
            clique, alike = found
        if len(alike) < 2:
            return closed.root, closed.keys, ()
        among = np.array(alike)
        for item in alike:
            differing = among[closed.relation(item, among) < 0]
            if len(differing):
                # More kinds than there are classes: stop before it spoils everything else.
                return closed.root, closed.keys, (tuple(sorted([*clique, item, differing[0]])),)
        none = np.zeros(0, dtype=np.int64)
        closed.add(among[:-1], among[1:], none, none)


def _search(closure: Closure, size: int) -> tuple[list[int], list[int]] | None:
    """`size` groups that all differ from one another, and two or more groups that differ from
    all of these."""
    first, second = closure.pairs()
    # Of such groups, each differs from `size` others at least: leave out the rest, again and again.
    while len(first):
        degrees = np.bincount(np.concatenate([first, second]), minlength=closure.n)
        keep = (degrees[first] >= size) & (degrees[second] >= size)
        if keep.all():
            break
        first, second = first[keep], second[keep]
    neighbours: dict[int, set[int]] = {}
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        neighbours.setdefault(i, set()).add(j)
        neighbours.setdefault(j, set()).add(i)
    # Groups that differ from many are the classes themselves: with those first, the search ends
    # soon where there is something to find.
    order = sorted(neighbours, key=lambda group: (-len(neighbours[group]), group))
    place = {group: number for number, group in enumerate(order)}
    steps = STEPS

    def extend(clique: list[int], common: set[int]) -> tuple[list[int], list[int]] | None:
        nonlocal steps
        if len(clique) == size:
            return clique, sorted(common)
        last = place[clique[-1]] if clique else -1
        later = [group for group in common if place[group] > last] if clique else order
        for group in sorted(later, key=place.__getitem__):
            if steps == 0:
                return None
            steps -= 1
            shared = neighbours[group] & common if clique else neighbours[group]
            # The groups still to be found, and two more that differ from all.
            if len(shared) >= size - len(clique) + 1:
                found = extend([*clique, group], shared)
                if found is not None:
                    return found
        return None

    return extend([], set())
