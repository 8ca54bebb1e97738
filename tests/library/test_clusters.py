"""Clusters: found again where they are there, and how many."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from likewise.library import find_clusters, neighborhood
from likewise.library.neighborhood import Neighborhood


def blobs(k: int, each: int, spread: float = 0.25, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k), each)
    rows = rng.standard_normal((k, 16))[labels] + spread * rng.standard_normal((k * each, 16))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), labels


@pytest.mark.parametrize("k", [2, 5, 9])
def test_finds_how_many_there_are_and_which(k):
    rows, labels = blobs(k, 40)
    found = find_clusters(rows)
    assert found.k == k and found.found
    assert adjusted_rand_score(labels, found.cluster) > 0.99
    assert (found.confidence > 0.9).mean() > 0.9


def test_a_given_number_is_kept_and_sizes_fall():
    rows, _ = blobs(3, 40)
    found = find_clusters(rows, 6)
    assert found.k == 6 and not found.found and len(found.sizes) == 6
    assert found.sizes == sorted(found.sizes, reverse=True) and sum(found.sizes) == 120


def test_rings_that_kmeans_cuts_are_found():
    from sklearn.cluster import KMeans

    angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    line = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # Two rings on a sphere, at two heights: neither is a ball.
    rings = [np.c_[line * np.cos(h), np.full(120, np.sin(h))] for h in (0.45, -0.45)]
    rows = np.concatenate(rings).astype(np.float32)
    labels = np.repeat([0, 1], 120)
    found = find_clusters(rows, 2)
    usual = KMeans(2, n_init=5, random_state=0).fit_predict(rows)
    assert adjusted_rand_score(labels, found.cluster) == 1.0
    assert adjusted_rand_score(labels, usual) < 0.5


def test_rows_beyond_the_sample_join_their_neighbours(monkeypatch):
    rows, labels = blobs(4, 100)
    import likewise.library.clusters as module

    monkeypatch.setattr(
        module, "pool_of", lambda n, needed, seed: neighborhood.pool_of(n, needed, seed, size=120)
    )
    found = find_clusters(rows)
    assert found.k == 4 and found.notes
    assert adjusted_rand_score(labels, found.cluster) > 0.99


def test_examples_are_the_nearest_to_the_middle():
    rows, _ = blobs(2, 30)
    found = find_clusters(rows)
    inside = [place for place in range(60) if found.cluster[place] == 0]
    middle = np.mean([rows[place] for place in inside], axis=0)
    nearest = sorted(inside, key=lambda place: -float(rows[place] @ middle))
    assert found.examples(rows, 0, most=3) == nearest[:3]


def test_copies_of_one_image_do_no_harm():
    rows, _ = blobs(1, 1)
    found = find_clusters(np.repeat(rows, 30, axis=0), 2)
    assert sum(found.sizes) == 30


@pytest.mark.parametrize(
    ("n", "k", "said"), [(2, None, "at least 3"), (10, 10, "k is 10"), (10, 0, "k is 0")]
)
def test_refuses(n, k, said):
    with pytest.raises(ValueError, match=said):
        find_clusters(np.eye(n, dtype=np.float32), k)


class TestNeighborhood:
    def test_weights_are_those_of_the_formula(self):
        rows, _ = blobs(2, 6)
        graph = Neighborhood(rows, 3)
        n = len(rows)
        distance = np.array([[np.linalg.norm(a - b) for b in rows.astype(float)] for a in rows])
        near = [sorted(set(range(n)) - {i}, key=lambda j: distance[i, j])[:3] for i in range(n)]
        scale = [distance[i, near[i][-1]] for i in range(n)]
        weight = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if j in near[i] or i in near[j]:
                    weight[i, j] = np.exp(-(distance[i, j] ** 2) / (scale[i] * scale[j]))
        degree = weight.sum(axis=1)
        expected = weight / np.sqrt(degree[:, None] * degree)
        assert np.allclose(graph.spread.toarray(), expected, atol=1e-4)

    def test_propagation_solves_its_system(self):
        rows, labels = blobs(3, 20)
        graph = Neighborhood(rows)
        codes = np.eye(3)[labels] * (np.arange(60) % 10 == 0)[:, None]
        inner = np.eye(60) - 0.99 * graph.spread.toarray()
        assert np.allclose(graph.propagate(codes, 0.99), np.linalg.solve(inner, codes), atol=1e-3)
