"""What a graph says about pairs of two samples, and what about a sample alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.factored import FactoredGraph
from likewise.graph.sums import SumGraph


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A graph taken apart on the CPU: its diagonal, its labels and its edges."""

    n: int
    diagonal: Tensor
    """G_ii, in float64."""
    diagonal_known: Tensor
    """Whether G_ii is known."""
    shared: list[Graph]
    """Labels and codes: of two samples that have them, the pair is known."""
    labelled: np.ndarray
    """The samples that have them."""
    classes: np.ndarray | None
    """The class of every labelled sample, where the graph has one set of labels."""
    i: np.ndarray
    """First ends of the edges between two samples; an edge of 0 or -1 is one as well."""
    j: np.ndarray
    """Second ends."""
    weight: Tensor
    """What the edges say of these pairs, in float64 (labels may say more of the same pairs)."""
    dtype: torch.dtype
    """The type of the edges' weights."""

    @property
    def empty(self) -> bool:
        """Whether no pair of two samples is known."""
        return not len(self.i) and len(self.labelled) < 2

    @cached_property
    def labelled_pairs(self) -> float:
        """How many labelled pairs have a weight: classmates, or all where nobody knows."""
        sizes = np.array([len(self.labelled)])
        if self.classes is not None and len(self.classes):
            sizes = np.unique(self.classes, return_counts=True)[1]
        return float((sizes * (sizes - 1) / 2).sum())

    @property
    def pairs(self) -> float:
        """How many pairs say something: edges, also of -1 and 0, and classmates.

        Two labels that differ are known as well, but as they are many and their weight is 0, they
        are not counted."""
        return len(self.i) + self.labelled_pairs

    def pairs_in_random_batch(self, batch_size: int) -> float:
        """How many such pairs a uniformly random batch holds on average."""
        return self.pairs * random_pair(self.n, batch_size)


def in_figures(pairs: float) -> str:
    """A number of pairs for a reader.

    >>> in_figures(11_680.4), in_figures(0.1023)
    ('11,680', '0.1')
    """
    return f"{pairs:,.0f}" if pairs >= 10 else f"{pairs:.2g}"


def random_pair(n: int, batch_size: int) -> float:
    """The probability that two samples meet in a random batch: b(b - 1) / (n(n - 1))."""
    return batch_size * (batch_size - 1) / max(n * (n - 1), 1)


def read_knowledge(graph: Graph) -> Knowledge:
    """Take a graph apart.

    >>> graph = Graph.identity(4) + Graph.from_edges(torch.tensor([0]), torch.tensor([3]), n=4)
    >>> knowledge = read_knowledge(graph)
    >>> knowledge.diagonal.tolist(), knowledge.pairs
    ([1.0, 1.0, 1.0, 1.0], 1.0)
    """
    graph = graph.to("cpu")
    terms = graph.terms if isinstance(graph, SumGraph) else [graph]
    edges = [term for term in terms if isinstance(term, EdgeGraph)]
    shared = [term for term in terms if not isinstance(term, EdgeGraph) and not _is_diagonal(term)]
    known = torch.stack([term._known()._diagonal(torch.float64) > 0 for term in terms]).any(dim=0)
    labelled = torch.zeros(graph.n, dtype=torch.bool)
    for term in shared:
        labelled |= _nodes(term)
    nodes = labelled.nonzero()[:, 0]
    keys = [(term.i * graph.n + term.j)[term.i != term.j] for term in edges]
    pairs = torch.unique(torch.cat([torch.zeros(0, dtype=torch.long), *keys]))
    i = torch.div(pairs, graph.n, rounding_mode="floor")
    j = pairs - i * graph.n
    weight = torch.zeros(len(pairs), dtype=torch.float64)
    dtype = torch.get_default_dtype()
    for term in edges:
        weight += term._entries(i, j, torch.float64)
        dtype = torch.promote_types(dtype, term.weight.dtype)
    return Knowledge(
        n=graph.n,
        diagonal=graph._diagonal(torch.float64),
        diagonal_known=known,
        shared=shared,
        labelled=nodes.numpy(),
        classes=_classes(shared, nodes),
        i=i.numpy(),
        j=j.numpy(),
        weight=weight,
        dtype=dtype,
    )


def _is_diagonal(term: Graph) -> bool:
    return isinstance(term, FactoredGraph) and term.labels is None and term.codes is None


def _nodes(term: Graph) -> Tensor:
    nodes = term._known_nodes()
    if isinstance(term, FactoredGraph) and term.only_alike_known and term.labels is not None:
        # The same sample several times: only its copies are known to be alike.
        counts = torch.bincount(term.labels[nodes], minlength=term.rank)
        return nodes & (counts[term.labels.clamp_min(0)] > 1)
    return nodes


def _classes(shared: list[Graph], nodes: Tensor) -> np.ndarray | None:
    if len(shared) != 1 or not isinstance(shared[0], FactoredGraph):
        return None
    only = shared[0]
    if only.labels is None or (only.middle is not None and only.middle.ndim == 2):
        return None
    return only.labels[nodes].numpy()
