"""Which pictures may be the same: those whose outlines, or rows, are nearest, of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from likewise.library import alignment
from likewise.library.exact import Rows
from likewise.library.neighborhood import neighbors_of
from likewise.pairwise.products import product

Numbers = NDArray[np.int64]

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

MANY = 30_000
"""From so many pictures on only the whole picture is compared with all others, and rows are."""

BY_OUTLINE, BY_ROWS = 8, 4
"""Candidates of every picture."""

QUERIES_AT_ONCE = 64
PICTURES_AT_ONCE = 2048


@dataclass(frozen=True)
class Candidates:
    """Pairs of pictures, each once, and whose candidates they are.

    Attributes:
        first, second: (m,) the pictures of a pair: `second` is to be found in `first`.
        view: (m,) the view of `first` in which it looks most like `second`.
        picture, pair: (k,) every picture with every pair that it is compared in for its own sake;
            by picture.
    """

    first: Numbers
    second: Numbers
    view: Numbers
    picture: Numbers
    pair: Numbers


def candidates_of(pictures: Tensor, rows: Rows | None = None) -> Candidates:
    """Of every picture (n, 1, s, s): the eight others whose outlines come nearest to one of its
    views, and the four nearest by rows."""
    n = len(pictures)
    views = VIEWS if n <= MANY else VIEWS[:1]
    seen, plain = _views(pictures, views), _outlines(pictures)
    place = _nearest(seen, plain, min(BY_OUTLINE, n - 1))
    if rows is not None:
        place = np.concatenate([place, neighbors_of(rows, min(BY_ROWS, n - 1))[1]], axis=1)
    picture = np.repeat(np.arange(n), place.shape[1])
    other = place.ravel()
    once = np.unique(picture * n + other)
    picture, other = once // n, once % n
    low, high = np.minimum(picture, other), np.maximum(picture, other)
    pairs, pair = np.unique(low * n + high, return_inverse=True)
    low, high = pairs // n, pairs % n
    # A crop is seen in its original, not the other way round: take the better direction.
    forth, back = _best_view(seen, plain, low, high), _best_view(seen, plain, high, low)
    turn = back[0] > forth[0]
    return Candidates(
        np.where(turn, high, low),
        np.where(turn, low, high),
        np.where(turn, back[1], forth[1]),
        picture,
        pair.reshape(-1),
    )


def _outlines(pictures: Tensor) -> Tensor:
    small = F.interpolate(pictures, size=(OUTLINE, OUTLINE), mode="bilinear", antialias=True)
    flat = small.flatten(1)[:, alignment.disc(OUTLINE).flatten()]
    flat = flat - flat.mean(dim=1, keepdim=True)
    return flat / flat.norm(dim=1, keepdim=True).clamp_min(1e-6)


def _views(pictures: Tensor, views: tuple[tuple[float, ...], ...]) -> Tensor:
    """(n, views, d) outlines of all views."""
    moves = torch.tensor([alignment.guess(*view) for view in views])
    parts = []
    for part in pictures.split(1024):
        seen = [_outlines(part)]
        for move in moves[1:]:
            seen.append(_outlines(alignment.moved(part, move.expand(len(part), 4))[0]))
        parts.append(torch.stack(seen, dim=1))
    return torch.cat(parts)


def _nearest(seen: Tensor, plain: Tensor, k: int) -> Numbers:
    """(n, k) others by the largest similarity over all views: exact, tile by tile."""
    n, views, _ = seen.shape
    found = np.empty((n, k), np.int64)
    for begin in range(0, n, QUERIES_AT_ONCE):
        block = seen[begin : begin + QUERIES_AT_ONCE]
        m = len(block)
        values, numbers = torch.empty(m, 0), torch.empty(m, 0, dtype=torch.int64)
        for left in range(0, n, PICTURES_AT_ONCE):
            tile = plain[left : left + PICTURES_AT_ONCE]
            near = product(block.transpose(0, 1).flatten(0, 1), tile).view(views, m, -1).amax(dim=0)
            own = torch.arange(begin, begin + m) - left
            inside = (own >= 0) & (own < near.shape[1])
            near[inside, own[inside]] = -torch.inf
            best = near.topk(min(k, near.shape[1]), dim=1)
            values = torch.cat([values, best.values], dim=1)
            numbers = torch.cat([numbers, best.indices + left], dim=1)
        # A picture is never its own candidate, however few there are.
        kept = values.topk(k, dim=1).indices
        found[begin : begin + m] = numbers.gather(1, kept).numpy()
    return found


def _best_view(
    seen: Tensor, plain: Tensor, first: Numbers, second: Numbers
) -> tuple[NDArray[np.float32], Numbers]:
    """Similarity of `second` and the most similar view of `first`, and which that is."""
    near, which = [], []
    for a, b in zip(
        torch.from_numpy(first).split(4096), torch.from_numpy(second).split(4096), strict=True
    ):
        best = torch.einsum("mvd,md->mv", seen[a], plain[b]).max(dim=1)
        near.append(best.values)
        which.append(best.indices)
    return torch.cat(near).numpy(), torch.cat(which).numpy()
