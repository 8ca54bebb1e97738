import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import Graph
from likewise.diagnostics import components, graph_closeness, known_graph
from tests.diagnostics import naive


def flood(matrix):
    """Components by flooding, numbered by their first nodes."""
    found = [-1] * len(matrix)
    number = 0
    for start in range(len(matrix)):
        if found[start] >= 0:
            continue
        stack = [start]
        while stack:
            node = stack.pop()
            if found[node] < 0:
                found[node] = number
                stack += [other for other in range(len(matrix)) if matrix[node, other] > 0]
        number += 1
    return found


def graphs(seed=0):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(12, 1)
    kept = rng.choice(len(i), 9, replace=False)
    weight = rng.choice([1.0, -1.0, 0.5], 9)
    edges = Graph.from_edges(i[kept], j[kept], weight, n=12)
    positive = Graph.from_edges(i[kept], j[kept], np.ones(9), n=12)
    labels = rng.integers(-1, 4, 12)
    classes = Graph.from_labels(labels)
    return {
        "edges": edges,
        "labels": classes,
        "identity": Graph.identity(12),
        "sum": 0.9 * Graph.identity(12) + 0.1 * classes,
        "answers": 0.5 * classes + 0.2 * positive,
        "signed sum": classes + edges,
        "balanced": Graph.from_labels(labels, balance=1.0),
        "normalized": classes.normalized(),
        "views": (Graph.identity(6) + Graph.from_labels(labels[:6])).views(2),
        "edge views": Graph.from_edges(np.array([0, 2]), np.array([1, 3]), n=6).views(2),
        "targets": Graph.from_targets(rng.normal(size=(12, 2))),
    }


@pytest.mark.parametrize("kind", list(graphs()))
@pytest.mark.parametrize("seed", [0, 1])
def test_components_by_flooding(kind, seed):
    graph = graphs(seed)[kind]
    assert list(components(graph)) == flood(np.asarray(graph.dense()))


def test_components_large():
    n = 200_000
    chain = Graph.from_edges(np.arange(n - 1), np.arange(1, n), n=n)
    assert known_graph(chain).components == 1
    classes = Graph.identity(n) + Graph.from_labels(np.arange(n) % 7)
    found = known_graph(classes, np.arange(n) % 7)
    assert found.components == 7 and found.purity == 1 and found.pieces == 1
    with pytest.raises(ValueError, match="mixed signs"):
        components(classes + Graph.from_edges(np.array([0]), np.array([1]), -1.0, n=n))


def test_known_graph_against_loops():
    graph = graphs(3)["edges"]
    y = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, -1, 0, 1])
    found = known_graph(graph, y)
    where = np.array(flood(np.asarray(graph.dense())))
    groups = [np.flatnonzero(where == c) for c in range(where.max() + 1)]
    assert found.components == len(groups)
    assert found.singletons == sum(len(g) == 1 for g in groups)
    assert found.largest == max(map(len, groups))
    most = [np.bincount(y[g][y[g] >= 0]).max(initial=0) for g in groups]
    assert found.purity == pytest.approx(sum(most) / 11)
    joined = [(m, (y[g] >= 0).sum()) for g, m in zip(groups, most, strict=True) if len(g) > 1]
    assert found.connected_purity == pytest.approx(
        sum(m for m, _ in joined) / sum(k for _, k in joined)
    )
    pieces = [len({where[i] for i in range(12) if y[i] == c}) for c in range(3)]
    assert found.pieces == pytest.approx(np.mean(pieces))
    assert found.impure == sum(len(set(y[g][y[g] >= 0])) > 1 for g in groups)
    assert "1 nodes have no label" in found.notes[0]


def test_known_graph_ends():
    y = np.arange(8) % 2
    alone = known_graph(Graph.identity(8), y)
    assert alone.components == alone.singletons == 8 and alone.pieces == 4
    assert math.isnan(alone.connected_purity) and "no two nodes" in alone.notes[0]
    full = known_graph(Graph.from_labels(y), y)
    assert (full.components, full.purity, full.pieces, full.impure) == (2, 1.0, 1.0, 0)
    wrong = known_graph(Graph.from_labels(np.arange(8) // 4), y)
    assert wrong.purity == 0.5 and wrong.impure == 2
    bare = known_graph(Graph.identity(3))
    assert math.isnan(bare.purity) and "labels are not given" in bare.notes[0]
    none = known_graph(Graph.identity(3), np.full(3, -1))
    assert math.isnan(none.purity)


@pytest.mark.parametrize("kind", list(graphs()))
def test_closeness_against_dense(kind):
    graph = graphs()[kind]
    g = np.float64(np.asarray(graph.dense()))
    z = naive.normal(12, 3, seed=4) + 0.3
    found = graph_closeness(z, graph)
    gram = z @ z.T
    assert found.relative_error == pytest.approx(np.sum((gram - g) ** 2) / np.sum(g**2), rel=1e-5)
    cosine = np.sum(gram * g) / np.linalg.norm(gram) / np.linalg.norm(g)
    assert found.cosine == pytest.approx(cosine, rel=1e-5)
    best = min(np.sum((s * gram - g) ** 2) for s in np.linspace(0, 1, 20001)) / np.sum(g**2)
    assert found.scaled_error == pytest.approx(best, abs=1e-4)
    h = np.eye(12) - 1 / 12
    a, b = h @ gram @ h, h @ g @ h
    expected = np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b)
    assert found.centered_cosine == pytest.approx(expected, rel=1e-4)
    rows = naive.unit(z)
    off = ~np.eye(12, dtype=bool)
    assert found.mean_similarity == pytest.approx(np.mean((rows @ rows.T)[off]))
    alike = np.where(off, g.clip(0), 0)
    if kind == "identity":
        assert math.isnan(found.alike_similarity) and "nobody" in found.notes[0]
    elif kind in ("signed sum", "targets"):
        assert math.isnan(found.alike_similarity) and "negative entries" in found.notes[0]
    else:
        expected = np.sum(alike * (rows @ rows.T)) / np.sum(alike)
        assert found.alike_similarity == pytest.approx(expected, rel=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 10))
def test_closeness_planted_and_invariant(seed, scale):
    """Z = Y R is exact (pal, theorem 2); a rotation changes nothing, a scale not the angles."""
    y = np.random.default_rng(seed).integers(0, 3, 15)
    y[:3] = [0, 1, 2]
    z = np.eye(3)[y] @ naive.orthogonal(3, seed)
    graph = Graph.from_labels(y)
    found = graph_closeness(z, graph)
    assert found.relative_error == pytest.approx(0, abs=1e-10)
    assert found.cosine == pytest.approx(1) and found.centered_cosine == pytest.approx(1)
    scaled = graph_closeness(scale * z, graph)
    assert scaled.cosine == pytest.approx(1)
    assert scaled.relative_error == pytest.approx((scale**2 - 1) ** 2, abs=1e-8)


def test_closeness_undefined_and_errors():
    z = naive.normal(4, 2)
    empty = graph_closeness(z, Graph.from_edges(np.array([], int), np.array([], int), n=4))
    assert math.isnan(empty.relative_error) and "empty" in empty.notes[0]
    zero = graph_closeness(0 * z, Graph.identity(4))
    assert zero.relative_error == 1 and math.isnan(zero.cosine)
    with pytest.raises(ValueError, match="one row per node"):
        graph_closeness(z, Graph.identity(5))
    tensor = graph_closeness(torch.from_numpy(z), Graph.from_labels(torch.tensor([0, 0, 1, 1])))
    assert tensor.cosine == graph_closeness(z, Graph.from_labels(np.array([0, 0, 1, 1]))).cosine
