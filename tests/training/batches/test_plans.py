"""The contract for every plan, over every kind of graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.factored import FactoredGraph
from likewise.training.batches import GraphAwareBatches, ShuffledBatches
from tests.training.batches.contract import BatchPlanContract

N = 50


def answers(n: int = N) -> Graph:
    """Alike, different and neither; a sample may be in several answers."""
    i, j = torch.tensor([0, 0, 7, 20, 33, 41]), torch.tensor([9, 11, 45, 21, 34, 49])
    return Graph.from_edges(i, j, torch.tensor([1.0, -1.0, 1.0, -1.0, 0.0, 2.0]), n=n)


def few_labels(classes: int = 2, labelled: int = 12) -> Graph:
    labels = torch.full((N,), -1)
    labels[4 * torch.arange(labelled)] = torch.arange(labelled) % classes
    return Graph.from_labels(labels)


class TestShuffled(BatchPlanContract):
    def sample_graph(self) -> Graph:
        return Graph.identity(N)

    def make(self, *, batch_size=None, seed=0):
        size = self.batch_size if batch_size is None else batch_size
        return ShuffledBatches(self.sample_graph(), size, seed)

    def test_every_sample_at_most_once_an_epoch(self):
        samples = [i for batch in self.batches(self.make(), 0) for i in batch]
        assert len(set(samples)) == len(samples) == 48
        samples = [i for batch in self.batches(self.make(batch_size=10), 0) for i in batch]
        assert sorted(samples) == list(range(N))

    def test_graph_is_the_part_of_the_graph(self):
        plan = self.make()
        for index in plan.epoch(0):
            expected = self.sample_graph().subset(index)
            torch.testing.assert_close(plan.graph(index).dense(), expected.dense())


class TestShuffledIdentity(TestShuffled):
    def test_graph_stays_the_identity(self):
        graph = self.make().graph(torch.tensor([3, 1]))
        assert isinstance(graph, FactoredGraph) and graph.placeless
        assert graph.class_labels.tolist() == [0, 1]


class TestShuffledSum(TestShuffled):
    def sample_graph(self) -> Graph:
        return 0.9 * Graph.identity(N) + 0.1 * few_labels() + answers()


class TestShuffledLossBased(TestShuffled):
    sign_is_stored = False

    def sample_graph(self) -> Graph:
        return Graph.from_loss(torch.linspace(0, 1, N).square(), "absolute", form="shifted")


class TestShuffledTargets(TestShuffled):
    def sample_graph(self) -> Graph:
        return Graph.from_targets(torch.linspace(-1, 1, N)) + Graph.identity(N).normalized()


class AwareContract(BatchPlanContract):
    def make(self, *, batch_size=None, seed=0):
        size = self.batch_size if batch_size is None else batch_size
        return GraphAwareBatches(self.sample_graph(), size, seed)

    def test_mixture_is_what_batches_hold(self):
        plan = self.make()
        entries = self.sample_graph()
        pairs = entries.known().dense().triu(1)
        if plan._labels is not None or not isinstance(entries, EdgeGraph):
            # Of labels, only classmates are counted.
            listed = answers().known().dense().triu(1) if plan._edges is not None else 0
            pairs = ((entries.dense().triu(1) != 0) | (listed * pairs > 0)).float()
        held = [
            float(pairs[index][:, index].sum())
            for epoch in range(300)
            for index in plan.epoch(epoch)
        ]
        error = np.std(held) / np.sqrt(len(held))
        assert plan.mixture["known_pairs"] == pytest.approx(np.mean(held), abs=5 * error + 0.02)
        assert plan.mixture["known"] + plan.mixture["uniform"] == pytest.approx(1.0)

    def test_rejects_a_small_batch(self):
        with pytest.raises(ValueError, match="batch_size is 7, too small.*at least 8"):
            self.make(batch_size=7)


class TestAwareEdges(AwareContract):
    def sample_graph(self) -> Graph:
        return answers()

    def test_edges_stay_edges(self):
        assert isinstance(self.make().graph(torch.arange(9)), EdgeGraph)


class TestAwareIdentityAndEdges(AwareContract):
    def sample_graph(self) -> Graph:
        return 0.999 * Graph.identity(N) + 0.001 * answers()

    def test_kinds_are_kept(self):
        identity, edges = self.make().graph(torch.arange(12)).terms
        assert isinstance(identity, FactoredGraph) and identity.labels is None
        assert isinstance(edges, EdgeGraph) and edges.n_edges == 2


class TestAwareLabels(AwareContract):
    def sample_graph(self) -> Graph:
        return few_labels()

    def test_labels_stay_labels(self):
        graph = self.make().graph(torch.arange(12))
        assert any(isinstance(t, FactoredGraph) and t.labels is not None for t in graph.terms)


class TestAwareTeams(AwareContract):
    """Many classes: samples come with classmates."""

    def sample_graph(self) -> Graph:
        return Graph.identity(N) + 0.5 * few_labels(classes=5)

    def test_classmates_come_together(self):
        plan = self.make(batch_size=16)
        labels = few_labels(classes=5).class_labels
        assert plan._labels.team == 4
        for index in plan.epoch(0):
            held = labels[index]
            counts = torch.bincount(held[held >= 0])
            assert counts.max() >= 2


class TestAwareBalancedTeams(AwareContract):
    def sample_graph(self) -> Graph:
        labels = torch.full((N,), -1)
        labels[::3] = torch.arange(17) % 6
        return Graph.from_labels(labels, balance=1.0) + Graph.identity(N)


class TestAwareLabelsAndEdges(AwareContract):
    def sample_graph(self) -> Graph:
        return Graph.identity(N) + few_labels() + 0.5 * answers()

    def test_mixture_is_what_batches_hold(self):
        assert self.make().mixture["known_pairs"] > 3  # edges and labels may share pairs


class TestAwareTeamsAndEdges(TestAwareLabelsAndEdges):
    def sample_graph(self) -> Graph:
        return Graph.identity(N) + few_labels(classes=5) + 0.5 * answers()


class TestAwareNumPy(AwareContract):
    """A graph made from arrays."""

    def sample_graph(self) -> Graph:
        graph = Graph.from_edges(np.array([0, 5, 5]), np.array([3, 40, 41]), n=N)
        return graph.to("cpu")

    def make(self, *, batch_size=None, seed=0):
        graph = Graph.from_edges(np.array([0, 5, 5]), np.array([3, 40, 41]), n=N)
        return GraphAwareBatches(graph, 12 if batch_size is None else batch_size, seed)
