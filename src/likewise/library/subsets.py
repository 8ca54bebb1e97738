"""Subsets: a few images that stand for many, to label or to train on."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from likewise.library.exact import Rows

Method = Literal["typical", "diverse", "balanced", "random"]
Numbers = NDArray[np.int64]


def choose_subset(
    rows: Rows,
    size: int,
    *,
    method: Method = "typical",
    groups: Numbers | None = None,
    seed: int = 0,
) -> Numbers:
    """Places of `size` rows, in the order in which they were taken.

    ========  =====================================================================================
    typical   the rows are cut into `size` regions (k-means), and the row nearest to each middle is
              taken, that of the largest region first: few images that stand for many
    diverse   each is the one least like all that were taken before (farthest first, Gonzalez
              1985): rare kinds and oddities are in it
    balanced  the same number of every group (class or cluster), and within it those that a
              typical subset would have; where a group is too small, the others give more
    random    drawn
    ========  =====================================================================================

    Args:
        rows: (n, d) of length 1.
        size: how many.
        method: which ones.
        groups: (n,) for "balanced": the class or cluster of every row; -1 is never taken.
        seed: of what is drawn.

    >>> rows = np.array([[1, 0], [0.99, 0.1], [0, 1], [-1, 0]], np.float32)
    >>> sorted(choose_subset(rows, 3, method="diverse").tolist())[-2:]
    [2, 3]
    """
    n = len(rows)
    if method not in get_args(Method):
        raise ValueError(f"method is {method!r}: give one of {', '.join(get_args(Method))}")
    if not 1 <= size <= n:
        raise ValueError(f"size is {size}: give a number from 1 to {n}, the images there are")
    if method == "balanced":
        if groups is None:
            raise ValueError("method is 'balanced' and groups are missing: give classes")
        return _balanced(rows, size, groups, seed)
    return _taken(rows, size, method, seed)


def _taken(rows: Rows, size: int, method: str, seed: int) -> Numbers:
    if method == "random":
        return np.random.default_rng(seed).permutation(len(rows))[:size]
    if method == "diverse":
        return farthest_first(rows, size)
    return typical(rows, size, seed)


def farthest_first(rows: Rows, size: int) -> Numbers:
    """Each the one least like all before, from the most typical row on."""
    chosen = np.empty(size, dtype=np.int64)
    chosen[0] = int(np.argmax(rows @ rows.mean(axis=0)))
    nearest = rows @ rows[chosen[0]]
    for number in range(1, size):
        nearest[chosen[number - 1]] = np.inf  # copies of a row are taken last, but once each
        chosen[number] = int(np.argmin(nearest))
        np.maximum(nearest, rows @ rows[chosen[number]], out=nearest)
    return chosen


def typical(rows: Rows, size: int, seed: int) -> Numbers:
    """The row nearest to the middle of each of `size` regions, that of the largest first."""
    import warnings

    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    n = len(rows)
    if size == n:
        return np.arange(n)
    few = n * size <= 2_000_000
    model = (
        KMeans(size, n_init=3, random_state=seed)
        if few
        else MiniBatchKMeans(size, n_init=3, batch_size=max(4096, 2 * size), random_state=seed)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than regions
        model.fit(rows)
    similarity = np.einsum("nd,nd->n", rows, model.cluster_centers_[model.labels_])
    order = np.lexsort((-similarity, model.labels_))
    regions, first, sizes = np.unique(model.labels_[order], return_index=True, return_counts=True)
    best = order[first][np.argsort(-sizes, kind="stable")]
    if len(best) < size:
        rest = np.setdiff1d(np.arange(n), best)
        drawn = np.random.default_rng(seed).permutation(rest)[: size - len(best)]
        best = np.concatenate([best, drawn])
    return best


def _balanced(rows: Rows, size: int, groups: Numbers, seed: int) -> Numbers:
    names = np.unique(groups[groups >= 0])
    available = np.array([int((groups == name).sum()) for name in names])
    if size > available.sum():
        raise ValueError(
            f"size is {size}, and {int(available.sum())} images have a class: give fewer"
        )
    parts = []
    for name, share in zip(names, shares_of(size, available), strict=True):
        inside = np.flatnonzero(groups == name)
        if share:
            parts.append(inside[_taken(rows[inside], int(share), "typical", seed)])
    # In turns, so that the first few are balanced, too.
    turn = np.concatenate([np.arange(len(part)) for part in parts])
    group = np.concatenate([np.full(len(part), number) for number, part in enumerate(parts)])
    return np.concatenate(parts)[np.lexsort((group, turn))]


def shares_of(size: int, available: Numbers) -> Numbers:
    """`size` cut into parts as equal as the groups allow.

    >>> shares_of(9, np.array([10, 2, 10])).tolist()
    [4, 2, 3]
    """
    shares = np.zeros(len(available), dtype=np.int64)
    left = size
    while left:
        room = np.flatnonzero(shares < available)
        each = left // len(room)
        # As much for all as there is; what cannot be shared goes to the first, one each.
        add = np.minimum(max(each, 1), available[room] - shares[room])
        if each == 0:
            add[left:] = 0
        shares[room] += add
        left -= int(add.sum())
    return shares
