"""The estimators are scikit-learn's: its checks, pipelines, searches, copies, kinds of data."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from likewise import Graph
from likewise.kernel import AbsoluteRegressor, GraphClassifier, SpectralEmbedding
from tests.kernel import naive

ESTIMATORS = [SpectralEmbedding, GraphClassifier, AbsoluteRegressor]
N = 60
Y = np.random.default_rng(1).integers(0, 3, N)
X = 3 * np.eye(3)[Y] + naive.points(N, 3)


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "auto"},
        {"solver": "exact"},
        {"solver": "nystrom"},
        {"solver": "nystrom", "n_features": 20, "chunk_size": 7},
        {"solver": "fourier", "n_features": 200},
        {"kernel": "gaussian"},
        {"kernel": "polynomial"},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_check_of_scikit_learn_passes(estimator, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator(**settings), on_fail=None, on_skip=None)
    others = {
        result["check_name"]: (result["status"], result["exception"])
        for result in results
        if result["status"] != "passed"
    }
    assert len(results) > 40 and not others


# --- pipelines and searches


def test_a_pipeline():
    model = make_pipeline(StandardScaler(), SpectralEmbedding(3), LogisticRegression())
    assert model.fit(X, Y).score(X, Y) > 0.95
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(model[:-1].transform(X), model[1].transform(scaled))
    assert cross_val_score(model, X, Y, cv=3).mean() > 0.8


@pytest.mark.parametrize("estimator", [GraphClassifier(), AbsoluteRegressor()])
def test_cross_validation(estimator):
    assert cross_val_score(estimator, X, Y, cv=KFold(3, shuffle=True, random_state=0)).mean() > 0.6


def alignment(model, rows, graph):
    """How well inner products tell who is alike, from the graph of the held-out rows."""
    Z, G = model.transform(rows), graph if isinstance(graph, Graph) else Graph.from_labels(graph)
    assert G.n == len(rows)
    return -float(np.square(Z @ Z.T - np.asarray(G.dense())).mean())


@pytest.mark.parametrize("kind", ["labels", "graph"])
def test_a_search_with_labels_and_with_a_graph(kind):
    """scikit-learn slices y: a graph is cut to the rows of the fold."""
    y = Y if kind == "labels" else Graph.from_labels(Y)
    grid = {"bandwidth": [0.01, 2.0], "regularization": [1e-3, 50.0]}
    search = GridSearchCV(
        SpectralEmbedding(3), grid, scoring=alignment, cv=KFold(3), error_score="raise"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search.fit(X, y)
    assert search.best_params_ == {"bandwidth": 2.0, "regularization": 1e-3}
    # The scores are those of folds that are made by hand.
    train = np.arange(N) >= 20
    by_hand = SpectralEmbedding(3, bandwidth=2.0, regularization=1e-3).fit(X[train], Y[train])
    place = search.cv_results_["params"].index(search.best_params_)
    assert search.cv_results_["split0_test_score"][place] == pytest.approx(
        alignment(by_hand, X[~train], Y[~train])
    )


def test_a_search_of_the_classifier():
    search = GridSearchCV(GraphClassifier(), {"bandwidth": [0.001, 2.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"bandwidth": 2.0} and search.best_score_ > 0.9


# --- copies


@pytest.mark.parametrize("solver", ["exact", "nystrom", "fourier"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone_and_pickle(estimator, solver):
    model = estimator(solver=solver, n_features=30, regularization=0.01).fit(X, Y)
    answer = model.transform if estimator is SpectralEmbedding else model.predict
    again = pickle.loads(pickle.dumps(model))
    same = again.transform if estimator is SpectralEmbedding else again.predict
    np.testing.assert_array_equal(same(X), answer(X))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params() and not hasattr(fresh, "feature_map_")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_fit_forgets_the_one_before(estimator):
    refitted = estimator().fit(naive.points(30, 5), np.arange(30) % 2).fit(X, Y)
    fresh = estimator().fit(X, Y)
    if estimator is SpectralEmbedding:
        np.testing.assert_array_equal(refitted.transform(X), fresh.transform(X))
    else:
        np.testing.assert_array_equal(refitted.predict(X), fresh.predict(X))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitting_leaves_data_and_parameters_alone(estimator):
    rows, labels, model = X.copy(), Y.copy(), estimator(n_features=np.int64(20))
    before = model.get_params()
    model.fit(rows, labels)
    assert model.get_params() == before
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, Y)


# --- kinds of data


def test_names_of_the_columns():
    model = SpectralEmbedding(3).fit(X, Y)
    names = ["spectralembedding0", "spectralembedding1", "spectralembedding2"]
    assert model.get_feature_names_out().tolist() == names
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(N) + 100)
    model = SpectralEmbedding(3).set_output(transform="pandas").fit(frame, Y)
    for found in (model.transform(frame), model.fit_transform(frame, Y)):
        assert isinstance(found, pd.DataFrame)
        assert found.columns.tolist() == names and (found.index == frame.index).all()
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_frames_and_arrays_agree(estimator):
    frame, series = pd.DataFrame(X, columns=list("abc")), pd.Series(Y)
    one, other = estimator().fit(frame, series), estimator().fit(X, Y)
    name = "transform" if estimator is SpectralEmbedding else "predict"
    found = getattr(one, name)(frame)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, getattr(other, name)(X))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_in_tensors_out(dtype):
    rows, labels = torch.as_tensor(X, dtype=dtype), torch.as_tensor(Y)
    embedding = SpectralEmbedding(3).fit(rows, labels)
    classifier = GraphClassifier().fit(rows, labels)
    regressor = AbsoluteRegressor().fit(rows, rows[:, 0])
    for found, shape in [
        (embedding.transform(rows), (N, 3)),
        (SpectralEmbedding(3).fit_transform(rows, labels), (N, 3)),
        (regressor.predict(rows), (N,)),
    ]:
        assert isinstance(found, torch.Tensor) and found.dtype == dtype
        assert found.shape == shape
    for found in (classifier.predict_proba(rows), classifier.decision_function(rows)):
        assert isinstance(found, torch.Tensor)
    assert (np.asarray(classifier.predict(rows)) == Y).mean() > 0.95
    given = X.astype(np.float32) if dtype == torch.float32 else X
    for rows_in in (given, given.tolist()):
        assert isinstance(embedding.transform(rows_in), np.ndarray)
    np.testing.assert_allclose(embedding.transform(rows).numpy(), embedding.transform(given))


def test_tensors_that_want_a_gradient():
    rows = torch.as_tensor(X).requires_grad_()
    found = SpectralEmbedding(2).fit(rows, torch.as_tensor(Y)).transform(rows)
    assert not found.requires_grad
