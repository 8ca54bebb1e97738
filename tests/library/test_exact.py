"""Exact search against loops, over parts and with rows that are gone."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.library import exact
from likewise.library.exact import search_rows


def naive(rows: np.ndarray, query: np.ndarray, k: int, dead: set[int]) -> list[int]:
    scored = []
    for number, row in enumerate(rows.astype(np.float64)):
        if number not in dead:
            scored.append((-sum(a * b for a, b in zip(row, query, strict=True)), number))
    return [number for _, number in sorted(scored)[:k]]


def unit(n: int, d: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("cuts", [[], [1], [30, 31]])
@pytest.mark.parametrize("k", [1, 7, 90])
def test_finds_what_loops_find(cuts, k, monkeypatch):
    monkeypatch.setattr(exact, "ROWS_AT_ONCE", 16)  # several tiles
    rows, queries = unit(90, 5, 0), unit(4, 5, 1)
    near, places = search_rows(np.split(rows, cuts), queries, k)
    for query, found, values in zip(queries, places, near, strict=True):
        expected = naive(rows, query, k, set())
        assert found.tolist() == expected
        assert np.allclose(values, rows[expected] @ query, atol=1e-6)


def test_rows_that_are_gone_are_never_found():
    rows, queries = unit(60, 4, 2), unit(3, 4, 3)
    dead = np.zeros(60, dtype=bool)
    dead[::3] = True
    places = search_rows([rows[:17], rows[17:]], queries, 50, dead=dead)[1]
    assert places.shape == (3, 40)
    for query, found in zip(queries, places, strict=True):
        assert found.tolist() == naive(rows, query, 40, set(np.flatnonzero(dead).tolist()))


def test_many_queries_go_in_blocks(monkeypatch):
    monkeypatch.setattr(exact, "QUERIES_AT_ONCE", 3)
    rows, queries = unit(20, 4, 4), unit(8, 4, 5)
    places = search_rows([rows], queries, 2)[1]
    assert [found.tolist() for found in places] == [naive(rows, q, 2, set()) for q in queries]


def test_no_rows_give_no_hits():
    near, places = search_rows([unit(3, 4, 6)], unit(2, 4, 7), 5, dead=np.ones(3, dtype=bool))
    assert near.shape == places.shape == (2, 0)
