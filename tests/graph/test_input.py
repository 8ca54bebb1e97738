"""Bad input is refused with the argument, the value and the remedy; large input works."""

import numpy as np
import pytest
import torch

from likewise import Graph


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Graph.identity(0), r"n is 0.*at least one"),
        (lambda: Graph.from_labels(torch.tensor([0, 5]), n_classes=3), r"0 to 5.*0 to 2.*-1"),
        (lambda: Graph.from_labels(torch.tensor([0, -2])), r"labels run from -2.*-1 for unknown"),
        (lambda: Graph.from_labels(torch.tensor([0.5, 1.0])), r"dtype torch.float32.*class numb"),
        (lambda: Graph.from_labels(torch.zeros(0, dtype=torch.long)), r"labels are empty"),
        (lambda: Graph.from_labels(torch.tensor([[0.5, -0.5]])), r"nonnegative.*from_targets"),
        (lambda: Graph.from_labels(torch.eye(3), n_classes=2), r"3 columns.*n_classes is 2"),
        (
            lambda: Graph.from_labels(torch.tensor([0, 1]), class_weights=torch.ones(3)),
            r"class_weights have shape \(3,\) for 2 classes",
        ),
        (lambda: Graph.from_targets(torch.tensor([1.0, torch.nan])), r"targets.*finite"),
        (lambda: Graph.from_edges([0, 1], [1]), r"i has 2 ends and j has 1"),
        (lambda: Graph.from_edges([0.5], [1]), r"i has shape.*node numbers"),
        (lambda: Graph.from_edges([0], [1], [1.0, 2.0]), r"weight has shape \(2,\) for 1 edges"),
        (lambda: Graph.from_edges([0], [1], [np.nan]), r"weight holds NaN"),
        (lambda: Graph.from_edges([0], [5], n=3), r"nodes from 0 to 5, but n is 3"),
        (lambda: Graph.from_edges([-1], [0], n=3), r"nodes from -1"),
        (
            lambda: Graph.from_edges([0, 1], [1, 0], [1.0, -1.0]),
            r"pair \(0, 1\) is given twice, with weights 1.0 and -1.0.*symmetric",
        ),
        (lambda: Graph.from_neighbors(torch.zeros(3, 2), k=3), r"k is 3.*1 to 2"),
        (lambda: Graph.from_neighbors(torch.full((3, 2), torch.nan), k=1), r"x has shape"),
        (lambda: Graph.from_loss(torch.tensor([0, 1]), "hinge"), r"loss is 'hinge'.*zero-one"),
        (
            lambda: Graph.from_loss(torch.tensor([0, 1]), "zero-one", form="bare"),
            r"form is 'bare'.*raw",
        ),
        (lambda: Graph.from_loss(torch.tensor([[0, 0]]), "kendall"), r"permutation of 0..1"),
        (lambda: Graph.from_loss(torch.ones(3, 2), "absolute"), r"finite number per sample"),
        (lambda: Graph.identity(3) @ torch.ones(4, 2), r"z has shape \(4, 2\).*3 nodes.*views"),
        (lambda: Graph.identity(3) + Graph.identity(4), r"graphs over 3 and 4 nodes"),
        (lambda: Graph.identity(3).views(0), r"n_views is 0"),
        (lambda: Graph.identity(30_000).dense(), r"too large.*block"),
        (lambda: Graph.identity(3).entries([0], [1, 2]), r"i has 1 indices and j has 2"),
        (lambda: Graph.identity(3).subset(torch.tensor([True, False])), r"mask of shape \(2,\)"),
        (lambda: Graph.identity(3).subset(torch.tensor([0.5])), r"node numbers, or a mask"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_index_out_of_range():
    with pytest.raises(IndexError, match="rows runs from 0 to 7, but the graph has 3 nodes"):
        Graph.identity(3).block(torch.tensor([0, 7]))


def test_the_same_answer_twice_is_one_answer():
    graph = Graph.from_edges([0, 1, 0], [1, 0, 1], [1.0, 1.0, 1.0])
    assert graph.n_edges == 1 and graph.dense().tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_numpy_graph_answers_in_numpy():
    graph = 0.5 * Graph.from_labels(np.array([0, 1, 0])) + Graph.from_labels(np.array([0, 0, 1]))
    for answer in (graph.degrees(), graph.dense(), graph.diagonal(), graph.views(2).dense()):
        assert isinstance(answer, np.ndarray)
    assert isinstance(graph.block(np.array([0, 1])), np.ndarray)
    assert isinstance(graph.to("cpu").degrees(), torch.Tensor)
    assert isinstance(graph @ torch.ones(3), torch.Tensor)


def test_ten_million_nodes():
    n = 10_000_000
    labels = torch.arange(n) % 1000
    graph = Graph.from_labels(labels)
    product = graph @ torch.ones(n, 1)
    assert product.shape == (n, 1) and bool((product == n // 1000).all())
    rows = torch.tensor([0, 1, 1000, n - 1])
    assert graph.block(rows).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]
    assert graph.subset(rows).n == 4


def test_ten_million_edges():
    # A ring with weights: every node is alike to the next one.
    n = 10_000_000
    nodes = torch.arange(n)
    graph = Graph.from_edges(nodes, (nodes + 1) % n)
    product = graph @ torch.ones(n, 1)
    assert bool((product == 2).all())
    assert graph.block(torch.tensor([0, 1]), torch.tensor([n - 1, 2])).tolist() == [[1, 0], [0, 1]]
    assert graph.subset(torch.tensor([5, 6, 9])).dense().int().tolist() == [
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, 0],
    ]


def test_close_views_keep_their_digits():
    """ERRATA: 2 - 2 a.b loses 40 % at a distance of 1e-3; differences do not."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(64, 128, generator=generator).double().repeat_interleave(2, dim=0)
    z = 30 * torch.nn.functional.normalize(z, dim=1)
    z = z + 1e-3 * torch.randn(128, 128, generator=generator).double()
    z = z.float().double()  # the rows that float32 sees
    exact = 2 * (z[0::2] - z[1::2]).square().sum().item()
    pairs = Graph.identity(64).views(2).pairs()
    assert pairs.energy(z.float(), z.float()).item() == pytest.approx(exact, rel=1e-4)
