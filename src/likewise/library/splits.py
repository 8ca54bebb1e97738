"""Splits: training and test images with no twin across, and every kind in both."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def split_items(
    twins: Numbers, strata: Numbers, shares: Mapping[str, float], *, seed: int = 0
) -> NDArray[np.object_]:
    """The part of every item: twins stay together, and every stratum is shared out alike.

    Groups of twins are dealt out, stratum by stratum, each to the part that is farthest below
    its share: first the large ones, then the rest in random order.

    Args:
        twins: (n,) the group of every item; -1: it has no twin.
        strata: (n,) class or cluster; a group has that of most of its items.
        shares: of the parts, by name; what is left of 1 is "train".
        seed: of the order.

    >>> parts = split_items(np.array([0, 0, -1, -1]), np.zeros(4, int), {"test": 0.5})
    >>> parts[0] == parts[1], sorted(parts.tolist())
    (True, ['test', 'test', 'train', 'train'])
    """
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ValueError(f"{name} is {share}: give a share between 0 and 1, such as 0.2")
    if sum(shares.values()) >= 1:
        raise ValueError(
            f"{' and '.join(shares)} take {sum(shares.values()):g} of the images: leave some for "
            "training"
        )
    n = len(twins)
    names = [*shares, "train"]
    wanted = np.array([*shares.values(), 1 - sum(shares.values())])
    group = twins.copy()
    alone = group < 0
    group[alone] = group.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    _, group = np.unique(group, return_inverse=True)
    sizes = np.bincount(group)
    stratum = _majority(group, strata, len(sizes))
    rng = np.random.default_rng(seed)
    part_of = np.zeros(len(sizes), dtype=np.int64)
    total = np.zeros(len(names))
    for name in np.unique(stratum):
        members = rng.permutation(np.flatnonzero(stratum == name))
        members = members[np.argsort(-sizes[members], kind="stable")]
        own = np.zeros(len(names))
        goal = wanted * sizes[members].sum()
        for one in members:
            # What a part lacks in this stratum; what it lacks in all decides between equals, so
            # that many small strata do not all round the same way.
            lack = (goal - own) + 0.5 * (wanted * total.sum() - total)
            best = int(np.argmax(lack / wanted))
            part_of[one] = best
            own[best] += sizes[one]
            total[best] += sizes[one]
    found = np.array(names, dtype=object)[part_of[group]]
    assert len(found) == n
    return found


def _majority(group: Numbers, strata: Numbers, count: int) -> Numbers:
    _, codes = np.unique(strata, return_inverse=True)
    size = int(codes.max(initial=0)) + 1
    cells, votes = np.unique(group * size + codes, return_counts=True)
    order = np.lexsort((-votes, cells // size))
    first = np.unique((cells // size)[order], return_index=True)[1]
    found = np.zeros(count, dtype=np.int64)
    best = cells[order][first]
    found[best // size] = best % size
    return found
