"""Kernels by their formulas, and random features that tend to them."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.kernel import SpectralEmbedding
from likewise.kernel.features import FourierMap, LandmarkMap, spread_landmarks
from likewise.kernel.kernels import kernel_matrix, median_distance
from tests.kernel import naive
from tests.kernel.naive import KERNELS


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_by_loops(name):
    X, Y = naive.points(9), naive.points(5, seed=1)
    given = KERNELS[name][0]
    for left, right in ((X, Y), (X, X), (X, X.copy())):
        found = kernel_matrix(
            given["kernel"],
            left,
            right,
            bandwidth=given.get("bandwidth", 1.0),
            parameters=given.get("kernel_params"),
        )
        expected = naive.kernel_by_loops(name, left, right)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_the_default_polynomial_is_cubic():
    X, Y = naive.points(4), naive.points(3, seed=1)
    found = kernel_matrix("polynomial", X, Y, bandwidth=1.0)
    np.testing.assert_allclose(found, (X @ Y.T + 1) ** 3, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-6, 1e-3, 1.0])
def test_close_rows_keep_their_distance(gap, offset):
    """By |x|^2 + |y|^2 - 2 x.y, a distance of 1e-9 would be 1e-8 at best."""
    X = naive.points(6, 5) + offset
    Y = X + gap * np.array([0.0, 0.6, 0.0, 0.8, 0.0])
    found = -np.log(np.diagonal(kernel_matrix("laplace", X, Y, bandwidth=1.0)))
    exact = np.sqrt(np.square(X - Y).sum(axis=1))
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-15 * max(offset, 1.0))


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_kernels_do_not_depend_on_the_origin(kernel):
    """Coordinates that are held exactly, near 0 and far from it."""
    X = np.random.default_rng(0).integers(-512, 512, size=(20, 3)) / 256.0
    near = kernel_matrix(kernel, X, X[:7], bandwidth=1.0)
    far = kernel_matrix(kernel, X + 2.0**24, X[:7] + 2.0**24, bandwidth=1.0)
    np.testing.assert_allclose(far, near, rtol=1e-7)


def test_many_twins(monkeypatch):
    from likewise.kernel import kernels

    monkeypatch.setattr(kernels, "NEAR_PAIRS", 7)
    X = np.repeat(naive.points(3), 5, axis=0)
    found = kernel_matrix("laplace", X, X.copy(), bandwidth=1.0)
    np.testing.assert_allclose(found, np.exp(-np.linalg.norm(X[:, None] - X, axis=2)), rtol=1e-12)
    assert (found[:5, :5] == 1).all()


def test_the_default_bandwidth_is_the_median_distance():
    X = naive.points(30)
    distances = [np.linalg.norm(X[i] - X[j]) for i in range(30) for j in range(i)]
    assert median_distance(X) == pytest.approx(np.median(distances))
    model = SpectralEmbedding(2).fit(X, np.arange(30) % 2)
    assert model.bandwidth_ == pytest.approx(np.median(distances))
    assert median_distance(np.ones((4, 2))) == 1.0
    large = naive.points(3000)
    assert median_distance(large) == pytest.approx(median_distance(large[:1500]), rel=0.05)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_random_features_tend_to_the_kernel_at_the_monte_carlo_rate(kernel):
    X = naive.points(12)
    K = naive.kernel_by_loops(kernel, X, X)
    bandwidth = KERNELS[kernel][0]["bandwidth"]
    errors = []
    for m in (100, 10_000):
        squares = []
        for seed in range(20):
            phi = FourierMap.draw(3, m, kernel, bandwidth, seed)(X)
            assert phi.shape == (12, m)
            squares.append(np.square(phi @ phi.T - K).mean())
        errors.append(np.sqrt(np.mean(squares)))
    # A hundred times the features, a tenth of the error; one estimate is a mean of m / 2 terms.
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.25)
    assert errors[1] < np.sqrt(2 / 10_000)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_random_features_are_unbiased(kernel):
    X = naive.points(8)
    K = naive.kernel_by_loops(kernel, X, X)
    bandwidth = KERNELS[kernel][0]["bandwidth"]
    phi = FourierMap.draw(3, 400_000, kernel, bandwidth, 0)(X)
    np.testing.assert_allclose(phi @ phi.T, K, atol=5 * np.sqrt(1 / 400_000))
    np.testing.assert_allclose(np.square(phi).sum(axis=1), 1.0, rtol=1e-10)


def test_the_same_seed_gives_the_same_map():
    X = naive.points(5)
    one, same = (FourierMap.draw(3, 20, "laplace", 1.0, seed=3)(X) for _ in range(2))
    other = FourierMap.draw(3, 20, "laplace", 1.0, seed=4)(X)
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01
    np.testing.assert_array_equal(spread_landmarks(X, 2, 0), spread_landmarks(X, 2, 0))


@pytest.mark.parametrize("solver", ["nystrom", "fourier"])
def test_the_same_seed_gives_the_same_fit(solver):
    X, y = naive.points(40), np.arange(40) % 3
    settings = {"solver": solver, "n_features": 12, "random_state": 5}
    one, same = (SpectralEmbedding(2, **settings).fit_transform(X, y) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    settings["random_state"] = 6
    other = SpectralEmbedding(2, **settings).fit_transform(X, y)
    assert np.abs(one @ one.T - other @ other.T).max() > 1e-6


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize("solver", ["nystrom", "fourier"])
def test_eigenvalues_tend_to_the_exact_ones(kernel, solver):
    X = naive.points(80, 2)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    settings = {"kernel": kernel, "bandwidth": 1.0, "regularization": 0.1}
    exact = SpectralEmbedding(2, **settings).fit(X, y)

    def error(m):
        found = [
            SpectralEmbedding(2, **settings, solver=solver, n_features=m, random_state=seed)
            .fit(X, y)
            .eigenvalues_
            for seed in range(4)
        ]
        return np.abs(np.array(found) - exact.eigenvalues_).mean() / exact.eigenvalues_.max()

    sizes = (4, 20, 80) if solver == "nystrom" else (10, 80, 800)
    few, some, many = map(error, sizes)
    assert few > some > many
    assert many < (1e-8 if solver == "nystrom" else 0.03)


def test_landmark_features_reproduce_the_kernel_between_landmarks_and_all():
    X, L = naive.points(10), naive.points(4, seed=1)
    given = LandmarkMap.fit(L, "laplace", 1.3, {})
    K = naive.kernel_by_loops("laplace", X, L)
    np.testing.assert_allclose(given(X) @ given(L).T, K, atol=1e-10)
    np.testing.assert_allclose(given.of_landmarks(), given(L), atol=1e-10)
    inner = np.linalg.inv(naive.kernel_by_loops("laplace", L, L))
    np.testing.assert_allclose(given(X) @ given(X).T, K @ inner @ K.T, atol=1e-10)


def test_landmarks_are_rows_without_repetition():
    X = naive.points(30)
    L = spread_landmarks(X, 25, 0)
    assert len(np.unique(L, axis=0)) == 25 and all((row == X).all(axis=1).any() for row in L)
    assert len(spread_landmarks(X, 50, 0)) == 30


def test_auto_is_exact_for_small_data_and_landmarks_for_large(monkeypatch):
    from likewise.kernel import estimator

    monkeypatch.setattr(estimator, "EXACT_ROWS", 20)
    y = np.arange(21) % 2
    assert SpectralEmbedding(2).fit(naive.points(20), y[:20]).solver_ == "exact"
    assert SpectralEmbedding(2, n_features=9).fit(naive.points(21), y).solver_ == "nystrom"
    assert SpectralEmbedding(2, kernel="linear").fit(naive.points(21), y).solver_ == "linear"
