"""The targets behind a graph: Y with G = Y Y^T, where the graph was made from labels or codes."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.graph.factored import FactoredGraph
from likewise.graph.sums import SumGraph
from likewise.graph.views import ViewsGraph


def graph_targets(graph: Graph, dtype: torch.dtype) -> Tensor | None:
    """Y (N, C) with G = Y Y^T: one-hot labels, soft labels or regression targets.

    Class weights and other factors go in by their square roots, the terms of a sum side by side.
    None where the graph has no such factor: edges, or a negative weight.

    >>> graph_targets(Graph.from_labels(torch.tensor([0, 1, 0])), torch.float32)
    tensor([[1., 0.],
            [0., 1.],
            [1., 0.]])
    """
    if isinstance(graph, ViewsGraph):
        targets = graph_targets(graph.samples, dtype)
        return None if targets is None else targets.repeat_interleave(graph.n_views, dim=0)
    if isinstance(graph, SumGraph):
        parts = [graph_targets(term, dtype) for term in graph.terms]
        known = [part for part in parts if part is not None]
        return torch.cat(known, dim=1) if len(known) == len(parts) else None
    if not isinstance(graph, FactoredGraph) or not _has_root(graph):
        return None
    identity = torch.eye(graph.rank, dtype=dtype, device=graph.device)
    return graph._decode(_apply_root(graph, identity)) * graph.weight**0.5


def target_sums(graph: Graph, z: Tensor) -> Tensor | None:
    """Y^T z (C, d) for the same Y, which is not built; None where there is none.

    >>> target_sums(Graph.from_labels(torch.tensor([0, 1, 0])), torch.tensor([[1.0], [2.0], [4.0]]))
    tensor([[5.],
            [2.]])
    """
    if isinstance(graph, ViewsGraph):
        grouped = z.reshape(graph.samples.n, graph.n_views, -1)
        return target_sums(graph.samples, grouped.sum(dim=1))
    if isinstance(graph, SumGraph):
        parts = [target_sums(term, z) for term in graph.terms]
        known = [part for part in parts if part is not None]
        return torch.cat(known) if len(known) == len(parts) else None
    if not isinstance(graph, FactoredGraph) or not _has_root(graph):
        return None
    return _apply_root(graph, graph._encode(z)) * graph.weight**0.5


def _has_root(graph: FactoredGraph) -> bool:
    """Whether w and M of G = w S Y M Y^T S are not negative."""
    if graph.weight < 0:
        return False
    if graph.middle is None:
        return True
    middle = graph.middle.to(torch.float64)
    if middle.ndim == 1:
        return bool((middle >= 0).all())
    values = torch.linalg.eigvalsh(middle)
    return bool(values.min() >= -_noise(values, graph.middle.dtype))


def _apply_root(graph: FactoredGraph, t: Tensor) -> Tensor:
    """M^(1/2) t."""
    if graph.middle is None:
        return t
    middle = graph.middle.to(torch.float64)
    if middle.ndim == 1:
        return middle.sqrt().to(t.dtype)[:, None] * t
    values, vectors = torch.linalg.eigh(middle)
    # A square root makes round-off large: what is zero to working precision is zero.
    values = torch.where(values > _noise(values, graph.middle.dtype), values, 0.0)
    return ((vectors * values.sqrt()) @ vectors.T).to(t.dtype) @ t


def _noise(values: Tensor, dtype: torch.dtype) -> float:
    return len(values) * torch.finfo(dtype).eps * float(values.abs().max())
