"""The absolute loss against normal equations, and the relative loss from the graph alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge

from likewise import Graph
from likewise.kernel import AbsoluteRegressor
from likewise.objectives import AbsoluteRegression, RelativeRegression
from tests.kernel import naive

N = 25
X = naive.points(N, 2)
TARGETS = np.stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1], X[:, 1] + 3.0], axis=1)
SOLVERS = {
    "exact": {"solver": "exact", "bandwidth": 1.1},
    "nystrom": {"solver": "nystrom", "bandwidth": 1.1, "n_features": 9, "chunk_size": 7},
    "fourier": {"solver": "fourier", "bandwidth": 1.1, "n_features": 10, "chunk_size": 7},
    "linear": {"kernel": "linear"},
    "gaussian": {"kernel": "gaussian", "bandwidth": 0.8},
}
GRAPHS = {
    "targets": (lambda: Graph.from_targets(TARGETS), TARGETS @ TARGETS.T),
    "labels": (
        lambda: Graph.from_labels(np.arange(N) % 3),
        naive.same(np.arange(N) % 3),
    ),
    "partial": (
        lambda: Graph.from_labels(np.arange(N) % 3 - 1),
        naive.same(np.arange(N) % 3 - 1),
    ),
    "edges": (
        lambda: naive.edge_graph(naive.EDGES, N),
        naive.edge_matrix(naive.EDGES, N),
    ),
    "matrix": (lambda: naive.random_matrix(N), naive.random_matrix(N)),
}


def features(model, rows=X):
    return np.asarray(model.feature_map_(rows))


def absolute(Phi, W, b, Y, regularization):
    return np.square(Phi @ W + b - Y).sum() / len(Y) + regularization * np.square(W).sum()


@pytest.mark.parametrize("regularization", [1e-3, 0.05, 2.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_normal_equations(solver, regularization):
    """W = (Phi^T H Phi + N lambda)^-1 Phi^T H Y and b from the means; the loss by definition."""
    model = AbsoluteRegressor(regularization=regularization, **SOLVERS[solver]).fit(X, TARGETS)
    Phi = features(model)
    H = np.eye(N) - 1 / N
    inner = Phi.T @ H @ Phi + N * regularization * np.eye(Phi.shape[1])
    W = np.linalg.solve(inner, Phi.T @ H @ TARGETS)
    b = (TARGETS - Phi @ W).mean(axis=0)
    np.testing.assert_allclose(model.predict(X), Phi @ W + b, atol=1e-7)
    new = naive.points(6, 2, seed=5)
    np.testing.assert_allclose(model.predict(new), features(model, new) @ W + b, atol=1e-7)
    found = absolute(Phi, model.coef_, model.intercept_, TARGETS, regularization)
    assert model.absolute_loss_ == pytest.approx(found, rel=1e-8)
    assert found == pytest.approx(absolute(Phi, W, b, TARGETS, regularization), rel=1e-9)


@pytest.mark.parametrize("solver", ["nystrom", "linear"])
def test_no_descent_finds_a_lower_loss(solver):
    model = AbsoluteRegressor(regularization=0.1, **SOLVERS[solver]).fit(X, TARGETS)
    Phi = features(model)
    m = Phi.shape[1]

    def loss(flat):
        return absolute(Phi, flat[: 3 * m].reshape(m, 3), flat[3 * m :], TARGETS, 0.1)

    best = minimize(loss, np.zeros(3 * m + 3), method="BFGS", options={"gtol": 1e-8})
    assert model.absolute_loss_ == pytest.approx(best.fun, rel=1e-8)


@pytest.mark.parametrize("regularization", [0.01, 0.3])
def test_kernel_ridge_of_scikit_learn_on_centred_data(regularization):
    K = naive.kernel_by_loops("laplace", X, X)
    H = np.eye(N) - 1 / N
    reference = KernelRidge(alpha=N * regularization, kernel="precomputed")
    reference.fit(H @ K @ H, TARGETS - TARGETS.mean(axis=0))
    expected = reference.predict(H @ K @ H) + TARGETS.mean(axis=0)
    model = AbsoluteRegressor(bandwidth=1.3, regularization=regularization).fit(X, TARGETS)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-8)


# --- lemma 1 of supervised-theory


@pytest.mark.parametrize("regularization", [1e-3, 0.2])
@pytest.mark.parametrize("solver", SOLVERS)
def test_supervised_theory_lemma_1_the_absolute_loss_is_a_function_of_the_graph(
    solver, regularization
):
    model = AbsoluteRegressor(regularization=regularization, **SOLVERS[solver]).fit(X, TARGETS)
    for graph in (Graph.from_targets(TARGETS), TARGETS @ TARGETS.T):
        assert model.relative_loss(graph) == pytest.approx(model.absolute_loss_, rel=1e-6)
    # Any rotation of the labels has the same graph, and the same loss.
    Q, _ = np.linalg.qr(naive.points(3, 3, seed=2))
    rotated = AbsoluteRegressor(regularization=regularization, **SOLVERS[solver])
    rotated.fit(X, TARGETS @ Q)
    assert rotated.absolute_loss_ == pytest.approx(model.absolute_loss_, rel=1e-8)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_supervised_theory_lemma_1_right_side_by_a_singular_value_decomposition(solver, name):
    make, G = GRAPHS[name]
    model = AbsoluteRegressor(regularization=0.07, **SOLVERS[solver]).fit(X, TARGETS)
    H = np.eye(N) - 1 / N
    V, S, _ = np.linalg.svd(H @ features(model), full_matrices=False)
    D = S**2 / (S**2 + 0.07 * N)
    expected = (np.trace(H @ G @ H) - np.trace(V.T @ G @ V * D)) / N
    assert model.relative_loss(make()) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_relative_loss_is_that_of_the_objective(name):
    """With the features as embeddings; rows without a label have the target 0 in both."""
    graph = GRAPHS[name][0]()
    graph = Graph.from_matrix(graph) if isinstance(graph, np.ndarray) else graph
    model = AbsoluteRegressor(regularization=0.1, **SOLVERS["fourier"]).fit(X, TARGETS)
    z = torch.as_tensor(features(model))
    expected = RelativeRegression(regularization=0.1)(z, graph).item()
    assert model.relative_loss(graph) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_partial_labels_are_rows_of_zeros():
    """Y with zeros where nothing is known has Y Y^T = G: the same loss from both sides."""
    y = np.arange(N) % 3 - 1
    Y = np.array([[float(label == c) for c in range(2)] for label in y])
    model = AbsoluteRegressor(regularization=0.1, bandwidth=1.0).fit(X, Y)
    assert model.relative_loss(Graph.from_labels(y)) == pytest.approx(model.absolute_loss_)


def test_the_absolute_loss_is_that_of_the_objective():
    model = AbsoluteRegressor(regularization=0.1, **SOLVERS["nystrom"]).fit(X, TARGETS)
    z = torch.as_tensor(features(model))
    value = AbsoluteRegression(regularization=0.1)(z, Graph.from_targets(TARGETS)).item()
    assert model.absolute_loss_ == pytest.approx(value, rel=1e-6)


# --- targets


def test_without_a_penalty_an_invertible_kernel_interpolates():
    model = AbsoluteRegressor(regularization=0.0, bandwidth=1.0).fit(X, TARGETS)
    np.testing.assert_allclose(model.predict(X), TARGETS, atol=1e-7)
    assert model.absolute_loss_ == pytest.approx(0.0, abs=1e-12)


def test_a_constant_target_is_an_offset():
    model = AbsoluteRegressor(regularization=0.5).fit(X, np.full(N, 7.0))
    np.testing.assert_allclose(model.predict(naive.points(4, 2)), 7.0, rtol=1e-12)
    assert model.absolute_loss_ == pytest.approx(0.0, abs=1e-12)


def test_one_target_is_a_vector_and_several_are_columns():
    together = AbsoluteRegressor().fit(X, TARGETS).predict(X)
    assert together.shape == (N, 3)
    for k in range(3):
        alone = AbsoluteRegressor().fit(X, TARGETS[:, k]).predict(X)
        assert alone.shape == (N,)
        np.testing.assert_allclose(alone, together[:, k], atol=1e-10)


def test_whole_numbers_are_targets_too():
    y = np.arange(N)
    np.testing.assert_allclose(
        AbsoluteRegressor().fit(X, y).predict(X), AbsoluteRegressor().fit(X, y * 1.0).predict(X)
    )


@pytest.mark.parametrize("solver", ["exact", "nystrom", "fourier", "linear"])
def test_float32_is_close_to_float64(solver):
    settings = {"regularization": 0.05, **SOLVERS[solver]}
    double = AbsoluteRegressor(**settings).fit(X, TARGETS)
    single = AbsoluteRegressor(**settings).fit(X.astype(np.float32), TARGETS.astype(np.float32))
    found = single.predict(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, double.predict(X), atol=2e-3)
    assert single.absolute_loss_ == pytest.approx(double.absolute_loss_, rel=1e-2)
