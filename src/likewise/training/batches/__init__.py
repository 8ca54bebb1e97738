"""Which samples meet in a batch, and the batch's part of the graph.

>>> import torch
>>> from likewise import Graph
>>> plan = plan_batches(Graph.identity(10), 10, batch_size=4, seed=0)
>>> [len(index) for index in plan.epoch(0)]
[4, 4]
"""

from likewise.training.batches.aware import GraphAwareBatches
from likewise.training.batches.choice import plan_batches
from likewise.training.batches.plan import BatchPlan
from likewise.training.batches.shuffled import ShuffledBatches

__all__ = [
    "BatchPlan",
    "GraphAwareBatches",
    "ShuffledBatches",
    "plan_batches",
]
