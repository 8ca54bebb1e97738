import math

import numpy as np
import pytest
import torch
from torch import nn

from likewise import Graph
from likewise.graph.factored import FactoredGraph
from likewise.objectives.class_regression import ClassRegression
from likewise.objectives.orthogonal_head import OrthogonalHead, nuclear_norm
from likewise.objectives.regression import (
    AbsoluteRegression,
    RelativeRegression,
    TraceObjective,
)
from likewise.objectives.targets import graph_targets, target_sums
from tests.objectives import contract
from tests.objectives.contract import GRAPHS, dense


def centering(rows):
    return np.eye(rows) - np.ones((rows, rows)) / rows


class TestRelativeRegression(contract.PreventsCollapse):
    regularization = 0.03

    def make(self, **changes):
        return RelativeRegression(**{"regularization": self.regularization, **changes})

    def naive(self, z, graph):
        """Equation 2 with the singular vectors of HZ, and its constant."""
        z, weights = z.numpy(), dense(graph).numpy()
        rows = len(z)
        H = centering(rows)
        left, values, _ = np.linalg.svd(H @ z, full_matrices=False)
        explained = 0.0
        for k, value in enumerate(values):
            if value > 1e-12:
                share = value**2 / (value**2 + self.regularization * rows)
                explained += share * left[:, k] @ weights @ left[:, k]
        return (np.trace(H @ weights @ H) - explained) / rows

    def test_sum(self):
        graph = GRAPHS["labels-views"]()
        z = self.rows(graph)
        total, mean = self.make(reduction="sum")(z, graph), self.make()(z, graph)
        assert total.item() == pytest.approx(12 * mean.item())

    def test_fewer_rows_than_dimensions(self):
        graph = Graph.from_labels(torch.tensor([0, 1, 0, 2]))
        z = torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        z.requires_grad_()
        assert self.make()(z, graph).item() == pytest.approx(self.naive(z.detach(), graph))
        assert torch.autograd.gradcheck(lambda rows: self.make()(rows, graph), (z,), atol=1e-6)

    def test_gradient_is_right_for_whitened_rows(self):
        """All singular values are equal there: an SVD has no gradient."""
        graph = GRAPHS["labels"]()
        z, _ = torch.linalg.qr(self.rows(graph) - self.rows(graph).mean(dim=0))
        z.requires_grad_()
        assert torch.autograd.gradcheck(lambda rows: self.make()(rows, graph), (z,), atol=1e-6)

    def test_gradient_is_finite_at_collapse(self):
        for rows in (torch.zeros(12, 4), torch.ones(12, 4), torch.ones(12, 4) + torch.eye(12, 4)):
            z = rows.requires_grad_()
            self.make()(z, GRAPHS["labels"]()).backward()
            assert torch.isfinite(z.grad).all()

    def test_shift_and_turn_change_nothing(self):
        graph = GRAPHS["mixed"]()
        z = self.rows(graph)
        turn, _ = torch.linalg.qr(self.rows(Graph.identity(4), 4))
        moved = z @ turn + torch.tensor([3.0, -1.0, 2.0, 0.0])
        assert self.make()(moved, graph).item() == pytest.approx(self.make()(z, graph).item())


class TestRelativeRegressionWithoutRidge(TestRelativeRegression):
    regularization = 0.0

    def test_gradient_is_right_for_whitened_rows(self):
        """Turning and stretching change nothing: the gradient is orthogonal to both."""
        graph = GRAPHS["labels"]()
        z, _ = torch.linalg.qr(self.rows(graph) - self.rows(graph).mean(dim=0))
        z.requires_grad_()
        (gradient,) = torch.autograd.grad(self.make()(z, graph), z)
        assert (z.detach().T @ gradient).abs().max() < 1e-12

    def test_rank_deficient_rows(self):
        """Constant directions and copies of a column neither help nor harm."""
        graph = GRAPHS["labels"]()
        z = self.rows(graph)[:, :2]
        wide = torch.cat([z, z, torch.ones(12, 1).double()], dim=1)
        objective = self.make()
        assert objective(wide, graph).item() == pytest.approx(objective(z, graph).item())
        single = objective(wide.float(), graph)
        assert single.item() == pytest.approx(objective(z, graph).item(), rel=1e-4)


class TestRelativeRegressionTinyRidge(TestRelativeRegression):
    """Below the round-off of the Gram matrix in float32: singular values take over."""

    regularization = 1e-9

    def test_gradient_is_right_for_whitened_rows(self):
        graph = GRAPHS["labels"]()
        z = torch.linalg.qr(self.rows(graph) - self.rows(graph).mean(dim=0))[0]
        exact, single = z.clone().requires_grad_(), z.float().requires_grad_()
        self.make()(exact, graph).backward()
        self.make()(single, graph).backward()
        torch.testing.assert_close(single.grad.double(), exact.grad, rtol=1e-4, atol=1e-5)


class TestAbsoluteRegression(contract.PreventsCollapse):
    regularization = 0.03
    # Edges have no targets: that is an error, below.
    graphs = tuple(name for name in GRAPHS if name != "signed")

    def make(self, **changes):
        return AbsoluteRegression(**{"regularization": self.regularization, **changes})

    def naive(self, z, graph):
        """Ordinary ridge regression with a bias, on any Y with Y Y^T = G."""
        z, weights = z.numpy(), dense(graph).numpy()
        values, vectors = np.linalg.eigh(weights)
        targets = vectors * np.sqrt(np.clip(values, 0, None))
        rows, dim = z.shape
        features = np.column_stack([z, np.ones(rows)])
        penalty = rows * self.regularization * np.diag([1.0] * dim + [0.0])
        head = np.linalg.pinv(features.T @ features + penalty) @ features.T @ targets
        error = sum(np.sum((features[i] @ head - targets[i]) ** 2) for i in range(rows))
        return error / rows + self.regularization * np.sum(head[:dim] ** 2)

    def test_sum(self):
        graph = GRAPHS["labels-views"]()
        z = self.rows(graph)
        total, mean = self.make(reduction="sum")(z, graph), self.make()(z, graph)
        assert total.item() == pytest.approx(12 * mean.item())

    def test_equals_the_relative_objective(self, graph):
        """Theorem 1: the labels matter through the graph alone."""
        z = self.rows(graph)
        relative = RelativeRegression(self.regularization)(z, graph)
        assert self.make()(z, graph).item() == pytest.approx(relative.item(), rel=1e-9)

    def test_head_is_stationary(self):
        graph = GRAPHS["labels-views"]()
        z, targets = self.rows(graph), graph_targets(graph, torch.float64)
        weight, bias = (part.requires_grad_() for part in self.make().head(z, graph))
        error = (z @ weight.T + bias - targets).square().sum() / len(z)
        loss = error + self.regularization * weight.square().sum()
        assert loss.item() == pytest.approx(self.make()(z, graph).item())
        for gradient in torch.autograd.grad(loss, (weight, bias)):
            assert gradient.abs().max() < 1e-12

    def test_head_of_few_rows_and_in_half_precision(self):
        graph = Graph.from_labels(torch.tensor([0, 1, 0, 2]))
        z = torch.randn(4, 9, generator=torch.Generator().manual_seed(0)).bfloat16()
        weight, bias = self.make().head(z, graph)
        assert weight.shape == (3, 9) and bias.shape == (3,) and weight.dtype == torch.float32


class TestAbsoluteRegressionWithoutRidge(TestAbsoluteRegression):
    regularization = 0.0


def test_absolute_regression_of_edges_names_the_remedy():
    graph = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), n=3)
    for unfit in (graph, Graph.identity(3) + graph, -Graph.identity(3), graph.views(1)):
        with pytest.raises(ValueError, match="use RelativeRegression"):
            AbsoluteRegression()(torch.eye(3), unfit)
        with pytest.raises(ValueError, match="use RelativeRegression"):
            AbsoluteRegression().head(torch.eye(3), unfit)


@pytest.mark.parametrize("kind", [RelativeRegression, AbsoluteRegression])
def test_regression_rejects(kind):
    with pytest.raises(ValueError, match="regularization is -1.0"):
        kind(regularization=-1.0)
    with pytest.raises(ValueError, match="takes no target"):
        kind()(torch.eye(3), Graph.identity(3), target=torch.eye(3))


def test_theorem_2_gradient_in_a_singular_value():
    """(V^T G V)_kk times -2 s lambda / (s^2 + lambda N)^2."""
    graph = GRAPHS["labels"]()
    ridge, value = 0.03, torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    direction = (direction - direction.mean()) / (direction - direction.mean()).norm()
    RelativeRegression(ridge)(value * direction[:, None], graph).backward()
    quadratic = direction @ dense(graph) @ direction
    expected = quadratic * -2 * 0.7 * ridge / (0.7**2 + ridge * 12) ** 2
    assert value.grad.item() == pytest.approx(expected.item())


# --- targets -----------------------------------------------------------------------------------


TARGETS = {
    "identity": Graph.identity(5),
    "labels": Graph.from_labels(torch.tensor([0, 2, 0, -1, 2]), n_classes=4),
    "balanced": Graph.from_labels(torch.tensor([0, 2, 0, 1, 2]), balance=1.0),
    "soft": Graph.from_labels(torch.rand(5, 3)),
    "targets": Graph.from_targets(torch.randn(5, 2)),
    "normalized": Graph.from_labels(torch.tensor([0, 2, 0, 1, 2])).normalized(),
    "sum": 0.3 * Graph.identity(5) + 0.7 * Graph.from_labels(torch.tensor([0, 1, 0, 1, 1])),
    "middle": FactoredGraph(
        5,
        labels=torch.tensor([0, 1, 2, 1, 0]),
        n_classes=3,
        middle=torch.tensor([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]),
    ),
}


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("name", TARGETS)
def test_targets_behind_a_graph(name, views):
    graph = TARGETS[name].views(views)
    targets = graph_targets(graph, torch.float64)
    torch.testing.assert_close(targets @ targets.T, dense(graph), rtol=1e-6, atol=1e-6)
    z = torch.randn(graph.n, 3, dtype=torch.float64)
    torch.testing.assert_close(target_sums(graph, z), targets.T @ z)


def test_graphs_without_targets():
    indefinite = FactoredGraph(
        2, labels=torch.tensor([0, 1]), n_classes=2, middle=torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    )
    negative = Graph.from_labels(torch.tensor([0, 1]), class_weights=torch.tensor([1.0, -1.0]))
    edges = Graph.from_edges(torch.tensor([0]), torch.tensor([1]))
    for graph in (indefinite, negative, edges, edges.views(2), edges + edges, -edges):
        assert graph_targets(graph, torch.float32) is None
        assert target_sums(graph, torch.zeros(graph.n, 2)) is None


# --- the trace objective -----------------------------------------------------------------------


class TestTraceObjective(contract.PreventsCollapse):
    def make(self, **changes):
        return TraceObjective(**{"weight": 0.4, **changes})

    def naive(self, z, graph):
        z, weights = z.numpy(), dense(graph).numpy()
        H = centering(len(z))
        trace = sum(
            (H @ weights @ H)[i, j] * z[i] @ z[j] for i in range(len(z)) for j in range(len(z))
        )
        return -trace / len(z) + 0.4 * np.sum((z.T @ H @ z - np.eye(z.shape[1])) ** 2)

    def spread(self, corners):
        return corners / math.sqrt(8 * self.dim)

    def test_sum(self):
        graph = GRAPHS["labels-views"]()
        z = self.rows(graph)
        total = self.make(reduction="sum").terms(z, graph)
        mean = self.make().terms(z, graph)
        assert total["trace"].item() == pytest.approx(12 * mean["trace"].item())
        assert total["orthogonality"] == mean["orthogonality"]

    def test_minimum_spans_the_leading_eigenvectors(self):
        """Errata: Z^T H Z goes to (1 + c / (2 alpha N)) I for a graph of equal degrees c."""
        graph = Graph.from_labels(torch.arange(3).repeat_interleave(4))
        z = nn.Parameter(0.1 * self.rows(graph)[:, :2])
        optimizer = torch.optim.LBFGS([z], max_iter=200, line_search_fn="strong_wolfe")

        def loss():
            optimizer.zero_grad()
            value = self.make()(z, graph)
            value.backward()
            return value

        optimizer.step(loss)
        centered = z.detach() - z.detach().mean(dim=0)
        expected = (1 + 4 / (2 * 0.4 * 12)) * torch.eye(2).double()
        torch.testing.assert_close(centered.T @ centered, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(centered[0::4], centered[3::4], rtol=1e-3, atol=1e-4)


def test_trace_objective_rejects():
    with pytest.raises(ValueError, match="weight is 0"):
        TraceObjective(weight=0)


# --- the orthogonal head -----------------------------------------------------------------------


class TestOrthogonalHead(contract.PreventsCollapse):
    dim = 3
    # Two classes cannot hold three dimensions: that is an error, below.
    graphs = tuple(name for name in GRAPHS if name != "partial")

    def make(self, **changes):
        return OrthogonalHead(**changes)

    def naive(self, z, graph):
        z, weights = z.numpy(), dense(graph).numpy()
        moment = sum(
            weights[i, j] * np.outer(z[i], z[j]) for i in range(len(z)) for j in range(len(z))
        )
        roots = np.sqrt(np.clip(np.linalg.eigvalsh(moment), 0, None))
        return (np.sum(z**2) + np.trace(weights) - 2 * roots.sum()) / len(z)

    def test_sum(self):
        graph = GRAPHS["labels-views"]()
        z = self.rows(graph)
        total, mean = self.make(reduction="sum")(z, graph), self.make()(z, graph)
        assert total.item() == pytest.approx(12 * mean.item())

    def test_is_the_error_of_the_best_orthogonal_head(self):
        graph = GRAPHS["mixed"]()
        z, targets = self.rows(graph), graph_targets(graph, torch.float64)
        left, _, right = torch.linalg.svd(z.T @ targets, full_matrices=False)
        head = left @ right
        torch.testing.assert_close(head @ head.T, torch.eye(3).double())
        error = (z @ head - targets).square().sum() / len(z)
        assert self.make()(z, graph).item() == pytest.approx(error.item())

    def test_turned_labels_cost_nothing(self):
        labels = torch.tensor([0, 1, 0, 2, 1, 1])
        turn, _ = torch.linalg.qr(self.rows(Graph.identity(3), 4))
        z = torch.eye(3).double()[labels] @ turn
        assert abs(self.make()(z, Graph.from_labels(labels)).item()) < 1e-12

    def test_edges_and_labels_agree(self):
        labels = torch.tensor([0, 1, 0, 2, 1, 1])
        matrix = Graph.from_labels(labels).dense()
        i, j = torch.triu(matrix).nonzero().unbind(dim=1)
        edges = Graph.from_edges(i, j, n=6)
        z = self.rows(edges).requires_grad_()
        first, second = self.make()(z, Graph.from_labels(labels)), self.make()(z, edges)
        assert second.item() == pytest.approx(first.item())
        torch.testing.assert_close(
            torch.autograd.grad(second, z)[0], torch.autograd.grad(first, z)[0]
        )

    def test_gradient_is_finite_at_repeated_and_zero_singular_values(self):
        labels = torch.arange(3).repeat(2)
        edges = Graph.from_edges(torch.arange(5), torch.arange(1, 6), n=6)
        for rows in (torch.eye(3)[labels], torch.zeros(6, 3), torch.ones(6, 3)):
            for graph in (Graph.from_labels(labels), edges):
                z = rows.clone().requires_grad_()
                self.make()(z, graph).backward()
                assert torch.isfinite(z.grad).all()

    def test_partial_labels_in_fewer_dimensions(self):
        graph = GRAPHS["partial"]()
        z = self.rows(graph)[:, :2]
        assert self.make()(z, graph).item() == pytest.approx(self.naive(z, graph))

    def test_more_dimensions_than_targets(self):
        labels = torch.tensor([0, 1, 0, 1])
        z = torch.randn(4, 3, dtype=torch.float64)
        with pytest.raises(ValueError, match=r"3 dimensions, but the graph has 2.*n_classes"):
            self.make()(z, Graph.from_labels(labels))
        padded = Graph.from_labels(labels, n_classes=3)  # the remedy that the error names
        assert self.make()(z, padded).item() == pytest.approx(self.naive(z, padded))
        with pytest.raises(ValueError, match="5 dimensions, but the graph has 4 targets"):
            edges = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), n=4)
            self.make()(torch.randn(4, 5), edges)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_what_counts_as_zero_without_regularization_is_relative(scale):
    """A third dimension that only repeats the first two explains nothing, at any scale."""
    graph = Graph.from_labels(torch.tensor([0, 1, 0, 2, 2, 1, 0]))
    z = torch.randn(7, 2, generator=torch.Generator().manual_seed(0)).double()
    objective = RelativeRegression(regularization=0.0)
    repeated = scale * torch.cat([z, z.sum(dim=1, keepdim=True)], dim=1)
    assert objective(repeated, graph).item() == pytest.approx(objective(z, graph).item())


def test_small_singular_values_keep_their_digits_in_float32():
    """Errata: the root of Z^T G Z squares the condition number."""
    values = torch.tensor([1.0, 1e-3, 1e-5])
    left, _ = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))
    norm = nuclear_norm(left * values)
    assert norm.item() - 1.001 == pytest.approx(1e-5, rel=0.05)


class TestClassRegression(contract.ObjectiveContract):
    dim = 12
    # An identity that is cut numbers its samples anew: they are no classes.
    graphs = ("labels", "labels-views", "partial")

    def make(self, **changes):
        return ClassRegression(**{"classes": self.dim, **changes})

    def naive(self, z, graph):
        error, known = 0.0, 0
        for row, label in zip(z.tolist(), graph.class_labels.tolist(), strict=True):
            if label < 0:
                continue
            known += 1
            error += sum((value - (c == label)) ** 2 for c, value in enumerate(row))
        return error / known

    def distributed_data(self):
        x, _, arguments = super().distributed_data()
        labels = torch.arange(len(x) // self.rows_per_sample) % self.dim
        graph = Graph.from_labels(labels, n_classes=self.dim)
        return x, graph.views(self.rows_per_sample), arguments


def test_class_regression_rejects():
    labels = Graph.from_labels(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="classes is 1"):
        ClassRegression(classes=1)
    with pytest.raises(ValueError, match="3 columns and there are 2 classes"):
        ClassRegression(classes=2)(torch.zeros(2, 3), labels)
    with pytest.raises(ValueError, match="has the label 2 and there are 2 classes"):
        ClassRegression(classes=2)(torch.zeros(3, 2), Graph.identity(3))
    with pytest.raises(ValueError, match="not one of labels"):
        ClassRegression(classes=2)(torch.zeros(2, 2), 0.5 * labels)
