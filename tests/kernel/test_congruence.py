r""":math:`\Phi^\top G \Phi` against the dense product, for every kind of graph and chunk."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import Graph
from likewise.graph.base import Graph as BaseGraph
from likewise.kernel.congruence import congruence
from likewise.kernel.features import LinearMap
from likewise.kernel.moments import Moments
from tests.kernel import naive
from tests.kernel.naive import EDGES, LABELS, PARTIAL, N

SOFT = np.random.default_rng(2).dirichlet(np.ones(4), size=N)
SOFT[3] = 0.0
VALUES = np.round(np.random.default_rng(3).normal(size=N), 1)  # with ties
RANKINGS = np.stack([np.random.default_rng(i).permutation(5) for i in range(N)])
H = np.eye(N) - 1 / N
ONES = np.ones((2, 2))
HALF = LABELS[: N // 2]


def counts(labels):
    return np.array([max(labels.count(label), 1) for label in labels])


def discordant():
    pairs = [(s, t) for s in range(5) for t in range(s)]

    def share(a, b):
        return np.mean([(a[s] < a[t]) != (b[s] < b[t]) for s, t in pairs])

    return np.array([[share(a, b) for b in RANKINGS] for a in RANKINGS])


def normalized(G):
    degrees = np.abs(G).sum(axis=1)
    scale = np.array([d**-0.5 if d > 0 else 0.0 for d in degrees])
    return scale[:, None] * G * scale


def absolute():
    return np.array([[abs(a - b) for b in VALUES] for a in VALUES])


def numbers(values):
    return np.array(values)


EDGES_HALF = [(0, 1, 1.0), (2, 2, 0.5), (3, 5, -2.0), (0, 4, 0.0)]

CASES = {
    "identity": (lambda: Graph.identity(N), np.eye(N)),
    "labels": (lambda: Graph.from_labels(numbers(LABELS)), naive.same(LABELS)),
    "partial": (lambda: Graph.from_labels(numbers(PARTIAL)), naive.same(PARTIAL)),
    "all-unknown": (lambda: Graph.from_labels(numbers([-1] * N)), np.zeros((N, N))),
    "balanced": (
        lambda: Graph.from_labels(numbers(PARTIAL), balance=1.0),
        naive.same(PARTIAL) / counts(PARTIAL)[:, None],
    ),
    "many-classes": (
        lambda: Graph.from_labels(
            numbers(LABELS) * 90, n_classes=200, class_weights=np.arange(200.0) - 50
        ),
        naive.same(LABELS) * (np.array(LABELS) * 90 - 50)[:, None],
    ),
    "soft": (lambda: Graph.from_labels(SOFT), SOFT @ SOFT.T),
    "targets": (
        lambda: Graph.from_targets(naive.points(N, 2, seed=4)),
        naive.points(N, 2, seed=4) @ naive.points(N, 2, seed=4).T,
    ),
    "edges": (lambda: naive.edge_graph(EDGES), naive.edge_matrix(EDGES)),
    "no-edges": (
        lambda: Graph.from_edges(np.zeros(0, dtype=int), np.zeros(0, dtype=int), n=N),
        np.zeros((N, N)),
    ),
    "neighbors": (
        lambda: Graph.from_neighbors(naive.points(), 2),
        naive.neighbor_matrix(naive.points(), 2),
    ),
    "matrix": (lambda: Graph.from_matrix(naive.random_matrix()), naive.random_matrix()),
    "views": (lambda: Graph.identity(N // 2).views(2), np.kron(np.eye(N // 2), ONES)),
    "three-views-of-labels": (
        lambda: Graph.from_labels(numbers([0, 1, 0, -1])).views(3),
        np.kron(naive.same([0, 1, 0, -1]), np.ones((3, 3))),
    ),
    "views-of-edges": (
        lambda: naive.edge_graph(EDGES_HALF, 6).views(2),
        np.kron(naive.edge_matrix(EDGES_HALF, 6), ONES),
    ),
    "views-of-a-sum": (
        lambda: (
            0.7 * Graph.identity(6)
            + 0.3 * Graph.from_labels(numbers(HALF))
            - naive.edge_graph(EDGES_HALF, 6)
        ).views(2),
        np.kron(0.7 * np.eye(6) + 0.3 * naive.same(HALF) - naive.edge_matrix(EDGES_HALF, 6), ONES),
    ),
    "views-and-nodes": (
        lambda: Graph.identity(N // 2).views(2) + 2 * naive.edge_graph(EDGES),
        np.kron(np.eye(N // 2), ONES) + 2 * naive.edge_matrix(EDGES),
    ),
    "views-without-diagonal": (
        lambda: Graph.from_labels(numbers(HALF)).views(2).without_diagonal(),
        np.kron(naive.same(HALF), ONES) - np.eye(N),
    ),
    "sum": (
        lambda: 0.7 * Graph.identity(N) + 0.3 * Graph.from_labels(numbers(PARTIAL)),
        0.7 * np.eye(N) + 0.3 * naive.same(PARTIAL),
    ),
    "normalized-labels": (
        lambda: Graph.from_labels(numbers(PARTIAL)).normalized(),
        normalized(naive.same(PARTIAL)),
    ),
    "normalized-edges": (
        lambda: naive.edge_graph(EDGES).normalized(),
        normalized(naive.edge_matrix(EDGES)),
    ),
    "normalized-sum": (
        lambda: (Graph.identity(N) + naive.edge_graph(EDGES)).normalized(),
        normalized(np.eye(N) + naive.edge_matrix(EDGES)),
    ),
    "normalized-soft": (
        lambda: Graph.from_labels(SOFT).normalized(),
        normalized(SOFT @ SOFT.T),
    ),
    "centered-labels": (
        lambda: Graph.from_labels(numbers(LABELS)).centered(),
        H @ naive.same(LABELS) @ H,
    ),
    "centered-edges": (
        lambda: naive.edge_graph(EDGES).centered(),
        H @ naive.edge_matrix(EDGES) @ H,
    ),
    "absolute-loss": (
        lambda: Graph.from_loss(VALUES, "absolute", form="raw"),
        -absolute(),
    ),
    "absolute-loss-shifted": (
        lambda: 1.5 * Graph.from_loss(VALUES, "absolute", form="shifted"),
        1.5 * (absolute().max() - absolute()),
    ),
    "absolute-loss-centered": (
        lambda: Graph.from_loss(VALUES, "absolute"),
        -H @ absolute() @ H,
    ),
    "absolute-loss-normalized": (
        lambda: Graph.from_loss(VALUES, "absolute", form="raw").normalized(),
        normalized(-absolute()),
    ),
    "squared-loss": (
        lambda: Graph.from_loss(VALUES, "squared", form="raw"),
        -(absolute() ** 2),
    ),
    "kendall": (lambda: Graph.from_loss(RANKINGS, "kendall", form="raw"), -discordant()),
    "kendall-centered": (lambda: Graph.from_loss(RANKINGS, "kendall"), -H @ discordant() @ H),
}


def by_chunks(graph, phi, chunk):
    collected = congruence(graph, phi.shape[1], chunk)
    for start in range(0, len(phi), chunk):
        if collected.needs_rows:
            collected.add(start, phi[start : start + chunk])
    return collected.total(lambda rows: phi[rows])


@pytest.mark.parametrize("name", CASES)
def test_every_graph_in_chunks_of_any_size(name):
    make, G = CASES[name]
    phi = naive.points(N, 5, seed=9)
    expected = phi.T @ G @ phi
    for chunk in range(1, N + 2):
        found = by_chunks(make(), phi, chunk)
        np.testing.assert_allclose(found, expected, atol=2e-5, err_msg=f"chunks of {chunk}")


@pytest.mark.parametrize("name", CASES)
def test_float32_features(name):
    make, G = CASES[name]
    phi = naive.points(N, 5, seed=9)
    found = by_chunks(make(), phi.astype(np.float32), 5)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, phi.T @ G @ phi, atol=1e-5 * np.abs(G).max() * N)


@pytest.mark.parametrize("name", CASES)
def test_moments_of_a_pass(name):
    make, G = CASES[name]
    phi = naive.points(N, 4, seed=8)
    moments = Moments.of_graph(LinearMap(4), phi, make(), 5)
    np.testing.assert_allclose(moments.gram, phi.T @ phi, rtol=1e-12)
    np.testing.assert_allclose(moments.congruence, phi.T @ G @ phi, atol=2e-5)
    np.testing.assert_allclose(moments.sums, phi.sum(axis=0), rtol=1e-10)
    assert moments.count == N
    assert moments.norm_squared == pytest.approx(np.square(G).sum(), rel=1e-5, abs=1e-12)


LABEL_LISTS = st.lists(st.integers(-1, 4), min_size=2, max_size=9)


@st.composite
def graphs(draw, depth=2):
    """A graph and its matrix: labels, edges and identities, scaled, added, in views."""
    n = draw(st.integers(2, 6))

    def one(level):
        kind = draw(st.sampled_from(["labels", "edges", "identity"] + (["sum"] * (level > 0))))
        if kind == "labels":
            labels = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
            return Graph.from_labels(np.array(labels)), naive.same(labels)
        if kind == "identity":
            return Graph.identity(n), np.eye(n)
        if kind == "sum":
            (a, A), (b, B) = one(level - 1), one(level - 1)
            factor = draw(st.sampled_from([-1.5, 0.0, 0.5, 2.0]))
            return a + factor * b, A + factor * B
        ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
        pairs = {tuple(sorted(pair)) for pair in draw(st.lists(ends, min_size=1, max_size=8))}
        edges = [(i, j, draw(st.sampled_from([-1.0, 0.0, 0.5, 1.0]))) for i, j in sorted(pairs)]
        return naive.edge_graph(edges, n), naive.edge_matrix(edges, n)

    graph, matrix = one(depth)
    views = draw(st.integers(1, 4))
    graph, matrix = graph.views(views), np.kron(matrix, np.ones((views, views)))
    if draw(st.booleans()):
        return graph.normalized(), normalized(matrix)
    return graph, matrix


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(1, 30), st.integers(1, 4))
def test_any_algebra_of_graphs_in_any_chunks(made, chunk, m):
    graph, G = made
    phi = naive.points(graph.n, m, seed=1)
    found = by_chunks(graph.to("cpu"), phi, chunk)
    np.testing.assert_allclose(found, phi.T @ G @ phi, atol=1e-5)


def test_a_kind_without_a_form_is_named():
    class Odd(BaseGraph):
        def __init__(self):
            self.n = 3

        device = torch.device("cpu")
        nonnegative = True
        _product = _block = _entries = _subset = _scaled = _times = _known = _to = _energy = None

    with pytest.raises(TypeError, match="Odd has no features form"):
        congruence(Odd(), 2, 2)
