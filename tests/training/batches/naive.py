"""Inclusion probabilities by going through everything that can be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np


def random_batches(n: int, b: int) -> np.ndarray:
    """P(i and j are in a uniformly random batch); P(i) on the diagonal."""
    probability = np.full((n, n), b * (b - 1) / (n * (n - 1)))
    np.fill_diagonal(probability, b / n)
    return probability


def aware_batches(
    n: int,
    b: int,
    edges: list[tuple[int, int]] = (),
    drawn_edges: int = 0,
    labelled: list[int] = (),
    drawn_labelled: int = 0,
) -> np.ndarray:
    """The same for batches of some edges and some labelled samples, filled up at random."""
    total = np.zeros((n, n))
    cases = 0
    for picked_edges, picked in product(
        combinations(edges, drawn_edges), combinations(labelled, drawn_labelled)
    ):
        known = {node for edge in picked_edges for node in edge} | set(picked)
        open_places, others = b - len(known), n - len(known)
        one = open_places / others
        two = one * (open_places - 1) / (others - 1)
        inside = np.array([i in known for i in range(n)], dtype=float)
        pair = np.array([two, one, 1.0])[(inside[:, None] + inside[None, :]).astype(int)]
        np.fill_diagonal(pair, np.where(inside > 0, 1.0, one))
        total += pair
        cases += 1
    return total / cases


def teams(classes: list[list[int]], size: int) -> Iterator[list[list[int]]]:
    """All ways to cut classes of samples into teams of `size` (the last one smaller)."""
    if not classes:
        yield []
        return
    for order in _orders(classes[0]):
        cut = [order[k : k + size] for k in range(0, len(order), size)]
        for rest in teams(classes[1:], size):
            yield cut + rest


def _orders(items: list[int]) -> Iterator[list[int]]:
    if not items:
        yield []
    for k, item in enumerate(items):
        for rest in _orders(items[:k] + items[k + 1 :]):
            yield [item, *rest]


def frequencies(batches: list[np.ndarray], n: int) -> np.ndarray:
    """How often samples were in a batch together."""
    held = np.zeros((len(batches), n))
    for row, batch in zip(held, batches, strict=True):
        row[batch] = 1.0
    return held.T @ held / len(batches)
