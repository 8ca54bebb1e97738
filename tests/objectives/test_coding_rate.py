import math

import numpy as np
import pytest
import torch

from likewise import Graph
from likewise.information import coding_rate
from likewise.objectives import coding_rate_reduction
from likewise.objectives.coding_rate import EMPSSL, TotalCodingRate
from likewise.objectives.coding_rate_reduction import MaximalCodingRateReduction
from likewise.objectives.entropy_coding import CorInfoMax, MaximumEntropyCoding
from tests.objectives import contract
from tests.objectives.contract import dense


def unit(z):
    return np.array([row / np.linalg.norm(row) for row in np.asarray(z)])


def log_det(matrix):
    """Through eigenvalues, not through slogdet."""
    return float(np.log(np.linalg.eigvals(np.asarray(matrix) + 0j)).real.sum())


def rate(z, squared_epsilon):
    rows, dim = z.shape
    moment = sum(np.outer(row, row) for row in z)
    return 0.5 * log_det(np.eye(dim) + dim / (rows * squared_epsilon) * moment)


def gap(z, graph, target=None):
    """The weighted mean of 1 - cos over the pairs that are compared."""
    weights = dense(graph).numpy()
    z, other = unit(z), unit(z if target is None else target)
    total = weight = 0.0
    for i in range(len(z)):
        for j in range(len(other)):
            if i != j:
                total += weights[i, j] * (1 - z[i] @ other[j])
                weight += abs(weights[i, j])
    return total / weight if weight else 0.0


def branches(z, graph, target=None):
    """Left: a view. Right: the weighted mean of those alike in another view."""
    views = graph.n_views
    z, other = np.asarray(z), np.asarray(z if target is None else target)
    weights = dense(graph).numpy()[::views, ::views].copy()
    if views == 1:
        np.fill_diagonal(weights, 0.0)
    degree = np.abs(weights).sum(axis=1)
    for i in range(len(weights)):
        for j in range(len(weights)):
            if weights[i, j]:
                weights[i, j] /= math.sqrt(degree[i] * degree[j])
    if views == 1:
        return [(z, weights @ other)]
    return [
        (z[u::views], weights @ other[v::views])
        for u in range(views)
        for v in range(views)
        if (u < v if target is None else u != v)
    ]


class Fast:
    """For variants: the gradient along random directions, not entry by entry."""

    def test_gradient(self, graph):
        z, arguments = self.rows(graph).requires_grad_(), self.arguments(graph)
        objective = self.make().double().eval()
        assert torch.autograd.gradcheck(
            lambda rows: self.value(objective, rows, graph, **arguments), (z,), fast_mode=True
        )


class TestTotalCodingRate(contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return TotalCodingRate(**changes)

    def naive(self, z, graph):
        return -rate(unit(z), 0.25)

    def original(self, z1, z2):
        return -rate(unit(torch.cat([z1, z2])), 0.25)


class TestSeparateViews(Fast, contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return TotalCodingRate(epsilon=0.3, views="separate", **changes)

    def naive(self, z, graph):
        views = graph.n_views
        return -np.mean([rate(unit(z)[v::views], 0.09) for v in range(views)])

    def original(self, z1, z2):
        return -(rate(unit(z1), 0.09) + rate(unit(z2), 0.09)) / 2


class TestMeanOfViews(Fast, contract.TwoViewForm):
    def make(self, **changes):
        return TotalCodingRate(views="mean", **changes)

    def naive(self, z, graph):
        views = graph.n_views
        means = [sum(unit(z)[i : i + views]) for i in range(0, len(z), views)]
        return -rate(unit(means), 0.25)

    def original(self, z1, z2):
        return -rate(unit(unit(z1) + unit(z2)), 0.25)


class TestCodingRateWithInvariance(contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return TotalCodingRate(invariance_weight=2.0, **changes)

    def naive(self, z, graph, target=None):
        return -rate(unit(z), 0.25) + 2.0 * gap(z, graph, target)

    def original(self, z1, z2):
        cosines = (unit(z1) * unit(z2)).sum(axis=1)
        return -rate(unit(torch.cat([z1, z2])), 0.25) + 2.0 * np.mean(1 - cosines)

    def test_sum(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        mean, total = (self.make(reduction=r).terms(z, graph) for r in ("mean", "sum"))
        assert total["rate"] == mean["rate"]
        assert total["invariance"].item() == pytest.approx(12 * mean["invariance"].item())

    def test_zero_rows_are_similar_to_nothing(self):
        z = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], requires_grad=True)
        value = self.make().terms(z, Graph.identity(2).views(2))["invariance"]
        assert value.item() == pytest.approx(2.0)
        value.backward()
        assert torch.isfinite(z.grad).all()

    def test_nothing_compared(self):
        graph = Graph.from_labels(torch.tensor([-1, -1, -1]))
        assert self.make().terms(torch.eye(3), graph)["invariance"].item() == 0.0


class TestCodingRateWithTeacher(Fast, TestCodingRateWithInvariance):
    teacher = True


def test_target_without_invariance_is_an_error():
    z = torch.randn(4, 3)
    with pytest.raises(ValueError, match="invariance_weight is 0"):
        TotalCodingRate()(z, Graph.identity(2).views(2), target=z.clone())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0: give a number above 0"),
        ({"views": "both"}, "views is 'both'.*'stacked'"),
        ({"invariance_weight": -1.0}, "invariance_weight is -1.0"),
    ],
)
def test_total_coding_rate_rejects(changes, message):
    with pytest.raises(ValueError, match=message):
        TotalCodingRate(**changes)


# --- MCR^2 ------------------------------------------------------------------------------------


class TestRateReduction(contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return MaximalCodingRateReduction(**changes)

    def naive(self, z, graph):
        z, weights = unit(z), dense(graph).numpy()
        rows, dim = z.shape
        compressed = 0.0
        for i in range(rows):
            positive = [max(weights[i, j], 0.0) for j in range(rows)]
            if sum(positive) > 0:
                moment = sum(positive[j] * np.outer(z[j], z[j]) for j in range(rows))
                matrix = np.eye(dim) + dim / (sum(positive) * 0.25) * moment
                compressed += log_det(matrix) / (2 * rows)
        return compressed - rate(z, 0.25)

    def original(self, z1, z2):
        """The classical sum over classes, where every sample is a class of two."""
        z1, z2 = unit(z1), unit(z2)
        compressed = sum(
            2 / (2 * 2 * len(z1)) * 2 * rate(np.stack([a, b]), 0.25)
            for a, b in zip(z1, z2, strict=True)
        )
        return compressed - rate(np.concatenate([z1, z2]), 0.25)

    def test_reduction_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        assert self.make(reduction="sum")(z, graph) == self.make()(z, graph)


def weighted(graph):
    """The same matrix in a form that has no class labels."""
    return 0.5 * graph + 0.5 * graph


@pytest.mark.parametrize("dim", [2, 7])
@pytest.mark.parametrize("views", [1, 3])
def test_classes_and_neighbourhoods_agree(dim, views, monkeypatch):
    # Sizes 1, 2, 3, 5 and 9: several stacks of classes, each in the smaller of its two forms.
    labels = torch.tensor([0] + [1] * 2 + [2] * 3 + [4] * 5 + [5] * 9 + [-1] * 2)
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))]
    graph = Graph.from_labels(labels).views(views)
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(graph.n, dim, generator=generator, dtype=torch.float64, requires_grad=True)
    objective = MaximalCodingRateReduction()
    assert weighted(graph).class_labels is None
    expected = objective(z, graph)
    (gradient,) = torch.autograd.grad(expected, z)
    for chunk in (coding_rate_reduction.CHUNK, 200):  # all at once, and in pieces
        monkeypatch.setattr(coding_rate_reduction, "CHUNK", chunk)
        value = objective(z, weighted(graph))
        assert value.item() == pytest.approx(expected.item(), rel=1e-10)
        torch.testing.assert_close(torch.autograd.grad(value, z)[0], gradient)


def test_orthogonal_classes_beat_mixed_classes():
    labels = torch.arange(4) % 2
    turned = torch.eye(2)[labels]
    mixed = torch.eye(2)[[0, 0, 1, 1]]
    graph = Graph.from_labels(labels)
    objective = MaximalCodingRateReduction()
    assert objective(turned, graph) < objective(mixed, graph)


def test_rate_reduction_takes_no_target():
    z = torch.randn(4, 3)
    with pytest.raises(ValueError, match="takes no target"):
        MaximalCodingRateReduction()(z, Graph.identity(2).views(2), target=z)


def test_rate_reduction_rejects_epsilon():
    with pytest.raises(ValueError, match="epsilon is -1"):
        MaximalCodingRateReduction(epsilon=-1)


# --- EMP-SSL ------------------------------------------------------------------------------------


class TestEMPSSL(contract.TwoViewForm, contract.PreventsCollapse):
    float32_tolerance = 1e-4

    def make(self, **changes):
        return EMPSSL(**{"invariance_weight": 3.0, **changes})

    def rate(self, z, views):
        return np.mean([rate(z[v::views], 0.2) for v in range(views)])

    def naive(self, z, graph):
        z, weights = unit(z), dense(graph).numpy()
        cosines = []
        for i in range(len(z)):
            if np.abs(weights[i]).sum() > 0:
                mean = sum(weights[i, j] * z[j] for j in range(len(z))) / np.abs(weights[i]).sum()
                cosines.append(z[i] @ mean / np.linalg.norm(mean))
        return -self.rate(z, graph.n_views) - 3.0 * np.mean(cosines)

    def original(self, z1, z2):
        z1, z2 = unit(z1), unit(z2)
        mean = (z1 + z2) / 2
        cosine = [np.mean((z * mean).sum(axis=1) / np.linalg.norm(mean, axis=1)) for z in (z1, z2)]
        stacked = np.stack([z1, z2], axis=1).reshape(-1, z1.shape[1])
        return -self.rate(stacked, 2) - 3.0 * np.mean(cosine)

    def test_sum(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        mean, total = (self.make(reduction=r).terms(z, graph) for r in ("mean", "sum"))
        assert total["rate"] == mean["rate"]
        assert total["invariance"].item() == pytest.approx(12 * mean["invariance"].item())


class TestEMPSSLConcatenated(Fast, TestEMPSSL):
    def make(self, **changes):
        return super().make(rate="concatenated", **changes)

    def rate(self, z, views):
        # I_{nd} with nd / (B epsilon^2).
        return rate(z.reshape(len(z) // views, -1), 0.2)


def test_emp_ssl_defaults_are_the_papers():
    objective = EMPSSL()
    assert objective.epsilon**2 == pytest.approx(0.2)
    assert objective.invariance_weight == 200.0


def test_emp_ssl_of_nobody_alike():
    graph = Graph.from_labels(torch.tensor([-1, -1, -1]))
    assert EMPSSL().terms(torch.eye(3), graph)["invariance"].item() == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": -0.2}, "epsilon is -0.2"),
        ({"invariance_weight": -1.0}, "invariance_weight is -1.0"),
        ({"rate": "sum"}, "rate is 'sum'.*'concatenated'"),
    ],
)
def test_emp_ssl_rejects(changes, message):
    with pytest.raises(ValueError, match=message):
        EMPSSL(**changes)


# --- maximum entropy coding -----------------------------------------------------------------------


class TestMaximumEntropyCoding(contract.TwoViewForm, contract.PreventsCollapse):
    squared_epsilon = 0.06 * 4
    learning_rate = 1e-3

    def make(self, **changes):
        return MaximumEntropyCoding(**changes)

    def log(self, matrix):
        """The Taylor polynomial of log det(I + M), of order 4."""
        powers = [np.linalg.matrix_power(matrix, k).trace() for k in range(1, 5)]
        return powers[0] - powers[1] / 2 + powers[2] / 3 - powers[3] / 4

    def moments(self, left, right):
        return [sum(np.outer(a, b) for a, b in zip(left, right, strict=True))]

    def value_of(self, pairs):
        values = []
        for left, right in pairs:
            rows, dim = left.shape
            scale = dim / (rows * self.squared_epsilon)
            logs = [self.log(scale * moment) for moment in self.moments(left, right)]
            values.append(-(rows + dim) / 2 * np.mean(logs))
        return np.mean(values)

    def naive(self, z, graph, target=None):
        target = None if target is None else unit(target)
        return self.value_of(branches(unit(z), graph, target))

    def original(self, z1, z2):
        return self.value_of([(unit(z1), unit(z2))])

    def test_reduction_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        assert self.make(reduction="sum")(z, graph) == self.make()(z, graph)

    def test_fewer_rows_than_dimensions(self):
        """The B x B form is the d x d form; gradients are finite."""
        graph = Graph.identity(3).views(2)
        z = torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        z[1::2] = z[::2] + 0.1 * z[1::2]
        z.requires_grad_()
        value = self.make(epsilon=4.0)(z, graph)
        self.squared_epsilon = 16.0
        assert value.item() == pytest.approx(self.naive(z.detach(), graph))
        value.backward()
        assert torch.isfinite(z.grad).all()


class TestEntropyCodingWithTeacher(Fast, TestMaximumEntropyCoding):
    teacher = True


class TestEntropyCodingTaylorSymmetric(Fast, TestMaximumEntropyCoding):
    def make(self, **changes):
        return super().make(covariance="symmetric", **changes)

    def moments(self, left, right):
        moment = left.T @ right
        return [(moment + moment.T) / 2]


class TestEntropyCodingCoarse(TestEntropyCodingTaylorSymmetric):
    squared_epsilon = 0.25 * 4

    def make(self, **changes):
        return super().make(distortion=0.25, **changes)


class TestEntropyCodingTaylorAuto(Fast, TestMaximumEntropyCoding):
    def make(self, **changes):
        return super().make(covariance="auto", **changes)

    def moments(self, left, right):
        return [sum(np.outer(a, a) for a in rows) for rows in (left, right)]


class TestEntropyCodingExact(Fast, TestMaximumEntropyCoding):
    squared_epsilon = 9.0  # above d: then I + c Z1^T Z2 is regular whatever the branches

    def make(self, **changes):
        return super().make(**{"epsilon": 3.0, "logarithm": "exact", **changes})

    def log(self, matrix):
        return log_det(np.eye(len(matrix)) + matrix)


class TestEntropyCodingExactSymmetric(TestEntropyCodingExact):
    def make(self, **changes):
        return super().make(covariance="symmetric", **changes)

    moments = TestEntropyCodingTaylorSymmetric.moments


class TestEntropyCodingExactAuto(TestEntropyCodingExact):
    squared_epsilon = 0.25

    def make(self, **changes):
        return super().make(**{"covariance": "auto", "epsilon": 0.5, **changes})

    moments = TestEntropyCodingTaylorAuto.moments


def test_exact_auto_is_the_coding_rate():
    z = torch.randn(6, 4, dtype=torch.float64).repeat_interleave(2, dim=0)
    graph = Graph.identity(6).views(2)
    value = MaximumEntropyCoding(0.5, mu=0.5, covariance="auto", logarithm="exact")(z, graph)
    rows = z[::2] / z[::2].norm(dim=1, keepdim=True)
    assert value.item() == pytest.approx(-coding_rate(rows, 0.5).item())


def test_taylor_approaches_exact():
    graph = Graph.identity(6).views(2)
    z = torch.randn(12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = MaximumEntropyCoding(epsilon=4.0, logarithm="exact")(z, graph)
    errors = [
        abs(MaximumEntropyCoding(epsilon=4.0, order=order)(z, graph) - exact).item()
        for order in (2, 4, 12)
    ]
    assert errors[0] > errors[1] > errors[2] and errors[2] < 1e-6


@pytest.mark.parametrize("covariance", ["cross", "symmetric"])
def test_branches_that_disagree_raise_with_the_exact_logarithm(covariance):
    z = torch.tensor([[1.0], [-1.0]]).repeat(3, 1)
    objective = MaximumEntropyCoding(epsilon=0.5, covariance=covariance, logarithm="exact")
    with pytest.raises(ValueError, match=r"not positive.*logarithm='taylor'"):
        objective(z, Graph.identity(3).views(2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"mu": -1.0}, "mu is -1.0"),
        ({"covariance": "own"}, "covariance is 'own'.*'symmetric'"),
        ({"logarithm": "series"}, "logarithm is 'series'"),
        ({"order": 0}, "order is 0: give a whole number of at least 1"),
    ],
)
def test_entropy_coding_rejects(changes, message):
    with pytest.raises(ValueError, match=message):
        MaximumEntropyCoding(**changes)


# --- CorInfoMax -----------------------------------------------------------------------------------


class TestCorInfoMax(contract.TwoViewForm, contract.PreventsCollapse):
    epsilon = 0.05
    margin = 1.5
    learning_rate = 1e-3

    def make(self, **changes):
        return CorInfoMax(**{"epsilon": self.epsilon, "margin": self.margin, **changes})

    def prepared(self, z):
        return unit(z)

    def covariance(self, z):
        return np.cov(z.T, ddof=0)

    def naive(self, z, graph, target=None):
        other = self.prepared(z if target is None else target)
        z, weights = self.prepared(z), dense(graph).numpy()
        views, dim = graph.n_views, z.shape[1]
        covariances = [self.covariance(z[v::views]) for v in range(views)]
        rates = [log_det(c + self.epsilon * np.eye(dim)) for c in covariances]
        total = weight = 0.0
        for i in range(len(z)):
            for j in range(len(z)):
                if i != j:
                    distance = np.linalg.norm(z[i] - other[j])
                    pull, push = max(weights[i, j], 0.0), max(-weights[i, j], 0.0)
                    total += pull * distance**2 + push * max(0.0, self.margin - distance) ** 2
                    weight += abs(weights[i, j])
        return -2 * np.mean(rates) + 2 / self.epsilon * total / weight

    def original(self, z1, z2):
        """Equation 7 with the sign of the errata."""
        z1, z2 = self.prepared(z1), self.prepared(z2)
        lift = self.epsilon * np.eye(z1.shape[1])
        rates = [log_det(self.covariance(z) + lift) for z in (z1, z2)]
        return -sum(rates) + 2 / (self.epsilon * len(z1)) * ((z1 - z2) ** 2).sum()

    def test_sum(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        mean, total = (self.make(reduction=r).double().terms(z, graph) for r in ("mean", "sum"))
        assert total["covariance"] == mean["covariance"]
        assert total["invariance"].item() == pytest.approx(12 * mean["invariance"].item())

    def test_gradient_is_finite_at_collapse(self):
        z = torch.ones(6, 8, requires_grad=True)
        self.make(dim=8)(z, Graph.identity(3).views(2)).backward()
        assert torch.isfinite(z.grad).all()


class TestCorInfoMaxWithTeacher(Fast, TestCorInfoMax):
    teacher = True

    # With a teacher, covariances are those of z.


class TestCorInfoMaxRaw(Fast, TestCorInfoMax):
    def make(self, **changes):
        return super().make(normalize=False, centered=False, ddof=1, **changes)

    def prepared(self, z):
        return np.asarray(z)

    def covariance(self, z):
        return sum(np.outer(row, row) for row in z) / (len(z) - 1)


class TestCorInfoMaxRunning(Fast, TestCorInfoMax):
    """The first batch has nothing to remember, and gives the plain value."""

    def make(self, **changes):
        return super().make(**{"momentum": 0.3, "dim": self.dim, **changes})

    def test_remembers_the_covariances_of_earlier_batches(self):
        graph = Graph.identity(6).views(2)
        objective = self.make().double()
        remembered, seen = np.zeros((4, 4)), 0
        for seed in range(4):
            z = self.rows(graph, seed)
            momentum = min(0.3, seen / (seen + 1))
            covariances = [
                momentum * remembered + (1 - momentum) * self.covariance(unit(z)[v::2])
                for v in range(2)
            ]
            expected = -sum(log_det(c + self.epsilon * np.eye(4)) for c in covariances)
            value = objective.terms(z, graph)["covariance"]
            assert value.item() == pytest.approx(expected)
            remembered, seen = np.mean(covariances, axis=0), seen + 1
        np.testing.assert_allclose(objective.running_covariance, remembered)

    def test_evaluation_stores_nothing(self):
        graph = Graph.identity(6).views(2)
        objective = self.make().double().eval()
        objective(self.rows(graph), graph)
        assert int(objective.batches) == 0
        assert not objective.running_covariance.any()

    def test_gradient_goes_through_the_present_batch(self):
        graph = Graph.identity(6).views(2)
        objective = self.make().double()
        objective(self.rows(graph, 1), graph)
        z = self.rows(graph).requires_grad_()
        objective.eval()
        assert torch.autograd.gradcheck(lambda rows: objective(rows, graph), (z,))

    def test_rank_deficient_with_a_tiny_epsilon_in_float32(self):
        objective = self.make(epsilon=1e-8, dim=8)
        z = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
        for _ in range(3):
            rows = z.repeat_interleave(2, dim=0).requires_grad_()
            objective(rows, Graph.identity(4).views(2)).backward()
            assert torch.isfinite(rows.grad).all()

    def test_wrong_dimensions(self):
        with pytest.raises(ValueError, match="z has 4 dimensions, but dim is 5"):
            self.make(dim=5)(torch.randn(4, 4), Graph.identity(2).views(2))


def test_invariance_weight_of_its_own():
    graph = Graph.identity(6).views(2)
    z = torch.randn(12, 4)
    first = CorInfoMax(epsilon=0.1).terms(z, graph)["invariance"]
    second = CorInfoMax(epsilon=0.1, invariance_weight=1.0).terms(z, graph)["invariance"]
    assert first.item() == pytest.approx(20 * second.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"covariance_weight": -1.0}, "covariance_weight is -1.0"),
        ({"invariance_weight": -1.0}, "invariance_weight is -1.0"),
        ({"ddof": -1}, "ddof is -1"),
        ({"margin": 0.0}, "margin is 0.0"),
        ({"momentum": 1.0, "dim": 3}, "momentum is 1.0.*below 1"),
        ({"momentum": 0.5}, "dim is None: give the dimensions"),
        ({"momentum": 0.5, "dim": 0}, "dim is 0"),
    ],
)
def test_cor_info_max_rejects(changes, message):
    with pytest.raises(ValueError, match=message):
        CorInfoMax(**changes)


def test_too_few_samples_for_the_covariance():
    with pytest.raises(ValueError, match=r"1 samples with ddof 1.*ddof=0"):
        CorInfoMax(ddof=1)(torch.randn(2, 3), Graph.identity(1).views(2))


# --- what all of them share -----------------------------------------------------------------------

EVERY = [
    TotalCodingRate(),
    TotalCodingRate(invariance_weight=1.0),
    MaximalCodingRateReduction(),
    EMPSSL(),
    MaximumEntropyCoding(),
    MaximumEntropyCoding(epsilon=0.5, covariance="auto", logarithm="exact"),
    CorInfoMax(),
]


@pytest.mark.parametrize("objective", EVERY, ids=lambda o: type(o).__name__)
def test_turning_all_rows_changes_nothing(objective):
    graph = Graph.from_labels(torch.tensor([0, 1, 0, 2])).views(2)
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(8, 5, dtype=torch.float64, generator=generator)
    turn, _ = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=generator))
    assert objective(z @ turn, graph).item() == pytest.approx(objective(z, graph).item())


@pytest.mark.parametrize("objective", EVERY, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("rows", ["zero", "one place", "fewer than dimensions"])
def test_gradients_are_finite_in_float32(objective, rows):
    z = {
        "zero": torch.zeros(6, 8),
        "one place": torch.ones(6, 8),
        "fewer than dimensions": torch.randn(3, 8).repeat_interleave(2, dim=0),
    }[rows].requires_grad_()
    for graph in (Graph.identity(3).views(2), weighted(Graph.identity(3)).views(2)):
        value = objective(z, graph)
        (gradient,) = torch.autograd.grad(value, z)
        assert torch.isfinite(value) and torch.isfinite(gradient).all()


@pytest.mark.parametrize(("views", "target_views"), [(2, 3), (3, 2), (1, 2)])
def test_a_teacher_with_other_views(views, target_views):
    """Multi-crop: the same view of the same sample is not compared."""
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_labels(torch.tensor([0, 1, 0, 2])).views(views)
    z = torch.randn(4 * views, 3, dtype=torch.float64, generator=generator)
    target = torch.randn(4 * target_views, 3, dtype=torch.float64, generator=generator)
    total = weight = 0.0
    for i, row in enumerate(unit(z)):
        for j, other in enumerate(unit(target)):
            same = [0, 1, 0, 2][i // views] == [0, 1, 0, 2][j // target_views]
            own = i // views == j // target_views and i % views == j % target_views
            if same and not own:
                total, weight = total + 1 - row @ other, weight + 1
    value = TotalCodingRate(invariance_weight=1.0).terms(z, graph, target=target)["invariance"]
    assert value.item() == pytest.approx(total / weight)
    for objective in (MaximumEntropyCoding(), CorInfoMax()):
        assert torch.isfinite(objective(z, graph, target=target))
