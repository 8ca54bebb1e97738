import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import Graph
from likewise.diagnostics import (
    bounds,
    info_nce_parts,
    nearest_negatives,
    nearest_of_many,
    neighbors,
)
from likewise.evaluation import nearest_neighbors
from likewise.objectives import InfoNCE
from tests.diagnostics import naive


def views(n=9, dim=4, seed=0, noise=0.5):
    z = naive.normal(n, dim, seed=seed)
    return z, z + noise * naive.normal(n, dim, seed=seed + 1)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_nearest_against_loops(n):
    z1, z2 = views(n)
    h1, h2 = views(n, dim=7, seed=5)
    y = np.arange(n) % 3
    found = nearest_negatives(z1, z2, h1=h1, h2=h2, labels=y, coarse_labels=y // 2)
    one, two = naive.unit(z1), naive.unit(z2)
    near = [naive.nearest(z1, z2, i) for i in range(n)]
    assert list(zip(found.sample.tolist(), found.view.tolist(), strict=True)) == near
    chosen = [(one, two)[k][j] for j, k in near]
    assert np.allclose(found.similarity, [a @ b for a, b in zip(one, chosen, strict=True)])
    inner = [(naive.unit(h1), naive.unit(h2))[k][j] for j, k in near]
    distances = [np.linalg.norm(a - b) for a, b in zip(naive.unit(h1), inner, strict=True)]
    assert np.allclose(found.distance, distances)
    assert found.mean_distance == pytest.approx(np.mean(distances))
    assert found.same_label == pytest.approx(
        np.mean([y[i] == y[j] for i, (j, _) in enumerate(near)])
    )
    pairs = [y[i] == y[j] for i in range(n) for j in range(n) if i != j]
    assert found.same_label_chance == pytest.approx(np.mean(pairs))
    rough = y // 2
    assert found.same_coarse == pytest.approx(
        np.mean([rough[i] == rough[j] for i, (j, _) in enumerate(near)])
    )


def test_own_views_are_never_negatives():
    """Both views of a sample are the nearest to it by far."""
    z = np.eye(5)
    found = nearest_negatives(z, z + 1e-3)
    assert all(found.sample != np.arange(5))
    # Of equals, the first row.
    assert found.sample.tolist()[1:] == [0, 0, 0, 0]


def test_planted_classes():
    y = np.arange(60) % 3
    z = np.eye(3)[y] + 0.01 * naive.normal(60, 3)
    found = nearest_negatives(z, z, labels=y)
    assert found.same_label == 1 and found.same_label_chance == pytest.approx(19 / 59)
    assert math.isnan(found.same_coarse) and "coarse_labels are not given" in found.notes[0]


def test_labels_that_are_missing():
    z1, z2 = views()
    some = np.array([0, 0, 1, -1, -1, 1, 0, 1, -1])
    found = nearest_negatives(z1, z2, labels=some)
    near = [naive.nearest(z1, z2, i)[0] for i in range(9)]
    known = [some[i] == some[j] for i, j in enumerate(near) if some[i] >= 0 and some[j] >= 0]
    assert found.same_label == pytest.approx(np.mean(known))
    assert any("3 samples have no label" in note for note in found.notes)
    none = nearest_negatives(z1, z2, labels=np.full(9, -1))
    assert math.isnan(none.same_label) and "share undefined" in none.notes[0]
    single = nearest_negatives(z1, z2, labels=np.zeros(9, int))
    assert single.same_label == 1 and any("one class only" in note for note in single.notes)


@pytest.mark.parametrize("beta", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("n", [2, 3, 9])
def test_info_nce_against_loops(beta, n):
    z1, z2 = views(n)
    found = info_nce_parts(z1, z2, inverse_temperature=beta)
    loss, invariance, repulsion, expected, entropy = naive.info_nce(z1, z2, beta)
    assert found.info_nce == pytest.approx(loss)
    assert found.invariance == pytest.approx(invariance)
    assert found.repulsion == pytest.approx(repulsion)
    assert found.expected_similarity == pytest.approx(expected)
    assert found.entropy == pytest.approx(entropy)
    assert found.decomposition == pytest.approx(loss)
    bound = beta * (invariance + repulsion) + math.log(2 * (n - 1))
    assert found.upper_bound == pytest.approx(bound)


def test_info_nce_is_the_objective():
    z1, z2 = views()
    both = torch.from_numpy(np.stack([z1, z2], axis=1).reshape(18, 4))
    value = InfoNCE(3.0)(both, Graph.identity(9).views(2))
    assert info_nce_parts(z1, z2, inverse_temperature=3.0).info_nce == pytest.approx(float(value))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 500), st.integers(2, 10))
def test_bound_holds_and_invariances(seed, beta, n):
    z1, z2 = views(n, seed=seed)
    found = info_nce_parts(z1, z2, inverse_temperature=beta)
    assert -1e-9 <= found.gap <= math.log(2 * (n - 1)) + 1e-9
    assert found.decomposition == pytest.approx(found.info_nce, abs=1e-9)
    turn = naive.orthogonal(4, seed)
    order = np.random.default_rng(seed).permutation(n)
    moved = info_nce_parts(3 * z1[order] @ turn, 2 * z2[order] @ turn, inverse_temperature=beta)
    assert moved.info_nce == pytest.approx(found.info_nce, abs=1e-9)
    near, other = nearest_negatives(z1, z2), nearest_negatives(3 * z1 @ turn, 2 * z2 @ turn)
    assert other.mean_similarity == pytest.approx(near.mean_similarity, abs=1e-6)


def test_known_answers(monkeypatch):
    collapsed = info_nce_parts(np.ones((5, 3)), np.ones((5, 3)), inverse_temperature=7.0)
    assert collapsed.info_nce == pytest.approx(math.log(8)) == pytest.approx(collapsed.upper_bound)
    assert math.exp(collapsed.entropy) == pytest.approx(8)
    # Orthogonal samples: all negatives at 0.
    apart = info_nce_parts(np.eye(4), np.eye(4))
    assert apart.info_nce == pytest.approx(-2 + math.log(6)) and apart.repulsion == 0
    # A large beta: the nearest negative alone, and the gap is the constant.
    z1, z2 = views(seed=3)
    sharp = info_nce_parts(z1, z2, inverse_temperature=1e6)
    assert sharp.entropy < 1e-6 and sharp.gap == pytest.approx(math.log(16), abs=1e-5)
    whole = info_nce_parts(z1, z2)
    monkeypatch.setattr(bounds, "SIMILARITIES_AT_ONCE", 40)
    assert info_nce_parts(z1, z2).info_nce == pytest.approx(whole.info_nce)


def test_errors():
    z = np.eye(3)
    with pytest.raises(ValueError, match="at least 2"):
        info_nce_parts(z[:1], z[:1])
    with pytest.raises(ValueError, match="two views of the same samples"):
        nearest_negatives(z, z[:2])
    with pytest.raises(ValueError, match="inverse_temperature is"):
        info_nce_parts(z, z, inverse_temperature=0.0)
    with pytest.raises(ValueError, match="one of h1 and h2"):
        nearest_negatives(z, z, h1=z)
    assert "1 rows are zero" not in info_nce_parts(z, z).notes
    assert "2 rows are zero" in info_nce_parts(0 * z[:2] + [[0], [1]], z[:2] * [[0], [1]]).notes[0]


def test_nearest_of_many_in_pieces(monkeypatch):
    bank = naive.normal(50, 4).astype(np.float32)
    queries = np.concatenate([bank[:20:3], naive.normal(5, 4, seed=1).astype(np.float32)])
    expected = nearest_neighbors(bank, queries, k=9)
    for size in (8, 10, 13, 64):
        monkeypatch.setattr(neighbors, "BANK_ROWS_AT_ONCE", size)
        near, rows = nearest_of_many(bank, queries, 9)
        assert np.array_equal(rows, expected[1]) and np.allclose(near, expected[0], atol=1e-6)
    with pytest.raises(ValueError, match="k is 51"):
        nearest_of_many(bank, queries, 51)
    # Equal rows in the order of their numbers, also across pieces.
    monkeypatch.setattr(neighbors, "BANK_ROWS_AT_ONCE", 3)
    assert nearest_of_many(np.eye(3)[[0, 1, 2] * 4], np.eye(3)[:1], 4)[1].tolist() == [[0, 3, 6, 9]]
