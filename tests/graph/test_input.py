"""Bad input is refused with the argument, the value and the remedy; large input works."""

import pickle

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
        (lambda: Graph.from_edges([0, 0], [1, 1], [1.0, 2.0]), r"given twice.*1.0 and 2.0"),
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
    with pytest.raises(IndexError, match="rows runs from -4 to 0, but the graph has 3 nodes"):
        Graph.identity(3).block(torch.tensor([0, -4]))


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


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: Graph.from_labels(kind([0, 1, 0])),
        lambda kind: Graph.from_targets(kind([1.0, 2.0, 0.0])),
        lambda kind: Graph.from_edges(kind([0, 1]), kind([1, 2])),
        lambda kind: Graph.from_neighbors(kind([[1.0], [2.0], [0.0]]), k=1),
        lambda kind: Graph.from_loss(kind([1.0, 2.0, 0.0]), "absolute"),
    ],
    ids=["labels", "targets", "edges", "neighbors", "loss"],
)
def test_every_constructor_answers_in_the_kind_it_was_given(make):
    arrays, tensors = make(np.array), make(torch.tensor)
    assert isinstance(arrays.degrees(), np.ndarray)
    assert isinstance(tensors.degrees(), torch.Tensor)
    assert isinstance((arrays + tensors).degrees(), torch.Tensor)
    assert isinstance((tensors + arrays).degrees(), torch.Tensor)


def test_half_precision_is_summed_in_float32():
    product = Graph.from_labels(torch.zeros(301, dtype=torch.long)) @ torch.ones(301, 1).bfloat16()
    assert product.dtype == torch.float32 and bool((product == 301).all())


def test_nothing_is_left_of_a_removed_diagonal_in_float64():
    bare = (0.1 * Graph.identity(3) + 0.7 * Graph.from_labels(torch.arange(3))).without_diagonal()
    assert (bare @ torch.eye(3, dtype=torch.float64)).abs().max() < 1e-15


def test_one_graph_keeps_its_several_kinds_of_pairs_apart():
    """What a graph remembers of one question is not the answer to another."""
    graph = Graph.identity(2).views(2)
    z = torch.arange(1.0, 5.0)[:, None]
    for _ in range(2):
        assert (graph.pairs(self_pairs=True) @ z)[:, 0].tolist() == [3.0, 3.0, 7.0, 7.0]
        assert (graph.pairs() @ z)[:, 0].tolist() == [2.0, 1.0, 4.0, 3.0]
        assert (graph.pairs(1) @ z[:2])[:, 0].tolist() == [0.0, 1.0, 0.0, 2.0]


def test_an_energy_in_float32_leaves_float64_its_digits():
    graph = Graph.from_labels(torch.tensor([0, 0, 0, 1, 1]), balance=0.5).views(2)
    z = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double()
    graph.pairs().energy(z.float(), z.float())
    distances = (z[:, None] - z[None]).square().sum(-1)
    expected = (graph.block(torch.arange(10), dtype=torch.float64) * distances).sum().item()
    assert graph.pairs().energy(z, z).item() == pytest.approx(expected, rel=1e-12)


def test_no_positive_is_made_of_round_off():
    """Node 0 differs from all: -0.7 - 0.2 + 0.7 + 0.2 is not 0 in floating point."""
    i, j, weight = torch.tensor([0, 0, 3]), torch.tensor([1, 2, 4]), [-0.7, -0.2, 1.0]
    for dtype in (torch.float32, torch.float64):
        for given in (torch.float32, torch.float64):
            pairs = Graph.from_edges(i, j, torch.tensor(weight, dtype=given)).pairs()
            assert pairs.positive_row_sums(dtype).tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]


def test_rows_that_differ_in_one_place_have_no_direction_to_part_in():
    pairs = Graph.from_edges([0], [1], [-1.0]).pairs()
    z = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    pull, push = pairs.attraction(z, z, margin=2.0)
    pull.add(push).backward()
    assert push.item() == 8.0 and z.grad.abs().max() == 0


def test_changed_pairs_of_views_want_as_many_target_views():
    graph = Graph.identity(3).views(2).without_diagonal()
    with pytest.raises(ValueError, match="target has 3 views a sample"):
        graph.pairs(3)


def test_chunks_of_edges_add_up(monkeypatch):
    from likewise.graph import edges

    graph = Graph.from_neighbors(torch.randn(8, 2, generator=torch.Generator().manual_seed(0)), k=2)
    z = torch.randn(8, 3, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
    values = []
    for chunk in (10**6, 3):
        monkeypatch.setattr(edges, "ENERGY_CHUNK", chunk)
        value = graph.pairs().energy(z, z)
        values.append((value.detach(), *torch.autograd.grad(value, z)))
    torch.testing.assert_close(values[1], values[0])


def test_tiles_of_rows_agree_with_one_tile(monkeypatch):
    from likewise.graph import inner, kind, neighbors

    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)).double()
    answers = []
    for rows in (1024, 2):
        monkeypatch.setattr(kind, "TILE_ROWS", rows)
        monkeypatch.setattr(neighbors, "TILE_ROWS", rows)
        monkeypatch.setattr(inner, "COLUMNS", rows)
        graph = Graph.from_targets(x)
        answers.append(
            [
                graph.degrees(absolute=True),
                graph.norm_squared(),
                *graph.pairs().negative_pairs(torch.float64),
                Graph.from_neighbors(x, k=2).dense(),
            ]
        )
    torch.testing.assert_close(answers[1], answers[0])


def test_neighbors_do_not_depend_on_the_origin():
    """Coordinates that float32 holds exactly, near 0 and far from it."""
    x = torch.randint(0, 512, (64, 2), generator=torch.Generator().manual_seed(0)) / 64.0
    near, far = Graph.from_neighbors(x, k=3), Graph.from_neighbors(x + 16384.0, k=3)
    torch.testing.assert_close(far.dense(), near.dense())


def test_ties_among_neighbors_go_to_the_lower_index():
    dense = Graph.from_neighbors(torch.zeros(40, 2), k=1).dense()
    assert dense[0].tolist() == [0.0] + [1.0] * 39
    assert dense[1:, 1:].abs().max() == 0


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


def test_a_graph_keeps_its_own_labels():
    labels = torch.tensor([0, 0, 1])
    graph = Graph.from_labels(labels)
    labels[2] = 0
    assert graph.dense().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_a_product_does_not_share_memory_with_its_input():
    z = torch.ones(3, 2)
    (Graph.identity(3) @ z).zero_()
    assert bool((z == 1).all())


def test_numpy_numbers_are_numbers():
    graph = np.float64(2.0) * Graph.identity(np.int64(3)).views(np.int64(2))
    assert graph.dense().sum() == 24


def test_neighbours_of_distant_clusters_in_float32():
    """The product form of distances loses them (ERRATA)."""
    generator = torch.Generator().manual_seed(0)
    centres = 10 * torch.randn(20, 1, 64, generator=generator, dtype=torch.float64)
    noise = 0.01 * torch.randn(20, 10, 64, generator=generator, dtype=torch.float64)
    points = (centres + noise).reshape(-1, 64).float()
    single, exact = Graph.from_neighbors(points, 1), Graph.from_neighbors(points.double(), 1)
    assert (single.dense() != exact.dense()).sum() <= 4


def test_caches_made_in_inference_mode_serve_training():
    graph = (Graph.identity(3) + Graph.from_labels(torch.tensor([0, 1, 0]))).views(2)
    z = torch.randn(6, 2)
    with torch.inference_mode():
        graph.pairs().energy(z, z), graph.pairs().positive_row_sums(torch.float32)
        graph.normalized() @ z, graph.pairs() @ z
    rows = z.clone().requires_grad_()
    energy = graph.pairs().energy(rows, rows) + (graph.normalized() @ rows).sum()
    (energy + (graph.pairs() @ rows).sum()).backward()
    assert rows.grad is not None


def test_a_pickle_holds_no_caches():
    graph = Graph.from_labels(torch.arange(1000) % 7)
    before = len(pickle.dumps(graph))
    graph.known(), graph.normalized(), graph.pairs().row_sums(torch.float64)
    assert len(pickle.dumps(graph)) <= before + 100


def test_a_subset_keeps_the_number_of_classes():
    graph = Graph.from_labels(torch.arange(1000), n_classes=1000).subset(torch.arange(10))
    assert graph.rank == 1000
    assert (graph @ torch.eye(10)).equal(torch.eye(10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Graph.identity(3).views(2.5), r"n_views is 2.5"),
        (lambda: Graph.identity(3) * float("nan"), r"factor of a graph is nan"),
        (lambda: Graph.from_labels(torch.tensor([0]), balance=np.nan), r"balance is nan"),
    ],
)
def test_numbers_without_meaning(call, message):
    with pytest.raises(ValueError, match=message):
        call()
