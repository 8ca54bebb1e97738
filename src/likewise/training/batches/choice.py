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

WORTH_IT = 1.5
"""Known pairs are brought together where that gives so many times those of a random batch."""


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

    "auto" takes :class:`GraphAwareBatches` where they hold at least one and a half times as many
    known pairs (edges of any sign, or classmates) as random batches, and :class:`ShuffledBatches`
    otherwise. (With a tenth of CIFAR-10's labels that is worth 13 points after 10 epochs, with 30
    and 60 % of the digits' 7 and 3: docs/benchmarks/cifar10.md and labels.md.)

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
    if read_knowledge(graph).pairs == 0:
        shuffled.reason = "samples are shuffled: no two samples are known to be alike or different"
    elif batch_size < SMALLEST_BATCH:
        shuffled.reason = (
            f"samples are shuffled: a batch of {batch_size} is too small to bring known pairs "
            "beside others"
        )
    else:
        aware = GraphAwareBatches(graph, batch_size, seed, known_share=known_share)
        brought, random = aware.mixture["known_pairs"], aware.mixture["known_pairs_if_random"]
        if brought >= WORTH_IT * random:
            return aware
        shuffled.reason = (
            f"samples are shuffled: a random batch holds {in_figures(random)} known pairs on "
            "average, and one that brings them together hardly more"
        )
    return shuffled
