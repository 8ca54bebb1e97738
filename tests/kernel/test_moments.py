"""Sums over rows: whole, in parts, over workers, and in little memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed

from likewise import Graph
from likewise.kernel import SpectralEmbedding
from tests.kernel import naive

pytestmark = pytest.mark.filterwarnings("ignore:n_components is:UserWarning")

N = 60
SETTINGS = {
    "fourier": {"solver": "fourier", "bandwidth": 1.0, "n_features": 24},
    "nystrom": {"solver": "nystrom", "bandwidth": 1.0, "n_features": 24},
    "linear": {"kernel": "linear"},
}
LABELS = {
    "numbers": np.arange(N) % 4,
    "unknown": np.where(np.arange(N) % 3 == 0, -1, np.arange(N) % 4),
    "floats": np.where(np.arange(N) % 3 == 0, -1.0, np.arange(N) % 4),
    "strings": np.array(["cat", "dog", "emu"])[np.arange(N) % 3],
    "objects": np.array(["cat", "dog", "emu"], dtype=object)[np.arange(N) % 3],
    "booleans": np.arange(N) % 2 == 0,
    # Every class in one part of the data only.
    "sorted": np.arange(N) // 15,
}


def agree(one, other, X, *, rtol=1e-8):
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=rtol, atol=1e-9)
    assert one.loss_ == pytest.approx(other.loss_, rel=rtol)
    a, b = one.transform(X), other.transform(X)
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-6)


def in_parts(model, X, y, bounds):
    edges = [0, *sorted(bounds), len(X)]
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        if stop > start:
            model.partial_fit(X[start:stop], y[start:stop])
    return model


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("solver", ["fourier", "linear"])
def test_parts_are_the_whole(solver, kind):
    X, y = naive.points(N), LABELS[kind]
    model = SpectralEmbedding(3, regularization=0.05, **SETTINGS[solver])
    whole = SpectralEmbedding(3, regularization=0.05, **SETTINGS[solver]).fit(X, y)
    agree(in_parts(model, X, y, [7, 8, 31]), whole, X)
    assert model.moments_.count == N


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, N), max_size=6), st.integers(1, 70))
def test_any_split_in_any_chunks(bounds, chunk):
    X, y = naive.points(N), LABELS["unknown"]
    whole = SpectralEmbedding(2, **SETTINGS["fourier"]).fit(X, y)
    parts = SpectralEmbedding(2, chunk_size=chunk, **SETTINGS["fourier"])
    agree(in_parts(parts, X, y, bounds), whole, X)


def test_landmarks_stay_those_of_the_first_part():
    """The same functions as a fit to all rows with these landmarks."""
    X, y = naive.points(N), LABELS["numbers"]
    parts = in_parts(SpectralEmbedding(3, **SETTINGS["nystrom"]), X, y, [30])
    L = parts.feature_map_.landmarks
    assert L.shape == (24, 3) and all((row == X[:30]).all(axis=1).any() for row in L)
    inner = np.linalg.cholesky(np.exp(-np.linalg.norm(L[:, None] - L, axis=2)))
    F = np.linalg.solve(inner, np.exp(-np.linalg.norm(L[:, None] - X, axis=2))).T
    loss, Z = naive.minimum_by_descent(F, naive.same(y), 1e-3, 3)
    assert parts.loss_ == pytest.approx(loss, rel=1e-7)
    found = parts.transform(X)
    np.testing.assert_allclose(found @ found.T, Z @ Z.T, atol=1e-3)


def work(model, X, y):
    return model.partial_fit(X, y)


@pytest.mark.parametrize("kind", ["unknown", "strings", "sorted"])
def test_workers_are_the_whole(kind):
    """Real processes, each with other rows; classes that only one of them sees."""
    X, y = naive.points(N), LABELS[kind]
    empty = SpectralEmbedding(3, **SETTINGS["fourier"])
    parts = Parallel(n_jobs=2)(
        delayed(work)(empty, X[rows], y[rows]) for rows in np.array_split(np.arange(N), 3)
    )
    merged = SpectralEmbedding.merge(parts)
    agree(merged, SpectralEmbedding(3, **SETTINGS["fourier"]).fit(X, y), X)
    assert merged.n_features_in_ == 3 and merged.get_params() == empty.get_params()
    # The order of the parts does not matter, and merging leaves them as they were.
    counts = [part.moments_.count for part in parts]
    agree(SpectralEmbedding.merge(parts[::-1]), merged, X)
    assert [part.moments_.count for part in parts] == counts == [20, 20, 20]


def test_a_merged_estimator_goes_on():
    X, y = naive.points(N), LABELS["unknown"]
    parts = [
        SpectralEmbedding(2, **SETTINGS["fourier"]).partial_fit(X[rows], y[rows])
        for rows in (slice(0, 20), slice(20, 40))
    ]
    merged = SpectralEmbedding.merge(iter(parts)).partial_fit(X[40:], y[40:])
    agree(merged, SpectralEmbedding(2, **SETTINGS["fourier"]).fit(X, y), X)


def test_graphs_of_parts_are_blocks():
    """Pairs across calls count as not alike."""
    X = naive.points(N)
    blocks = [naive.random_matrix(30, seed) for seed in (1, 2)]
    parts = SpectralEmbedding(2, **SETTINGS["fourier"])
    parts.partial_fit(X[:30], Graph.from_matrix(blocks[0])).partial_fit(X[30:], blocks[1])
    G = np.zeros((N, N))
    G[:30, :30], G[30:, 30:] = blocks
    agree(parts, SpectralEmbedding(2, **SETTINGS["fourier"]).fit(X, G), X, rtol=1e-5)


def test_labels_and_graphs_may_follow_one_another():
    X, y = naive.points(N), LABELS["numbers"]
    parts = SpectralEmbedding(2, **SETTINGS["fourier"])
    parts.partial_fit(X[:20], y[:20]).partial_fit(X[20:40], 3.0 * Graph.identity(20))
    parts.partial_fit(X[40:], y[40:])
    G = np.zeros((N, N))
    ends = np.r_[0:20, 40:60]
    G[np.ix_(ends, ends)] = naive.same(y[ends])
    G[20:40, 20:40] = 3 * np.eye(20)
    agree(parts, SpectralEmbedding(2, **SETTINGS["fourier"]).fit(X, G), X, rtol=1e-5)


def test_a_column_of_labels_goes_on_as_well():
    X, y = naive.points(N), LABELS["numbers"]
    parts = in_parts(SpectralEmbedding(2, **SETTINGS["fourier"]), X, y[:, None], [20, 40])
    agree(parts, SpectralEmbedding(2, **SETTINGS["fourier"]).fit(X, y), X)


def test_whitened_parts_are_whitened_over_all_rows():
    X, y = naive.points(N), LABELS["numbers"]
    whitening = {**SETTINGS["fourier"], "objective": "whitening"}
    Z = in_parts(SpectralEmbedding(2, **whitening), X, y, [20, 30]).transform(X)
    np.testing.assert_allclose(Z.T @ Z, N * np.eye(2), atol=1e-6)


# --- what cannot be added up ----------------------------------------------------------------------


def part(**changes):
    settings = {**SETTINGS["fourier"], **changes}
    return SpectralEmbedding(2, **settings).partial_fit(naive.points(N), LABELS["numbers"])


@pytest.mark.parametrize(
    "changes",
    [
        {"random_state": 1},
        {"bandwidth": 2.0},
        {"n_features": 30},
        {"kernel": "gaussian"},
        {"solver": "nystrom"},
        {"kernel": "linear"},
    ],
)
def test_parts_with_different_features_are_refused(changes):
    with pytest.raises(ValueError, match="different features.*same settings.*bandwidth"):
        SpectralEmbedding.merge([part(), part(**changes)])


@pytest.mark.parametrize("changes", [{"bandwidth": 2.0}, {"kernel": "gaussian"}])
def test_landmarks_alone_are_not_the_features(changes):
    with pytest.raises(ValueError, match="different features"):
        SpectralEmbedding.merge([part(solver="nystrom"), part(solver="nystrom", **changes)])


def test_nothing_to_merge():
    with pytest.raises(ValueError, match="nothing to merge"):
        SpectralEmbedding.merge([])


@pytest.mark.parametrize(
    "changes", [{"masked": True}, {"objective": "relative"}, {"objective": "barlow-twins"}]
)
def test_what_needs_the_whole_graph_is_refused(changes):
    with pytest.raises(ValueError, match="need the whole graph; use fit"):
        part(**changes)
    X, y = naive.points(N), LABELS["numbers"]
    fitted = [SpectralEmbedding(2, **{**SETTINGS["fourier"], **changes}).fit(X, y)] * 2
    with pytest.raises(ValueError, match="need the whole graph; use fit"):
        SpectralEmbedding.merge(fitted)


def test_the_exact_solver_takes_all_rows_at_once():
    model = SpectralEmbedding(2, solver="exact")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as error:
        model.partial_fit(naive.points(N), LABELS["numbers"])
    assert "solver is 'exact', which needs all rows at once" in str(error.value.__cause__)
    assert hasattr(SpectralEmbedding(2, solver="exact", kernel="linear"), "partial_fit")


def test_parts_of_another_width_or_length():
    model = part()
    with pytest.raises(ValueError, match="4 features"):
        model.partial_fit(naive.points(10, 4), np.zeros(10, dtype=int))
    with pytest.raises(ValueError, match="y has 9 labels, but X has 10 rows"):
        model.partial_fit(naive.points(10), np.zeros(9, dtype=int))
    assert model.moments_.count == N


# --- memory ---------------------------------------------------------------------------------------

LARGE = """
import resource, sys, time, warnings
import numpy as np
from likewise import Graph
from likewise.kernel import SpectralEmbedding
rng = np.random.default_rng(0)
n = 200_000
X = rng.normal(size=(n, 50)).astype(np.float32)
y = rng.integers(0, 10, n)
i = rng.integers(0, n, 100_000)
graphs = {
    "labels": y,
    "edges": Graph.from_edges(i, (i + 1) % n, rng.choice([-1.0, 1.0], n)[i], n=n),
}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, started = peak(), time.time()
model = SpectralEmbedding(2, kernel="gaussian", solver=sys.argv[1], n_features=64, bandwidth=5.0)
model.fit(X, graphs[sys.argv[2]]).transform(X)
print(peak() - before, time.time() - started)
"""


@pytest.mark.parametrize(("solver", "graph"), [("fourier", "labels"), ("nystrom", "edges")])
def test_two_hundred_thousand_rows(solver, graph):
    """A matrix of all pairs would be 320 GB, and features of all rows 100 MB."""
    command = [sys.executable, "-c", LARGE, solver, graph]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    megabytes, seconds = map(float, done.stdout.split())
    assert megabytes < 500
    assert seconds < 60
