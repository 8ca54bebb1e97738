"""Plain shuffling: what self-supervision needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from likewise.graph import Graph
from likewise.training.batches.parts import Parts
from likewise.training.batches.plan import BatchPlan


class ShuffledBatches(BatchPlan):
    r"""Every sample once an epoch, in random order; the batch's graph is the graph's part.

    Two samples meet with probability :math:`\pi^0_{ij} = b(b-1) / (n(n-1))`, whatever is known
    about them.

    >>> from likewise import Graph
    >>> plan = ShuffledBatches(Graph.identity(6), batch_size=3, seed=0)
    >>> sorted(i for index in plan.epoch(0) for i in index.tolist())
    [0, 1, 2, 3, 4, 5]
    >>> plan.graph(next(plan.epoch(0)))
    FactoredGraph(n=3)
    """

    reason = "samples are shuffled"

    def __init__(self, graph: Graph, batch_size: int, seed: int = 0) -> None:
        super().__init__(graph, batch_size, seed)
        self._parts = Parts([graph])

    def _batches(self, epoch: int, start: int) -> Iterator[np.ndarray]:
        order = self._shuffled(epoch)
        for step in range(start, len(self)):
            # A copy: a slice that is pickled takes the whole order with it.
            yield order[step * self.batch_size : (step + 1) * self.batch_size].copy()
