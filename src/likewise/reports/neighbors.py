"""Nearest-neighbour sheets: the queries that go best, and those that go worst."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation import nearest_neighbors
from likewise.reports.subject import Sample

SHOWN = 8
"""Neighbours of a query."""

QUERIES = 8
"""Queries of a sheet."""


@dataclass(frozen=True)
class Query:
    """An item and its nearest others.

    item: its row.
    neighbors: their rows, the nearest first.
    similarities: the cosines.
    agreement: share of labelled neighbours with the item's label; None without labels.
    """

    item: int
    neighbors: NDArray[np.int64]
    similarities: NDArray[np.float32]
    agreement: float | None


def neighbor_sheets(sample: Sample) -> tuple[list[Query], list[Query]]:
    """The best and the worst queries.

    With labels, best are those whose neighbours all share the label, worst those whose neighbours
    least do, and among equals those whose neighbours are the most similar: the surest mistakes.
    Without labels, best are those with the most similar neighbours, worst the loners. An item that
    a sheet shows already asks no query of its own, and a class asks at most twice among the best.
    """
    k = min(SHOWN, len(sample) - 1)
    similarities, places = nearest_neighbors(sample.rows, k=k, exclude_self=True)
    mean = similarities.mean(axis=1)
    agreement = _agreement(sample, places)
    if agreement is None:
        best, worst = np.argsort(-mean, kind="stable"), np.argsort(mean, kind="stable")
    else:
        known = np.flatnonzero(~np.isnan(agreement))
        best = known[np.lexsort((-mean[known], -agreement[known]))]
        worst = known[np.lexsort((-mean[known], agreement[known]))]
        worst = worst[agreement[worst] < 1]
    sheets = []
    for order, per_class in ((best, 2), (worst, QUERIES)):
        chosen = _varied(order, places, sample.labels, per_class)
        sheets.append(
            [
                Query(
                    int(item),
                    places[item],
                    similarities[item],
                    None if agreement is None else float(agreement[item]),
                )
                for item in chosen
            ]
        )
    return sheets[0], sheets[1]


def _agreement(sample: Sample, places: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """For every item with a label: the share of its labelled neighbours that have it; else NaN."""
    labels = sample.labels
    if labels is None or int(sample.known.sum()) < 2:
        return None
    near = labels[places]
    labelled = (near >= 0).sum(axis=1)
    same = (near == labels[:, None]).sum(axis=1)
    share = np.where(labelled > 0, same / np.maximum(labelled, 1), np.nan)
    return np.where(labels >= 0, share, np.nan)


def _varied(
    order: NDArray[np.int64],
    places: NDArray[np.int64],
    labels: NDArray[np.int64] | None,
    per_class: int,
) -> list[int]:
    chosen: list[int] = []
    shown: set[int] = set()
    asked: dict[int, int] = {}
    for item in order.tolist():
        group = -1 if labels is None else int(labels[item])
        full = group >= 0 and asked.get(group, 0) >= per_class
        if item in shown or full:
            continue
        chosen.append(item)
        asked[group] = asked.get(group, 0) + 1
        shown.update([item, *places[item].tolist()])
        if len(chosen) == QUERIES:
            break
    return chosen
