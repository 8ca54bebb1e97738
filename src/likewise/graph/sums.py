"""Sums of graphs: (1 - a) G_ssl + a G_known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from likewise.graph.base import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.factored import FactoredGraph
from likewise.graph.views import ViewsGraph, share_views, whole_samples


class SumGraph(Graph):
    """The sum of several graphs over the same nodes, term by term.

    A sum of graphs over views and graphs over single nodes still has its `n_views`, but no graph
    over samples; `samples` is given where only the diagonal differs from one.
    """

    def __init__(
        self, terms: Sequence[Graph], *, n_views: int = 1, samples: Graph | None = None
    ) -> None:
        flat: list[Graph] = []
        for term in terms:
            flat.extend(term.terms if isinstance(term, SumGraph) else [term])
        self.terms: list[Graph] = flat
        self.n = flat[0].n
        self._n_views = n_views
        self._samples = samples

    @property
    def device(self) -> torch.device:
        """Where the terms live."""
        return self.terms[0].device

    @cached_property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether no term can be negative."""
        return all(term.nonnegative for term in self.terms)

    @property
    def n_views(self) -> int:
        """The views of every sample."""
        return self._n_views

    @property
    def samples(self) -> Graph:
        """The graph over samples, where there is one."""
        if self._samples is not None:
            return self._samples
        if self._n_views == 1:
            return self
        raise ValueError(
            "single pairs of views were changed in this graph, so that it is no graph over "
            "samples: add graphs over samples first, and call views(v) on the sum"
        )

    def _sample_graph(self) -> Graph | None:
        return self._samples

    def _map(self, terms: Sequence[Graph], samples: Graph | None = None) -> SumGraph:
        return SumGraph(terms, n_views=self._n_views, samples=samples)

    def _product(self, z: Tensor) -> Tensor:
        product = self.terms[0]._product(z)
        for term in self.terms[1:]:
            product = product + term._product(z)
        return product

    def _block(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        block = self.terms[0]._block(rows, columns, dtype)
        for term in self.terms[1:]:
            block = block + term._block(rows, columns, dtype)
        return block

    def _entries(self, i: Tensor, j: Tensor, dtype: torch.dtype) -> Tensor:
        entries = self.terms[0]._entries(i, j, dtype)
        for term in self.terms[1:]:
            entries = entries + term._entries(i, j, dtype)
        return entries

    def _subset(self, rows: Tensor) -> Graph:
        whole = whole_samples(rows, self._n_views)
        return SumGraph(
            [term._subset(rows) for term in self.terms],
            n_views=self._n_views if whole is not None else 1,
            samples=self._samples._subset(whole)
            if whole is not None and self._samples is not None
            else None,
        )

    def _scaled(self, scale: Tensor) -> Graph:
        return self._map([term._scaled(scale) for term in self.terms])

    def _times(self, factor: float) -> Graph:
        samples = None if self._samples is None else self._samples._times(factor)
        return self._map([term._times(factor) for term in self.terms], samples)

    def _to(self, device: torch.device) -> Graph:
        samples = None if self._samples is None else self._samples._to(device)
        return self._map([term._to(device) for term in self.terms], samples)

    def _known(self) -> Graph:
        known = self.terms[0]._known()
        for term in self.terms[1:]:
            known = union(known, term._known())
        return self._map(known.terms if isinstance(known, SumGraph) else [known])

    def _known_nodes(self) -> Tensor:
        return torch.stack([term._known_nodes() for term in self.terms]).any(dim=0)

    def _energy(self, z: Tensor, target: Tensor) -> Tensor:
        return torch.stack([term._energy(z, target) for term in self.terms]).sum()

    def _negative_entries(self) -> tuple[Tensor, Tensor]:
        if not all(term.nonnegative or isinstance(term, EdgeGraph) for term in self.terms):
            return super()._negative_entries()
        # Only a listed edge can make an entry negative: look at those, not at all N^2.
        ends = [term._negative_entries() for term in self.terms if not term.nonnegative]
        empty = torch.zeros(0, dtype=torch.long, device=self.device)
        keys = torch.unique(torch.cat([empty, *[i * self.n + j for i, j in ends]]))
        i = torch.div(keys, self.n, rounding_mode="floor")
        j = keys - i * self.n
        negative = self._entries(i, j, torch.float64) < 0
        return i[negative], j[negative]


def add(first: Graph, second: Graph) -> Graph:
    """The sum, which keeps the views that both share (G kron 11^T is linear in G)."""
    if share_views(first, second):
        return ViewsGraph(first.samples + second.samples, first.n_views)
    views = {first.n_views, second.n_views} - {1}
    return SumGraph([first, second], n_views=views.pop() if len(views) == 1 else 1)


def union(first: Graph, second: Graph) -> Graph:
    """Where either of two 0/1 graphs is 1: A + B - A o B."""
    return SumGraph([first, second, intersection(first, second)._times(-1.0)])


def intersection(first: Graph, second: Graph) -> Graph:
    """The entrywise product of two 0/1 graphs, in the sparser one's form."""
    if share_views(first, second):
        return ViewsGraph(intersection(first.samples, second.samples), first.n_views)
    for one, other in ((first, second), (second, first)):
        if isinstance(one, ViewsGraph):
            return intersection(one._expanded(), other)
    for one, other in ((first, second), (second, first)):
        if isinstance(one, SumGraph):
            return SumGraph([intersection(term, other) for term in one.terms])
    for one, other in ((first, second), (second, first)):
        if isinstance(one, EdgeGraph):
            weight = one.weight * other._entries(one.i, one.j, one.weight.dtype)
            return EdgeGraph(one.i, one.j, weight, one.n)
    for one, other in ((first, second), (second, first)):
        if isinstance(one, FactoredGraph) and one.labels is None and one.codes is None:
            nodes = torch.arange(one.n, device=one.device)
            weight = one.weight * other._diagonal(torch.get_default_dtype())
            return EdgeGraph(nodes, nodes, weight, one.n)
    one_labels, other_labels = _node_labels(first), _node_labels(second)
    joint = torch.where(
        (one_labels >= 0) & (other_labels >= 0),
        one_labels * (int(other_labels.max()) + 1 if len(other_labels) else 1) + other_labels,
        -1,
    )
    classes = int(joint.max()) + 1 if len(joint) else 0
    return FactoredGraph(
        first.n,
        labels=joint,
        n_classes=max(classes, 1),
        weight=getattr(first, "weight", 1.0) * getattr(second, "weight", 1.0),
    )


def _node_labels(graph: Graph) -> Tensor:
    if isinstance(graph, FactoredGraph) and graph.codes is None:
        plain = graph._copy(weight=1.0).class_labels
        if plain is not None:
            return plain
    raise TypeError(f"{graph!r} is not a 0/1 graph of known pairs")
