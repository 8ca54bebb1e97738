"""Objectives with a constraint in place of the square: whitening, Barlow Twins, relative."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise import Graph
from likewise.kernel import SpectralEmbedding
from likewise.objectives import RelativeRegression
from tests.kernel import naive
from tests.kernel.naive import GRAPHS, KERNELS, N

pytestmark = pytest.mark.filterwarnings("ignore:n_components is:UserWarning")

H = np.eye(N) - 1 / N


def normalized(G):
    degrees = np.abs(G).sum(axis=1)
    scale = np.array([d**-0.5 if d > 0 else 0.0 for d in degrees])
    return scale[:, None] * G * scale


def kernel_range(kernel, *, centred):
    """An orthonormal basis P of the functions, and what each costs: |f|^2 = c^T T^-1 c."""
    X = naive.points()
    F = naive.square_root(naive.kernel_by_loops(kernel, X, X))
    left, S, _ = np.linalg.svd(H @ F if centred else F, full_matrices=False)
    kept = 1e-6 * S[0] < S
    return left[:, kept], S[kept] ** 2


def top_trace(G, kernel, regularization, d, *, centred=False):
    P, T = kernel_range(kernel, centred=centred)
    values = np.linalg.eigvalsh(P.T @ G @ P - np.diag(regularization / T))[::-1]
    return np.maximum(values[:d], 0.0)


CASES = {
    "whitening": (lambda G: G, False),
    "barlow-twins": (normalized, False),
    "relative": (lambda G: H @ G @ H, True),
}


@pytest.mark.parametrize("regularization", [0.0, 0.03])
@pytest.mark.parametrize("kernel", ["laplace", "linear", "polynomial"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("objective", CASES)
def test_orthonormal_rows_of_the_largest_trace(objective, graph, kernel, regularization):
    """Z^T Z = N I where eigenvalues are positive, and Tr Z^T (G - lambda K^-1) Z is N times
    their sum, which no orthonormal columns exceed (Ky Fan)."""
    change, centred = CASES[objective]
    G = change(GRAPHS[graph][1]())
    expected = top_trace(G, kernel, regularization, 2, centred=centred)
    model = SpectralEmbedding(
        2, objective=objective, regularization=regularization, **KERNELS[kernel][0]
    ).fit(naive.points(), GRAPHS[graph][0]())
    np.testing.assert_allclose(model.eigenvalues_[: len(expected)], expected, atol=2e-6)
    Z = model.transform(naive.points())
    positive = int((model.eigenvalues_ > 0).sum())
    target = np.diag([float(N)] * positive + [0.0] * (2 - positive))
    np.testing.assert_allclose(Z.T @ Z, target, atol=1e-5)
    P, T = kernel_range(kernel, centred=centred)
    c = P.T @ Z
    np.testing.assert_allclose(P @ c, Z, atol=1e-5)
    trace = np.trace(Z.T @ G @ Z) - regularization * (c * c / T[:, None]).sum()
    assert trace == pytest.approx(N * expected.sum(), rel=1e-5, abs=1e-4)


def test_the_relative_embedding_has_mean_0():
    X = naive.points(30)
    for solver in ("exact", "nystrom", "fourier"):
        model = SpectralEmbedding(2, objective="relative", solver=solver, n_features=16)
        Z = model.fit(X, np.arange(30) % 3).transform(X)
        np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-8)
        np.testing.assert_allclose(Z.T @ Z, 30 * np.eye(2), atol=1e-5)


@pytest.mark.parametrize("graph", GRAPHS)
def test_no_embedding_has_a_lower_relative_loss(graph):
    """Of its dimension, within the kernel's functions, as the head's penalty goes to 0."""
    X, made = naive.points(), GRAPHS[graph][0]()
    model = SpectralEmbedding(
        2,
        objective="relative",
        kernel="polynomial",
        regularization=0.0,
        kernel_params={"degree": 2},
    )
    Z = model.fit(X, made).transform(X)
    loss = RelativeRegression(regularization=0.0)
    found = loss(torch.as_tensor(Z), made).item()
    G = H @ GRAPHS[graph][1]() @ H
    assert found == pytest.approx((np.trace(G) - model.eigenvalues_.sum()) / N, abs=1e-6)
    rng = np.random.default_rng(0)
    monomials = np.array([(np.outer(np.r_[x, 1], np.r_[x, 1])).ravel() for x in X])
    for _ in range(200):
        other = monomials @ rng.normal(size=(16, 2))
        assert loss(torch.as_tensor(other), made).item() >= found - 1e-9
        near = Z + 0.05 * (H @ monomials) @ rng.normal(size=(16, 2))
        assert loss(torch.as_tensor(near), made).item() >= found - 1e-9


def test_barlow_twins_of_labels_is_constant_on_classes():
    """Theorem 2 in its corrected form: Y (Y^T Y)^-1/2 R up to the size sqrt(N)."""
    y = np.array(naive.LABELS)
    model = SpectralEmbedding(3, objective="barlow-twins", bandwidth=1.0, regularization=0.0)
    Z = model.fit(naive.points(), y).transform(naive.points())
    counts = np.array([(y == label).sum() for label in y])
    np.testing.assert_allclose(Z @ Z.T, N * naive.same(y) / counts[:, None], atol=1e-6)
    np.testing.assert_allclose(model.eigenvalues_, 1.0, atol=1e-9)


def test_vic2_and_whitening_share_their_directions():
    X, y = naive.points(), np.array(naive.LABELS)
    vic2 = SpectralEmbedding(3, bandwidth=1.0).fit(X, y)
    white = SpectralEmbedding(3, bandwidth=1.0, objective="whitening").fit(X, y)
    np.testing.assert_allclose(white.eigenvalues_, vic2.eigenvalues_, rtol=1e-10)
    scale = np.sqrt(N / vic2.eigenvalues_)
    np.testing.assert_allclose(white.transform(X), vic2.transform(X) * scale, atol=1e-8)


def test_only_the_embeddings_graph_is_centred_over_all_rows():
    """Rows without a label are rows with the target 0, as in RelativeRegression."""
    y = np.array(naive.PARTIAL)
    one = SpectralEmbedding(2, objective="relative", bandwidth=1.0).fit(naive.points(), y)
    G = H @ naive.same(naive.PARTIAL) @ H
    other = SpectralEmbedding(2, objective="relative", bandwidth=1.0).fit(naive.points(), G)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-5)
    viewed = Graph.from_labels(y[:6]).views(2)
    model = SpectralEmbedding(2, objective="relative", bandwidth=1.0).fit(naive.points(), viewed)
    G = H @ np.kron(naive.same(y[:6]), np.ones((2, 2))) @ H
    other = SpectralEmbedding(2, objective="relative", bandwidth=1.0).fit(naive.points(), G)
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-5)
