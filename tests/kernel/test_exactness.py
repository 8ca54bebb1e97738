"""The closed form against a quasi-Newton method on the objective itself (`pal` section 5)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import check_grad

from likewise import Graph
from likewise.kernel import SpectralEmbedding
from tests.kernel import naive
from tests.kernel.naive import GRAPHS, KERNELS, N

pytestmark = pytest.mark.filterwarnings("ignore:n_components is:UserWarning")


def fitted(graph, kernel, X=None, *, n_components=3, **changes):
    parameters = {**KERNELS[kernel][0], **changes}
    X = naive.points() if X is None else X
    return SpectralEmbedding(n_components, **parameters).fit(X, graph)


@pytest.mark.parametrize("regularization", [0.02, 0.4])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_no_descent_finds_a_lower_loss(graph, kernel, regularization):
    """Loss to 1e-8, eigenvalues to 1e-5, and the same inner products."""
    X, G = naive.points(), GRAPHS[graph][1]()
    model = fitted(GRAPHS[graph][0](), kernel, regularization=regularization)
    F = naive.square_root(naive.kernel_by_loops(kernel, X, X))
    loss, Z = naive.minimum_by_descent(F, G, regularization, 3)
    assert model.loss_ == pytest.approx(loss, rel=1e-8)
    np.testing.assert_allclose(model.eigenvalues_, naive.eigenvalues_of(Z), rtol=1e-5, atol=2e-5)
    found = model.transform(X)
    np.testing.assert_allclose(found @ found.T, Z @ Z.T, atol=2e-4)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian", "rbf", "callable"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_loss_is_that_of_the_plain_formula(graph, kernel):
    """With K^-1 written out, at the embedding of the training rows."""
    X, G = naive.points(), GRAPHS[graph][1]()
    model = fitted(GRAPHS[graph][0](), kernel, regularization=0.1)
    Z, K = model.transform(X), naive.kernel_by_loops(kernel, X, X)
    assert model.loss_ == pytest.approx(naive.graph_loss(Z, G, K, 0.1), rel=1e-8)

    def loss(flat):
        return naive.graph_loss(flat.reshape(Z.shape), G, K, 0.1)

    def slope(flat):
        rows = flat.reshape(Z.shape)
        return (4 * (rows @ rows.T - G) @ rows + 0.4 * np.linalg.solve(K, rows)).ravel()

    away = Z.ravel() + 0.1
    assert check_grad(loss, slope, away) < 1e-4 * np.linalg.norm(slope(away))
    # Flat at the solution.
    assert np.abs(slope(Z.ravel())).max() < 1e-6 * np.abs(slope(away)).max()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("graph", ["labels", "signed-edges", "indefinite"])
def test_eigenvalues_are_those_of_the_dense_matrix(graph, kernel):
    """Positive eigenvalues of P^T G P - lambda T^-1, with the range of K by a plain eigh."""
    X, G = naive.points(), GRAPHS[graph][1]()
    values, vectors = np.linalg.eigh(naive.kernel_by_loops(kernel, X, X))
    kept = values > 1e-10 * values.max()
    P, T = vectors[:, kept], values[kept]
    dense = np.linalg.eigvalsh(P.T @ G @ P - np.diag(0.05 / T))[::-1]
    expected = np.zeros(N)
    expected[: len(T)] = np.maximum(dense, 0.0)
    model = fitted(GRAPHS[graph][0](), kernel, n_components=N, regularization=0.05)
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-8, atol=1e-8)
    assert model.loss_ == pytest.approx(np.square(G).sum() - np.square(expected).sum(), rel=1e-9)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("kernel", ["laplace", "polynomial", "cosine", "callable"])
def test_all_points_as_landmarks_lose_nothing(graph, kernel):
    X = naive.points()
    exact = fitted(GRAPHS[graph][0](), kernel, regularization=0.03, solver="exact")
    for count in (N, 1000):
        whole = fitted(
            GRAPHS[graph][0](), kernel, regularization=0.03, solver="nystrom", n_features=count
        )
        assert whole.solver_ == "nystrom" and exact.solver_ == "exact"
        np.testing.assert_allclose(whole.eigenvalues_, exact.eigenvalues_, rtol=1e-8, atol=1e-8)
        assert whole.loss_ == pytest.approx(exact.loss_, rel=1e-9)
        first, second = whole.transform(X), exact.transform(X)
        np.testing.assert_allclose(first @ first.T, second @ second.T, atol=1e-6)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_landmarks_minimise_over_the_functions_that_they_span(kernel):
    """The best Z = k(X, L) a with the kernel's own norm a^T k(L, L) a."""
    X, G = naive.points(), naive.same(naive.LABELS)
    model = fitted(
        np.array(naive.LABELS), kernel, regularization=0.1, solver="nystrom", n_features=5
    )
    L = model.feature_map_.landmarks
    assert L.shape == (5, 3) and all((row == X).all(axis=1).any() for row in L)
    inner = np.linalg.cholesky(naive.kernel_by_loops(kernel, L, L))
    F = np.linalg.solve(inner, naive.kernel_by_loops(kernel, L, X)).T
    loss, Z = naive.minimum_by_descent(F, G, 0.1, 3)
    assert model.loss_ == pytest.approx(loss, rel=1e-8)
    found = model.transform(X)
    np.testing.assert_allclose(found @ found.T, Z @ Z.T, atol=1e-4)


def test_the_linear_kernel_is_exact_with_every_solver():
    X, y = naive.points(40, 4), np.arange(40) % 3
    F_loss, _ = naive.minimum_by_descent(X, naive.same(y.tolist()), 0.5, 2)
    for solver in ("auto", "exact", "nystrom", "fourier"):
        model = SpectralEmbedding(2, kernel="linear", regularization=0.5, solver=solver).fit(X, y)
        assert model.loss_ == pytest.approx(F_loss, rel=1e-8)


# --- kernels without an inverse -------------------------------------------------------------------


@pytest.mark.parametrize("regularization", [0.05, 0.5])
@pytest.mark.parametrize("kernel", ["laplace", "linear"])
def test_directions_outside_the_range_of_the_kernel_are_out_of_reach(kernel, regularization):
    """Duplicate rows, and the linear kernel with N > d. A pseudo-inverse would leave the null
    directions of K without a penalty, and give another loss."""
    X = naive.points()
    if kernel == "laplace":
        X = np.concatenate([X[:7], X[:5]])
    # Twins in different classes: no function of x tells them apart.
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    G, K = naive.same(y), naive.kernel_by_loops(kernel, X, X)
    model = fitted(y, kernel, X, regularization=regularization)
    loss, _ = naive.minimum_by_descent(naive.square_root(K), G, regularization, 3)
    assert model.loss_ == pytest.approx(loss, rel=1e-8)
    free = np.linalg.eigvalsh(G - regularization * np.linalg.pinv(K, rcond=1e-10))
    unpenalised = np.square(G).sum() - np.square(np.sort(np.maximum(free, 0.0))[-3:]).sum()
    assert unpenalised < model.loss_ - 0.1
    Z = model.transform(X)
    if kernel == "laplace":
        np.testing.assert_allclose(Z[:5], Z[7:], atol=1e-9)


def test_an_ill_conditioned_gaussian_kernel():
    """Condition number beyond 1e16: neither noise among the eigenvalues nor in the embedding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    K = np.exp(-np.square(X[:, None] - X).sum(-1) / (2 * 1.5**2))
    assert np.linalg.cond(K) > 1e16
    model = SpectralEmbedding(2, kernel="gaussian", bandwidth=1.5, regularization=0.01).fit(X, y)
    loss, Z = naive.minimum_by_descent(naive.square_root(K), naive.same(y), 0.01, 2)
    assert model.loss_ == pytest.approx(loss, rel=1e-7)
    np.testing.assert_allclose(model.eigenvalues_, naive.eigenvalues_of(Z), rtol=1e-5)
    found = model.transform(X)
    np.testing.assert_allclose(found @ found.T, Z @ Z.T, atol=1e-3)
    approximate = SpectralEmbedding(
        2, kernel="gaussian", bandwidth=1.5, regularization=0.01, solver="nystrom", n_features=60
    ).fit(X, y)
    np.testing.assert_allclose(approximate.eigenvalues_, model.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("graph", GRAPHS)
def test_without_a_penalty_the_positive_part_of_the_graph_is_left(graph):
    G = GRAPHS[graph][1]()
    values, vectors = np.linalg.eigh(G)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    model = fitted(GRAPHS[graph][0](), "laplace", n_components=N, regularization=0.0)
    np.testing.assert_allclose(model.eigenvalues_, np.maximum(values[::-1], 0.0), atol=1e-9)
    Z = model.transform(naive.points())
    np.testing.assert_allclose(Z @ Z.T, positive, atol=1e-6)
    assert model.loss_ == pytest.approx(np.square(np.minimum(values, 0.0)).sum(), abs=1e-8)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("n_components", [1, 3, 4, 7, 14])
def test_equal_eigenvalues_do_not_get_lost(n_components, classes):
    """LAPACK's search for some eigenvalues stumbles where the cut goes through equal ones."""
    for seed in range(12):
        half = naive.points(15, 2, seed)
        X, y = np.concatenate([half, half]), np.arange(30) % classes
        P = np.concatenate([np.eye(15), np.eye(15)]) / np.sqrt(2)
        expected = np.linalg.eigvalsh(P.T @ naive.same(y) @ P)[::-1][:n_components]
        for kernel in ("laplace", "gaussian"):
            model = SpectralEmbedding(
                n_components, kernel=kernel, bandwidth=0.15, regularization=0.0
            ).fit(X, y)
            np.testing.assert_allclose(model.eigenvalues_, expected, atol=1e-8)


def test_without_a_penalty_a_kernel_of_low_rank_still_limits_the_functions():
    X, y = naive.points(), np.array(naive.LABELS)
    Q, _ = np.linalg.qr(X)
    expected = np.linalg.eigvalsh(Q.T @ naive.same(naive.LABELS) @ Q)[::-1]
    model = fitted(y, "linear", regularization=0.0)
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-9)


# --- rows that were not seen ----------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@pytest.mark.parametrize("kernel", ["laplace", "gaussian", "rbf", "callable"])
def test_new_rows_follow_the_formula(kernel, solver):
    """k(x, X) K^-1 V sqrt(mu), with V sqrt(mu) the embedding of the training rows."""
    X, new = naive.points(), naive.points(7, seed=1)
    model = fitted(np.array(naive.LABELS), kernel, regularization=0.05, solver=solver)
    K = naive.kernel_by_loops(kernel, X, X)
    values, vectors = np.linalg.eigh(naive.same(naive.LABELS) - 0.05 * np.linalg.inv(K))
    Z = vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 0.0))
    f = naive.kernel_by_loops(kernel, new, X) @ np.linalg.solve(K, Z)
    found, at_training = model.transform(new), model.transform(X)
    np.testing.assert_allclose(at_training @ at_training.T, Z @ Z.T, atol=1e-7)
    np.testing.assert_allclose(found @ at_training.T, f @ Z.T, atol=1e-7)
    np.testing.assert_allclose(found @ found.T, f @ f.T, atol=1e-7)


@pytest.mark.parametrize("solver", ["exact", "nystrom", "fourier"])
def test_fit_transform_is_fit_and_transform_whatever_the_chunks(solver):
    X = naive.points()
    embeddings = []
    for chunk in (1, 5, 8192):
        model = SpectralEmbedding(3, solver=solver, n_features=10, chunk_size=chunk)
        embeddings.append(model.fit_transform(X, naive.LABELS))
        np.testing.assert_array_equal(embeddings[-1], model.transform(X))
    for other in embeddings[1:]:
        np.testing.assert_allclose(other @ other.T, embeddings[0] @ embeddings[0].T, atol=1e-8)


def test_the_embedding_of_training_rows_is_the_square_root_even_where_rows_nearly_agree():
    """Rows 1e-6 apart: distances by 2 - 2 a.b would lose them."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(8, 3)) + 5.0
    X = np.concatenate([base, base + 1e-6 * rng.normal(size=(8, 3))])
    y = np.arange(16) % 8 % 3
    K = np.exp(-np.sqrt(np.square(X[:, None] - X).sum(-1)))
    loss, Z = naive.minimum_by_descent(naive.square_root(K), naive.same(y), 0.01, 3)
    model = SpectralEmbedding(3, bandwidth=1.0, regularization=0.01).fit(X, y)
    assert model.loss_ == pytest.approx(loss, rel=1e-7)
    found = model.transform(X)
    np.testing.assert_allclose(found @ found.T, Z @ Z.T, atol=1e-5)


# --- how many eigenvalues are positive ------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_as_many_positive_eigenvalues_as_classes_and_one_fewer_for_signs(classes):
    X, y = naive.points(6 * classes, 4), np.arange(6 * classes) % classes
    small = {"bandwidth": 1.0, "regularization": 1e-6}
    with pytest.warns(UserWarning, match=f"n_components is 8, but .* {classes} positive"):
        plain = SpectralEmbedding(8, **small).fit(X, y)
    assert (plain.eigenvalues_ > 0).sum() == classes
    np.testing.assert_allclose(plain.eigenvalues_[:classes], 6.0, rtol=1e-3)
    with pytest.warns(UserWarning, match=f"n_components is 8, but .* {classes - 1} positive"):
        signed = SpectralEmbedding(8, **small).fit(X, naive.signed_matrix(y))
    assert (signed.eigenvalues_ > 0).sum() == classes - 1
    np.testing.assert_allclose(signed.eigenvalues_[: classes - 1], 12.0, rtol=1e-3)
    for model, positive in ((plain, classes), (signed, classes - 1)):
        Z = model.transform(X)
        assert Z.shape == (len(X), 8) and (Z[:, positive:] == 0).all()
        assert (np.abs(Z[:, :positive]).max(axis=0) > 0.1).all()
        assert (np.diff(model.eigenvalues_) <= 1e-9).all()


def test_enough_positive_eigenvalues_cause_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SpectralEmbedding(3, regularization=1e-6).fit(naive.points(), naive.LABELS)


def test_more_components_than_rows():
    with pytest.warns(UserWarning, match="n_components is 20"):
        model = SpectralEmbedding(20, regularization=0.0).fit(naive.points(), Graph.identity(N))
    np.testing.assert_allclose(model.eigenvalues_, [1.0] * N + [0.0] * 8, atol=1e-9)
    Z = model.transform(naive.points())
    assert Z.shape == (N, 20)
    np.testing.assert_allclose(Z @ Z.T, np.eye(N), atol=1e-6)


def test_a_penalty_that_is_too_large_leaves_nothing():
    with pytest.warns(UserWarning, match="0 positive eigenvalues"):
        model = SpectralEmbedding(2, regularization=1e4).fit(naive.points(), naive.LABELS)
    assert (model.transform(naive.points()) == 0).all()
    assert model.loss_ == pytest.approx(np.square(naive.same(naive.LABELS)).sum())


# --- invariances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_the_order_of_the_rows_does_not_matter(solver):
    X, graph = naive.points(), GRAPHS["mixed"][0]()
    order = np.random.default_rng(3).permutation(N)
    settings = {"bandwidth": 1.0, "solver": solver, "n_features": N}
    one = SpectralEmbedding(2, **settings).fit(X, graph)
    other = SpectralEmbedding(2, **settings).fit(X[order], graph[order])
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-9)
    assert other.loss_ == pytest.approx(one.loss_, rel=1e-9)
    first, second = one.transform(X), other.transform(X)
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=1e-8)


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_where_the_origin_is_does_not_matter_to_distances(solver):
    X, far = naive.points(30), naive.points(30) + 4096.0
    settings = {"bandwidth": 1.0, "solver": solver, "n_features": 30, "regularization": 0.01}
    y = np.arange(30) % 3
    near_z = SpectralEmbedding(3, **settings).fit_transform(X, y)
    far_z = SpectralEmbedding(3, **settings).fit_transform(far, y)
    np.testing.assert_allclose(far_z @ far_z.T, near_z @ near_z.T, atol=1e-7)


def test_a_graph_and_a_penalty_that_grow_together_scale_the_embedding():
    X, graph = naive.points(), GRAPHS["labels"][0]()
    one = SpectralEmbedding(3, bandwidth=1.0, regularization=0.1).fit(X, graph)
    four = SpectralEmbedding(3, bandwidth=1.0, regularization=0.4).fit(X, 4.0 * graph)
    np.testing.assert_allclose(four.eigenvalues_, 4 * one.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(
        np.abs(four.transform(X)), 2 * np.abs(one.transform(X)), rtol=1e-5, atol=1e-7
    )


def test_without_y_the_graph_is_that_of_the_neighbours():
    X = naive.points()
    alone = SpectralEmbedding(2, n_neighbors=3, bandwidth=1.0).fit(X)
    G = np.eye(N) + naive.neighbor_matrix(X, 3)
    given = SpectralEmbedding(2, bandwidth=1.0).fit(X, G)
    np.testing.assert_allclose(alone.eigenvalues_, given.eigenvalues_, rtol=1e-9)
    assert alone.loss_ == pytest.approx(given.loss_, rel=1e-9)


@pytest.mark.parametrize("kind", ["labels", "strings", "floats", "booleans", "column", "matrix"])
def test_every_way_to_say_the_same_y(kind):
    y = np.array(naive.LABELS) % 2
    said = {
        "labels": y,
        "strings": np.array(["cat", "dog"])[y],
        "floats": y.astype(float),
        "booleans": y.astype(bool),
        "column": y[:, None],
        "matrix": naive.same(y),
    }[kind]
    expected = SpectralEmbedding(2).fit(naive.points(), Graph.from_labels(y))
    found = SpectralEmbedding(2).fit(naive.points(), said)
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-10)


def test_real_targets_are_alike_as_their_inner_product():
    X, Y = naive.points(), naive.points(N, 2, seed=4)
    for targets, G in ((Y, Y @ Y.T), (Y[:, 0], np.outer(Y[:, 0], Y[:, 0]))):
        found = fitted(targets, "laplace", regularization=0.1)
        F = naive.square_root(naive.kernel_by_loops("laplace", X, X))
        loss, _ = naive.minimum_by_descent(F, G, 0.1, 3)
        assert found.loss_ == pytest.approx(loss, rel=1e-8)


@pytest.mark.parametrize("solver", ["exact", "nystrom", "fourier"])
@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_float32_is_close_to_float64(kernel, solver):
    X, new = naive.points(50, 2), naive.points(20, 2, seed=1)
    y = (X[:, 0] > 0.2).astype(int) + (X[:, 1] > 0.5)
    settings = {"kernel": kernel, "bandwidth": 0.7, "regularization": 0.1, "solver": solver}
    double = SpectralEmbedding(2, **settings, n_features=50).fit(X, y)
    single = SpectralEmbedding(2, **settings, n_features=50).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-4)
    assert single.loss_ == pytest.approx(double.loss_, rel=1e-3)
    for rows, tolerance in ((X, 1e-3), (new, 0.02 if solver != "fourier" else 0.1)):
        a, b = single.transform(rows.astype(np.float32)), double.transform(rows)
        assert a.dtype == np.float32 and b.dtype == np.float64
        np.testing.assert_allclose(a @ a.T, b @ b.T, atol=tolerance)


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_round_off_of_float32_is_no_direction(kernel, solver):
    """Twins in different classes, and no penalty: noise in the null space of K would part them."""
    half = naive.points(15, 2)
    X, y = np.concatenate([half, half]), np.arange(30) % 4
    settings = {"kernel": kernel, "bandwidth": 0.15, "regularization": 0.0, "solver": solver}
    double = SpectralEmbedding(4, **settings, n_features=30).fit(X, y)
    single = SpectralEmbedding(4, **settings, n_features=30).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-3, atol=1e-4)
    Z = single.transform(X.astype(np.float32))
    np.testing.assert_allclose(Z[:15], Z[15:], atol=1e-3)
    assert np.abs(Z).max() < 2
