"""Nearest rows of a bank that is too large to be normalised in one piece."""

from __future__ import annotations

from typing import Any

import torch

from likewise.diagnostics.given import rows_of
from likewise.evaluation import nearest_neighbors
from likewise.graph.arrays import Array, in_kind, is_numpy

BANK_ROWS_AT_ONCE = 2**17
"""Rows of the bank that are copied and normalised at a time: 256 MiB for 512 dimensions."""


@torch.no_grad()
def nearest_of_many(bank: Array, queries: Array, k: int) -> tuple[Any, Any]:
    """:func:`likewise.evaluation.nearest_neighbors` over pieces of the bank.

    The same answer (by the cosine, in float32, of equals the lower row first; where the last bit
    decides, a product of another shape may round it differently), with memory for one piece
    instead of several copies of the bank.

    Args:
        bank: (n, d).
        queries: (m, d).
        k: how many, at most n.

    Returns:
        (similarities (m, k) float32, rows of the bank (m, k)), the nearest first.

    >>> bank = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]])
    >>> nearest_of_many(bank, torch.tensor([[3.0, 0.0]]), 2)[1]
    tensor([[0, 2]])
    """
    numpy = is_numpy(bank, queries)
    rows, asked = rows_of(bank, "bank"), rows_of(queries, "queries")
    if not 1 <= k <= len(rows):
        raise ValueError(f"k is {k} and the bank has {len(rows)} rows: give 1 to {len(rows)}")
    best: tuple[torch.Tensor, torch.Tensor] | None = None
    for start in range(0, len(rows), BANK_ROWS_AT_ONCE):
        piece = rows[start : start + BANK_ROWS_AT_ONCE]
        near, place = nearest_neighbors(piece, asked, k=min(k, len(piece)))
        place = place + start
        if best is not None:
            near, place = torch.cat([best[0], near], dim=1), torch.cat([best[1], place], dim=1)
            # Stable: of equals, those of earlier pieces stay first.
            order = near.sort(dim=1, descending=True, stable=True).indices[:, :k]
            near, place = near.gather(1, order), place.gather(1, order)
        best = near, place
    assert best is not None
    return in_kind(best[0], numpy), in_kind(best[1], numpy)
