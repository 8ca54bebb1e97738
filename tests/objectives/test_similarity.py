import math

import pytest
import torch

from likewise import Graph
from likewise.objectives.similarity import BYOLRegression, NegativeCosine
from tests.objectives import contract
from tests.objectives.contract import dense


def cosine(a, b):
    return float((a * b).sum() / (a.norm() * b.norm()))


def compared(graph):
    """(row, column, weight) of all pairs but those of a row with itself."""
    entries = dense(graph)
    for i in range(graph.n):
        for j in range(graph.n):
            if i != j:
                yield i, j, float(entries[i, j])


class TestNegativeCosine(contract.TwoViewForm):
    def make(self, **changes):
        return NegativeCosine(**changes)

    def naive(self, z, graph, target=None):
        target = z if target is None else target
        total = weights = 0.0
        for i, j, weight in compared(graph):
            total -= weight * cosine(z[i], target[j])
            weights += abs(weight)
        return total / weights

    def original(self, z1, z2):
        return -sum(cosine(a, b) for a, b in zip(z1, z2, strict=True)) / len(z1)


class TestNegativeCosineOfATeacher(TestNegativeCosine):
    teacher = True

    def test_original_two_view_form(self):
        """SimSiam: -cos(p1, z2) / 2 - cos(p2, z1) / 2, the mean over samples."""
        graph = Graph.identity(6).views(2)
        p, z = self.rows(graph), self.arguments(graph)["target"]
        first, second = self.original(p[0::2], z[1::2]), self.original(p[1::2], z[0::2])
        value = self.make()(p, graph, target=z)
        assert value.item() == pytest.approx((first + second) / 2)


class TestBYOLRegression(contract.TwoViewForm):
    def make(self, **changes):
        return BYOLRegression(**{"margin": 1.5, **changes})

    def naive(self, z, graph, target=None):
        target = z if target is None else target
        total = weights = 0.0
        for i, j, weight in compared(graph):
            distance = math.sqrt(2 - 2 * cosine(z[i], target[j]))
            gap = max(0.0, 1.5 - distance)
            total += weight * distance**2 if weight > 0 else -weight * gap**2
            weights += abs(weight)
        return total / weights

    def original(self, z1, z2):
        return sum(2 - 2 * cosine(a, b) for a, b in zip(z1, z2, strict=True)) / len(z1)


class TestBYOLRegressionOfATeacher(TestBYOLRegression):
    teacher = True

    test_original_two_view_form = TestNegativeCosineOfATeacher.test_original_two_view_form


def rows(n, dim=4, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_mean_and_sum_differ_by_the_weight_of_the_pairs():
    graph, z = contract.signed_graph(), rows(12)
    weight = (dense(graph) - torch.diag(dense(graph).diagonal())).abs().sum()
    for kind in (NegativeCosine, BYOLRegression):
        mean, total = kind()(z, graph), kind(reduction="sum")(z, graph)
        torch.testing.assert_close(total, mean * weight)


def test_two_views_summed_are_twice_the_printed_equations():
    z = rows(12)
    cosines = sum(cosine(a, b) for a, b in zip(z[0::2], z[1::2], strict=True))
    graph = Graph.identity(6).views(2)
    assert NegativeCosine(reduction="sum")(z, graph).item() == pytest.approx(-2 * cosines)
    byol = BYOLRegression(reduction="sum")(z, graph).item()
    assert byol == pytest.approx(2 * (2 * 6 - 2 * cosines))


@pytest.mark.parametrize("kind", [NegativeCosine, BYOLRegression])
def test_nothing_compared_costs_nothing(kind):
    z = rows(6).requires_grad_()
    value = kind()(z, Graph.identity(6))
    value.backward()
    assert value.item() == 0
    assert torch.equal(z.grad, torch.zeros_like(z))


@pytest.mark.parametrize("kind", [NegativeCosine, BYOLRegression])
def test_scale_and_rotation_do_not_matter(kind):
    graph, z = contract.mixed_graph(), rows(12)
    rotation = torch.linalg.qr(rows(4, seed=3)).Q
    scales = torch.rand(12, 1, generator=torch.Generator().manual_seed(4)).double() + 0.5
    torch.testing.assert_close(kind()(scales * (z @ rotation), graph), kind()(z, graph))


@pytest.mark.parametrize("kind", [NegativeCosine, BYOLRegression])
def test_zero_rows_have_finite_gradients(kind):
    z = rows(12)
    z[3] = 0
    z.requires_grad_()
    kind()(z, contract.signed_graph()).backward()
    assert torch.isfinite(z.grad).all()
    assert torch.equal(z.grad[3], torch.zeros(4).double())


def test_different_rows_are_pushed_apart():
    graph = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), -1.0)
    near, far = torch.tensor([[1.0, 0.1], [1.0, 0.0]]), torch.tensor([[1.0, 0.1], [-1.0, 0.0]])
    for kind in (NegativeCosine, BYOLRegression):
        assert kind()(near, graph) > kind()(far, graph)
    assert BYOLRegression()(far, graph).item() == 0  # beyond the margin


def test_close_views_keep_their_digits():
    z = rows(64, dim=32)
    z[1::2] = z[0::2] + 1e-4 * z[1::2]
    graph = Graph.identity(32).views(2)
    exact = BYOLRegression()(z, graph).item()
    assert BYOLRegression()(z.float(), graph).item() == pytest.approx(exact, rel=1e-2)


@pytest.mark.parametrize("kind", [NegativeCosine, BYOLRegression])
def test_more_views_than_the_teacher(kind):
    """Multi-crop: V = 4 views against U = 2, each with the other view's rows."""
    z, t = rows(12), rows(6, seed=1)
    graph = Graph.identity(3).views(4)
    values = [
        -cosine(z[4 * i + u], t[2 * i + v]) for i in range(3) for u in range(4) for v in range(2)
        if u != v
    ]  # fmt: skip
    expected = sum(values) / len(values)
    if kind is BYOLRegression:
        expected = 2 + 2 * expected
    assert kind()(z, graph, target=t).item() == pytest.approx(expected)


def test_margin_is_checked():
    with pytest.raises(ValueError, match="margin is -1"):
        BYOLRegression(margin=-1)
