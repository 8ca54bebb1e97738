"""Inner products <A, B> = sum_ij A_ij B_ij of graphs that are never built."""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor

from likewise.graph.base import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.factored import FactoredGraph
from likewise.graph.ordered import AbsoluteDifferenceGraph
from likewise.graph.sums import SumGraph
from likewise.graph.views import ViewsGraph, share_views

COLUMNS = 256
"""Columns of a factor that are multiplied at a time."""


def inner_product(first: Graph, second: Graph) -> float:
    """:math:`\\langle A, B\\rangle = \\mathrm{Tr}(AB)`, in float64."""
    for one, other in ((first, second), (second, first)):
        if isinstance(one, SumGraph):
            return sum(inner_product(term, other) for term in one.terms)
    if first is second and isinstance(first, AbsoluteDifferenceGraph):
        return _differences_norm(first)
    if share_views(first, second):
        return first.n_views**2 * inner_product(first.samples, second.samples)
    for one, other in ((first, second), (second, first)):
        if isinstance(one, EdgeGraph):
            products = one.weight.to(torch.float64) * other._entries(one.i, one.j, torch.float64)
            return float(2 * products.sum() - products[one.i == one.j].sum())
    for one, other in ((first, second), (second, first)):
        if isinstance(one, ViewsGraph):
            return inner_product(one._expanded(), other)
    for one, other in ((first, second), (second, first)):
        if isinstance(one, FactoredGraph) and one.labels is None and one.codes is None:
            return float((one._diagonal(torch.float64) * other._diagonal(torch.float64)).sum())
    if _weighted_labels(first) and _weighted_labels(second):
        return _labels_inner(first, second)
    for one, other in ((first, second), (second, first)):
        if isinstance(one, FactoredGraph):
            return _factored_inner(one, other)
    return float(
        sum(
            (block * second._block(rows, nodes, torch.float64)).sum()
            for nodes in [torch.arange(first.n, device=first.device)]
            for start, block in first._tiles(torch.float64)
            for rows in [nodes[start : start + len(block)]]
        )
    )


def _differences_norm(graph: AbsoluteDifferenceGraph) -> float:
    """w^2 times the sum of u_i u_j (c - |y_i - y_j|)^2, u = s^2, multiplied out."""
    y = graph.values.to(torch.float64)
    y = y - y.mean()
    u = torch.ones_like(y) if graph.scale is None else graph.scale.to(torch.float64).square()
    differences = AbsoluteDifferenceGraph(y)._product(-u[:, None])[:, 0]
    mass, first, second = float(u.sum()), float(u @ y), float(u @ y.square())
    total = graph.offset**2 * mass**2 - 2 * graph.offset * float(u @ differences)
    return float(graph.weight**2 * (total + 2 * (mass * second - first**2)))


def _weighted_labels(graph: Graph) -> TypeGuard[FactoredGraph]:
    return (
        isinstance(graph, FactoredGraph)
        and graph.labels is not None
        and (graph.middle is None or graph.middle.ndim == 1)
    )


def _labels_inner(first: FactoredGraph, second: FactoredGraph) -> float:
    """Both are 1 on the pairs that share both classes: sum over joint classes of mass^2."""
    assert first.labels is not None and second.labels is not None
    both = (first.labels >= 0) & (second.labels >= 0)
    a, b = first.labels[both], second.labels[both]
    mass = torch.ones(len(a), dtype=torch.float64, device=a.device)
    for graph in (first, second):
        if graph.scale is not None:
            mass = mass * graph.scale[both].to(torch.float64)
    joint, slot = torch.unique(a * second.rank + b, return_inverse=True)
    totals = mass.new_zeros(len(joint)).index_add(0, slot, mass).square()
    for graph, classes in ((first, joint // second.rank), (second, joint % second.rank)):
        if graph.middle is not None:
            totals = totals * graph.middle[classes].to(torch.float64)
    return float(totals.sum()) * first.weight * second.weight


def _factored_inner(factored: FactoredGraph, other: Graph) -> float:
    """Tr(B S Y M Y^T S) = sum of (B S Y) o (S Y M), some columns at a time."""
    total = 0.0
    for columns in torch.arange(factored.rank, device=factored.device).split(COLUMNS):
        unit = torch.zeros(factored.rank, len(columns), dtype=torch.float64, device=factored.device)
        unit[columns, torch.arange(len(columns), device=columns.device)] = 1.0
        left: Tensor = factored._decode(unit)
        right = factored._decode(factored._apply_middle(unit))
        total += float((other._product(left) * right).sum())
    return total * factored.weight
