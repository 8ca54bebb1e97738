"""The signed, weighted graph of what is known: classes in factored form, the rest as edges."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.graph import Graph
from likewise.graph.factored import FactoredGraph
from likewise.oracles.beliefs.closure import Index
from likewise.oracles.beliefs.facts import Facts

MAX_EDGES = 5_000_000
"""Implied pairs outside of the classes that are listed one by one; beyond, only those asked."""


def classes_graph(labels: Index, n_classes: int) -> Graph:
    """+1 within a class, -1 between two classes, unknown where the label is -1.

    >>> classes_graph(np.array([0, 1, 0, -1]), 2).dense().astype(int).tolist()
    [[1, -1, 1, 0], [-1, 1, -1, 0], [1, -1, 1, 0], [0, 0, 0, 0]]
    """
    count = max(n_classes, 1)
    middle = 2 * torch.eye(count, dtype=torch.float64) - 1
    graph = FactoredGraph(
        len(labels), labels=torch.from_numpy(labels), n_classes=count, middle=middle
    )
    graph.answers_numpy = True
    return graph


def open_pairs(
    root: Index, keys: Index, labels: Index, max_edges: int = MAX_EDGES
) -> tuple[Index, Index, NDArray[np.float64]] | None:
    """Every pair i <= j that is known and not between two members of classes, with its sign.

    None where they are more than `max_edges`."""
    n = len(root)
    order = np.argsort(root, kind="stable")
    sizes = np.bincount(root, minlength=n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    outside = np.flatnonzero((labels < 0) & (root == np.arange(n)))
    low, high = keys // n, keys % n
    between = (labels[low] < 0) | (labels[high] < 0)
    low, high = low[between], high[between]
    if (sizes[outside] ** 2).sum() + (sizes[low] * sizes[high]).sum() > max_edges:
        return None
    inner = _product(order, starts, sizes, outside, outside)
    ordered = inner[0] <= inner[1]
    across = _product(order, starts, sizes, low, high)
    i = np.concatenate([inner[0][ordered], across[0]])
    j = np.concatenate([inner[1][ordered], across[1]])
    weight = np.concatenate([np.ones(ordered.sum()), -np.ones(len(across[0]))])
    return np.minimum(i, j), np.maximum(i, j), weight


def _product(
    order: Index, starts: Index, sizes: Index, first: Index, second: Index
) -> tuple[Index, Index]:
    """Every member of group first[k] with every member of group second[k]."""
    counts = sizes[first] * sizes[second]
    pair = np.repeat(np.arange(len(first)), counts)
    within = np.arange(len(pair)) - (np.cumsum(counts) - counts)[pair]
    width = sizes[second][pair]
    i = order[starts[first][pair] + within // np.maximum(width, 1)]
    j = order[starts[second][pair] + within % np.maximum(width, 1)]
    return i, j


def graded_pairs(facts: Facts) -> tuple[Index, Index, NDArray[np.float64]]:
    """The pairs with a graded answer (strictly between -1 and 1, not 0), with the mean of all
    that was said about them except "unsure"."""
    said = facts.value != 0
    low, high = np.minimum(facts.a, facts.b)[said], np.maximum(facts.a, facts.b)[said]
    value = facts.value[said]
    keys, pair = np.unique(low * facts.n + high, return_inverse=True)
    graded = np.bincount(pair, weights=np.abs(value) < 1, minlength=len(keys)) > 0
    mean = np.bincount(pair, weights=value, minlength=len(keys)) / np.maximum(
        np.bincount(pair, minlength=len(keys)), 1
    )
    keys, mean = keys[graded], mean[graded]
    return keys // facts.n, keys % facts.n, mean


def asked_pairs(facts: Facts) -> tuple[Index, Index]:
    """Every pair that was answered with more than "unsure", once."""
    said = facts.value != 0
    low, high = np.minimum(facts.a, facts.b)[said], np.maximum(facts.a, facts.b)[said]
    keys = np.unique(low * facts.n + high)
    return keys // facts.n, keys % facts.n
