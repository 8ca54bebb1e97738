"""Which plan suits a graph."""

from __future__ import annotations

from typing import Literal

from likewise.graph import Graph
from likewise.training.batches.aware import SMALLEST_BATCH, GraphAwareBatches
from likewise.training.batches.knowledge import in_figures, read_knowledge
from likewise.training.batches.plan import BatchPlan
from likewise.training.batches.shuffled import ShuffledBatches

Sampler = Literal["auto", "shuffled", "graph-aware"]
SAMPLERS = ("auto", "shuffled", "graph-aware")


def plan_batches(
    graph: Graph,
    n: int,
    batch_size: int,
    seed: int = 0,
    sampler: Sampler = "auto",
    *,
    known_share: float = 0.5,
) -> BatchPlan:
    """The plan of batches for a graph over n samples; its `reason` says why that one.

    "auto" takes :class:`GraphAwareBatches` where some pairs of two samples are known (edges of any
    sign, or classmates), but a random batch would hold fewer of them than samples, and
    :class:`ShuffledBatches` otherwise. (A tenth of CIFAR-10's labels is 0.1 pairs a sample: brought
    together they are worth 13 points after 10 epochs, docs/benchmarks/cifar10.md.)

    >>> import torch
    >>> answers = Graph.from_edges(torch.arange(1000), torch.arange(1000) + 1000, n=50_000)
    >>> print(plan_batches(Graph.identity(50_000) + answers, 50_000, batch_size=512).reason)
    known pairs are brought together: 128 in a batch of 512, where a random one would hold 0.1
    """
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler is {sampler!r}: give one of {', '.join(SAMPLERS)}")
    if isinstance(graph, Graph) and graph.n != n:
        raise ValueError(
            f"graph is over {graph.n} nodes, but there are {n} samples: build it over the samples"
        )
    shuffled = ShuffledBatches(graph, batch_size, seed)
    if sampler == "shuffled":
        return shuffled
    if sampler == "graph-aware":
        return GraphAwareBatches(graph, batch_size, seed, known_share=known_share)
    knowledge = read_knowledge(graph)
    pairs = knowledge.pairs_in_random_batch(batch_size)
    if knowledge.pairs == 0:
        shuffled.reason = "samples are shuffled: no two samples are known to be alike or different"
    elif pairs >= batch_size:
        shuffled.reason = (
            f"samples are shuffled: a random batch holds {in_figures(pairs)} known pairs on "
            "average, which is enough"
        )
    elif batch_size < SMALLEST_BATCH:
        shuffled.reason = (
            f"samples are shuffled: a batch of {batch_size} is too small to bring known pairs "
            "beside others"
        )
    else:
        return GraphAwareBatches(graph, batch_size, seed, known_share=known_share)
    return shuffled
