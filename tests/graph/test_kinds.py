"""Every kind of graph passes the contract."""

import itertools

import numpy as np
import pytest
import torch

from likewise import Graph
from tests.graph import contract

LABELS = [0, 2, 0, -1, 1, 2, 2]


def same(labels):
    return np.array([[float(a == b and a >= 0) for b in labels] for a in labels])


def both_known(labels):
    return np.array([[float(a >= 0 and b >= 0) for b in labels] for a in labels])


class TestIdentity(contract.GraphContract):
    def make(self):
        return Graph.identity(5)

    def matrix(self):
        return np.eye(5)

    def known_matrix(self):
        return np.eye(5)


class TestLabels(contract.GraphContract):
    labels = LABELS

    def make(self):
        return Graph.from_labels(torch.tensor(self.labels))

    def matrix(self):
        return same(self.labels)

    def known_matrix(self):
        return both_known(self.labels)

    def known_nodes(self):
        return (np.array(self.labels) >= 0).astype(float)


class TestLabelsWithFarNumbers(TestLabels):
    labels = [10**9, 7, 10**9, -1, 7, 3]


class TestLabelsAllUnknown(TestLabels):
    labels = [-1, -1, -1, -1]

    def test_centered(self, graph, dense):
        assert graph.centered().dense().abs().max() == 0


class TestBalancedLabels(TestLabels):
    def make(self):
        return Graph.from_labels(torch.tensor(self.labels), balance=1.0)

    def matrix(self):
        counts = {label: self.labels.count(label) for label in self.labels}
        weight = np.array([1.0 / counts[label] for label in self.labels])
        return same(self.labels) * weight[:, None]


class TestWeightedClasses(TestLabels):
    weights = [0.5, 2.0, 3.0, 9.0]

    def make(self):
        labels, weights = torch.tensor(self.labels), torch.tensor(self.weights)
        return Graph.from_labels(labels, n_classes=4, class_weights=weights)

    def matrix(self):
        return same(self.labels) * np.array([self.weights[a] for a in self.labels])[:, None]


class TestBalancedAndWeightedClasses(TestWeightedClasses):
    """Both at once, with a power between 0 and 1 and a class that repels itself."""

    weights = [0.5, -2.0, 3.0, 9.0]

    def make(self):
        labels, weights = torch.tensor(self.labels), torch.tensor(self.weights)
        return Graph.from_labels(labels, n_classes=4, balance=0.5, class_weights=weights)

    def matrix(self):
        counts = np.array([self.labels.count(label) for label in self.labels])
        return super().matrix() * counts[:, None] ** -0.5


class TestFewOfManyClasses(TestWeightedClasses):
    """A subset keeps only the classes that occur in it, each with its own weight."""

    labels = [30, 7, 30, -1, 0, 7, 7]
    weights = [0.1 * c + 1 for c in range(40)]

    def make(self):
        labels, weights = torch.tensor(self.labels), torch.tensor(self.weights)
        return Graph.from_labels(labels, n_classes=40, class_weights=weights)


class TestSoftLabels(contract.GraphContract):
    rows = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]

    def make(self):
        return Graph.from_labels(torch.tensor(self.rows, dtype=torch.float64))

    def matrix(self):
        return np.array([[np.dot(a, b) for b in self.rows] for a in self.rows])

    def known_matrix(self):
        known = [any(row) for row in self.rows]
        return np.array([[float(a and b) for b in known] for a in known])

    def known_nodes(self):
        return np.array([float(any(row)) for row in self.rows])


class TestBalancedSoftLabels(TestSoftLabels):
    weights = [0.5, 2.0, 3.0]

    def make(self):
        rows = torch.tensor(self.rows, dtype=torch.float64)
        return Graph.from_labels(rows, balance=1.0, class_weights=torch.tensor(self.weights))

    def matrix(self):
        rows = np.array(self.rows)
        return rows @ np.diag(np.array(self.weights) / rows.sum(0)) @ rows.T


class TestTargets(contract.GraphContract):
    rows = [[0.5, -1.0], [2.0, 1.0], [-0.3, 0.4], [1.0, 0.0]]

    def make(self):
        return Graph.from_targets(torch.tensor(self.rows, dtype=torch.float64))

    def matrix(self):
        return np.array([[np.dot(a, b) for b in self.rows] for a in self.rows])

    def known_matrix(self):
        return np.ones((4, 4))


class TestCenteredTargets(TestTargets):
    def make(self):
        return Graph.from_targets(torch.tensor(self.rows, dtype=torch.float64), centered=True)

    def matrix(self):
        rows = np.array(self.rows) - np.mean(self.rows, axis=0)
        return rows @ rows.T


class TestSignedEdges(contract.GraphContract):
    """With an explicit 0, and a node that is alike to and one that differs from itself."""

    edges = [(0, 1, 1.0), (4, 0, -1.0), (2, 3, -0.5), (3, 3, 2.0), (1, 5, 0.0), (4, 4, -1.5)]

    def make(self):
        i, j, weight = (torch.tensor(column) for column in zip(*self.edges, strict=True))
        return Graph.from_edges(i, j, weight, n=6)

    def matrix(self):
        matrix = np.zeros((6, 6))
        for a, b, w in self.edges:
            matrix[a, b] = matrix[b, a] = w
        return matrix

    def known_matrix(self):
        matrix = np.zeros((6, 6))
        for a, b, _ in self.edges:
            matrix[a, b] = matrix[b, a] = 1.0
        return matrix


class TestNoEdges(contract.GraphContract):
    def make(self):
        none = torch.zeros(0, dtype=torch.long)
        return Graph.from_edges(none, none, n=4)

    def matrix(self):
        return np.zeros((4, 4))

    def known_matrix(self):
        return np.zeros((4, 4))


class TestMixture(contract.GraphContract):
    """(1 - a) G_ssl + a Y Y^T + answers: pal section C.2.3. The labels outweigh one answer."""

    def make(self):
        i, j, weight = [0, 0, 5], [2, 3, 6], [-1.0, 1.0, -0.125]
        answers = Graph.from_edges(torch.tensor(i), torch.tensor(j), torch.tensor(weight), n=7)
        labels = Graph.from_labels(torch.tensor(LABELS))
        return 0.75 * Graph.identity(7) + 0.25 * labels + answers

    def matrix(self):
        matrix = 0.75 * np.eye(7) + 0.25 * same(LABELS)
        matrix[0, 2] -= 1.0
        matrix[2, 0] -= 1.0
        matrix[0, 3] += 1.0
        matrix[3, 0] += 1.0
        matrix[5, 6] -= 0.125
        matrix[6, 5] -= 0.125
        return matrix

    def known_matrix(self):
        known = np.maximum(np.eye(7), both_known(LABELS))
        known[0, 3] = known[3, 0] = known[0, 2] = known[2, 0] = 1.0
        return known


class TestViews(contract.GraphContract):
    def make(self):
        return (Graph.identity(3) + Graph.from_labels(torch.tensor([0, 1, 0]))).views(2)

    def matrix(self):
        return np.kron(np.eye(3) + same([0, 1, 0]), np.ones((2, 2)))

    def known_matrix(self):
        return np.ones((6, 6))


class TestViewsWithoutDiagonal(contract.GraphContract):
    def make(self):
        return Graph.identity(3).views(2).without_diagonal()

    def matrix(self):
        return np.kron(np.eye(3), np.ones((2, 2))) - np.eye(6)

    def known_matrix(self):
        return np.kron(np.eye(3), np.ones((2, 2)))

    def test_views(self, graph, dense):
        assert graph.samples.n == 3 and (2 * graph).samples.n == 3
        self.check_views(graph, dense)

    def check_views(self, graph, dense):
        for made in (graph, 2 * graph, -graph, graph.normalized(), graph.known()):
            assert made.n_views == 2
        assert graph.without_diagonal().n_views == 2
        assert graph.subset(torch.tensor([4, 5, 0, 1])).n_views == 2
        assert graph.subset(torch.tensor([4, 0, 1])).n_views == 1
        expected = torch.kron(dense, torch.ones(2, 2, dtype=torch.float64))
        torch.testing.assert_close(graph.views(2).dense().double(), expected)

    def test_pairs(self):
        pairs = self.make().pairs()
        expected = torch.as_tensor(self.matrix())
        z = self.features(6)
        torch.testing.assert_close(pairs @ z, expected @ z)


class TestViewsWithAnswers(TestViewsWithoutDiagonal):
    """Single views are alike beside the samples, so that views of one sample differ in degree."""

    def make(self):
        answers = Graph.from_edges(torch.tensor([0, 1]), torch.tensor([3, 5]), n=6)
        return Graph.identity(3).views(2) + answers

    def matrix(self):
        matrix = np.kron(np.eye(3), np.ones((2, 2)))
        for a, b in [(0, 3), (1, 5)]:
            matrix[a, b] = matrix[b, a] = 1.0
        return matrix

    def known_matrix(self):
        return self.matrix()

    def test_views(self, graph, dense):
        with pytest.raises(ValueError, match="no graph over samples.*views"):
            graph.samples  # noqa: B018
        self.check_views(graph, dense)

    def test_pairs(self):
        pairs = self.make().pairs()
        expected = torch.as_tensor(self.matrix() - np.eye(6))
        z = self.features(6)
        torch.testing.assert_close(pairs @ z, expected @ z)


class TestViewsWithLabels(TestViewsWithAnswers):
    """A sum of views and labels over single views."""

    labels = [0, 1, 1, -1, 0, -1]

    def make(self):
        samples = Graph.identity(3) + Graph.from_labels(torch.tensor([0, -1, 0]))
        return samples.views(2) + Graph.from_labels(torch.tensor(self.labels))

    def matrix(self):
        samples = np.eye(3) + same([0, -1, 0])
        return np.kron(samples, np.ones((2, 2))) + same(self.labels)

    def known_matrix(self):
        samples = np.maximum(np.eye(3), both_known([0, -1, 0]))
        return np.maximum(np.kron(samples, np.ones((2, 2))), both_known(self.labels))

    def test_pairs(self):
        pairs = self.make().pairs()
        expected = torch.as_tensor(self.matrix() - np.diag(np.diag(self.matrix())))
        z = self.features(6)
        torch.testing.assert_close(pairs @ z, expected @ z)


class TestNormalizedLabels(TestLabels):
    def make(self):
        return Graph.from_labels(torch.tensor(self.labels)).normalized()

    def matrix(self):
        matrix = same(self.labels)
        degrees = matrix.sum(1)
        return np.divide(
            matrix, degrees[:, None], out=np.zeros_like(matrix), where=degrees[:, None] > 0
        )


class TestAbsoluteLoss(contract.GraphContract):
    values = [0.3, -1.0, 2.5, 0.3, 7.0]
    form = "raw"

    def make(self):
        values = torch.tensor(self.values, dtype=torch.float64)
        return Graph.from_loss(values, "absolute", form=self.form)

    def loss(self):
        return np.array([[abs(a - b) for b in self.values] for a in self.values])

    def matrix(self):
        return -self.loss()

    def known_matrix(self):
        return np.ones_like(self.loss())


class TestAbsoluteLossShifted(TestAbsoluteLoss):
    form = "shifted"

    def matrix(self):
        return self.loss().max() - self.loss()


class TestAbsoluteLossNormalized(TestAbsoluteLossShifted):
    def make(self):
        return super().make().normalized()

    def matrix(self):
        scale = super().matrix().sum(1) ** -0.5
        return scale[:, None] * super().matrix() * scale


class TestAbsoluteLossCentered(TestAbsoluteLoss):
    form = "centered"

    def matrix(self):
        h = np.eye(5) - 1 / 5
        return -h @ self.loss() @ h


class TestSquaredLoss(TestAbsoluteLoss):
    values = [[0.3, 1.0], [-1.0, 0.0], [2.5, 2.0], [0.3, -1.0], [1.0, 1.0]]

    def make(self):
        values = torch.tensor(self.values, dtype=torch.float64)
        return Graph.from_loss(values, "squared", form=self.form)

    def loss(self):
        return np.array(
            [[np.sum(np.subtract(a, b) ** 2) for b in self.values] for a in self.values]
        )


class TestSquaredLossShifted(TestSquaredLoss):
    form = "shifted"

    def matrix(self):
        return self.loss().max() - self.loss()


class TestSquaredLossOfNumbersShifted(TestSquaredLossShifted):
    values = [0.3, -1.0, 2.5, 0.3, 1.5]


class TestSquaredLossCentered(TestSquaredLoss):
    form = "centered"

    def matrix(self):
        h = np.eye(5) - 1 / 5
        return -h @ self.loss() @ h


class TestZeroOneLoss(TestLabels):
    form = "raw"

    def make(self):
        return Graph.from_loss(torch.tensor(self.labels), "zero-one", form=self.form)

    def matrix(self):
        return same(self.labels) - both_known(self.labels)


class TestZeroOneLossShifted(TestZeroOneLoss):
    form = "shifted"

    def matrix(self):
        return same(self.labels)


class TestZeroOneLossCentered(TestZeroOneLoss):
    form = "centered"

    def matrix(self):
        known = self.known_nodes()
        h = np.diag(known) - np.outer(known, known) / known.sum()
        return h @ same(self.labels) @ h


class TestKendallLoss(contract.GraphContract):
    rankings = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 2, 3], [0, 2, 3, 1], [2, 3, 0, 1]]
    form = "raw"

    def make(self):
        return Graph.from_loss(torch.tensor(self.rankings), "kendall", form=self.form)

    def loss(self):
        def discordant(a, b):
            pairs = list(itertools.combinations(range(4), 2))
            return sum((a[s] < a[t]) != (b[s] < b[t]) for s, t in pairs) / len(pairs)

        return np.array([[discordant(a, b) for b in self.rankings] for a in self.rankings])

    def matrix(self):
        return -self.loss()

    def known_matrix(self):
        return np.ones((5, 5))


class TestKendallLossShifted(TestKendallLoss):
    form = "shifted"

    def matrix(self):
        return 1 - 2 * self.loss()


class TestKendallLossCentered(TestKendallLoss):
    form = "centered"

    def matrix(self):
        h = np.eye(5) - 1 / 5
        return -h @ self.loss() @ h


class TestNeighbors(contract.GraphContract):
    def points(self):
        return np.random.default_rng(0).normal(size=(9, 2))

    def make(self):
        return Graph.from_neighbors(torch.as_tensor(self.points()), k=2)

    def matrix(self):
        points = self.points()
        matrix = np.zeros((9, 9))
        for a in range(9):
            order = sorted((np.linalg.norm(points[a] - points[b]), b) for b in range(9) if b != a)
            for _, b in order[:2]:
                matrix[a, b] = matrix[b, a] = 1.0
        return matrix

    def known_matrix(self):
        return self.matrix()


def test_only_the_identity_says_so():
    labels = torch.tensor([0, 1, 2])
    assert Graph.identity(3).is_identity
    assert not (0.5 * Graph.identity(3)).is_identity
    assert not Graph.from_labels(labels).is_identity  # equal to it, but that takes a look
    assert not (Graph.identity(3) + Graph.from_labels(labels)).is_identity
    assert not Graph.identity(3).views(2).is_identity
