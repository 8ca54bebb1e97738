"""The nearest rows of a bank: exact, in tiles, in an order that does not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from likewise.evaluation.task import embedding_rows, positive_integer, same_width
from likewise.graph.arrays import Array, in_kind, is_numpy
from likewise.information.precision import without_autocast
from likewise.pairwise.products import product

QUERIES_AT_ONCE = 1024
SIMILARITIES_AT_ONCE = {"cpu": 2**22, "cuda": 2**26}
"""How many similarities a tile holds: of the size of a cache, or enough to fill a GPU."""

LOW_BITS = 0xFFFFFFFF


@torch.no_grad()
@without_autocast
def nearest_neighbors(
    bank: Array,
    queries: Array | None = None,
    k: int = 10,
    *,
    center: bool = False,
    exclude_self: bool = False,
    tile: int | None = None,
    device: torch.device | str | None = None,
) -> tuple[Any, Any]:
    """The k rows of `bank` with the greatest cosine similarity to each query, the nearest first.

    Exact and in float32. Memory is that of the rows and of one tile of similarities, whatever the
    number of rows. Of equally similar rows the one with the lower number comes first. A row of
    zeros has similarity 0 to every row.

    Args:
        bank: (n, d), a tensor or an array.
        queries: (m, d); default: the bank itself.
        k: how many; at most n (n - 1 with `exclude_self`).
        center: whether to subtract the mean of the bank from both first.
        exclude_self: whether query i is row i of the bank, and not its own neighbour.
        tile: how many similarities to hold at once; default: what suits the device.
        device: where to compute; default: where the bank is.

    Returns:
        (similarities (m, k) float32, rows of the bank (m, k) int64), arrays for an array.

    >>> bank = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]])
    >>> nearest_neighbors(bank, torch.tensor([[3.0, 0.0]]), k=2)[1]
    tensor([[0, 2]])
    """
    numpy = is_numpy(bank, queries)
    rows = embedding_rows(bank, "bank", device)
    asked = rows if queries is None else embedding_rows(queries, "queries", rows.device)
    same_width(rows, "bank", asked, "queries")
    own = torch.arange(len(rows), device=rows.device) if exclude_self else None
    check_neighbors(k, len(rows), len(asked), own, len(rows))
    found = list(search(*both_unit(rows, asked, center), k, own, tile))
    similarities, places = (torch.cat(parts) for parts in zip(*found, strict=True))
    return in_kind(similarities, numpy), in_kind(places, numpy)


def check_neighbors(k: int, n: int, m: int, own: Tensor | None, total: int) -> None:
    """Raise unless each of m queries has k neighbours among n of the bank's `total` rows."""
    if own is not None and m != total:
        raise ValueError(
            f"exclude_self is True, but there are {m} queries and {total} rows in the bank: "
            "leave one out only where the queries are the bank"
        )
    most = n - (own is not None)
    if positive_integer("k", k) > most:
        beside = " beside a query itself" if own is not None else ""
        raise ValueError(
            f"k is {k}, but the bank has {most} labelled rows{beside}: give a k of at most {most}"
        )


def both_unit(bank: Tensor, queries: Tensor, center: bool) -> tuple[Tensor, Tensor]:
    """Both with rows of length 1 (those of zeros stay)."""
    if center:
        mean = bank.mean(dim=0, dtype=torch.float64).float()
        bank, queries = bank - mean, queries - mean
    return unit_rows(bank), unit_rows(queries)


def unit_rows(rows: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros stays. Neither overflows nor vanishes in float32.

    >>> unit_rows(torch.tensor([[3e30, 4e30], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    smallest = torch.finfo(rows.dtype).tiny
    scaled = rows / rows.abs().amax(dim=1, keepdim=True).clamp_min(smallest)
    scaled /= torch.linalg.vector_norm(scaled, dim=1, keepdim=True).clamp_min(smallest)
    return scaled


def search(
    bank: Tensor, queries: Tensor, k: int, own: Tensor | None, tile: int | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """(similarities, places) of the k nearest, for block after block of queries."""
    n = len(bank)
    held = tile or SIMILARITIES_AT_ONCE.get(bank.device.type, SIMILARITIES_AT_ONCE["cpu"])
    at_once = min(QUERIES_AT_ONCE, positive_integer("tile", held))
    width = max(held // at_once, 1)
    # A similarity and a place in one integer: the largest is the nearest, and among equals the
    # one with the lowest number, which the top-k of floating-point numbers does not promise.
    low = LOW_BITS - torch.arange(n, device=bank.device)
    for start in range(0, len(queries), at_once):
        block = queries[start : start + at_once]
        best = None
        for left in range(0, n, width):
            keys = _keys(product(block, bank[left : left + width]), low[left : left + width])
            if own is not None:
                place = own[start : start + at_once] - left
                row = ((place >= 0) & (place < keys.shape[1])).nonzero()[:, 0]
                keys[row, place[row]] = torch.iinfo(torch.int64).min
            nearest = keys.topk(min(k, keys.shape[1]), dim=1).values
            if best is not None:
                nearest = torch.cat([best, nearest], dim=1)
                nearest = nearest.topk(min(k, nearest.shape[1]), dim=1).values
            best = nearest
        assert best is not None
        yield _similarities(best), LOW_BITS - (best & LOW_BITS)


def _keys(similarities: Tensor, low: Tensor) -> Tensor:
    """Integers in the order of (similarity, low)."""
    bits = similarities.add_(0.0).view(torch.int32)  # adding 0 makes one zero of -0 and +0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (ordered.long() << 32).add_(low)


def _similarities(keys: Tensor) -> Tensor:
    ordered = (keys >> 32).to(torch.int32)
    return (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).view(torch.float32)
