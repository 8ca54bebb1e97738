"""The closed-form classifier against scikit-learn and against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.library.regression import Landmarks, Ridge, Whitening
from likewise.oracles.probe import Probe
from likewise.oracles.propagation import Field, NeighborGraph, diverse
from tests.oracles.contract import blobs


def test_propagation_is_the_limit_of_spreading():
    X, y = blobs(60, 3, 0)
    probe = Probe(X, neighbors=5, ways=((0.9, 0.0),))
    labels = np.full(60, -1)
    labels[[int(np.flatnonzero(y == c)[0]) for c in range(3)]] = range(3)
    codes = np.eye(4)[labels][:, :3]
    # W by loops, then F <- a S F + Y until nothing changes (Zhou et al. 2004).
    away = np.sqrt(((X[:, None].astype(float) - X[None]) ** 2).sum(axis=2))
    scale = np.sort(away, axis=1)[:, 5]
    W = np.zeros((60, 60))
    for i in range(60):
        for j in np.argsort(away[i])[1:6]:
            W[i, j] = W[j, i] = np.exp(-(away[i, j] ** 2) / (scale[i] * scale[j]))
    S = W / np.sqrt(np.outer(W.sum(axis=1), W.sum(axis=1)))
    F = codes.copy()
    for _ in range(2000):
        F = 0.9 * S @ F + codes
    expected = F / F.sum(axis=1, keepdims=True)
    expected[labels >= 0] = codes[labels >= 0]
    np.testing.assert_allclose(probe.fit(labels, 3).pool, expected, atol=1e-4)


def test_left_out_items_do_not_see_their_own_label():
    X, y = blobs(50, 2, 1)
    probe = Probe(X, ways=((0.9, 0.0),))
    labels = np.full(50, -1)
    labels[:10] = y[:10]
    without = probe.fit(labels, 2).without_own
    for item in range(10):
        others = labels.copy()
        others[item] = -1
        np.testing.assert_allclose(without[item], probe.fit(others, 2).pool[item], atol=1e-4)


def test_items_outside_the_pool_are_predicted_and_teach():
    X, y = blobs(400, 3, 2)
    probe = Probe(X, pool=100)
    outside = np.flatnonzero(probe.place < 0)
    labels = np.full(400, -1)
    for c in range(3):
        labels[outside[y[outside] == c][:2]] = c
    fitted = probe.fit(labels, 3)
    assert np.mean(fitted.items().argmax(axis=1) == y) > 0.98
    assert np.mean(fitted.of(X).argmax(axis=1) == y) > 0.98


def test_nothing_known_and_a_single_item():
    assert Probe(np.zeros((1, 2))).fit(np.array([-1]), 0).pool.shape == (1, 0)
    fitted = Probe(np.zeros((1, 2))).fit(np.array([0]), 1)
    assert fitted.pool.tolist() == [[1.0]] and fitted.of(np.ones((2, 2))).tolist() == [[1.0]] * 2


@pytest.mark.parametrize("known", [[3], [3, 7, 1], list(range(0, 90, 1))])
def test_conditioning_is_that_of_a_gaussian(known):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(100, 120))
    kernel = (A @ A.T / 100).astype(np.float32)
    field = Field(kernel)
    field.given(np.array([3]))
    left = field.given(np.array(known))
    K = kernel.astype(float)
    expected = K - K[:, known] @ np.linalg.inv(K[np.ix_(known, known)]) @ K[known]
    np.testing.assert_allclose(left, expected, atol=5e-3)
    np.testing.assert_allclose(field.given(np.array([5])), Field(kernel).given(np.array([5])))


def test_diverse_takes_what_is_left_to_explain():
    covariance = np.eye(6)
    covariance[:3, :3] = 0.999
    np.fill_diagonal(covariance, 1.0)
    assert diverse(np.array([5, 4.9, 4.8, 1, 2, 0.0]), covariance, 6).tolist()[:3] == [0, 4, 3]
    assert 5 not in diverse(np.array([5, 4.9, 4.8, 1, 2, 0.0]), covariance, 6)


def test_weights_of_new_rows_sum_to_one():
    rng = np.random.default_rng(0)
    near, weights = NeighborGraph(rng.normal(size=(30, 3)), 4).weights_of(rng.normal(size=(9, 3)))
    assert near.shape == (9, 4)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"X has shape \(3,\): give rows"):
        Probe(np.zeros(3))
    with pytest.raises(ValueError, match="neighbors is 0"):
        Probe(np.zeros((3, 1)), neighbors=0)
    with pytest.raises(ValueError, match="metric is 'angle': give"):
        Probe(np.zeros((3, 1)), metric="angle")
    with pytest.raises(ValueError, match="reading is 'line': give"):
        Probe(np.zeros((3, 1)), reading="line")


def test_a_ridge_is_that_of_scikit_learn_and_leaving_out_that_of_a_new_fit():
    from sklearn.linear_model import Ridge as Peer

    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(30, 4)), rng.uniform(0.5, 3.0, 30)
    targets = rng.dirichlet(np.ones(3), 30)
    ours = Ridge(rows, targets, weights, strength=0.1)
    share = weights / weights.sum()
    centred = rows - share @ rows
    strength = 0.1 * np.trace(centred.T @ (centred * share[:, None])) / 4
    peer = Peer(alpha=strength).fit(rows, targets, sample_weight=share)
    found, without = ours.fitted()
    np.testing.assert_allclose(found, peer.predict(rows), atol=1e-9)
    np.testing.assert_allclose(ours.predict(rows), found)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    for i in (0, 7):
        # Centred by all rows, as the closed form is: the mean is not fitted again.
        rest = np.arange(30) != i
        A = (centred[rest] * share[rest, None]).T @ centred[rest] + strength * np.eye(4)
        slope = np.linalg.solve(
            A, (centred[rest] * share[rest, None]).T @ (targets - share @ targets)[rest]
        )
        np.testing.assert_allclose(without[i], centred[i] @ slope + share @ targets, atol=1e-9)


def test_whitening_sees_through_loud_directions_and_a_regression_reads_other_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 600)
    quiet = 3 * np.eye(4)[y] + 0.5 * rng.normal(size=(600, 4))
    X = np.concatenate([quiet, 15 * rng.normal(size=(600, 3))], axis=1)
    labels = np.full(600, -1)
    for c in range(4):
        labels[np.flatnonzero(y == c)[:8]] = c
    plain = np.mean(Probe(X, pool=300).fit(labels, 4).of(X).argmax(axis=1) == y)
    fitted = Probe(X, pool=300, metric="whitened").fit(labels, 4)
    assert fitted.line is not None
    found = fitted.of(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.mean(found.argmax(axis=1) == y) > plain + 0.2
    again = Probe(50 * X, pool=300, metric="whitened").fit(labels, 4).of(50 * X)
    np.testing.assert_allclose(found, again, atol=1e-6)
    assert Probe(X, metric="whitened").fit(np.full(600, -1), 0).of(X).shape == (600, 0)


def test_a_regression_does_not_show_an_item_its_own_label():
    X, y = blobs(60, 2, 1)
    y = y.copy()
    y[0] = 1 - y[0]  # a label that nobody else would give
    labels = np.full(60, -1)
    labels[:12] = y[:12]
    fitted = Probe(X, metric="whitened").fit(labels, 2)
    assert fitted.pool[0, y[0]] == 1.0 and fitted.without_own[0, y[0]] < 0.5


def test_whitened_rows_have_like_variance_and_landmarks_a_gaussian_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) * [10.0, 3.0, 1.0] + 5
    found = Whitening(X, floor=0.0)(X)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    np.testing.assert_allclose(np.cov(found.T), np.eye(3) / 3, atol=0.02)
    Z = found[:60]
    features = Landmarks(Z, most=60).own
    away = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    expected = np.exp(-away / (2 * np.median(away)))
    np.testing.assert_allclose(features @ features.T, expected, atol=5e-3)
