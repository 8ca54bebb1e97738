"""A graph with the weights of importance sampling in its entries."""

from __future__ import annotations

import numpy as np
import torch

from likewise.graph import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.factored import FactoredGraph
from likewise.training.batches.inclusion import Inclusion
from likewise.training.batches.knowledge import Knowledge


def weighted_terms(knowledge: Knowledge, inclusion: Inclusion) -> list[Graph]:
    r"""The terms of :math:`G_{ij}\, \pi^0_{ij} / \pi_{ij}` over all samples; a batch takes its
    part of them.

    Labels stay labels: they are weighted by one factor for all pairs, or one for every class, and
    where there are edges as well, by two for every sample. On the diagonal, on the edges, and on
    teammates that edges touch, this is not the weight that they should have: there, what is
    missing is added, pair by pair.
    """
    shared = [
        weighted
        for term in knowledge.shared
        for weighted in _weighted_labels(term, knowledge, inclusion)
    ]
    diagonal = torch.from_numpy(inclusion.sample_weight) * knowledge.diagonal
    for term in shared:
        diagonal = diagonal - term._diagonal(torch.float64)
    i, j, weight = _weighted_pairs(knowledge, inclusion, shared)
    terms = list(shared)
    if bool(knowledge.diagonal_known.all()) and bool((diagonal >= 0).all()):
        scale = diagonal.sqrt().to(torch.get_default_dtype())
        terms.append(FactoredGraph(knowledge.n, scale=scale))
    else:
        # A diagonal that is unknown stays unknown.
        own = knowledge.diagonal_known.nonzero()[:, 0]
        i, j, weight = torch.cat([i, own]), torch.cat([j, own]), torch.cat([weight, diagonal[own]])
    if len(i):
        order = torch.argsort(i * knowledge.n + j)
        weight = weight[order].to(knowledge.dtype)
        terms.append(EdgeGraph(i[order], j[order], weight, knowledge.n))
    return terms


def _in_teams(inclusion: Inclusion) -> bool:
    return inclusion.labels is not None and inclusion.labels.team > 1


def _weighted_labels(term: Graph, knowledge: Knowledge, inclusion: Inclusion) -> list[Graph]:
    if _in_teams(inclusion):
        assert isinstance(term, FactoredGraph) and knowledge.classes is not None
        present = torch.from_numpy(np.unique(knowledge.classes))
        middle = torch.zeros(term.rank, dtype=torch.float64)
        middle[present] = torch.from_numpy(inclusion.classmates_weight)
        return [term._copy(middle=middle if term.middle is None else middle * term.middle)]
    if inclusion.edges is None:
        return [term._times(inclusion.strangers_weight)]
    return [
        term._times(factor)._scaled(torch.from_numpy(scale).to(torch.get_default_dtype()))
        for factor, scale in inclusion.factors()
    ]


def _weighted_pairs(
    knowledge: Knowledge, inclusion: Inclusion, shared: list[Graph]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The pairs with a weight of their own, and what the labels lack of it."""
    first, second = knowledge.i, knowledge.j
    joined = np.ones_like(first)
    if _in_teams(inclusion) and inclusion.edges is not None:
        more = _touched_classmates(knowledge)
        first, second = np.append(first, more[0]), np.append(second, more[1])
        joined = np.append(joined, np.zeros_like(more[0]))
    i, j = torch.from_numpy(first), torch.from_numpy(second)
    weight = torch.zeros(len(i), dtype=torch.float64)
    weight[: len(knowledge.i)] = knowledge.weight
    for term in knowledge.shared:
        weight += term._entries(i, j, torch.float64)
    weight *= torch.from_numpy(inclusion.pair_weight(first, second, joined))
    for term in shared:
        weight -= term._entries(i, j, torch.float64)
    return i, j, weight


def _touched_classmates(knowledge: Knowledge) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of classmates of which an edge touches one or both, but does not join them.

    Samples come in teams where classes are many: then these pairs are few."""
    assert knowledge.classes is not None
    order = np.argsort(knowledge.classes, kind="stable")
    nodes, classes = knowledge.labelled[order], knowledge.classes[order]
    touched = np.isin(nodes, np.concatenate([knowledge.i, knowledge.j]))
    start = np.searchsorted(classes, classes[touched])
    size = np.searchsorted(classes, classes[touched], side="right") - start
    one = np.repeat(nodes[touched], size)
    other = nodes[np.arange(len(one)) + np.repeat(start - (np.cumsum(size) - size), size)]
    keys = np.unique((np.minimum(one, other) * knowledge.n + np.maximum(one, other))[one != other])
    keys = np.setdiff1d(keys, knowledge.i * knowledge.n + knowledge.j, assume_unique=True)
    return keys // knowledge.n, keys % knowledge.n
