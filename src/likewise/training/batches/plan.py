"""What every plan of batches promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.training.batches.parts import Parts


class BatchPlan(ABC):
    """Which samples meet in which batch: a pure function of (seed, epoch, step).

    A run that resumes asks for ``epoch(e, start=k)`` and gets the batches that it would have got,
    so that no state has to be kept. All ranks ask for the same batches and take their rows.

    Args:
        graph: what is known about the n samples.
        batch_size: samples in a batch, over all ranks.
        seed: where the randomness starts.
    """

    _parts: Parts

    reason: str
    """Why this plan, in one sentence."""

    def __init__(self, graph: Graph, batch_size: int, seed: int = 0) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(
                f"graph is a {type(graph).__name__}: give a Graph over the samples, such as "
                "Graph.identity(n)"
            )
        if graph.n_views > 1:
            raise ValueError(
                f"graph is over {graph.n_views} views of every sample: give the graph over "
                "samples (graph.samples), and call views(v) on the graph of every batch"
            )
        self.n = graph.n
        self.batch_size = _whole("batch_size", batch_size, 1)
        self.seed = _whole("seed", seed, 0)
        if self.n < self.batch_size:
            raise ValueError(
                f"batch_size is {self.batch_size}, but there are {self.n} samples: give a "
                f"batch_size of at most {self.n}"
            )

    def __len__(self) -> int:
        """Steps in an epoch; what is left over of the samples waits for another epoch."""
        return self.n // self.batch_size

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        """The batches of an epoch as lists of samples, from step `start` on."""
        epoch, start = _whole("epoch", epoch, 0), _whole("start", start, 0)
        return (torch.from_numpy(index) for index in self._batches(epoch, start))

    def graph(self, index: Tensor) -> Graph:
        """The graph over the samples of a batch, where the plan's graph lives.

        What is looked up is looked up on the CPU, and what is sent to a GPU is sent without
        waiting for it: no step is held up here.
        """
        index = index.cpu().long()
        if index.ndim != 1 or not len(index):
            raise ValueError(
                f"index has shape {tuple(index.shape)}: give a list of the batch's samples"
            )
        ordered = np.sort(index.numpy())
        if ordered[0] < 0 or ordered[-1] >= self.n:
            raise IndexError(
                f"index runs from {ordered[0]} to {ordered[-1]}, but there are {self.n} samples"
            )
        if (ordered[1:] == ordered[:-1]).any():
            raise ValueError(
                "index holds a sample twice, which would be alike or different by accident: give "
                "every sample once"
            )
        return self._parts(index)

    def to(self, device: torch.device | str) -> BatchPlan:
        """The same plan, with the graphs of its batches on a device."""
        moved = copy(self)
        moved._parts = self._parts.to(device)
        return moved

    @abstractmethod
    def _batches(self, epoch: int, start: int) -> Iterator[np.ndarray]: ...

    def _shuffled(self, epoch: int) -> np.ndarray:
        """All samples in the random order of an epoch."""
        return stream(self.seed, epoch, ORDER).permutation(self.n)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, batch_size={self.batch_size}, seed={self.seed})"


ORDER, EDGES, LABELS, PLACES = 1, 2, 3, 4
"""What a random stream is for. None is 0: NumPy takes trailing zeros for nothing."""


def stream(seed: int, epoch: int, purpose: int, number: int = 0) -> np.random.Generator:
    """A random stream of its own for everything that is drawn."""
    return np.random.default_rng([seed, epoch, number, purpose])


def _whole(name: str, value: int, lowest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < lowest:
        raise ValueError(f"{name} is {value!r}: give a whole number, {lowest} or more")
    return int(value)
