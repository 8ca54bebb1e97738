"""What is known of who is alike: its components, and how close the embeddings come to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import labels_of, rows_of, wide_chunks
from likewise.diagnostics.moments import moments
from likewise.graph import Graph
from likewise.graph.arrays import Array, in_kind
from likewise.graph.edges import EdgeGraph
from likewise.graph.sums import SumGraph
from likewise.graph.views import ViewsGraph

DENSE_AT_MOST = 20_000
"""Nodes up to which any graph is looked at entry by entry."""

COLUMNS_AT_ONCE = 16
"""Columns of z that are held in float64 at a time: 128 MiB for a million rows."""


def components(graph: Graph) -> Any:
    r"""The connected component of every node, where i and j with :math:`G_{ij} > 0` are connected.

    Numbered from 0 in the order of their first nodes. Edges, labels, views and sums without
    negative entries take O(edges + N); another graph is looked at entry by entry, up to 20,000
    nodes.

    Paper: pal, section 3 (known relations are edges) and lemma 1 (one template a component).

    >>> graph = Graph.from_edges(torch.tensor([0, 3]), torch.tensor([2, 1]), n=5)
    >>> components(graph).tolist()
    [0, 1, 0, 1, 2]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    i, j = _links(graph)
    first, second = i.cpu().numpy(), j.cpu().numpy()
    matrix = coo_matrix((np.ones(len(first), np.int8), (first, second)), shape=graph.shape)
    _, found = connected_components(matrix, directed=False)
    _, index, inverse = np.unique(found, return_index=True, return_inverse=True)
    ordered = np.argsort(np.argsort(index))[inverse]
    return in_kind(torch.from_numpy(ordered.astype(np.int64)), graph.answers_numpy)


def _links(graph: Graph) -> tuple[Tensor, Tensor]:
    """Pairs that connect the same components as the positive entries do."""
    labels = graph.class_labels
    if labels is not None:
        return _chain(labels)
    if isinstance(graph, ViewsGraph):
        i, j = _links(graph.samples)
        v = graph.n_views
        diagonal = graph.samples._diagonal(torch.float64)
        # Views of a sample are connected where it is alike to itself, or to a common other.
        touched = torch.zeros(graph.samples.n, dtype=torch.bool, device=i.device)
        touched[torch.cat([i, j])] = True
        nodes = ((diagonal.to(i.device) > 0) | touched).nonzero()[:, 0]
        own = [(nodes * v, nodes * v + k) for k in range(1, v)]
        return (
            torch.cat([i * v, *[a for a, _ in own]]),
            torch.cat([j * v, *[b for _, b in own]]),
        )
    if isinstance(graph, EdgeGraph):
        alike = graph.weight > 0
        return graph.i[alike], graph.j[alike]
    if isinstance(graph, SumGraph) and graph.nonnegative:
        parts = [_links(term) for term in graph.terms]
        return torch.cat([i for i, _ in parts]), torch.cat([j for _, j in parts])
    plain = getattr(graph, "labels", None)
    if plain is not None and graph.nonnegative and getattr(graph, "middle", None) is None:
        weight, scale = graph.weight, graph.scale  # type: ignore[attr-defined]
        if weight > 0 and (scale is None or bool((scale > 0).all())):
            return _chain(plain)
    if graph.n > DENSE_AT_MOST:
        raise ValueError(
            f"graph has {graph.n} nodes and entries of mixed signs, so that each entry would have "
            f"to be looked at: give a subset of at most {DENSE_AT_MOST} nodes, or the edges alone"
        )
    nodes = torch.arange(graph.n, device=graph.device)
    found = [
        (rows[place[:, 0]], place[:, 1])
        for rows in nodes.split(1024)
        for place in [(graph._block(rows, nodes, torch.float64) > 0).nonzero()]
    ]
    return torch.cat([i for i, _ in found]), torch.cat([j for _, j in found])


def _chain(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Each node linked to the next one of its class."""
    order = torch.argsort(labels, stable=True)
    order = order[labels[order] >= 0]
    same = labels[order[1:]] == labels[order[:-1]]
    return order[:-1][same], order[1:][same]


@dataclass(frozen=True)
class KnownGraph(Figures):
    """What :func:`known_graph` found.

    Attributes:
        nodes: how many nodes.
        components: how many connected components.
        singletons: how many of them are one node.
        largest: nodes of the largest.
        purity: share of labelled nodes that are of the most frequent class of their component.
        connected_purity: the same over components of two nodes or more.
        pieces: mean number of components that a class is spread over; 1 is complete knowledge.
        impure: how many components mix classes: answers or closure went wrong there.
    """

    nodes: int
    components: int
    singletons: int
    largest: int
    purity: float
    connected_purity: float
    pieces: float
    impure: int


def known_graph(graph: Graph, labels: Any = None) -> KnownGraph:
    """Connected components of who is known to be alike, and whether they agree with labels.

    Paper: pal, section 3. One component a class, all pure, is full supervision; one component a
    sample is self-supervision.

    Args:
        graph: what is known; views of a sample count as nodes (pass graph.samples for samples).
        labels: true class indices (n,), -1 where unknown; without them purity is undefined.

    >>> graph = Graph.from_edges(torch.tensor([0, 2]), torch.tensor([1, 3]), n=5)
    >>> found = known_graph(graph, [0, 0, 0, 1, 1])
    >>> found.components, found.singletons, found.purity, found.connected_purity, found.pieces
    (3, 1, 0.8, 0.75, 2.0)
    """
    found = torch.as_tensor(components(graph)).cpu()
    sizes = torch.bincount(found)
    notes: list[str] = []
    purity = connected = pieces = UNDEFINED
    impure = 0
    if labels is None:
        notes.append("labels are not given: purity is undefined")
    else:
        classes = labels_of(labels, graph.n).cpu()
        known = classes >= 0
        if not bool(known.any()):
            notes.append("labels hold no label (every one is -1): purity is undefined")
        else:
            table = _table(found[known], classes[known])
            names, counts = table
            purity = _purity(names[:, 0], counts)
            together = sizes[names[:, 0]] > 1
            if bool(together.any()):
                connected = _purity(names[together, 0], counts[together])
            else:
                notes.append("no two nodes are connected: their purity is undefined")
            pieces = len(names) / len(torch.unique(names[:, 1]))
            impure = int((torch.unique(names[:, 0], return_counts=True)[1] > 1).sum())
            if not bool(known.all()):
                notes.append(f"{int((~known).sum())} nodes have no label and are left out")
    return KnownGraph(
        tuple(notes),
        graph.n,
        len(sizes),
        int((sizes == 1).sum()),
        int(sizes.max()),
        purity,
        connected,
        pieces,
        impure,
    )


def _table(component: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """(component, class) pairs that occur, and how often."""
    names, counts = torch.unique(
        torch.stack([component, classes], dim=1), dim=0, return_counts=True
    )
    return names, counts


def _purity(component: Tensor, counts: Tensor) -> float:
    most = torch.zeros(int(component.max()) + 1, dtype=counts.dtype)
    most.scatter_reduce_(0, component, counts, "amax")
    return float(most.sum()) / float(counts.sum())


@dataclass(frozen=True)
class GraphCloseness(Figures):
    """What :func:`graph_closeness` found.

    Attributes:
        relative_error: |ZZ^T - G|_F^2 / |G|_F^2, the VIC2 loss against that of Z = 0.
        scaled_error: the same with the best multiple of ZZ^T; 1 - cosine^2 (cosine >= 0).
        cosine: <ZZ^T, G> / (|ZZ^T|_F |G|_F).
        centered_cosine: the same of HZZ^TH and HGH (linear CKA).
        alike_similarity: mean cosine similarity of pairs i != j, weighted by G_ij > 0.
        mean_similarity: mean cosine similarity of all pairs i != j.
    """

    relative_error: float
    scaled_error: float
    cosine: float
    centered_cosine: float
    alike_similarity: float
    mean_similarity: float


@torch.no_grad()
def graph_closeness(z: Array, graph: Graph) -> GraphCloseness:
    r"""How close the learned ZZ^T is to the graph G, without building either.

    .. math:: |ZZ^\top - G|_F^2 = |Z^\top Z|_F^2 - 2\, \mathrm{Tr}(Z^\top G Z) + |G|_F^2

    Paper: pal, theorem 2 and B.1.1: the optimum of VIC2 is ZZ^T = G. Errata: |G|^2 is the constant,
    whatever the degrees.

    Args:
        z: embeddings (n, d), one row per node of the graph.
        graph: who is alike.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = graph_closeness(z, Graph.from_labels(torch.tensor([0, 0, 1])))
    >>> round(found.relative_error, 6), round(found.cosine, 6), found.alike_similarity
    (0.0, 1.0, 1.0)
    """
    rows = rows_of(z, "z")
    n = len(rows)
    if n != graph.n:
        raise ValueError(
            f"z has {n} rows, but the graph has {graph.n} nodes: give one row per node "
            "(graph.views(v) for v views of every sample)"
        )
    of = moments(rows)
    gram = n * of.second_moment
    size, centred_size = float(gram.norm()), float((n * of.covariance).norm())
    norm = graph.norm_squared()
    inner = _trace(rows, graph)
    centred_inner = _trace(rows, graph, shift=of.mean)
    degrees = graph._degrees(False, torch.float64)
    total = float(degrees.sum())
    centred_norm = norm - 2 / n * float(degrees.square().sum()) + (total / n) ** 2
    notes = []
    relative = scaled = cosine = around = UNDEFINED
    if norm <= 0:
        notes.append("the graph is empty: nothing is known to be close to")
    else:
        relative = max(size**2 - 2 * inner + norm, 0.0) / norm
    if norm > 0 and size > 0:
        cosine = inner / (size * math.sqrt(norm))
        scaled = 1 - max(cosine, 0.0) ** 2
    elif norm > 0:
        notes.append("every row is zero: the angle to the graph is undefined")
    if centred_norm > 1e-12 * norm and centred_size > 1e-12 * size:
        around = centred_inner / (centred_size * math.sqrt(centred_norm))
    elif norm > 0 and size > 0:
        notes.append("rows or graph are constant: the centred cosine is undefined")
    alike, mean = _similarities(rows, graph, notes)
    return GraphCloseness(tuple(notes), relative, scaled, cosine, around, alike, mean)


def _trace(
    rows: Tensor, graph: Graph, *, shift: Tensor | None = None, lengths: Tensor | None = None
) -> float:
    """Tr(Z^T G Z) in float64, some columns at a time; of z less a shift, or by its length."""
    graph = graph.to(rows.device)
    total = 0.0
    for start in range(0, rows.shape[1], COLUMNS_AT_ONCE):
        columns = slice(start, start + COLUMNS_AT_ONCE)
        part = rows[:, columns].double()
        if shift is not None:
            part = part - shift[columns]
        if lengths is not None:
            part = part / lengths[:, None]
        total += float((part * torch.as_tensor(graph @ part)).sum())
    return total


def _similarities(rows: Tensor, graph: Graph, notes: list[str]) -> tuple[float, float]:
    n = len(rows)
    total = torch.zeros(rows.shape[1], dtype=torch.float64, device=rows.device)
    squares = 0.0
    for _, chunk in wide_chunks(rows, unit=True):
        total += chunk.sum(dim=0)
        squares += float(chunk.square().sum())
    mean = (float(total.square().sum()) - squares) / (n * (n - 1)) if n > 1 else UNDEFINED
    if not graph.nonnegative:
        if isinstance(graph, EdgeGraph):
            kept = (graph.weight > 0) & (graph.i != graph.j)
            graph = EdgeGraph(graph.i[kept], graph.j[kept], graph.weight[kept], graph.n)
        else:
            notes.append("the graph has negative entries: the mean of its alike pairs is undefined")
            return UNDEFINED, mean
    apart = graph.without_diagonal()
    mass = float(apart._degrees(False, torch.float64).sum())
    if mass <= 1e-12 * max(graph.trace(), 1.0):
        notes.append("nobody is known to be alike to another: the mean of alike pairs is undefined")
        return UNDEFINED, mean
    lengths = torch.cat([chunk.norm(dim=1) for _, chunk in wide_chunks(rows)])
    smallest = torch.finfo(torch.float64).tiny
    return _trace(rows, apart, lengths=lengths.clamp_min(smallest)) / mass, mean
