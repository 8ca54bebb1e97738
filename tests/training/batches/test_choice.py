"""Which plan a graph gets, and what is refused."""

from __future__ import annotations

import pytest
import torch

from likewise import Graph
from likewise.training.batches import GraphAwareBatches, ShuffledBatches, plan_batches

N = 10_000


def labels(count: int, classes: int) -> torch.Tensor:
    values = torch.full((N,), -1)
    values[:count] = torch.arange(count) % classes
    return values


def edges(count: int) -> Graph:
    return Graph.from_edges(torch.arange(count), torch.arange(count) + N // 2, n=N)


IDENTITY = Graph.identity(N)
SHUFFLED = {
    "self-supervised": IDENTITY,
    "scaled": 0.5 * IDENTITY,
    "all labels": IDENTITY + Graph.from_labels(labels(N, 10)),
    "four fifths of the labels": IDENTITY + Graph.from_labels(labels(8000, 10)),
    "regression": Graph.from_targets(torch.linspace(0, 1, N)),
    "one label": IDENTITY + Graph.from_labels(labels(1, 1)),
    "no label": IDENTITY + Graph.from_labels(labels(0, 1), n_classes=1),
    "a label of every class": IDENTITY + Graph.from_labels(labels(5, 5)),
    "loops": Graph.from_edges(torch.arange(N), torch.arange(N)),
}
AWARE = {
    "answers": IDENTITY + edges(1000),
    "one answer": edges(1),
    "different": IDENTITY - edges(10),
    "neither": IDENTITY + 0.0 * edges(10),
    "1 % of the labels": IDENTITY + 0.001 * Graph.from_labels(labels(100, 10)),
    "a third of the labels": IDENTITY + Graph.from_labels(labels(3300, 10)),
    "a tenth of the labels": IDENTITY + Graph.from_labels(labels(1000, 10)),
    "all labels of many classes": IDENTITY + Graph.from_labels(labels(N, 4000)),
    "labels and answers": Graph.from_labels(labels(50, 2)) + edges(7),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_shuffled(name):
    plan = plan_batches(SHUFFLED[name], N, 128, seed=1)
    assert isinstance(plan, ShuffledBatches) and plan.reason.startswith("samples are shuffled: ")


@pytest.mark.parametrize("name", AWARE)
def test_graph_aware(name):
    plan = plan_batches(AWARE[name], N, 128, seed=1)
    assert isinstance(plan, GraphAwareBatches)
    assert plan.mixture["known_pairs"] > plan.mixture["known_pairs_if_random"]
    assert plan.seed == 1 and "known pairs are brought together" in plan.reason


def test_the_rule_is_half_as_many_known_pairs_again():
    """Half of a batch is drawn from a labelled share s, and of the other half s are labelled: just
    below and just above (1 + s)^2 / 4 = 1.5 s^2, at s = 0.69."""
    for share, kind in ((0.67, GraphAwareBatches), (0.71, ShuffledBatches)):
        graph = IDENTITY + Graph.from_labels(labels(int(share * N), 10))
        assert type(plan_batches(graph, N, 512)) is kind


def test_a_choice_is_obeyed():
    assert isinstance(plan_batches(edges(5), N, 128, sampler="shuffled"), ShuffledBatches)
    many = Graph.from_labels(labels(N, 10))
    plan = plan_batches(many, N, 128, sampler="graph-aware")
    assert isinstance(plan, GraphAwareBatches)
    # Everybody is labelled, so that nobody is over-represented and every weight is 1.
    index = next(plan.epoch(0))
    torch.testing.assert_close(plan.graph(index).dense(), many.subset(index).dense())


def test_a_small_batch_is_shuffled():
    plan = plan_batches(edges(5), N, 4)
    assert isinstance(plan, ShuffledBatches) and "a batch of 4 is too small" in plan.reason


def test_reason_counts_pairs():
    """32 of the 1,000 are drawn; the others have 64 places among 9,936 samples."""
    assert pytest.approx(32.04, abs=0.005) == 32 + 968 * (64 * 63) / (9936 * 9935)
    assert plan_batches(IDENTITY + edges(1000), N, 128).reason == (
        "known pairs are brought together: 32 in a batch of 128, where a random one would hold 0.16"
    )


def test_rejects():
    with pytest.raises(ValueError, match="sampler is 'random': give one of auto, shuffled"):
        plan_batches(IDENTITY, N, 8, sampler="random")
    with pytest.raises(ValueError, match="graph is over 10000 nodes, but there are 5 samples"):
        plan_batches(IDENTITY, 5, 8)
    with pytest.raises(ValueError, match=r"batch_size is 10001, but there are 10000 samples"):
        plan_batches(IDENTITY, N, 10_001)
    with pytest.raises(TypeError, match=r"graph is a Tensor.*Graph.identity"):
        plan_batches(torch.eye(3), 3, 2)
    with pytest.raises(ValueError, match=r"over 2 views of every sample.*graph.samples"):
        plan_batches(IDENTITY.views(2), 2 * N, 8)
    with pytest.raises(ValueError, match=r"knows no pair of two samples.*shuffled"):
        plan_batches(IDENTITY, N, 8, sampler="graph-aware")
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(ValueError, match="known_share is"):
            GraphAwareBatches(edges(3), 16, known_share=share)


def test_the_share_of_known_samples():
    for share in (0.25, 0.5, 0.8):
        for sampler in ("auto", "graph-aware"):
            plan = plan_batches(IDENTITY + edges(1000), N, 128, sampler=sampler, known_share=share)
            assert plan.mixture["known"] == pytest.approx(share, abs=0.02)
