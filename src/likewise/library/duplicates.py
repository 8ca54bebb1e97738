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

from likewise.library.candidates import MANY, Numbers, candidates_of
from likewise.library.exact import Rows
from likewise.library.neighborhood import neighbors_of
from likewise.library.residuals import Residuals, residuals_of

SIDE = 32
"""Pixels a side of the grey pictures that are laid over each other."""

NEIGHBORS = 8
"""Others that a row is compared with, where there are only rows."""

STRICT = 0.2
"""A pair's residual against the median of its neighbours', at most."""

DETAIL = 0.4
"""The same for edges and texture alone. Both were chosen on planted copies among 5,000 training
images of Fashion-MNIST (`docs/benchmarks/use.md`)."""

LEAST_CORRELATION = 0.95
SAME = 0.999
"""From this correlation on, of the whole and of details, no comparison with others is needed."""


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
    found = candidates_of(pictures, rows)
    seen = residuals_of(pictures, found)
    twins = are_twins(seen, strict)
    usual = np.where(seen.usual_whole > 0, seen.usual_whole, 1.0)  # too few to say what is usual
    closeness = (1 - seen.whole / usual)[twins]
    first, second = found.first[seen.pair[twins]], found.second[seen.pair[twins]]
    notes = (
        [f"with more than {MANY:,} images, crops and rotations are found by the rows only"]
        if n > MANY
        else []
    )
    return _grouped(n, first, second, closeness, contents, "pixels", notes)


def are_twins(seen: Residuals, strict: float = STRICT, detail: float = DETAIL) -> NDArray[np.bool_]:
    """Which pairs are twins: far closer than what else is near, or the same."""
    return (
        (seen.whole <= strict * seen.usual_whole)
        & (seen.detail <= detail * seen.usual_detail)
        & (seen.whole <= 1 - LEAST_CORRELATION)
    ) | (np.maximum(seen.whole, seen.detail) <= 1 - SAME)


def duplicates_of_rows(
    rows: Rows, *, strict: float = STRICT, contents: Numbers | None = None
) -> Duplicates:
    """The same by rows alone, where the images are not at hand: 1 - cosine is the residual."""
    _check_strict(strict)
    n = len(rows)
    if n < 2:
        return Duplicates([], np.zeros((0, 2), np.int64), np.zeros(0), "rows")
    distances, places = neighbors_of(rows, min(NEIGHBORS, n - 1))
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
