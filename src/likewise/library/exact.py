"""The nearest of many rows, exactly: every similarity is computed, tile by tile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.pairwise.products import product

Rows = NDArray[np.float32]
Places = NDArray[np.int64]

QUERIES_AT_ONCE = 256
SIMILARITIES_AT_ONCE = 2**20
"""A tile of similarities stays in the cache while its best are sought."""

ROWS_AT_ONCE = 2**16


def search_rows(
    parts: Sequence[Rows], queries: Rows, k: int, *, dead: NDArray[np.bool_] | None = None
) -> tuple[Rows, Places]:
    """The k rows with the largest inner product with each query, the largest first.

    Rows may lie in several parts, on the disk, too: they are numbered through, each is looked at
    once, and nothing is copied. Equally near ones of the rows that are found come in the order of
    their numbers.

    Args:
        parts: arrays (n_p, d).
        queries: (m, d).
        k: how many; fewer are found where there are fewer rows.
        dead: (n,) rows that are none any more.

    >>> bank = [np.eye(3, dtype=np.float32), -np.eye(3, dtype=np.float32)]
    >>> search_rows(bank, np.array([[0, 1, 0]], np.float32), 1)[1].tolist()
    [[1]]
    """
    total = sum(len(part) for part in parts)
    gone = 0 if dead is None else int(dead.sum())
    k = min(k, total - gone)
    m = len(queries)
    if k < 1 or m == 0:
        return np.zeros((m, max(k, 0)), np.float32), np.zeros((m, max(k, 0)), np.int64)
    similarities, places = [], []
    for begin in range(0, m, QUERIES_AT_ONCE):
        block = torch.from_numpy(np.ascontiguousarray(queries[begin : begin + QUERIES_AT_ONCE]))
        found = _search_block(parts, block, k, dead)
        similarities.append(found[0])
        places.append(found[1])
    return np.concatenate(similarities), np.concatenate(places)


def _search_block(
    parts: Sequence[Rows], block: torch.Tensor, k: int, dead: NDArray[np.bool_] | None
) -> tuple[Rows, Places]:
    width = min(max(SIMILARITIES_AT_ONCE // len(block), k), ROWS_AT_ONCE)
    values, numbers = torch.empty(len(block), 0), torch.empty(len(block), 0, dtype=torch.int64)
    offset = 0
    for part in parts:
        rows = torch.from_numpy(part)
        for left in range(0, len(part), width):
            near = product(block, rows[left : left + width])
            at = offset + left
            if dead is not None:
                gone = dead[at : at + near.shape[1]]
                if gone.any():
                    near[:, torch.from_numpy(gone)] = -torch.inf
            best = near.topk(min(k, near.shape[1]), dim=1)
            values = torch.cat([values, best.values], dim=1)
            numbers = torch.cat([numbers, best.indices + at], dim=1)
            if values.shape[1] > k:
                kept = values.topk(k, dim=1)
                values, numbers = kept.values, numbers.gather(1, kept.indices)
        offset += len(part)
    # By similarity, then by number: two stable sorts, the last one counts most.
    order = numbers.argsort(dim=1, stable=True)
    values, numbers = values.gather(1, order), numbers.gather(1, order)
    order = values.argsort(dim=1, descending=True, stable=True)
    return values.gather(1, order).numpy(), numbers.gather(1, order).numpy()
