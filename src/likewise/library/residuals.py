"""What is left between two pictures once one is laid over the other; coarse first, then fine.

Nearly all candidates are different pictures, which a quarter of the pixels tells. So all of them
are aligned in pictures of 16 x 16, and only what may be the same at 32 x 32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from likewise.library import alignment
from likewise.library.candidates import VIEWS, Candidates, Numbers

Values = NDArray[np.float64]

COARSE_STEPS, FINE_STEPS = 5, 4
PAIRS_AT_ONCE = 256

LOOSE = (1.0, 0.4)
"""A residual above this share of its neighbours' is none of twins: coarse, and fine."""

LOOSE_RESIDUAL = 0.06
"""Nor is one above this, neither coarse nor fine."""

ALIKE = 0.005
"""Below this a pair is looked at closely, whatever its neighbours are."""


@dataclass(frozen=True)
class Residuals:
    """1 - correlation of pairs that may be twins.

    Attributes:
        pair: (m,) which of the candidates' pairs.
        whole, detail: (m,) of the blurred pictures, and of edges and texture.
        usual_whole, usual_detail: (m,) the median of those of the nearest others, the smaller of
            both pictures'; 0 where there are fewer than three.
    """

    pair: Numbers
    whole: Values
    detail: Values
    usual_whole: Values
    usual_detail: Values


def residuals_of(pictures: Tensor, candidates: Candidates) -> Residuals:
    """Of the pairs that are not different pictures at first sight.

    Args:
        pictures: grey, (n, 1, s, s).
        candidates: whom to compare.
    """
    n, found = len(pictures), candidates
    soft, fine = alignment.blurred(pictures), alignment.details(pictures)
    coarse = F.avg_pool2d(soft, 2)
    start = torch.tensor([alignment.guess(*view) for view in VIEWS])[torch.from_numpy(found.view)]
    every = np.arange(len(found.first))
    moves = _aligned(coarse, found, every, start, COARSE_STEPS)
    whole = _compared(coarse, found, every, moves)
    usual = _usual(n, found, whole)
    limit = np.minimum(usual[found.first], usual[found.second])
    pairs = np.flatnonzero(_close(whole, limit, LOOSE[0]))
    refined = pairs
    moves[pairs] = _aligned(soft, found, pairs, moves[pairs], FINE_STEPS)
    whole = _compared(soft, found, pairs, moves[pairs])
    pairs = pairs[_close(whole, limit[pairs], LOOSE[1])]
    # What they are measured by: all that their pictures are compared with, aligned as well as
    # they are.
    touched = np.zeros(n, dtype=bool)
    touched[found.first[pairs]] = touched[found.second[pairs]] = True
    needed = np.unique(found.pair[touched[found.picture]])
    looked_at = np.union1d(needed, pairs)
    others = np.setdiff1d(looked_at, refined)
    moves[others] = _aligned(soft, found, others, moves[others], FINE_STEPS)
    values = []
    for layer in (soft, fine):
        residual = np.full(len(every), np.nan)
        residual[looked_at] = _compared(layer, found, looked_at, moves[looked_at])
        usual = _usual(n, found, residual)
        limit = np.minimum(usual[found.first[pairs]], usual[found.second[pairs]])
        values.append((residual[pairs], np.where(np.isfinite(limit), limit, 0.0)))
    (whole, usual_whole), (detail, usual_detail) = values
    return Residuals(pairs, whole, detail, usual_whole, usual_detail)


def _close(residual: Values, usual: Values, share: float) -> NDArray[np.bool_]:
    return (residual <= LOOSE_RESIDUAL) & ((residual <= share * usual) | (residual <= ALIKE))


def _aligned(
    pictures: Tensor, found: Candidates, pairs: Numbers, start: Tensor, steps: int
) -> Tensor:
    parts = [torch.zeros(0, 4)]
    for begin in range(0, len(pairs), PAIRS_AT_ONCE):
        part = slice(begin, begin + PAIRS_AT_ONCE)
        a, b = pictures[found.first[pairs[part]]], pictures[found.second[pairs[part]]]
        parts.append(alignment.align(a, b, start[part], steps))
    return torch.cat(parts)


def _compared(pictures: Tensor, found: Candidates, pairs: Numbers, moves: Tensor) -> Values:
    residual = np.empty(len(pairs))
    for begin in range(0, len(pairs), PAIRS_AT_ONCE):
        part = slice(begin, begin + PAIRS_AT_ONCE)
        a, b = pictures[found.first[pairs[part]]], pictures[found.second[pairs[part]]]
        residual[part] = 1 - alignment.correlation(a, b, moves[part]).numpy()
    return residual


def _usual(n: int, found: Candidates, residual: Values) -> Values:
    """(n,) the median residual of every picture's own candidates; infinite where fewer than
    three are known."""
    starts = np.searchsorted(found.picture, np.arange(n + 1))
    own = residual[found.pair]
    usual = np.full(n, np.inf)
    for picture in range(n):
        values = own[starts[picture] : starts[picture + 1]]
        if len(values) >= 3 and not np.isnan(values[0]):
            usual[picture] = np.median(values)
    return usual
