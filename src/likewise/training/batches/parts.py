"""A batch's part of a graph, without waiting for the device on which the graph lives."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.factored import FactoredGraph
from likewise.graph.sums import SumGraph


class Parts:
    """The sum of some graphs over n samples, ready to give its part over any few of them.

    Edges are looked up on the CPU, since how many there are in a batch is only known then, and
    asking a GPU means waiting for it. Labels and codes are picked where they live.

    >>> graph = Graph.identity(4) + Graph.from_edges(torch.tensor([0]), torch.tensor([3]), n=4)
    >>> Parts([graph])(torch.tensor([3, 1, 0])).dense().int().tolist()
    [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    """

    def __init__(self, terms: Sequence[Graph]) -> None:
        flat: list[Graph] = []
        for term in terms:
            flat.extend(term.terms if isinstance(term, SumGraph) else [term])
        self.device = flat[0].device
        self.edges = [Edges(term) for term in flat if isinstance(term, EdgeGraph)]
        # `to` also makes tensors of a graph that was made from arrays.
        self.others = [_moved(t, self.device) for t in flat if not isinstance(t, EdgeGraph)]

    def to(self, device: torch.device | str) -> Parts:
        """The same parts, on a device."""
        moved = copy(self)
        moved.device = torch.empty(0, device=device).device
        moved.others = [_moved(term, moved.device) for term in self.others]
        return moved

    def __call__(self, index: Tensor) -> Graph:
        """The part over `index` (on the CPU, no sample twice)."""
        parts = [edges.part(index.numpy(), self.device) for edges in self.edges]
        if self.others:
            there = send(index, self.device)
            parts = [*(_part(term, there) for term in self.others), *parts]
        return parts[0] if len(parts) == 1 else SumGraph(parts)


class Edges:
    """Edges by their lower end, to be looked up with few NumPy calls."""

    def __init__(self, graph: EdgeGraph) -> None:
        i = graph.i.cpu().numpy()
        self.first = np.searchsorted(i, np.arange(graph.n + 1))
        self.j = graph.j.cpu().numpy()
        self.weight = graph.weight.detach().cpu()

    def part(self, index: np.ndarray, device: torch.device) -> Graph:
        """The edges between the samples of `index`, numbered by their places in it."""
        start = self.first[index]
        count = self.first[index + 1] - start
        low = np.repeat(np.arange(len(index)), count)
        before = np.cumsum(count) - count
        edge = np.arange(len(low)) + np.repeat(start - before, count)
        order = np.argsort(index)
        at = order[np.searchsorted(index, self.j[edge], sorter=order).clip(max=len(index) - 1)]
        found = index[at] == self.j[edge]
        low, high, edge = low[found], at[found], edge[found]
        low, high = np.minimum(low, high), np.maximum(low, high)
        order = np.argsort(low * len(index) + high)
        weight = self.weight[torch.from_numpy(edge[order])]
        ends = send(torch.from_numpy(np.stack([low[order], high[order]])), device)
        part = EdgeGraph(ends[0], ends[1], send(weight, device), len(index))
        part.__dict__["nonnegative"] = bool((weight >= 0).all())
        return part


def _part(term: Graph, there: Tensor) -> Graph:
    if not isinstance(term, FactoredGraph):
        return term._subset(there)
    if term.labels is None and term.codes is None:
        scale = None if term.scale is None else term.scale[there]
        part: Graph = term._copy(n=len(there), scale=scale)
    else:
        part = term._subset(there)
    return _told(part, term)


def _moved(term: Graph, device: torch.device) -> Graph:
    moved = term.to(device)
    return _told(moved, term) if isinstance(term, FactoredGraph) else moved


def _told(graph: Graph, source: FactoredGraph) -> Graph:
    """What holds of the source holds of its copy or part, which then need not look itself."""
    graph.__dict__["nonnegative"] = source.nonnegative
    graph.__dict__["_some_unknown"] = source._some_unknown
    return graph


def send(values: Tensor, device: torch.device) -> Tensor:
    """`values` on a device, without waiting for what the device is doing."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)
