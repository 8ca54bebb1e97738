"""Known pairs alone: the loss by a double loop, and its minimum by descent."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise import Graph
from likewise.kernel import GraphClassifier, SpectralEmbedding, masked
from likewise.kernel.masked import known_pairs_loss
from tests.kernel import naive
from tests.kernel.naive import EDGES, LABELS, PARTIAL, N

pytestmark = pytest.mark.filterwarnings("ignore:n_components is:UserWarning")

SIGNED = [(i, j, 1.0 if LABELS[i] == LABELS[j] else -1.0) for i in range(N) for j in range(0, i, 3)]


def edge_mask(edges, n=N):
    return naive.edge_matrix([(i, j, 1.0) for i, j, _ in edges], n)


def either(*masks):
    return np.maximum.reduce(masks)


VIEWS = np.array([[float(a // 2 == b // 2) for b in range(N)] for a in range(N)])

# name: graph, matrix, which pairs are known
CASES = {
    "labels": (lambda: Graph.from_labels(np.array(LABELS)), naive.same(LABELS), np.ones((N, N))),
    "partial-labels": (
        lambda: Graph.from_labels(np.array(PARTIAL)),
        naive.same(PARTIAL),
        naive.both_known(PARTIAL),
    ),
    "edges": (lambda: naive.edge_graph(EDGES), naive.edge_matrix(EDGES), edge_mask(EDGES)),
    "signed": (lambda: naive.edge_graph(SIGNED), naive.edge_matrix(SIGNED), edge_mask(SIGNED)),
    "views": (lambda: Graph.identity(N // 2).views(2), VIEWS, VIEWS),
    "mixed": (
        lambda: 0.5 * Graph.identity(N) + Graph.from_labels(np.array(PARTIAL)) * 2,
        0.5 * np.eye(N) + 2 * naive.same(PARTIAL),
        either(np.eye(N), naive.both_known(PARTIAL)),
    ),
    "answers-over-labels": (
        lambda: Graph.from_labels(np.array(PARTIAL)) + naive.edge_graph(EDGES),
        naive.same(PARTIAL) + naive.edge_matrix(EDGES),
        either(naive.both_known(PARTIAL), edge_mask(EDGES)),
    ),
    "matrix": (
        lambda: Graph.from_matrix(naive.random_matrix()),
        naive.random_matrix(),
        np.ones((N, N)),
    ),
    "targets": (
        lambda: Graph.from_targets(naive.points(N, 2, seed=4)),
        naive.points(N, 2, seed=4) @ naive.points(N, 2, seed=4).T,
        np.ones((N, N)),
    ),
    "centered": (
        lambda: Graph.from_labels(np.array(LABELS)).centered(),
        (np.eye(N) - 1 / N) @ naive.same(LABELS) @ (np.eye(N) - 1 / N),
        np.ones((N, N)),
    ),
}


def loss_by_loops(Z, G, known):
    total = 0.0
    for i in range(len(Z)):
        for j in range(len(Z)):
            if known[i, j]:
                total += (float(Z[i] @ Z[j]) - G[i, j]) ** 2
    return total


def penalised(Z, G, known, K, regularization):
    penalty = np.trace(Z.T @ np.linalg.solve(K, Z))
    return loss_by_loops(Z, G, known) + 2 * regularization * penalty


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_known_pairs_loss(name, d):
    make, G, known = CASES[name]
    Z = naive.points(N, d, seed=d)
    found = known_pairs_loss(torch.as_tensor(Z), make())
    assert found.item() == pytest.approx(loss_by_loops(Z, G, known), rel=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_known_pairs_loss_has_its_gradient(name):
    Z = torch.as_tensor(naive.points(N, 3, seed=1)).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: known_pairs_loss(z, CASES[name][0]()), (Z,))


@pytest.mark.parametrize("regularization", [0.02, 0.3])
@pytest.mark.parametrize("name", CASES)
def test_the_masked_solution_is_a_minimum(name, regularization):
    """Not above the closed form or any descent, with no slope left; `loss_` is the loss there."""
    make, G, known = CASES[name]
    X = naive.points()
    K = naive.kernel_by_loops("laplace", X, X)
    settings = {"bandwidth": 1.3, "regularization": regularization}
    model = SpectralEmbedding(3, masked=True, **settings).fit(X, make())
    Z = model.transform(X)
    loss = penalised(Z, G, known, K, regularization)
    assert model.loss_ == pytest.approx(loss, rel=1e-7)
    closed = SpectralEmbedding(3, **settings).fit(X, make()).transform(X)
    assert loss <= penalised(closed, G, known, K, regularization) * (1 + 1e-9)
    best, _ = naive.minimum_by_descent(
        naive.square_root(K), G, regularization, 3, known=known, starts=4
    )
    assert loss == pytest.approx(best, rel=2e-5, abs=1e-7)
    size = np.abs(G).max()
    for i in range(0, N, 3):
        for k in range(3):
            step = np.zeros_like(Z)
            step[i, k] = 1e-5
            ahead = penalised(Z + step, G, known, K, regularization)
            behind = penalised(Z - step, G, known, K, regularization)
            assert abs(ahead - behind) / 2e-5 < 5e-3 * size


def test_columns_that_the_closed_form_leaves_empty_are_used():
    """1 is alike to 0, 2 and 3, which are not alike: the graph of a star has one positive
    eigenvalue, but its known pairs ask for three dimensions."""
    X = naive.points(4)
    edges = [(0, 1, 1.0), (1, 2, 1.0), (1, 3, 1.0), (0, 2, 0.0), (2, 3, 0.0), (0, 3, 0.0)]
    graph, G = naive.edge_graph(edges, 4), naive.edge_matrix(edges, 4)
    settings = {"bandwidth": 1.3, "regularization": 0.03}
    assert (SpectralEmbedding(3, **settings).fit(X, graph).eigenvalues_ > 0).sum() == 1
    F = naive.square_root(naive.kernel_by_loops("laplace", X, X))
    known = edge_mask(edges, 4)
    one, _ = naive.minimum_by_descent(F, G, 0.03, 1, known=known, starts=4)
    three, _ = naive.minimum_by_descent(F, G, 0.03, 3, known=known, starts=4)
    assert three < 0.8 * one
    for d, best in ((1, one), (3, three)):
        model = SpectralEmbedding(d, masked=True, **settings).fit(X, graph)
        assert model.loss_ == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("name", ["targets", "centered"])
def test_a_start_that_is_the_minimum_is_not_left_for_a_worse_place(name):
    """All pairs are known, and the closed form leaves its third column empty."""
    graph, G = CASES[name][0](), CASES[name][1]
    T, P = np.linalg.eigh(naive.kernel_by_loops("laplace", naive.points(), naive.points()))
    values, vectors = np.linalg.eigh(P.T @ G @ P - np.diag(0.1 / T))
    start = vectors[:, -1:-4:-1] * np.sqrt(np.maximum(values[-1:-4:-1], 0.0))
    assert (start[:, 2] == 0).all() and (start[:, 1] != 0).any()
    found, loss = masked.masked_embedding(P, T, graph, 0.1, start)
    least = np.square(G).sum() - np.square(np.maximum(values[-3:], 0.0)).sum()
    assert loss == pytest.approx(least, rel=1e-9)
    np.testing.assert_allclose(found @ found.T, start @ start.T, atol=1e-9)


@pytest.mark.parametrize("name", ["labels", "matrix", "targets"])
def test_where_all_pairs_are_known_nothing_changes(name):
    X, graph = naive.points(), CASES[name][0]()
    plain = SpectralEmbedding(3, regularization=0.1).fit(X, graph)
    known = SpectralEmbedding(3, regularization=0.1, masked=True).fit(X, graph)
    assert known.loss_ == pytest.approx(plain.loss_, rel=1e-7)
    a, b = plain.transform(X), known.transform(X)
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-3)


@pytest.mark.parametrize("regularization", [0.01, 0.2])
def test_rows_without_a_label_do_not_count(regularization):
    """Known pairs are all pairs of labelled rows: by the representer theorem, the closed form on
    those rows alone; the others follow from it."""
    X, y = naive.points(), np.array(PARTIAL)
    rows = y >= 0
    settings = {"bandwidth": 1.0, "regularization": regularization}
    alone = SpectralEmbedding(3, **settings).fit(X[rows], y[rows])
    known = SpectralEmbedding(3, masked=True, **settings).fit(X, y)
    assert known.loss_ == pytest.approx(alone.loss_, rel=1e-9)
    a, b = alone.transform(X), known.transform(X)
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-8)
    # A descent over functions on all rows comes to the same loss.
    F = naive.square_root(np.exp(-np.linalg.norm(X[:, None] - X, axis=2)))
    mask = naive.both_known(PARTIAL)
    loss, _ = naive.minimum_by_descent(F, naive.same(PARTIAL), regularization, 3, known=mask)
    assert known.loss_ == pytest.approx(loss, rel=1e-7)
    plain = SpectralEmbedding(3, **settings).fit(X, y).transform(X)
    assert np.abs(plain @ plain.T - a @ a.T).max() > 0.2


def test_the_known_part():
    X = naive.points()
    rows, graph, complete = masked.known_part(X, naive.edge_graph(EDGES))
    nodes = sorted({node for i, j, _ in EDGES for node in (i, j)})
    np.testing.assert_array_equal(rows, X[nodes])
    np.testing.assert_array_equal(graph.dense(), naive.edge_matrix(EDGES)[np.ix_(nodes, nodes)])
    assert not complete
    assert masked.known_part(X, Graph.from_labels(np.array(PARTIAL)))[2]
    assert not masked.known_part(X, Graph.identity(N))[2]


def test_a_graph_that_knows_nothing():
    nobody = np.zeros(0, int)
    for y in (Graph.from_labels(np.full(N, -1)), Graph.from_edges(nobody, nobody, n=N)):
        with pytest.raises(ValueError, match="knows no pair.*labels or answers, or masked=False"):
            SpectralEmbedding(2, masked=True).fit(naive.points(), y)


@pytest.mark.parametrize("name", ["partial-labels", "signed", "mixed", "views"])
@pytest.mark.parametrize("solver", ["exact", "nystrom", "fourier"])
def test_the_matrix_and_products_with_the_graph_agree(name, solver, monkeypatch):
    X, graph = naive.points(), CASES[name][0]()
    models = []
    for nodes in (2000, 0):
        monkeypatch.setattr(masked, "DENSE_NODES", nodes)
        model = SpectralEmbedding(
            2, regularization=0.1, masked=True, solver=solver, n_features=20, chunk_size=5
        )
        models.append(model.fit(X, graph))
    dense, implicit = models
    assert implicit.loss_ == pytest.approx(dense.loss_, rel=1e-7)
    a, b = dense.transform(X), implicit.transform(X)
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_both_forms_have_the_same_value_and_slope(name):
    make, G, known = CASES[name]
    Z, graph = naive.points(N, 2, seed=7), make().to("cpu")
    value, slope = masked._dense_pairs(graph)(Z)
    implicit_value, implicit_slope = masked._implicit_pairs(graph, Z)
    assert value == pytest.approx(loss_by_loops(Z, G, known), rel=1e-10)
    assert implicit_value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(slope, 4 * (known * (Z @ Z.T - G)) @ Z, atol=1e-9)
    np.testing.assert_allclose(implicit_slope, slope, atol=1e-8)


def test_signed_answers_of_two_classes_are_completed():
    """Few answers, all else unknown: the masked solution tells what was not asked."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) * 0.3 + 3 * y[:, None]
    i, j = np.arange(0, 39), np.arange(1, 40)
    weight = np.where(y[i] == y[j], 1.0, -1.0)
    graph = Graph.from_edges(i[::2], j[::2], weight[::2], n=40)
    Z = SpectralEmbedding(1, regularization=1e-3, masked=True).fit_transform(X, graph)
    np.testing.assert_allclose(Z @ Z.T, naive.signed_matrix(y), atol=0.2)


def test_the_classifier_takes_it_as_well():
    X, y = naive.points(30), np.arange(30) % 2
    X[:, 0] += 4 * y
    partial = np.where(np.arange(30) < 8, y, -1)
    model = GraphClassifier(masked=True).fit(X, partial)
    assert model.embedding_.masked and (model.predict(X) == y).mean() > 0.9
