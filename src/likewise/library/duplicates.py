"""Near-duplicates: the same picture again, cropped, re-encoded, turned a little, re-lit.

Images of one kind may be nearly the same without being the same picture, so no fixed threshold
does. A pair is a pair of twins when it is far closer than what else is near: its residual is
compared with the median residual of the nearest others, the same way as a ratio test compares the
best match with the next (Lowe 2004).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from likewise.library import alignment
from likewise.library.exact import Rows, search_rows
from likewise.library.neighborhood import neighbors_of

Numbers = NDArray[np.int64]

SIDE = 32
"""Pixels a side of the grey pictures that are laid over each other."""

OUTLINE = 12
"""Pixels a side of the outlines that candidates are sought with."""

VIEWS = (
    (1.0, 0.0, 0.0, 0.0),
    (0.9, 0.0, 0.0, 0.0),
    *((0.9, 0.0, 0.07 * right, 0.07 * down) for right in (-1, 1) for down in (-1, 1)),
    (1.0, 5.0, 0.0, 0.0),
    (1.0, -5.0, 0.0, 0.0),
)
"""Zoom, degrees and shift of the views of a picture that are compared with all others."""

CANDIDATES = 8
MANY = 30_000
"""From so many pictures on only the whole picture is compared with all others, and rows are."""

STRICT = 0.2
"""A pair's residual against the median of its neighbours'. On planted copies of Fashion-MNIST, 95 %
of the copies are below 0.17, and one pair of different pictures in a thousand below 0.23."""

DETAIL = 0.35
"""The same for edges and texture alone."""

LEAST_CORRELATION = 0.95
SAME = 0.999
"""From this correlation on, of the whole and of details, no comparison with others is needed."""

PAIRS_AT_ONCE = 2048


@dataclass
class Duplicates:
    """Groups of near-duplicates.

    Attributes:
        groups: places of the items of each group, in order; the largest group first.
        pairs: (m, 2) the pairs that were found.
        closeness: (m,) of each pair: 1 is the same, 0 is as far as its neighbours.
        method: what was compared: "pixels" or "rows".
        notes: what a reader should know.
    """

    groups: list[list[int]]
    pairs: Numbers
    closeness: NDArray[np.float64]
    method: str
    notes: list[str] = field(default_factory=list)

    def group_of(self, n: int) -> Numbers:
        """(n,) the group of every item; -1: it has no twin."""
        found = np.full(n, -1, dtype=np.int64)
        for number, group in enumerate(self.groups):
            found[group] = number
        return found

    def all_pairs(self) -> Numbers:
        """(m, 2) every pair within a group."""
        every = [pair for group in self.groups for pair in combinations(group, 2)]
        return np.array(every, dtype=np.int64).reshape(-1, 2)


def grey_pictures(pixels: Tensor) -> Tensor:
    """Images uint8 (n, 3, s, s) as grey pictures (n, 1, 32, 32) from 0 to 1."""
    weights = torch.tensor([0.299, 0.587, 0.114])
    parts = []
    for part in pixels.split(4096):
        grey = torch.einsum("nchw,c->nhw", part.float() / 255, weights)[:, None]
        if grey.shape[-1] != SIDE:
            grey = F.interpolate(grey, size=(SIDE, SIDE), mode="bilinear", antialias=True)
        parts.append(grey)
    return torch.cat(parts)


def duplicates_of_pictures(
    pictures: Tensor,
    rows: Rows | None = None,
    *,
    strict: float = STRICT,
    contents: Numbers | None = None,
) -> Duplicates:
    """Groups of pictures that are the same but for crop, encoding, a small angle or light.

    Candidates are those whose outline (12 x 12 pixels) is nearest to one of eight views of a
    picture, and the nearest rows where there are some; each is laid over the picture
    (:mod:`~likewise.library.alignment`), and the residuals 1 - correlation decide.

    Args:
        pictures: (n, 1, 32, 32), as :func:`grey_pictures` gives them.
        rows: (n, d) of length 1, of an encoder.
        strict: the residual of twins over the median of the nearest others, at most.
        contents: (n,) items with the same number are the same, whatever they look like.
    """
    _check_strict(strict)
    n = len(pictures)
    if n < 2:
        return Duplicates([], np.zeros((0, 2), np.int64), np.zeros(0), "pixels")
    views = VIEWS if n <= MANY else VIEWS[:1]
    first, second, view = _candidates(pictures, rows, views)
    whole, fine = _residuals(pictures, first, second, view)
    own = first * n + second
    order = np.argsort(own, kind="stable")
    first, second, whole, fine = first[order], second[order], whole[order], fine[order]
    starts = np.searchsorted(first, np.arange(n + 1))
    background = np.full((n, 2), np.inf)
    for item in range(n):
        inside = slice(starts[item], starts[item + 1])
        if starts[item + 1] - starts[item] >= 3:
            background[item] = np.median(whole[inside]), np.median(fine[inside])
    limit = np.minimum(background[first], background[second])
    # Too few neighbours to compare with: only what is the same counts.
    limit[~np.isfinite(limit)] = 0.0
    twins = (
        (whole <= strict * limit[:, 0])
        & (fine <= DETAIL * limit[:, 1])
        & (whole <= 1 - LEAST_CORRELATION)
    ) | (np.maximum(whole, fine) <= 1 - SAME)
    closeness = 1 - whole / np.maximum(limit[:, 0], 1e-9)
    notes = (
        [f"with more than {MANY:,} images, crops and rotations are found by the rows only"]
        if n > MANY
        else []
    )
    return _grouped(n, first[twins], second[twins], closeness[twins], contents, "pixels", notes)


def duplicates_of_rows(
    rows: Rows, *, strict: float = STRICT, contents: Numbers | None = None
) -> Duplicates:
    """The same by rows alone, where the images are not at hand: 1 - cosine is the residual."""
    _check_strict(strict)
    n = len(rows)
    if n < 2:
        return Duplicates([], np.zeros((0, 2), np.int64), np.zeros(0), "rows")
    distances, places = neighbors_of(rows, min(CANDIDATES, n - 1))
    residual = distances.astype(np.float64) ** 2 / 2
    background = np.median(residual, axis=1) if places.shape[1] >= 3 else np.zeros(n)
    first = np.repeat(np.arange(n), places.shape[1])
    second, residual = places.ravel(), residual.ravel()
    limit = np.minimum(background[first], background[second])
    twins = (residual <= strict * limit) | (residual <= 1e-6)
    closeness = 1 - residual / np.maximum(limit, 1e-9)
    notes = ["compared by their rows: with the images at hand, fewer mistakes are made"]
    return _grouped(n, first[twins], second[twins], closeness[twins], contents, "rows", notes)


def _check_strict(strict: float) -> None:
    if not 0 < strict < 1:
        raise ValueError(f"strict is {strict}: give a number between 0 and 1 (0.2 by default)")


def _candidates(
    pictures: Tensor, rows: Rows | None, views: tuple[tuple[float, ...], ...]
) -> tuple[Numbers, Numbers, Numbers]:
    """(picture, candidate, view) of at most twelve candidates for every picture."""
    n = len(pictures)
    outlines = _outlines(pictures)
    k = min(CANDIDATES + 1, n)
    near = np.empty((n, len(views) * k), np.float32)
    place = np.empty((n, len(views) * k), np.int64)
    for number, view in enumerate(views):
        move = torch.tensor([alignment.guess(*view)])
        columns = slice(number * k, (number + 1) * k)
        for begin in range(0, n, 4096):
            part = pictures[begin : begin + 4096]
            seen = alignment.moved(part, move.expand(len(part), 4))[0] if number else part
            found = search_rows([outlines], _outlines(seen), k)
            near[begin : begin + len(part), columns] = found[0]
            place[begin : begin + len(part), columns] = found[1]
    which = np.broadcast_to(np.repeat(np.arange(len(views)), k), place.shape)
    order = np.argsort(-near, axis=1, kind="stable")
    place = np.take_along_axis(place, order, axis=1)
    which = np.take_along_axis(which, order, axis=1)
    if rows is not None:
        by_rows = neighbors_of(rows, min(4, n - 1))[1]
        # Behind the first eight by outline: what is found twice is kept where it is first.
        place = np.concatenate([place, by_rows], axis=1)
        which = np.concatenate([which, np.zeros_like(by_rows)], axis=1)
    first, second, view_of = [], [], []
    outline_columns = len(views) * k
    for item in range(n):
        seen_here, taken = {item}, 0
        for column, candidate in enumerate(place[item].tolist()):
            if candidate in seen_here or (column < outline_columns and taken >= CANDIDATES):
                continue
            seen_here.add(candidate)
            taken += 1
            first.append(item)
            second.append(candidate)
            view_of.append(which[item, column])
    return np.array(first), np.array(second), np.array(view_of)


def _outlines(pictures: Tensor) -> Rows:
    small = F.interpolate(pictures, size=(OUTLINE, OUTLINE), mode="bilinear", antialias=True)
    flat = small.flatten(1)[:, alignment.disc(OUTLINE).flatten()]
    flat = flat - flat.mean(dim=1, keepdim=True)
    return (flat / flat.norm(dim=1, keepdim=True).clamp_min(1e-6)).numpy()


def _residuals(
    pictures: Tensor, first: Numbers, second: Numbers, view: Numbers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """1 - correlation of each pair, of the whole and of details, once laid over each other."""
    soft, fine = alignment.blurred(pictures), alignment.details(pictures)
    guesses = torch.tensor([alignment.guess(*v) for v in VIEWS])
    whole, detail = np.empty(len(first)), np.empty(len(first))
    for begin in range(0, len(first), PAIRS_AT_ONCE):
        part = slice(begin, begin + PAIRS_AT_ONCE)
        a, b = torch.from_numpy(first[part]), torch.from_numpy(second[part])
        moves = alignment.align(soft[a], soft[b], guesses[torch.from_numpy(view[part])])
        whole[part] = 1 - alignment.correlation(soft[a], soft[b], moves).numpy()
        detail[part] = 1 - alignment.correlation(fine[a], fine[b], moves).numpy()
    return whole, detail


def _grouped(
    n: int,
    first: Numbers,
    second: Numbers,
    closeness: NDArray[np.float64],
    contents: Numbers | None,
    method: str,
    notes: list[str],
) -> Duplicates:
    """Groups of all that hang together, and their pairs, each once."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if contents is not None:
        same_first, same_second = _same(contents)
        first = np.concatenate([first, same_first])
        second = np.concatenate([second, same_second])
        closeness = np.concatenate([closeness, np.ones(len(same_first))])
    low, high = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((-closeness, low * n + high))
    _, once = np.unique((low * n + high)[order], return_index=True)
    kept = order[once]
    pairs = np.stack([low[kept], high[kept]], axis=1) if len(kept) else np.zeros((0, 2), np.int64)
    ones = np.ones(len(pairs))
    graph = coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    members: dict[int, list[int]] = {}
    for item in np.unique(pairs).tolist():
        members.setdefault(int(labels[item]), []).append(item)
    groups = sorted(members.values(), key=lambda group: (-len(group), group))
    return Duplicates(groups, pairs, np.clip(closeness[kept], 0, 1), method, notes)


def _same(contents: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of neighbours among items with one content: enough to hang together."""
    order = np.argsort(contents, kind="stable")
    repeated = np.flatnonzero(contents[order][1:] == contents[order][:-1])
    return order[repeated], order[repeated + 1]
