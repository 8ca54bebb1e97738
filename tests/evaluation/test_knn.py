"""kNN against loops and scikit-learn; ties, tiles, leave one out, invariances, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from likewise.evaluation import (
    knn_accuracy,
    knn_probe,
    knn_scores,
    nearest_neighbors,
    neighbors,
)
from likewise.pairwise.products import matmul_precision
from tests.evaluation.blobs import blobs, naive_votes, rotation

Z, Y = blobs(60, seed=1)
Q, QY = blobs(25, seed=2)


# --- against second implementations


@pytest.mark.parametrize("temperature", [0.07, 0.5])
@pytest.mark.parametrize("k", [1, 7, 60])
def test_weighted_votes_by_loops(k, temperature):
    found = knn_scores(Z, Y, Q, k=k, temperature=temperature)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, naive_votes(Z, Y, Q, k, temperature), atol=1e-5)


@pytest.mark.parametrize("k", [1, 4, 9])
def test_majority_by_loops(k):
    found = knn_scores(Z, Y, Q, k=k, vote="majority")
    np.testing.assert_allclose(found, naive_votes(Z, Y, Q, k, 1.0, majority=True), atol=1e-7)


@pytest.mark.parametrize("vote", ["weighted", "majority"])
def test_scikit_learn(vote):
    def weights(distance):
        return np.exp((1 - distance) / 0.1)

    peer = KNeighborsClassifier(
        9, metric="cosine", algorithm="brute", weights=weights if vote == "weighted" else "uniform"
    ).fit(Z, Y)
    found = knn_scores(Z, Y, Q, k=9, temperature=0.1, vote=vote)
    np.testing.assert_allclose(found, peer.predict_proba(Q), atol=1e-4)
    options = {"k": 9, "temperature": 0.1, "vote": vote}
    assert knn_accuracy(Z, Y, Q, QY, **options) == pytest.approx(peer.score(Q, QY))


def test_neighbors_of_scikit_learn():
    peer = KNeighborsClassifier(5, metric="cosine", algorithm="brute").fit(Z, Y)
    distances, places = peer.kneighbors(Q)
    similarities, found = nearest_neighbors(Z, Q, 5)
    assert found.tolist() == places.tolist()
    np.testing.assert_allclose(similarities, 1 - distances, atol=1e-6)


def test_leave_one_out_by_loops():
    found = knn_scores(Z, Y, k=5, exclude_self=True)
    np.testing.assert_allclose(found, naive_votes(Z, Y, Z, 5, 0.1, own=True), atol=1e-5)
    assert knn_accuracy(Z, Y, k=1, exclude_self=False) == 1.0
    expected = np.mean(naive_votes(Z, Y, Z, 1, 0.1, own=True).argmax(1) == Y)
    assert knn_accuracy(Z, Y, k=1) == knn_accuracy(Z, Y, Z, Y, k=1, exclude_self=True) == expected
    assert expected < 1


def test_leave_one_out_with_unlabelled_rows():
    """They do not vote, and every other row still leaves itself out, and not its neighbour."""
    y = np.where(np.arange(60) % 3 == 1, -1, Y)
    found = knn_scores(Z, y, k=5, exclude_self=True)
    np.testing.assert_allclose(found, naive_votes(Z, y, Z, 5, 0.1, own=True), atol=1e-5)


def test_unlabelled_rows_of_the_bank_do_not_vote():
    y = np.where(np.arange(60) < 30, Y, -1)
    np.testing.assert_allclose(knn_scores(Z, y, Q, k=9), knn_scores(Z[:30], Y[:30], Q, k=9))


def test_unlabelled_queries_are_left_out():
    y = np.where(np.arange(25) < 10, QY, -1)
    assert knn_accuracy(Z, Y, Q, y, k=3) == knn_accuracy(Z, Y, Q[:10], QY[:10], k=3)


def test_center_subtracts_the_mean_of_the_bank():
    found = knn_scores(Z + 5, Y, Q + 5, k=9, center=True)
    mean = np.float64(Z).mean(axis=0)
    np.testing.assert_allclose(found, naive_votes(Z - mean, Y, Q - mean, 9, 0.1), atol=1e-4)
    assert np.abs(found - knn_scores(Z + 5, Y, Q + 5, k=9)).max() > 0.1


# --- ties


def test_equally_similar_rows_come_by_their_number():
    bank = np.tile(np.array([[1.0, 0.0], [0.0, 1.0]]), (10, 1))  # even rows alike, odd rows alike
    for tile in (1, 3, 7, 10**6):
        similarities, places = nearest_neighbors(bank, bank[:2], 12, tile=tile)
        assert places.tolist() == [
            [*range(0, 20, 2), 1, 3],
            [*range(1, 20, 2), 0, 2],
        ]
        assert similarities[0].tolist() == [1.0] * 10 + [0.0] * 2


def test_zeros_of_either_sign_are_equal():
    bank = np.array([[-0.0, 1.0], [0.0, -1.0], [0.0, 1.0]])
    assert nearest_neighbors(bank, np.array([[-2.0, 0.0]]), 3)[1].tolist() == [[0, 1, 2]]
    keys = neighbors._keys(torch.tensor([0.0, -0.0, 1e-45, -1e-45]), torch.tensor([1, 2, 0, 3]))
    assert keys.argsort().tolist() == [3, 0, 1, 2]


def test_similarities_below_zero_are_in_order():
    bank = np.array([[-1.0, 0.1], [-1.0, 0.0], [-1.0, 1.0], [0.0, 0.0]])
    similarities, places = nearest_neighbors(bank, np.array([[1.0, 0.0]]), 4)
    assert places.tolist() == [[3, 2, 0, 1]]
    np.testing.assert_allclose(similarities[0], [0, -(0.5**0.5), -1 / 1.01**0.5, -1], rtol=1e-6)


def test_equal_votes_go_to_the_lower_class():
    bank = np.eye(3)
    assert knn_accuracy(bank, [2, 1, 0], np.ones((1, 3)), [0], k=3, vote="majority") == 1.0


# --- tiles, kinds, precision


@settings(max_examples=30)
@given(
    tile=st.integers(1, 2000),
    k=st.integers(1, 59),
    exclude_self=st.booleans(),
)
def test_tiles_equal_the_whole(tile, k, exclude_self):
    """Coordinates of few bits: every similarity is exact up to the same scale, with many ties."""
    rows = np.random.default_rng(0).integers(-1, 2, size=(60, 4)).astype(np.float32)
    whole = nearest_neighbors(rows, k=k, exclude_self=exclude_self, tile=10**9)
    parts = nearest_neighbors(rows, k=k, exclude_self=exclude_self, tile=tile)
    np.testing.assert_allclose(parts[0], whole[0], atol=1e-6)
    if exclude_self:
        assert (parts[1] != np.arange(60)[:, None]).all()
    assert all(len(set(row)) == k for row in parts[1].tolist())


def test_votes_do_not_depend_on_the_tile():
    whole = knn_scores(Z, Y, Q, k=20)
    for tile in (1, 50, 333):
        np.testing.assert_allclose(knn_scores(Z, Y, Q, k=20, tile=tile), whole, atol=1e-6)


def test_the_matrix_of_similarities_is_never_whole(monkeypatch):
    seen = []

    def watched(a, b):
        seen.append(len(a) * len(b))
        return a @ b.T

    monkeypatch.setattr(neighbors, "product", watched)
    knn_scores(Z, Y, Q, k=3, tile=100)
    assert max(seen) <= 100 and sum(seen) == len(Z) * len(Q)


def test_answers_in_kind():
    array = knn_scores(Z, Y, Q, k=5)
    tensor = knn_scores(torch.tensor(Z), torch.tensor(Y), torch.tensor(Q), k=5)
    assert isinstance(array, np.ndarray) and isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert not knn_scores(torch.tensor(Z, requires_grad=True), Y, k=3).requires_grad


def test_half_precision_and_autocast_are_computed_in_float32():
    rows = torch.tensor(Z).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = knn_scores(rows, Y, torch.tensor(Q), k=9)
    np.testing.assert_allclose(found, naive_votes(rows.float().numpy(), Y, Q, 9, 0.1), atol=1e-5)


def test_a_low_temperature_does_not_overflow():
    found = knn_scores(Z, Y, Q, k=20, temperature=1e-4)
    nearest = nearest_neighbors(Z, Q, 1)[1][:, 0]
    assert np.isfinite(found).all() and (found.argmax(axis=1) == Y[nearest]).all()


# --- invariances


def test_rotation_and_scale_change_nothing():
    turned, factor = rotation(6), np.linspace(1e-20, 1e20, 60)[:, None].astype(np.float32)
    expected = knn_scores(Z, Y, Q, k=9)
    np.testing.assert_allclose(knn_scores(Z @ turned, Y, Q @ turned, k=9), expected, atol=1e-4)
    np.testing.assert_allclose(knn_scores(Z * factor, Y, Q * 1e30, k=9), expected, atol=1e-4)


def test_order_of_the_bank_changes_nothing():
    order = np.random.default_rng(0).permutation(60)
    expected = knn_scores(Z, Y, Q, k=9)
    np.testing.assert_allclose(knn_scores(Z[order], Y[order], Q, k=9), expected, atol=1e-5)


# --- the probe


def test_probe_has_all_scores():
    scores = naive_votes(Z, Y, Q, 9, 0.1)
    found = knn_probe(Z, Y, Q, QY, k=9)
    assert found.accuracy == pytest.approx(np.mean(scores.argmax(1) == QY))
    for c in range(4):
        assert found.per_class[c] == pytest.approx(np.mean(scores.argmax(1)[c == QY] == c))
        for d in range(4):
            assert found.confusion[c, d] == np.sum((c == QY) & (scores.argmax(1) == d))
    assert found.top5 is None and found.settings["k"] == 9 and found.seconds > 0


# --- bad input


def test_k_beyond_the_bank():
    with pytest.raises(ValueError, match="k is 61, but the bank has 60 labelled rows"):
        knn_scores(Z, Y, Q, k=61)
    with pytest.raises(ValueError, match="k is 60, but the bank has 59 .* beside a query itself"):
        knn_scores(Z, Y, k=60, exclude_self=True)
    with pytest.raises(ValueError, match="k is 31.*30 labelled rows"):
        knn_scores(Z, np.where(np.arange(60) < 30, Y, -1), Q, k=31)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 2.5}, "k is 2.5"),
        ({"temperature": 0.0}, "temperature is 0.0: give a positive number"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"vote": "loud"}, "vote is 'loud': give 'weighted' or 'majority'"),
        ({"queries": Q[:, :3]}, "bank has rows of 6 numbers and queries of 3"),
        ({"queries": np.full((2, 6), np.nan)}, "queries holds NaN or infinity in 2 of 2 rows"),
        ({"labels": Y[:5]}, r"labels has shape \(5,\) for 60 rows"),
        ({"labels": Y * 1.0}, "labels holds float64 values"),
        ({"labels": np.full(60, -1)}, "labels hold no label"),
        ({"labels": np.full(60, -2)}, "labels holds -2"),
        ({"labels": np.full(60, 10**9)}, "labels holds 1000000000"),
        ({"labels": np.array(["a"] * 60)}, "np.unique"),
        ({"labels": None}, "labels is None"),
        ({"n_classes": 3}, "n_classes is 3, but labels go up to 3"),
        ({"exclude_self": True}, "25 queries and 60 rows"),
        ({"tile": 0.5}, "tile is 0.5"),
        ({"bank": Z[0]}, r"bank has shape \(6,\)"),
    ],
)
def test_bad_input(changes, message):
    given = {"bank": Z, "labels": Y, "queries": Q, "k": 5, **changes}
    with pytest.raises(ValueError, match=message):
        knn_scores(**given)


def test_queries_without_any_label():
    with pytest.raises(ValueError, match="query_labels hold no label"):
        knn_accuracy(Z, Y, Q, np.full(25, -1), k=3)


@pytest.mark.gpu
def test_cuda_agrees_with_the_cpu():
    big, y = blobs(20000, classes=10, dim=64, spread=3.0)
    queries, truth = blobs(3000, classes=10, dim=64, spread=3.0, seed=7)
    expected = knn_scores(big, y, queries, k=200)
    with matmul_precision(torch.device("cuda"), "tf32"):  # what a user may have set
        found = knn_scores(big, y, queries, k=200, device="cuda")
    # Round-off may exchange the last neighbour of a query or two, TF32 would move all shares.
    differs = np.abs(found - expected).max(axis=1) > 1e-4
    assert differs.mean() < 0.005
    again = knn_scores(big, y, queries, k=200, device="cuda")
    np.testing.assert_array_equal(again, found)
    tied = torch.eye(8, device="cuda").repeat(5000, 1)
    assert nearest_neighbors(tied, tied[:1], 300)[1].tolist() == [[*range(0, 2400, 8)]]
