"""Bad input is refused with the argument, the value and the remedy, before work starts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from likewise import Graph
from likewise.kernel import AbsoluteRegressor, GraphClassifier, SpectralEmbedding, estimator
from tests.kernel import naive

N = 8
X = naive.points(N)
Y = np.array([0, 1, 0, 1, 2, 2, 0, 1])
ESTIMATORS = [SpectralEmbedding, GraphClassifier, AbsoluteRegressor]


def with_entry(array, value):
    changed = np.array(array, dtype=float)
    changed.flat[3] = value
    return changed


def lopsided():
    matrix = naive.same(Y)
    matrix[2, 5] = 0.25
    return matrix


def half_stored():
    return sparse.coo_matrix(([1.0, 1.0, 2.0], ([0, 1, 2], [1, 0, 4])), shape=(N, N))


def crooked(x, y):
    return float(np.exp(-np.abs(x - y).sum()) + 0.1 * x[0])


def undefined(x, y):
    return float("nan")


@pytest.fixture
def no_work(monkeypatch):
    """Features that must not be asked for."""

    def fail(*_, **__):
        raise AssertionError("work has started")

    for name in ("LandmarkMap", "FourierMap", "LinearMap", "median_distance"):
        monkeypatch.setattr(estimator, name, fail)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regularization": -0.5}, r"regularization is -0\.5.*at least 0"),
        ({"regularization": np.nan}, r"regularization is nan.*at least 0"),
        ({"regularization": "much"}, r"regularization is 'much'.*number"),
        ({"bandwidth": 0}, r"bandwidth is 0.*above 0, or None"),
        ({"bandwidth": -1.0}, r"bandwidth is -1\.0.*give a number"),
        ({"bandwidth": np.inf}, r"bandwidth is inf.*give a number"),
        ({"kernel": "lapalce"}, r"kernel is 'lapalce'.*function.*'laplace'"),
        ({"kernel": "precomputed"}, r"kernel is 'precomputed'"),
        ({"solver": "magic"}, r"solver is 'magic'.*exact, nystrom, fourier"),
        ({"solver": "fourier", "kernel": "polynomial"}, r"'fourier'.*'polynomial'.*'nystrom'"),
        ({"solver": "fourier", "kernel": "cosine"}, r"'fourier'.*'cosine'.*laplace and gaussian"),
        ({"n_features": 0}, r"n_features is 0.*above 0"),
        ({"n_features": 1}, r"n_features is 1.*at least 2"),
        ({"n_features": 10.5}, r"n_features is 10\.5.*whole number"),
        ({"chunk_size": 0}, r"chunk_size is 0.*above 0"),
        ({"random_state": None}, r"random_state is None.*whole number"),
    ],
)
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_settings(estimator_class, settings, message):
    with pytest.raises(ValueError, match=message):
        estimator_class(**settings).fit(X, Y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, r"n_components is 0.*above 0"),
        ({"n_components": -2}, r"n_components is -2.*above 0"),
        ({"n_components": 1.5}, r"n_components is 1\.5.*whole number"),
        ({"n_components": True}, r"n_components is True.*whole number"),
        ({"objective": "simclr"}, r"objective is 'simclr'.*vic2.*simclr_optimum"),
        ({"n_neighbors": 0}, r"n_neighbors is 0.*above 0"),
        ({"masked": True, "objective": "whitening"}, r"masked is True.*'whitening'.*'vic2'"),
    ],
)
def test_settings_of_the_embedding(settings, message):
    for call in (SpectralEmbedding(**settings).fit, SpectralEmbedding(**settings).partial_fit):
        with pytest.raises(ValueError, match=message):
            call(X, Y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, r"n_components is 0.*above 0"),
        ({"head_regularization": -1}, r"head_regularization is -1.*at least 0"),
    ],
)
def test_settings_of_the_classifier(settings, message):
    with pytest.raises(ValueError, match=message):
        GraphClassifier(**settings).fit(X, Y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_no_numbers(estimator_class, value):
    with pytest.raises(ValueError, match="(?i)nan|infinity"):
        estimator_class().fit(with_entry(X, value), Y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Graph.identity(5), r"graph has 5 nodes, but X has 8 rows.*one row per node"),
        (Graph.identity(5).views(2), r"graph has 10 nodes in 2 views each, but X has 8 rows"),
        (np.eye(5), r"y has shape \(5, 5\), but X has 8 rows"),
        (naive.signed_matrix([0, 1, 1]).astype(int), r"y has shape \(3, 3\), but X has 8 rows"),
        (sparse.eye(5, format="csr"), r"graph has 5 nodes, but X has 8 rows"),
        (Y[:5], r"y has shape \(5,\), but X has 8 rows"),
        (np.arange(5.0) / 7, r"y has shape \(5,\), but X has 8 rows"),
        (lopsided(), r"not symmetric.*\(2, 5\) is 0\.25.*\(5, 2\) is 0.*\(G \+ G\.T\) / 2"),
        (half_stored(), r"not symmetric.*one of \(2, 4\) and \(4, 2\).*\(G \+ G\.T\) / 2"),
        (with_entry(np.eye(N), np.nan), r"y holds NaN or infinity.*finite.*-1"),
        (sparse.csr_matrix(with_entry(np.eye(N), np.inf)), r"NaN or infinity"),
        (with_entry(np.arange(N) / 7, np.nan), r"y holds NaN"),
        (np.zeros((N, 2, 2)), r"y has shape \(8, 2, 2\).*labels"),
        (np.array([0, 1, -2, 1] * 2).reshape(N, 1) * np.ones((1, 3), dtype=int), r"nonnegative"),
    ],
)
def test_graphs(y, message):
    with pytest.raises(ValueError, match=message):
        SpectralEmbedding().fit(X, y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("y", "templates", "message"),
    [
        (Graph.from_labels(Y), None, r"y is a graph.*give templates=\{name: number of a row"),
        (Graph.from_labels(Y), {}, r"give templates"),
        (Graph.from_labels(Y), {"a": 0, "b": None}, r"class 'b' has no template.*number of one"),
        (Graph.from_labels(Y), {"a": 0, "b": 8}, r"template of class 'b' is 8.*one of the 8 rows"),
        (Graph.from_labels(Y), {"a": -1}, r"template of class 'a' is -1.*one of the 8 rows"),
        (Graph.from_labels(Y), {"a": 1.0}, r"template of class 'a' is 1\.0"),
        (Graph.from_labels(Y), {"a": True}, r"template of class 'a' is True"),
        (Graph.from_labels(Y), {"a": 3, "b": 3}, r"'a': 3, 'b': 3.*one row.*two classes"),
        (Graph.identity(5), {"a": 0}, r"graph has 5 nodes, but X has 8 rows"),
        (lopsided(), {"a": 0}, r"not symmetric"),
        (naive.same(Y), None, r"y has shape \(8, 8\) for 8 rows.*a graph and templates"),
        (np.full(N, -1), None, r"every label is -1.*at least one label"),
        (Y[:5], None, r"y has shape \(5,\) for 8 rows.*one label per row"),
        (np.arange(N) / 7, None, r"Unknown label type"),
        (with_entry(Y, np.nan), None, r"y holds NaN"),
        (None, None, r"requires y to be passed"),
    ],
)
def test_labels_and_templates(y, templates, message):
    with pytest.raises(ValueError, match=message):
        GraphClassifier().fit(X, y, templates=templates)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:5] * 1.0, r"y has 5 targets, but X has 8 rows"),
        (with_entry(X, np.nan), r"y holds NaN or infinity"),
        (None, r"requires y to be passed"),
        (np.zeros((N, 2, 2)), r"y has shape \(8, 2, 2\)"),
    ],
)
def test_targets(y, message):
    with pytest.raises(ValueError, match=message):
        AbsoluteRegressor().fit(X, y)


def test_a_graph_of_another_size_for_the_relative_loss():
    with pytest.raises(ValueError, match="graph has 5 nodes, but X has 8 rows"):
        AbsoluteRegressor().fit(X, X).relative_loss(Graph.identity(5))


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize("kernel", [crooked, undefined])
def test_a_kernel_without_symmetry(estimator_class, kernel):
    message = f"kernel .*{kernel.__name__}.*not symmetric.*" + re.escape("k(x, y) = k(y, x)")
    for solver in ("exact", "nystrom"):
        with pytest.raises(ValueError, match=message):
            estimator_class(kernel=kernel, solver=solver).fit(X, Y)


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize("solver", ["exact", "fourier"])
def test_parameters_that_the_kernel_has_not(estimator_class, kernel, solver):
    model = estimator_class(kernel=kernel, solver=solver, kernel_params={"gamma": 2.0})
    with pytest.raises(ValueError, match=r"kernel_params is \{'gamma': 2.0\}.*bandwidth"):
        model.fit(X, Y)


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_before_a_fit(estimator_class):
    model = estimator_class()
    name = "transform" if estimator_class is SpectralEmbedding else "predict"
    with pytest.raises(NotFittedError):
        getattr(model, name)(X)
    with pytest.raises(NotFittedError):
        SpectralEmbedding.merge([SpectralEmbedding()])


def test_labels_that_are_all_unknown():
    with pytest.raises(ValueError, match=r"every label is -1.*give at least one label"):
        SpectralEmbedding().fit(X, np.full(N, -1))
