"""Labels from a graph and templates, the head against normal equations, and probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from likewise import Graph
from likewise.kernel import GraphClassifier, labels_from_templates, vic2_optimum
from likewise.kernel.classifier import on_simplex
from likewise.kernel.ridge import ridge_head
from tests.kernel import naive

N = 60
Y = np.random.default_rng(1).integers(0, 4, N)
TEMPLATES = {c: int(np.flatnonzero(c == Y)[-1]) for c in range(4)}
CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])


def clusters(y=Y, seed=0):
    return CENTRES[y] + np.random.default_rng(seed).normal(size=(len(y), 2))


# --- lemma 1 of pal


@pytest.mark.parametrize("kind", ["graph", "matrix", "edges", "views"])
def test_pal_lemma_1_an_exact_graph_and_templates_give_all_labels(kind):
    """Rows of features that say nothing of the classes: all that is known comes from the graph."""
    y = np.repeat(Y[::2], 2) if kind == "views" else Y
    X = naive.points(N, 5)
    i, j = np.nonzero(np.triu(naive.same(y)))
    graph = {
        "graph": Graph.from_labels(y),
        "matrix": naive.same(y),
        "edges": Graph.from_edges(i, j, n=N),
        "views": Graph.from_labels(Y[::2]).views(2),
    }[kind]
    templates = {name: int(np.flatnonzero(y == c)[0]) for c, name in enumerate("abcd")}
    model = GraphClassifier(regularization=1e-6).fit(X, graph, templates=templates)
    expected = np.array(list("abcd"))[y]
    assert (model.labels_ == expected).all()
    assert (model.predict(X) == expected).all()
    assert model.classes_.tolist() == list("abcd")


def test_pal_lemma_1_needs_no_inverse():
    """Y = Z Z[templates]^T for any Z with Z Z^T = G."""
    rotation, _ = np.linalg.qr(naive.points(6, 6))
    Z = vic2_optimum(Graph.from_labels(Y), 6) @ rotation
    found = labels_from_templates(Z, np.array(list(TEMPLATES.values())))
    np.testing.assert_allclose(found, np.eye(4)[Y], atol=1e-9)


def test_the_order_of_the_templates_names_the_classes():
    graph = Graph.from_labels(Y)
    names = {"d": TEMPLATES[3], "a": TEMPLATES[0], "c": TEMPLATES[2], "b": TEMPLATES[1]}
    model = GraphClassifier(regularization=1e-6).fit(clusters(), graph, templates=names)
    assert (model.predict(clusters()) == np.array(list("abcd"))[Y]).all()
    proba = model.predict_proba(clusters())
    assert (model.classes_[proba.argmax(axis=1)] == np.array(list("abcd"))[Y]).all()


def test_names_of_classes_stay_what_they_are():
    graph = Graph.from_labels(Y)
    places = list(TEMPLATES.values())
    for names in ([10, 20, 30, 40], ["x", 7, None, 2.5], [("a", 1), ("b", 2), ("c", 3), ("d", 4)]):
        model = GraphClassifier(regularization=1e-6).fit(
            clusters(), graph, templates=dict(zip(names, places, strict=True))
        )
        assert model.predict(clusters()).tolist() == [names[c] for c in Y]


def test_a_partial_graph_is_completed_by_features():
    """A fifth of the pairs: what the graph leaves open, the kernel tells."""
    rng = np.random.default_rng(3)
    i, j = np.triu_indices(N)
    asked = (i == j) | (rng.random(len(i)) < 0.2)
    same = Y[i] == Y[j]
    graph = Graph.from_edges(i[asked], j[asked], np.where(same, 1.0, 0.0)[asked], n=N)
    model = GraphClassifier(bandwidth=2.0).fit(clusters(), graph, templates=TEMPLATES)
    assert (model.labels_ == Y).mean() > 0.95
    new = np.random.default_rng(9).integers(0, 4, 200)
    assert (model.predict(clusters(new, seed=5)) == new).mean() > 0.95


@pytest.mark.parametrize("bandwidth", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("seed", range(3))
def test_templates_are_known_to_be_of_different_classes(bandwidth, seed):
    """Nobody was asked about two classes: one point for all rows would agree with every answer."""
    i, j = np.triu_indices(N)
    alike = Y[i] == Y[j]
    graph = Graph.from_edges(i[alike], j[alike], 1.0, n=N)
    X = clusters(seed=seed)
    model = GraphClassifier(bandwidth=bandwidth).fit(X, graph, templates=TEMPLATES)
    assert (model.labels_ == Y).all()
    Z = model.embedding_.transform(X)[list(TEMPLATES.values())]
    np.testing.assert_allclose(Z @ Z.T, np.eye(4), atol=0.3)


def test_a_template_is_what_it_is_called():
    """A row that the graph puts elsewhere keeps the name that its user gave it."""
    graph = Graph.from_labels(np.zeros(10, dtype=int))
    model = GraphClassifier().fit(naive.points(10), graph, templates={"a": 0, "b": 1})
    assert model.labels_[:2].tolist() == ["a", "b"]


# --- labels


@pytest.mark.parametrize("solver", ["exact", "nystrom", "fourier"])
@pytest.mark.parametrize("kind", ["numbers", "strings", "signs", "booleans", "far"])
def test_labels_of_every_kind(kind, solver):
    names = {
        "numbers": np.arange(4),
        "strings": np.array(["ash", "beech", "cedar", "dogwood"]),
        "signs": np.array([-1, 1, 1, 1]),
        "booleans": np.array([False, True, True, True]),
        "far": np.array([10**9, 5, 77, 10**6]),
    }[kind]
    model = GraphClassifier(solver=solver, n_features=60, bandwidth=2.0).fit(clusters(), names[Y])
    assert (model.predict(clusters()) == names[Y]).all()
    new = np.random.default_rng(9).integers(0, 4, 100)
    assert (model.predict(clusters(new, seed=5)) == names[new]).mean() > 0.95
    assert model.classes_.tolist() == sorted(set(names.tolist()))
    assert model.predict(clusters()).dtype == names.dtype


def test_unknown_labels_are_unknown():
    """A tenth of the labels; -1 is no class, and does not train the head."""
    rng = np.random.default_rng(0)
    given = np.where(rng.random(N) < 0.3, Y, -1)
    assert set(given) == {-1, 0, 1, 2, 3}
    model = GraphClassifier(bandwidth=3.0).fit(clusters(), given)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert (model.labels_ == given).all()
    assert (model.predict(clusters()) == Y).mean() > 0.95
    known = given >= 0
    Z = model.embedding_.transform(clusters())
    W, b = ridge_head(Z[known], np.eye(4)[given[known]], 1e-6)
    np.testing.assert_allclose(model.coef_, W, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, b, rtol=1e-8)


def test_minus_one_is_a_class_where_there_is_but_one_other():
    y = np.where(Y == 0, -1, 1)
    model = GraphClassifier().fit(clusters(), y)
    assert model.classes_.tolist() == [-1, 1] and (model.predict(clusters()) == y).all()


def test_decision_function():
    many = GraphClassifier().fit(clusters(), Y)
    scores = many.decision_function(clusters())
    assert scores.shape == (N, 4) and (scores.argmax(axis=1) == Y).all()
    np.testing.assert_allclose(scores, np.eye(4)[Y], atol=0.2)
    two = GraphClassifier().fit(clusters(), Y == 0)
    margin = two.decision_function(clusters())
    assert margin.shape == (N,) and ((margin > 0) == (Y == 0)).all()


def test_n_components_is_that_of_the_embedding():
    assert GraphClassifier().fit(clusters(), Y).embedding_.n_components == 4
    model = GraphClassifier(n_components=2).fit(clusters(), Y)
    assert model.embedding_.transform(clusters()).shape == (N, 2)
    settings = {"kernel": "gaussian", "bandwidth": 0.7, "regularization": 0.2, "chunk_size": 9}
    inner = GraphClassifier(**settings).fit(clusters(), Y).embedding_.get_params()
    assert {name: inner[name] for name in settings} == settings


# --- the head


@pytest.mark.parametrize("regularization", [0.0, 1e-3, 0.5])
def test_ridge_head_against_a_descent_on_its_objective(regularization):
    Z, T = naive.points(20, 3, seed=1), naive.points(20, 2, seed=2)

    def loss(flat):
        W, b = flat[:6].reshape(3, 2), flat[6:]
        return np.square(Z @ W + b - T).sum() / 20 + regularization * np.square(W).sum()

    W, b = ridge_head(Z, T, regularization)
    best = minimize(loss, np.zeros(8), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(np.append(W.ravel(), b), best.x, atol=1e-6)


@pytest.mark.parametrize("regularization", [0.0, 0.1])
def test_ridge_head_against_least_squares(regularization):
    """Rows sqrt(n lambda) e_k with target 0 stand for the penalty; the offset has none."""
    Z, T = naive.points(15, 3, seed=1), naive.points(15, 2, seed=2)
    rows = np.concatenate([np.c_[Z, np.ones(15)], np.eye(3, 4) * np.sqrt(15 * regularization)])
    expected = torch.linalg.lstsq(
        torch.as_tensor(rows), torch.as_tensor(np.concatenate([T, np.zeros((3, 2))]))
    ).solution.numpy()
    W, b = ridge_head(Z, T, regularization)
    np.testing.assert_allclose(np.concatenate([W, b[None]]), expected, atol=1e-9)


def test_ridge_head_leaves_columns_of_zeros_without_weight():
    Z = np.c_[naive.points(10, 2), np.zeros(10)]
    W, b = ridge_head(Z, naive.points(10, 1, seed=2), 0.0)
    expected, _ = ridge_head(Z[:, :2], naive.points(10, 1, seed=2), 0.0)
    np.testing.assert_allclose(W, np.append(expected, [[0.0]], axis=0), atol=1e-9)
    W, b = ridge_head(np.zeros((4, 2)), np.arange(4.0)[:, None], 0.0)
    assert np.abs(W).max() == 0 and b[0] == 1.5


# --- probabilities


def nearest_by_enumeration(row):
    """The projection on the simplex: the best over every set of coordinates that may be above 0."""
    best, where = np.inf, None
    for mask in range(1, 2 ** len(row)):
        support = [k for k in range(len(row)) if mask >> k & 1]
        candidate = np.zeros(len(row))
        candidate[support] = row[support] + (1 - row[support].sum()) / len(support)
        distance = np.square(candidate - row).sum()
        if candidate.min() >= 0 and distance < best:
            best, where = distance, candidate
    return where


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("classes", [1, 2, 3, 6])
def test_the_nearest_probabilities(classes, scale):
    scores = scale * naive.points(40, classes, seed=classes)
    scores[0] = 0.0  # ties
    found = on_simplex(scores)
    expected = np.array([nearest_by_enumeration(row) for row in scores])
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("count", [2, 4])
def test_probabilities_of_a_classifier(count):
    y = Y % count
    model = GraphClassifier(bandwidth=2.0).fit(clusters(), y)
    new = clusters(seed=8) * 1.3
    proba = model.predict_proba(new)
    assert proba.shape == (N, count) and (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert (model.classes_[proba.argmax(axis=1)] == model.predict(new)).all()
    scores = model.embedding_.transform(new) @ model.coef_ + model.intercept_
    expected = np.array([nearest_by_enumeration(row) for row in scores])
    np.testing.assert_allclose(proba, expected, atol=1e-10)
