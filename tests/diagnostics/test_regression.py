import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import Graph
from likewise.diagnostics import confusion_rate, direction_gradients, regression_losses
from likewise.objectives import RelativeRegression
from tests.diagnostics import naive


def scene(seed=0, n=14, dim=4):
    y = np.random.default_rng(seed).integers(0, 3, n)
    return naive.normal(n, dim, seed=seed + 1) + np.eye(3, dim)[y], y


@pytest.mark.parametrize("regularization", [0.001, 0.1, 3.0])
def test_losses_against_ridge_regression(regularization):
    z, y = scene()
    found = regression_losses(z, Graph.from_labels(y), regularization=regularization)
    n, targets = len(z), np.eye(3)[y]
    a, b = naive.centred(z), naive.centred(targets)
    head = np.linalg.solve(a.T @ a + regularization * n * np.eye(4), a.T @ b)
    loss = np.sum((a @ head - b) ** 2) / n + regularization * np.sum(head**2)
    assert found.absolute == pytest.approx(loss)
    assert found.relative == pytest.approx(loss)
    assert found.difference == pytest.approx(0, abs=1e-10)
    assert found.chance == pytest.approx(np.sum(b**2) / n)
    assert found.explained == pytest.approx(1 - loss / found.chance)


def test_losses_of_other_graphs():
    z, y = scene()
    views = regression_losses(z, Graph.identity(7).views(2))
    assert views.difference == pytest.approx(0, abs=1e-10)
    edges = regression_losses(z, Graph.from_edges(np.array([0]), np.array([1]), -1.0, n=14))
    assert math.isnan(edges.absolute) and "absolute loss is undefined" in edges.notes[0]
    assert not math.isnan(edges.relative)
    single = regression_losses(z, Graph.from_labels(np.zeros(14, int)))
    assert math.isnan(single.explained) and "one class" in single.notes[0]
    with pytest.raises(ValueError, match="one row per node"):
        regression_losses(z, Graph.identity(3))


@pytest.mark.parametrize("regularization", [0.01, 1.0])
def test_direction_gradients_by_finite_differences(regularization):
    """Stretch one singular direction at a time and look at the loss itself."""
    z, y = scene()
    graph = Graph.from_labels(y)
    found = direction_gradients(z, graph, regularization=regularization)
    loss = RelativeRegression(regularization)
    left, values, right = np.linalg.svd(naive.centred(z), full_matrices=False)
    assert np.allclose(found.singular_values, values)
    total = 0.0
    for k in range(4):
        ends = []
        for step in (1e-5, -1e-5):
            moved = values.copy()
            moved[k] += step
            ends.append(float(loss(torch.from_numpy(left * moved @ right), graph)))
        assert found.gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-9)
        quadratic = left[:, k] @ np.asarray(graph.dense(), float) @ left[:, k]
        assert found.alignment[k] == pytest.approx(quadratic, rel=1e-6)
        total += found.gain[k]
    losses = regression_losses(z, graph, regularization=regularization)
    assert losses.chance - total == pytest.approx(losses.relative)
    assert found.peak == pytest.approx(math.sqrt(regularization * 14 / 3))


def test_direction_gradients_known_answers():
    """At the peak, far above it and collapsed: the errata on theorem 2."""
    y = np.repeat(np.arange(4), 6)
    targets = naive.centred(np.eye(4)[y])
    basis = np.linalg.svd(targets, full_matrices=False)[0][:, :3]
    peak = math.sqrt(0.01 * 24 / 3)
    z = basis * np.array([peak, 1000 * peak, 0.0])
    found = direction_gradients(z, Graph.from_labels(y))
    strong, weak, dead = (
        found.gradient[np.argmin(np.abs(found.singular_values - s))] for s in (peak, 1000 * peak, 0)
    )
    assert strong < 1e4 * weak < 0 and dead == 0
    assert np.allclose(found.alignment[:2], 6)
    assert found.stalled == pytest.approx(0.5)  # one of the two directions that live
    assert "collapsed" in found.notes[0]
    nothing = direction_gradients(np.ones((5, 2)), Graph.identity(5))
    assert math.isnan(nothing.stalled)
    with pytest.raises(ValueError, match="regularization is"):
        direction_gradients(z, Graph.from_labels(y), regularization=0.0)


@pytest.mark.parametrize(("n_views", "k"), [(2, 1), (4, 1), (4, 3)])
def test_confusion_against_loops(n_views, k):
    z = naive.normal(6, 1, 3) + 0.8 * naive.normal(6, n_views, 3, seed=1)
    z = z.reshape(-1, 3)
    rows = naive.unit(z)
    wrong = []
    for i in range(len(rows)):
        near = sorted((j for j in range(len(rows)) if j != i), key=lambda j: -(rows[i] @ rows[j]))
        wrong.append(np.mean([j // n_views != i // n_views for j in near[:k]]))
    found = confusion_rate(z, n_views=n_views, k=k)
    assert found.rate == pytest.approx(np.mean(wrong)) and 0 < found.rate < 1
    assert found.chance == pytest.approx((6 - 1) * n_views / (6 * n_views - 1))


def test_confusion_known_answers():
    tight = np.repeat(naive.normal(20, 8), 3, axis=0)
    assert confusion_rate(tight + 1e-3 * naive.normal(60, 8, seed=1), n_views=3, k=2).rate == 0
    assert confusion_rate(tight, n_views=3, k=2).rate == 0  # equal views are no trouble
    strangers = confusion_rate(naive.normal(400, 8), n_views=2)
    assert strangers.rate > 0.9 and strangers.chance == pytest.approx(398 / 399)
    # All equal: a view cannot tell its own; the lowest rows win.
    equal = confusion_rate(np.ones((20, 3)), n_views=2)
    assert equal.rate > 0.85
    drawn = confusion_rate(naive.normal(400, 8), n_views=2, max_queries=100, seed=2)
    assert drawn.views == 100 and "100 of 400" in drawn.notes[0]
    assert drawn.rate == pytest.approx(strangers.rate, abs=0.1)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_invariances(seed):
    z, y = scene(seed)
    graph = Graph.from_labels(y)
    turn = naive.orthogonal(4, seed)
    one = regression_losses(z, graph)
    assert regression_losses(z @ turn + 5, graph).relative == pytest.approx(one.relative)
    a, b = direction_gradients(z, graph), direction_gradients(z @ turn - 2, graph)
    assert np.allclose(a.gradient, b.gradient, rtol=1e-5, atol=1e-9)
    assert -1e-12 <= one.relative <= one.chance + 1e-12
    confused = confusion_rate(z, n_views=2)
    assert confusion_rate(3 * z @ turn, n_views=2).rate == pytest.approx(confused.rate)


def test_confusion_errors():
    z = naive.normal(6, 2)
    for arguments, message in [
        ({"n_views": 1}, "at least 2 views"),
        ({"n_views": 4}, "sample by sample"),
        ({"n_views": 2, "k": 2}, "k is 2"),
        ({"n_views": 2, "max_queries": 1}, "max_queries is"),
    ]:
        with pytest.raises(ValueError, match=message):
            confusion_rate(z, **arguments)
