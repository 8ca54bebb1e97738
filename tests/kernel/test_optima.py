"""`pal` theorem 2: the optima are minimisers of the objectives, by descent from random starts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from likewise import Graph
from likewise.kernel import barlow_twins_optimum, optima, simclr_optimum, vic2_optimum
from likewise.objectives import VIC2, NTXent
from tests.kernel import naive
from tests.kernel.naive import GRAPHS, N


def lowest(loss, shape, *, starts=4):
    """The least value that L-BFGS finds."""

    def value(flat):
        z = torch.as_tensor(flat.reshape(shape)).requires_grad_()
        found = loss(z)
        (slope,) = torch.autograd.grad(found, z)
        return float(found.detach()), slope.numpy().ravel()

    values = []
    for seed in range(starts):
        begin = np.random.default_rng(seed).normal(size=shape).ravel()
        options = {"maxiter": 3000, "ftol": 1e-15, "gtol": 1e-9}
        values.append(minimize(value, begin, jac=True, method="L-BFGS-B", options=options).fun)
    return min(values)


# --- VIC2


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("name", GRAPHS)
def test_pal_theorem_2_vic2(name, d):
    graph, G = GRAPHS[name][0](), GRAPHS[name][1]()
    Z = vic2_optimum(graph, d)
    assert Z.shape == (N, d)
    loss = VIC2(reduction="sum")
    found = loss(torch.as_tensor(Z), graph).item()
    assert found == pytest.approx(np.square(Z @ Z.T - G).sum(), rel=1e-6, abs=1e-8)
    assert found == pytest.approx(lowest(lambda z: loss(z, graph), (N, d)), rel=1e-7, abs=1e-7)


def test_vic2_of_labels_is_the_labels_up_to_a_rotation():
    y = np.array(naive.PARTIAL)
    for d in (3, 6, 20):
        Z = vic2_optimum(Graph.from_labels(y), d)
        assert Z.shape == (N, d) and (Z[:, 3:] == 0).all()
        np.testing.assert_allclose(Z @ Z.T, naive.same(y), atol=1e-9)


# --- Barlow Twins


def barlow(z, A):
    """|Zt^T A Zt - I|^2 with unit columns, written out."""
    unit = z / z.norm(dim=0)
    return (unit.T @ A @ unit - torch.eye(z.shape[1], dtype=z.dtype)).square().sum()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("labels", [naive.LABELS, naive.PARTIAL, [0] * 2 + [1] * 3 + [2] * 7])
def test_pal_theorem_2_barlow_twins_of_labels(labels, d):
    """0 up to C columns, and 1 for every column beyond."""
    G = naive.same(labels)
    degrees = np.maximum(G.sum(axis=1), 1e-30)
    A = torch.as_tensor(np.where(G > 0, G / np.sqrt(np.outer(degrees, degrees)), 0.0))
    Z = barlow_twins_optimum(Graph.from_labels(np.array(labels)), d)
    np.testing.assert_allclose(np.square(Z).sum(axis=0), 1.0, rtol=1e-9)
    found = barlow(torch.as_tensor(Z), A).item()
    assert found == pytest.approx(max(d - 3, 0), abs=1e-9)
    assert found == pytest.approx(lowest(lambda z: barlow(z, A), (N, d)), abs=1e-6)


def test_barlow_twins_with_as_many_columns_as_classes_spans_the_labels():
    y = np.array(naive.LABELS)
    Z = barlow_twins_optimum(Graph.from_labels(y), 3)
    counts = np.array([(y == label).sum() for label in y])
    np.testing.assert_allclose(Z @ Z.T, naive.same(y) / counts[:, None], atol=1e-9)


def test_barlow_twins_of_other_graphs_is_outdone_by_oblique_columns():
    """Eigenvalues 1 and 1/2: eigenvectors cost 1/4, columns at another angle 1/5."""
    A = torch.diag(torch.tensor([1.0, 0.5], dtype=torch.float64))
    assert barlow(torch.eye(2, dtype=torch.float64), A).item() == 0.25
    assert lowest(lambda z: barlow(z, A), (2, 2)) == pytest.approx(0.2, abs=1e-6)


def test_barlow_twins_of_views_has_no_cost():
    graph = Graph.identity(5).views(2)
    Z = torch.as_tensor(barlow_twins_optimum(graph, 4))
    A = torch.kron(torch.eye(5), torch.full((2, 2), 0.5)).double()
    assert barlow(Z, A).item() == pytest.approx(0.0, abs=1e-12)


# --- SimCLR


@pytest.mark.parametrize("temperature", [0.2, 1.0])
@pytest.mark.parametrize(("classes", "d"), [(2, 1), (2, 3), (3, 2), (3, 3), (4, 3), (4, 6)])
def test_pal_theorem_2_simclr(classes, d, temperature):
    y = np.random.default_rng(0).permutation(np.arange(3 * classes) % classes)
    graph = Graph.from_labels(y)
    Z = simclr_optimum(graph, d)
    assert Z.shape == (3 * classes, d)
    cosines = np.where(y[:, None] == y, 1.0, -1 / (classes - 1))
    np.testing.assert_allclose(Z @ Z.T, cosines, atol=1e-9)
    loss = NTXent(temperature)
    found = loss(torch.as_tensor(Z), graph).item()
    # In one dimension directions cannot turn: a descent goes nowhere.
    best = lowest(lambda z: loss(z, graph), (3 * classes, max(d, 2)))
    assert found == pytest.approx(best, rel=1e-6)


def test_simclr_of_views():
    graph = Graph.identity(4).views(2)
    Z = simclr_optimum(graph, 3)
    expected = np.kron(np.full((4, 4), -1 / 3) + np.eye(4) * 4 / 3, np.ones((2, 2)))
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-9)


def test_class_numbers_that_do_not_occur_are_no_classes():
    graph = Graph.from_labels(np.array([0, 5, 0, 5]), n_classes=9)
    Z = simclr_optimum(graph, 1)
    np.testing.assert_allclose(Z @ Z.T, naive.signed_matrix([0, 1, 0, 1]), atol=1e-12)


# --- bad input

BALANCED = np.array([0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: simclr_optimum(Graph.from_labels(np.array([0, 0, 1])), 2),
            r"classes have \[2, 1\] members.*equal size.*NTXent",
        ),
        (
            lambda: simclr_optimum(Graph.from_labels(np.array([0, 0, 0])), 2),
            r"classes have \[3\] members.*two or more",
        ),
        (
            lambda: simclr_optimum(Graph.from_labels(np.array([0, 1, -1])), 2),
            r"complete labels only.*without -1",
        ),
        (
            lambda: simclr_optimum(naive.edge_graph(naive.EDGES), 2),
            r"complete labels only.*Graph.from_labels",
        ),
        (
            lambda: simclr_optimum(Graph.from_labels(BALANCED), 1),
            r"n_components is 1: a simplex of 3 corners needs 2",
        ),
        (
            lambda: vic2_optimum(Graph.identity(optima.DENSE_NODES + 1), 2),
            r"graph has 5001 nodes.*up to 5000; use SpectralEmbedding",
        ),
        (
            lambda: barlow_twins_optimum(Graph.identity(optima.DENSE_NODES + 1), 2),
            r"graph has 5001 nodes",
        ),
        (lambda: vic2_optimum(Graph.identity(3), 0), r"n_components is 0.*above 0"),
        (lambda: vic2_optimum(Graph.identity(3), -1), r"n_components is -1.*above 0"),
        (lambda: barlow_twins_optimum(Graph.identity(3), 0), r"n_components is 0"),
        (lambda: simclr_optimum(Graph.from_labels(BALANCED), 2.5), r"n_components is 2.5"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
