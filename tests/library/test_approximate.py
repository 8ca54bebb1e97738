"""FAISS beside exact search, and its cells when rows come and go."""

from __future__ import annotations

import numpy as np

from likewise.data import open_source
from likewise.library import (
    Index,
    approximate,
    embedder_by_name,
)
from tests.library.pictures import picture


def images(n: int, seed: int = 0) -> np.ndarray:
    return np.stack([picture(i % 3, i + seed) for i in range(n)])


def test_proposals_are_those_of_exact_search_and_follow_the_index(tmp_path, monkeypatch):
    embedder = embedder_by_name("tiny", device="cpu")
    index = Index(tmp_path / "index", embedder)
    pixels = images(90)
    index.update(open_source(pixels))
    exact = index.search(index.rows(), 3)
    found = approximate.search_approximately(index, index.rows(), 3)
    assert np.array_equal(exact[1][:, 0], found[1][:, 0])
    assert np.mean(exact[1] == found[1]) > 0.9
    made = []
    original = approximate._made
    monkeypatch.setattr(approximate, "_made", lambda *a: made.append(1) or original(*a))
    index.update(open_source(np.concatenate([pixels[10:], images(5, seed=1000)])))
    rows = index.rows()
    near, places = approximate.search_approximately(index, rows, 1)
    assert not made  # rows were added and taken out, nothing was made anew
    assert places[:, 0].tolist() == list(range(85)) and np.allclose(near, 1, atol=1e-5)
