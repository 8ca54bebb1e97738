"""How much a graph of answers says: pairs that are alike, and pairs that are different."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.graph.factored import FactoredGraph
from likewise.training.batches.knowledge import read_knowledge


def signed_pairs(graph: Graph) -> tuple[int, int]:
    """How many pairs of two samples have an entry above 0, and how many have one below.

    The graph is one of edges, or of classes and edges, as beliefs give it. Pairs within and between
    classes are counted by the sizes of the classes, not one by one.

    >>> labels = Graph.from_labels(torch.tensor([0, 0, 1, -1, -1]))
    >>> edges = Graph.from_edges(torch.tensor([2, 3]), torch.tensor([4, 4]), torch.tensor([-1, 1]))
    >>> signed_pairs(labels + edges)
    (2, 1)
    """
    known = read_knowledge(graph)
    i, j = torch.from_numpy(known.i), torch.from_numpy(known.j)
    # An edge may lie within a class, and say more of a pair that is counted already.
    before = torch.zeros(len(i), dtype=torch.float64)
    above = below = 0
    for term in known.shared:
        positive, negative = _class_pairs(term)
        above, below = above + positive, below + negative
        before += term.entries(i, j, dtype=torch.float64)
    after = before + known.weight
    return (
        above + int((after > 0).sum()) - int((before > 0).sum()),
        below + int((after < 0).sum()) - int((before < 0).sum()),
    )


def _class_pairs(term: Graph) -> tuple[int, int]:
    """The same of classes: every pair of two classes, or within one, has the sign of any."""
    if not isinstance(term, FactoredGraph) or term.labels is None or term.scale is not None:
        raise TypeError(f"{term!r} is not a graph of classes")
    labels = term.labels[term.labels >= 0]
    classes, sizes = torch.unique(labels, return_counts=True)
    first = torch.stack([(term.labels == c).nonzero()[0, 0] for c in classes])
    between = torch.as_tensor(term.block(first, dtype=torch.float64))
    pairs = torch.outer(sizes, sizes)
    # Ordered pairs, each of two samples: none with itself.
    pairs.diagonal().sub_(sizes)
    return _half(pairs[between > 0]), _half(pairs[between < 0])


def _half(pairs: Tensor) -> int:
    return int(pairs.sum()) // 2
