import itertools
import math

import pytest
import torch

from likewise import Graph
from likewise.objectives.pairwise_vic2 import PairwiseVIC2
from likewise.objectives.spectral import VIC2, SpectralContrastive
from tests.objectives import contract
from tests.objectives.contract import dense


def rows(n, dim=4, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dot(a, b):
    return float((a * b).sum())


# --- VIC2 -----------------------------------------------------------------------------------------


class TestVIC2(contract.PreventsCollapse):
    normalize = False

    def make(self, **changes):
        return VIC2(normalize=self.normalize, **changes)

    def naive(self, z, graph, target=None):
        target, n, entries = z if target is None else target, graph.n, dense(graph)
        if self.normalize:
            z = z / z.norm(dim=1, keepdim=True)
            target = target / target.norm(dim=1, keepdim=True)
        total = 0.0
        for i in range(n):
            for j in range(n):
                total += (dot(z[i], target[j]) - float(entries[i, j])) ** 2
        return total / n**2


class TestVIC2OfATeacher(TestVIC2):
    teacher = True


class TestVIC2Normalized(TestVIC2):
    normalize = True


class TestVIC2WideRows(TestVIC2):
    """More dimensions than rows: the N x N form."""

    dim = 15


def test_vic2_against_fewer_target_views():
    z, t, graph = rows(12), rows(8, seed=1), Graph.from_labels(torch.tensor([0, 1, 0, 2]))
    expected = (z @ t.T - torch.kron(dense(graph), torch.ones(3, 2).double())).square().mean()
    torch.testing.assert_close(VIC2()(z, graph.views(3), target=t), expected)


def test_vic2_is_minimal_at_the_classes():
    """``pal`` theorem 2: the minimisers are YR."""
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    y = torch.nn.functional.one_hot(labels).double()
    z = (y @ torch.linalg.qr(rows(4, 4, seed=2)).Q[:3]).requires_grad_()
    value = VIC2()(z, Graph.from_labels(labels))
    value.backward()
    assert value.item() == pytest.approx(0, abs=1e-12)
    assert z.grad.abs().max() < 1e-12


def test_vic2_does_not_see_a_rotation():
    z, graph = rows(12), contract.signed_graph()
    rotation = torch.linalg.qr(rows(4, seed=3)).Q
    torch.testing.assert_close(VIC2()(z @ rotation, graph), VIC2()(z, graph))


def test_vic2_sum_is_n_squared_times_the_mean():
    z, graph = rows(12), contract.signed_graph()
    torch.testing.assert_close(VIC2(reduction="sum")(z, graph), 144 * VIC2()(z, graph))


def test_vic2_second_derivatives():
    graph = Graph.from_labels(torch.tensor([0, 1, 0, 1]))
    z = rows(4, 3).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: VIC2()(x, graph), (z,))


def test_vic2_of_many_rows_builds_no_matrix_of_pairs():
    n = 200_000
    labels = torch.arange(n) % 10
    z = torch.nn.functional.one_hot(labels, 16).float().requires_grad_()
    value = VIC2()(z, Graph.from_labels(labels))
    value.backward()
    assert value.item() == pytest.approx(0, abs=1e-6)
    assert z.grad.abs().max() < 1e-6


# --- spectral contrastive -------------------------------------------------------------------------


class TestSpectralContrastive(contract.TwoViewForm, contract.PreventsCollapse):
    same_view = False
    unbiased = False

    def make(self, **changes):
        return SpectralContrastive(same_view=self.same_view, unbiased=self.unbiased, **changes)

    def naive(self, z, graph, target=None):
        target, entries, views = z if target is None else target, dense(graph), graph.n_views
        n = graph.n // views
        alignment = weights = 0.0
        for i in range(graph.n):
            for j in range(graph.n):
                if i != j:
                    alignment += float(entries[i, j]) * dot(z[i], target[j])
                    weights += abs(float(entries[i, j]))
        means = []
        for u in range(views):
            for v in range(views):
                if u == v and not self.same_view and views > 1:
                    continue
                squares = sum(
                    dot(z[i * views + u], target[j * views + v]) ** 2
                    for i in range(n)
                    for j in range(n)
                    if i != j
                )
                means.append(squares / (n * (n - 1) if self.unbiased else n**2))
        return -2 * alignment / weights + sum(means) / len(means)

    def original(self, z1, z2):
        """``pal`` eq. 5, divided by n."""
        n = len(z1)
        squares = sum(dot(z1[i], z2[j]) ** 2 for i in range(n) for j in range(n) if i != j)
        return (-2 * dot(z1, z2) + squares / n) / n


class TestSpectralContrastiveOfATeacher(TestSpectralContrastive):
    teacher = True


class TestSpectralContrastiveWideRows(TestSpectralContrastive):
    """More dimensions than samples: the n x n form."""

    dim = 9


class TestSpectralContrastiveUnbiased(TestSpectralContrastive):
    unbiased = True

    def original(self, z1, z2):
        """HaoChen et al.: all pairs of different samples count the same."""
        n = len(z1)
        squares = (z1 @ z2.T).square().masked_fill(torch.eye(n, dtype=torch.bool), 0.0).sum()
        return -2 * (z1 * z2).sum(dim=1).mean() + squares / (n * (n - 1))


class TestSpectralContrastiveSameView(contract.PreventsCollapse):
    same_view = True
    unbiased = False
    make = TestSpectralContrastive.make
    naive = TestSpectralContrastive.naive


def test_spectral_contrastive_and_vic2_differ_in_the_pairs_of_one_sample():
    z, graph = rows(12), Graph.identity(6).views(2)
    spectral = SpectralContrastive(same_view=True, reduction="sum")(z, graph)
    own = sum(
        dot(z[i], z[j]) ** 2 - (2 * dot(z[i], z[j]) if i == j else 0)
        for i in range(12)
        for j in range(12)
        if i // 2 == j // 2
    )
    expected = VIC2(reduction="sum")(z, graph).item() - graph.norm_squared()
    assert spectral.item() + own == pytest.approx(expected)


def test_spectral_contrastive_against_fewer_target_views():
    z, t, graph = rows(12), rows(8, seed=1), Graph.identity(4).views(3)
    pairs = [(u, v) for u in range(3) for v in range(2) if u != v]
    expected = 0.0
    for u, v in pairs:
        products = z[u::3] @ t[v::2].T
        own = products.diagonal()
        expected += -2 * own.mean() + (products.square().sum() - own.square().sum()) / 16
    torch.testing.assert_close(
        SpectralContrastive()(z, graph, target=t), torch.as_tensor(expected / len(pairs))
    )


def test_spectral_contrastive_with_nothing_alike_only_repels():
    z = rows(6)
    terms = SpectralContrastive().terms(z, Graph.identity(6))
    assert terms["alignment"].item() == 0
    assert terms["repulsion"].item() > 0


# --- VIC2 over pairs ------------------------------------------------------------------------------


class TestPairwiseVIC2(contract.PreventsCollapse):
    def make(self, **changes):
        return PairwiseVIC2(**changes)

    def naive(self, z, graph):
        n, entries = graph.n, dense(graph)
        degrees = entries.sum(dim=1)
        total = 0.0
        for i in range(n):
            for j in range(n):
                total += float(entries[i, j]) * float((z[i] - z[j]).square().sum())
                total += dot(z[i], z[j]) ** 2
                own = float(degrees[i]) * dot(z[i], z[i]) + float(degrees[j]) * dot(z[j], z[j])
                total -= own / n
        return total / n**2


class TestPairwiseVIC2OfAPopulation(contract.ObjectiveContract):
    """A batch of samples with all their views, drawn from 20 samples."""

    disjoint_halves = False

    def make(self, **changes):
        return PairwiseVIC2(20, disjoint_halves=self.disjoint_halves, **changes)

    def naive(self, z, graph):
        n, views, entries = graph.n, graph.n_views, dense(graph)
        b, everyone = n // views, 20
        same, other = everyone / b, everyone * (everyone - 1) / (b * (b - 1))
        total = 0.0
        for i in range(n):
            for j in range(n):
                first, second = i // views, j // views
                weight = same if first == second else other
                square = weight * dot(z[i], z[j]) ** 2
                if self.disjoint_halves and first != second:
                    across = (first < b // 2) != (second < b // 2)
                    square = across * everyone * (everyone - 1) * dot(z[i], z[j]) ** 2
                    square /= 2 * (b // 2) * (b - b // 2)
                total += square - 2 * weight * float(entries[i, j]) * dot(z[i], z[j])
        return total / (everyone * views) ** 2


class TestPairwiseVIC2OfDisjointHalves(TestPairwiseVIC2OfAPopulation):
    disjoint_halves = True

    def test_order_of_samples_does_not_matter(self):
        """Within a half, that is."""
        z, graph = rows(12), contract.mixed_graph()
        order = torch.tensor([2, 0, 1, 4, 5, 3])
        nodes = (order[:, None] * 2 + torch.arange(2)).reshape(-1)
        moved = self.make()(z[nodes], graph.subset(nodes))
        torch.testing.assert_close(moved, self.make()(z, graph))


@pytest.mark.parametrize("name", list(contract.GRAPHS))
def test_pairwise_vic2_is_vic2_without_its_constant(name):
    graph = contract.GRAPHS[name]()
    z = rows(graph.n)
    expected = VIC2()(z, graph) - graph.norm_squared() / graph.n**2
    torch.testing.assert_close(PairwiseVIC2()(z, graph), expected)
    torch.testing.assert_close(PairwiseVIC2(graph.n // graph.n_views)(z, graph), expected)


POPULATION = 6


def population_graph():
    return Graph.from_edges(
        torch.tensor([0, 0, 1, 2, 3, 3]),
        torch.tensor([1, 2, 4, 5, 5, 3]),
        torch.tensor([1.0, -1.0, 0.5, 1.0, 1.0, 0.7]),
        n=POPULATION,
    ) + Graph.from_labels(torch.tensor([0, 1, 0, -1, 1, 0]))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("n_views", [1, 2])
@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_batches_without_replacement_are_unbiased(size, n_views, reduction):
    graph, z = population_graph().views(n_views), rows(POPULATION * n_views, 3)
    objective = PairwiseVIC2(POPULATION, reduction=reduction)
    values = []
    for batch in itertools.combinations(range(POPULATION), size):
        nodes = (torch.tensor(batch)[:, None] * n_views + torch.arange(n_views)).reshape(-1)
        values.append(objective(z[nodes], graph.subset(nodes)))
    expected = PairwiseVIC2(reduction=reduction)(z, graph)
    torch.testing.assert_close(torch.stack(values).mean(), expected)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_disjoint_halves_are_unbiased(size):
    """Over all ordered draws, so that every row comes to stand in either half."""
    graph, z = population_graph(), rows(POPULATION, 3)
    objective = PairwiseVIC2(POPULATION, disjoint_halves=True)
    values = [
        objective(z[list(batch)], graph.subset(torch.tensor(batch)))
        for batch in itertools.permutations(range(POPULATION), size)
    ]
    torch.testing.assert_close(torch.stack(values).mean(), PairwiseVIC2()(z, graph))


def test_infinite_population_leaves_out_the_pairs_of_one_sample():
    z, graph = rows(5, 3), Graph.from_labels(torch.tensor([0, 1, 0, 1, 0]))
    entries = dense(graph)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    expected = sum(
        dot(z[i], z[j]) ** 2 - 2 * float(entries[i, j]) * dot(z[i], z[j]) for i, j in pairs
    )
    assert PairwiseVIC2(math.inf)(z, graph).item() == pytest.approx(expected / len(pairs))


@pytest.mark.parametrize("degrees", ["graph", "known_pairs"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_single_pairs_are_unbiased(degrees, reduction):
    """I and J of one pair each, uniform over all ordered pairs. The value is a part of I plus a
    part of J, so that both may be the same pair."""
    graph, z, n = population_graph(), rows(POPULATION, 3), POPULATION
    objective = PairwiseVIC2(degrees=degrees, reduction=reduction)
    everything = [(torch.tensor([i]), torch.tensor([j])) for i in range(n) for j in range(n)]
    values = [objective(z, graph, known_pairs=p, covariance_pairs=p) for p in everything]
    expected = PairwiseVIC2(reduction=reduction)(z, graph)
    torch.testing.assert_close(torch.stack(values).mean(), expected)


def test_importance_weights_keep_the_estimate_unbiased():
    """Known pairs drawn four times as often as the others."""
    graph, z, n = population_graph(), rows(POPULATION, 3), POPULATION
    entries = dense(graph)
    known = (entries != 0).reshape(-1)
    probability = torch.where(known, 4.0, 1.0).double()
    probability = probability / probability.sum()
    objective = PairwiseVIC2(degrees="known_pairs")
    mean = torch.zeros(()).double()
    for pair, chance in enumerate(probability):
        i, j = torch.tensor([pair // n]), torch.tensor([pair % n])
        weight = (1 / n**2 / chance).reshape(1)
        mean += chance * objective(
            z, graph, known_pairs=(i, j, weight), covariance_pairs=(i, j, weight)
        )
    torch.testing.assert_close(mean, PairwiseVIC2()(z, graph))


def test_all_pairs_listed_are_all_pairs():
    graph, z, n = population_graph(), rows(POPULATION, 3), POPULATION
    i = torch.arange(n).repeat_interleave(n)
    j = torch.arange(n).repeat(n)
    expected = PairwiseVIC2().terms(z, graph)
    both = PairwiseVIC2().terms(z, graph, known_pairs=(i, j), covariance_pairs=(i, j))
    for name, term in expected.items():
        torch.testing.assert_close(both[name], term)
    known = PairwiseVIC2(degrees="known_pairs")(z, graph, known_pairs=(i, j))
    torch.testing.assert_close(known, sum(expected.values()))


def test_known_pairs_need_the_graph_nowhere_else():
    z = rows(6, 3)
    i, j = torch.tensor([0, 1]), torch.tensor([2, 1])
    graph = population_graph()
    elsewhere = graph + Graph.from_edges(torch.tensor([3]), torch.tensor([4]), 5.0, n=6)
    objective = PairwiseVIC2(degrees="known_pairs")
    first, second = (objective(z, g, known_pairs=(i, j)) for g in (graph, elsewhere))
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("pairs", ["known_pairs", "covariance_pairs"])
def test_pairwise_vic2_gradient_of_listed_pairs(pairs):
    graph, z = population_graph(), rows(POPULATION, 3).requires_grad_()
    listed = {pairs: (torch.tensor([0, 1, 3]), torch.tensor([2, 4, 3]))}
    for degrees in ("graph", "known_pairs"):
        objective = PairwiseVIC2(degrees=degrees)
        assert torch.autograd.gradcheck(
            lambda rows, objective=objective: objective(rows, graph, **listed), (z,)
        )


@pytest.mark.parametrize(
    ("listed", "error", "message"),
    [
        ({"known_pairs": (torch.tensor([0]),)}, ValueError, "known_pairs has no two ends"),
        (
            {"known_pairs": (torch.tensor([0, 1]), torch.tensor([0]))},
            ValueError,
            "known_pairs has 2 and 1 ends",
        ),
        (
            {"covariance_pairs": (torch.tensor([], dtype=torch.long),) * 2},
            ValueError,
            "covariance_pairs has 0 and 0 ends.*at least one",
        ),
        (
            {"covariance_pairs": (torch.tensor([0]), torch.tensor([6]))},
            IndexError,
            r"covariance_pairs\[1\] runs from 6",
        ),
        ({"unknown_pairs": None}, TypeError, "takes no argument 'unknown_pairs'"),
    ],
)
def test_pairwise_vic2_checks_the_listed_pairs(listed, error, message):
    with pytest.raises(error, match=message):
        PairwiseVIC2()(rows(6), population_graph(), **listed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"population": 0}, "population is 0"),
        ({"population": 2.5}, "population is 2.5"),
        ({"population": True}, "population is True"),
        ({"population": math.inf, "reduction": "sum"}, "population is inf, which has no sum"),
        ({"degrees": "none"}, "degrees is 'none'"),
    ],
)
def test_pairwise_vic2_checks_its_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        PairwiseVIC2(**arguments)


def test_pairwise_vic2_checks_the_batch():
    with pytest.raises(ValueError, match="6 samples and population is 5"):
        PairwiseVIC2(5)(rows(6), population_graph())
    with pytest.raises(ValueError, match="1 samples and population is 5"):
        PairwiseVIC2(5)(rows(2), Graph.identity(1).views(2))
    with pytest.raises(ValueError, match="takes no target"):
        PairwiseVIC2()(rows(6), population_graph(), target=rows(6))
