"""Sums over the pairs of the graph have the mean that they have in random batches."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from likewise import Graph
from likewise.objectives import VIC2, NTXent, VICReg
from likewise.training.batches import GraphAwareBatches, ShuffledBatches
from likewise.training.batches.draws import EdgeDraw, LabelDraw
from tests.training.batches import naive

EDGES = {
    "one": (20, [(3, 17)]),
    "matching": (40, [(k, k + 1) for k in range(0, 24, 2)]),
    "path": (16, [(k, k + 1) for k in range(15)]),
    "star": (30, [(0, k) for k in range(1, 16)]),
    "two stars": (40, [(0, k) for k in range(2, 8)] + [(1, k) for k in range(6, 13)]),
    "clique": (40, list(combinations(range(6), 2))),
    "touching everything": (12, [(k, (k + s) % 12) for k in range(12) for s in (1, 5)]),
}


def graph_of_edges(n: int, edges: list[tuple[int, int]]) -> Graph:
    """Signs and sizes of all kinds; also a known 0."""
    i, j = torch.tensor(edges).T
    weight = torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0])[torch.arange(len(edges)) % 5]
    return Graph.from_edges(i, j, weight, n=n)


def partial_labels(n: int, classes: list[int]) -> torch.Tensor:
    """Every third sample has a label, from the first on."""
    labels = torch.full((n,), -1)
    labels[3 * torch.arange(len(classes))] = torch.tensor(classes)
    return labels


def assert_unbiased(
    plan: GraphAwareBatches, graph: Graph, probability: np.ndarray, tolerance: float
) -> None:
    """weight * pi = pi0, entry by entry."""
    n = plan.n
    weighted = plan.graph(torch.arange(n)).dense().double().numpy()
    got = weighted * probability
    expected = graph.dense().double().numpy() * naive.random_batches(n, plan.batch_size)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-9)


def assert_unbiased_on_average(plan: GraphAwareBatches, graph: Graph, batches: int) -> None:
    """The same with frequencies: every entry within 5 standard errors, and all of them
    together."""
    n = plan.n
    indices = []
    epoch = 0
    while len(indices) < batches:
        indices.extend(index.numpy() for index in plan.epoch(epoch))
        epoch += 1
    frequency = naive.frequencies(indices, n)
    weighted = plan.graph(torch.arange(n)).dense().double().numpy()
    dense = graph.dense().double().numpy()
    expected = naive.random_batches(n, plan.batch_size)
    there = dense != 0
    weight = weighted[there] / dense[there]
    probability = expected[there] / weight
    error = np.sqrt(probability * (1 - probability).clip(1e-12) / len(indices)) + 1e-6
    score = (frequency[there] - probability) / error
    assert np.abs(score).max() < 5
    # Scores of a right weight are spread as a standard normal is, or less.
    assert np.square(score).mean() < 1.3


@pytest.mark.parametrize("batch_size", [8, 9])
@pytest.mark.parametrize("name", EDGES)
def test_edges_against_enumeration(name, batch_size):
    n, edges = EDGES[name]
    graph = Graph.identity(n) + graph_of_edges(n, edges)
    plan = GraphAwareBatches(graph, batch_size)
    probability = naive.aware_batches(n, batch_size, edges, plan._edges.size)
    exact = name in ("one", "matching", "star")
    tolerance = 1e-6 if exact else 0.011 if name == "two stars" else 5e-3
    assert_unbiased(plan, graph, probability, tolerance)


@pytest.mark.parametrize(
    ("classes", "batch_size"),
    [([0] * 9, 8), ([0, 1] * 5, 20), ([0, 1, 1, 1, 1, 1, 1, 1], 12)],
    ids=["one class", "two classes", "a class of one"],
)
def test_labels_against_enumeration(classes, batch_size):
    n = 3 * len(classes)
    graph = 0.3 * Graph.identity(n) + Graph.from_labels(partial_labels(n, classes))
    plan = GraphAwareBatches(graph, batch_size)
    assert plan._labels.team == 1
    labelled = [3 * k for k in range(len(classes))]
    probability = naive.aware_batches(
        n, batch_size, labelled=labelled, drawn_labelled=plan._labels.size
    )
    assert_unbiased(plan, graph, probability, 1e-6)


def test_soft_labels_and_several_sets_of_labels_against_enumeration():
    n, classes = 30, [0, 1] * 5
    labels = partial_labels(n, classes)
    soft = torch.zeros(n, 2)
    soft[::3] = torch.rand(10, 2, generator=torch.Generator().manual_seed(0)) + 0.1
    other = torch.where(labels >= 0, (torch.arange(n) // 6) % 2, -1)
    graphs = {
        "soft": Graph.from_labels(soft),
        "two sets": Graph.from_labels(labels) + 0.5 * Graph.from_labels(other),
        "zero-one": Graph.from_loss(labels, "zero-one", form="raw"),
    }
    for graph in graphs.values():
        plan = GraphAwareBatches(graph, 12)
        probability = naive.aware_batches(
            n, 12, labelled=list(range(0, n, 3)), drawn_labelled=plan._labels.size
        )
        assert_unbiased(plan, graph, probability, 1e-6)


def test_teams_against_enumeration():
    """Drawn together: P(same team) g/T + P(other team) g(g-1)/(T(T-1)), for every class."""
    classes = [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9], [10]]
    nodes = np.arange(11)
    labels = np.repeat(np.arange(4), [5, 3, 2, 1])
    draw = LabelDraw(nodes, labels, samples=4, room=8)
    draw_of_two = LabelDraw.__new__(LabelDraw)
    draw_of_two.classmates = 1
    draw_of_two.__init__(nodes, labels, samples=4, room=8)
    for made in (draw, draw_of_two):
        together = np.zeros((11, 11))
        cases = 0
        for cut in naive.teams(classes, made.team):
            assert len(cut) == len(made._starts)
            for hand in combinations(cut, made.size):
                held = np.array([any(i in team for team in hand) for i in range(11)], dtype=float)
                together += np.outer(held, held)
                cases += 1
        together /= cases
        for i in range(11):
            assert made.drawn == pytest.approx(together[i, i])
            for j in range(i):
                same = labels[i] == labels[j]
                expected = made.classmates_drawn[labels[i]] if same else made.strangers_drawn
                assert expected == pytest.approx(together[i, j])
    assert draw.team == 4 and draw_of_two.team == 2


def test_labels_and_edges_against_enumeration():
    """Also on pairs that are both labelled and joined, and labelled and touched."""
    n, batch_size = 60, 32
    classes = [0, 1] * 6
    edges = [(0, 6), (0, 3), (3, 50), (9, 51), (40, 41), (42, 43), (44, 45), (46, 47)]
    graph = Graph.identity(n) + Graph.from_labels(partial_labels(n, classes))
    graph = graph + 0.3 * graph_of_edges(n, edges)
    plan = GraphAwareBatches(graph, batch_size)
    assert plan._labels.team == 1
    probability = naive.aware_batches(
        n, batch_size, edges, plan._edges.size, list(range(0, 36, 3)), plan._labels.size
    )
    # With 8 edges, that they are drawn without replacement shows.
    assert_unbiased(plan, graph, probability, 0.02)
    weighted = plan.graph(torch.arange(n)).dense().double().numpy() * probability
    expected = graph.dense().double().numpy() * naive.random_batches(n, batch_size)
    joined = tuple(np.array(edges).T)
    np.testing.assert_allclose(weighted[joined], expected[joined], rtol=3e-3, atol=1e-9)
    assert weighted.sum() == pytest.approx(expected.sum(), rel=1e-3)


def sparse_answers(n: int, edges: int, seed: int = 0) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randperm(n * (n - 1) // 2, generator=generator)[:edges]
    i, j = torch.triu_indices(n, n, offset=1)[:, pairs]
    return Graph.from_edges(i, j, torch.where(torch.arange(edges) % 2 == 0, 1.0, -1.0), n=n)


def frequent_graphs() -> dict[str, tuple[Graph, int]]:
    n = 60
    many_classes = partial_labels(n, [k // 3 for k in range(18)])
    everyone = torch.arange(n) // 3
    identity, answers = Graph.identity(n), sparse_answers(n, 50)
    return {
        "answers": (0.9 * identity + 0.1 * answers, 16),
        "answers alone": (answers, 16),
        "teams": (identity + Graph.from_labels(many_classes), 20),
        "teams of everybody": (identity + Graph.from_labels(everyone), 20),
        "labels of everybody": (identity + Graph.from_labels(torch.arange(n) % 2) + answers, 20),
        "teams and answers": (identity + Graph.from_labels(many_classes) + answers, 24),
        "labels and answers": (
            identity + Graph.from_labels(partial_labels(n, [0, 1] * 9)) + 0.5 * answers,
            24,
        ),
        "regression and answers": (Graph.from_targets(torch.linspace(1, 2, n)) + answers, 24),
    }


@pytest.mark.parametrize("name", frequent_graphs())
def test_frequencies(name):
    graph, batch_size = frequent_graphs()[name]
    plan = GraphAwareBatches(graph, batch_size, seed=3)
    assert_unbiased_on_average(plan, graph, 4000)


def test_a_wrong_weight_would_be_noticed():
    """The test above is sharp enough to see an error of 10 % in the weights of the edges."""
    graph, batch_size = frequent_graphs()["answers"]
    plan = GraphAwareBatches(graph, batch_size, seed=3)
    plan._parts.edges[0].weight = 1.1 * plan._parts.edges[0].weight
    with pytest.raises(AssertionError):
        assert_unbiased_on_average(plan, graph, 4000)


class TestAThousandAnswers:
    """1,000 answers over 50,000 samples, in batches of 512."""

    n, batch_size = 50_000, 512

    @pytest.fixture
    def problem(self):
        random = np.random.default_rng(0)
        i, j = random.choice(self.n, (2, 1000), replace=False)
        sign = np.where(random.random(1000) < 0.5, 1.0, -1.0)
        loss = random.random(1000) + 0.5
        return i, j, sign, loss

    def random_values(self, problem, seed: int, epochs: int) -> np.ndarray:
        """The known pairs' term in shuffled batches, by definition."""
        i, j, sign, loss = problem
        plan = ShuffledBatches(Graph.identity(self.n), self.batch_size, seed)
        values = []
        inside = np.zeros(self.n, dtype=bool)
        for epoch in range(epochs):
            for index in plan.epoch(epoch):
                inside[:] = False
                inside[index.numpy()] = True
                values.append(2 * (sign * loss)[inside[i] & inside[j]].sum())
        return np.array(values)

    def aware_values(self, problem, seed: int, epochs: int) -> np.ndarray:
        i, j, sign, loss = problem
        answers = Graph.from_edges(*(torch.from_numpy(value) for value in (i, j, sign)), n=self.n)
        losses = Graph.from_edges(*(torch.from_numpy(value) for value in (i, j, loss)), n=self.n)
        plan = GraphAwareBatches(Graph.identity(self.n) + answers, self.batch_size, seed)
        values = []
        for epoch in range(epochs):
            for index in plan.epoch(epoch):
                _, edges = plan.graph(index).terms
                first, second = index[edges.i], index[edges.j]
                loss_there = losses.entries(first, second, dtype=torch.float64)
                values.append(2 * float((edges.weight.double() * loss_there).sum()))
        return np.array(values)

    def test_the_mean_agrees_and_the_variance_falls(self, problem):
        i, j, sign, loss = problem
        expected = 2 * (sign * loss).sum() * 512 * 511 / (50_000 * 49_999)
        uniform = self.random_values(problem, seed=1, epochs=40)
        aware = self.aware_values(problem, seed=1, epochs=12)
        for values in (uniform, aware):
            assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(len(values))
        # A sum of signs is near 0: measure the error by the size of the terms.
        assert aware.std() / np.sqrt(len(aware)) < 0.02 * abs(loss).sum() * 2e-4
        assert uniform.var() / aware.var() > 500

    def test_about_128_answers_are_in_a_batch(self, problem):
        i, j, _, _ = problem
        graph = Graph.from_edges(torch.from_numpy(i), torch.from_numpy(j), n=self.n)
        plan = GraphAwareBatches(graph, self.batch_size)
        held = [plan.graph(index).n_edges for index in plan.epoch(0)]
        assert min(held) >= 128 and np.mean(held) < 129


def test_the_variance_of_few_labels_falls():
    """500 labels of 10 classes over 50,000 samples."""
    n, batch_size = 50_000, 512
    random = np.random.default_rng(0)
    labels = torch.full((n,), -1)
    labels[torch.from_numpy(random.choice(n, 500, replace=False))] = torch.arange(500) % 10
    graph = Graph.from_labels(labels)
    z = torch.from_numpy(random.standard_normal((n, 1)))
    means, errors, variances = [], [], []
    for plan in (ShuffledBatches(graph, batch_size), GraphAwareBatches(graph, batch_size)):
        values = []
        for epoch in range(8):
            for index in plan.epoch(epoch):
                rows, among = z[index], plan.graph(index)
                own = (among.diagonal().double() * rows[:, 0].square()).sum()
                values.append(float((rows * (among @ rows)).sum() - own))
        means.append(np.mean(values))
        variances.append(np.var(values))
        errors.append(np.std(values) / np.sqrt(len(values)))
    assert abs(means[0] - means[1]) < 4 * np.hypot(*errors)
    assert variances[0] / variances[1] > 100


def test_an_objective_is_unbiased_where_it_is_a_sum_over_pairs():
    """Through views and the energy of the pairs, as objectives use the graph."""
    n, batch_size = 300, 16
    answers = sparse_answers(n, 40)
    graph = 0.5 * Graph.identity(n) + answers
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, 2, 3, generator=generator, dtype=torch.float64)
    distances = torch.cdist(z.reshape(2 * n, 3), z.reshape(2 * n, 3)).square()
    probability = torch.from_numpy(naive.random_batches(n, batch_size))
    weights = (graph.dense().double() * probability).repeat_interleave(2, 0)
    expected = float((weights.repeat_interleave(2, 1) * distances).sum())
    plan = GraphAwareBatches(graph, batch_size)
    values = []
    for epoch in range(60):
        for index in plan.epoch(epoch):
            rows = z[index].reshape(-1, 3)
            pairs = plan.graph(index).views(2).pairs(self_pairs=True)
            values.append(float(pairs.energy(rows, rows)))
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - expected) < 4 * error
    assert error < 0.05 * expected


@pytest.mark.parametrize("name", frequent_graphs())
def test_objectives_take_the_graph(name):
    graph, batch_size = frequent_graphs()[name]
    plan = GraphAwareBatches(graph, batch_size)
    among = plan.graph(next(plan.epoch(0)))
    generator = torch.Generator().manual_seed(0)
    for objective in (NTXent(), NTXent(unknown="ignore"), VICReg(), VIC2()):
        z = torch.randn(2 * batch_size, 4, generator=generator).requires_grad_()
        objective(z, among.views(2)).backward()
        assert torch.isfinite(z.grad).all() and z.grad.abs().sum() > 0


def test_steps_of_an_epoch_show_all_edges_equally_often():
    edges = [(2 * k, 2 * k + 1) for k in range(30)]
    draw = EdgeDraw(200, *np.array(edges).T, samples=20, room=30)
    steps = draw.steps(0, 0, 0)
    counts = np.zeros(200)
    for _ in range(9):
        np.add.at(counts, next(steps), 1)
    assert draw.size == 10 and (counts[:60] == 3).all()


def test_both_ends_come_together_also_of_different_and_neither():
    i, j = torch.tensor([0, 10, 20]), torch.tensor([5_000, 6_000, 7_000])
    answers = Graph.from_edges(i, j, torch.tensor([1.0, -1.0, 0.0]), n=10_000)
    plan = GraphAwareBatches(Graph.identity(10_000) + answers, 16)
    for index in plan.epoch(0):
        assert {0, 5_000, 10, 6_000, 20, 7_000} <= set(index.tolist())
        graph = plan.graph(index)
        place = {int(sample): row for row, sample in enumerate(index)}
        rows = torch.tensor([place[0], place[10], place[20]])
        columns = torch.tensor([place[5_000], place[6_000], place[7_000]])
        assert graph.entries(rows, columns).sign().tolist() == [1.0, -1.0, 0.0]
        assert graph.known().entries(rows, columns).tolist() == [1.0, 1.0, 1.0]


def test_a_hub_does_not_fill_the_batch():
    """A sample with a thousand answers is there once, and its answers take one place each."""
    answers = Graph.from_edges(torch.zeros(1000).long(), torch.arange(1, 1001), n=20_000)
    plan = GraphAwareBatches(answers, 64)
    assert plan._edges.size == 31
    assert plan.mixture["known"] == pytest.approx(0.5)
    for index in plan.epoch(0, start=300):
        assert len(set(index.tolist())) == 64 and 0 in index.tolist()


def test_a_million_samples():
    """Nothing is quadratic in them."""
    n = 1_000_000
    random = np.random.default_rng(0)
    i, j = (torch.from_numpy(ends) for ends in random.choice(n, (2, 1000), replace=False))
    plan = GraphAwareBatches(Graph.identity(n) + Graph.from_edges(i, j, n=n), 512)
    index = next(plan.epoch(0))
    assert plan.graph(index).terms[1].n_edges >= 128
