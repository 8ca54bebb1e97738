"""Classify by a vote of the nearest rows of a labelled bank: there is nothing to train."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from likewise.evaluation.classification import Classification, classification
from likewise.evaluation.neighbors import both_unit, check_neighbors, search
from likewise.evaluation.task import (
    Task,
    class_indices,
    embedding_rows,
    known_rows,
    labelled_task,
    number,
    positive_integer,
    same_width,
)
from likewise.graph.arrays import Array, in_kind, is_numpy
from likewise.information.precision import without_autocast

Vote = Literal["weighted", "majority"]

FIXED_POINT = 2**40


@torch.no_grad()
@without_autocast
def knn_scores(
    bank: Array,
    labels: Any,
    queries: Array | None = None,
    *,
    k: int = 200,
    temperature: float = 0.1,
    vote: Vote = "weighted",
    center: bool = False,
    exclude_self: bool = False,
    n_classes: int | None = None,
    tile: int | None = None,
    device: torch.device | str | None = None,
) -> Any:
    r"""The share of the vote that the k nearest rows of a labelled bank give to each class.

    .. math::
        s_c = \sum_{j \in N_k} w_j 1[y_j = c] \Big/ \sum_{j \in N_k} w_j, \qquad
        w_j = e^{\cos(q, b_j) / T}

    with ``vote="weighted"`` (Wu et al. 2018, with k = 200 and T = 0.1 here; theirs is 0.07), or
    w_j = 1 with ``vote="majority"`` (``balanced`` appendix A.4, with k = 1 on CIFAR-10). Only
    the division by the sum is added: it changes no order. Equal shares go to the lower class
    index when the highest is taken; equally similar rows enter by their number (see
    :func:`~likewise.evaluation.nearest_neighbors`): the same rows give the same answer always.

    Args:
        bank: (n, d) rows.
        labels: (n,) class indices; rows with -1 are no neighbours.
        queries: (m, d); default: the bank itself (you want `exclude_self` then).
        k: how many neighbours vote; at most the number of labelled rows.
        temperature: T; smaller listens more to the nearest.
        vote: "weighted" or "majority".
        center: whether to subtract the bank's mean first. Plain cosine is the custom.
        exclude_self: leave one out: query i is row i of the bank, and does not vote on itself.
        n_classes: the number of columns; default: the largest class index and 1.
        tile: how many similarities to hold at once; default: what suits the device.
        device: where to compute; default: where the bank is.

    Returns:
        (m, n_classes) float32 whose rows add up to 1.

    >>> bank = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]])
    >>> knn_scores(bank, [0, 1, 1], bank[:1], k=3, vote="majority")
    tensor([[0.3333, 0.6667]])
    """
    numpy = is_numpy(bank, queries)
    rows = embedding_rows(bank, "bank", device)
    asked = rows if queries is None else embedding_rows(queries, "queries", rows.device)
    same_width(rows, "bank", asked, "queries")
    classes = class_indices(labels, len(rows), "labels", rows.device)
    own = None
    if exclude_self:
        # The number that each query has among the labelled rows; -1: it is not among them.
        known = classes >= 0
        own = torch.where(known, known.cumsum(0) - 1, -1)
    total = len(rows)
    rows, classes, _ = known_rows(rows, classes, "labels")
    check_neighbors(k, len(rows), len(asked), own, total)
    size = int(classes.max()) + 1
    if n_classes is not None:
        if positive_integer("n_classes", n_classes) < size:
            raise ValueError(f"n_classes is {n_classes}, but labels go up to {size - 1}")
        size = n_classes
    check_vote(vote, temperature)
    found = search(*both_unit(rows, asked, center), k, own, tile)
    return in_kind(_votes(found, classes, size, [k], vote, temperature)[k], numpy)


def knn_accuracy(
    bank: Array,
    labels: Any,
    queries: Array | None = None,
    query_labels: Any = None,
    **options: Any,
) -> float:
    """The share of labelled queries to which :func:`knn_scores` gives their own class.

    Without `queries`, the bank is scored on itself, each row without its own vote. Queries
    without a label (-1) are left out; one whose class is not in the bank counts as wrong.

    Args:
        bank, labels, queries: see :func:`knn_scores`.
        query_labels: (m,) class indices of the queries.
        **options: those of :func:`knn_scores`.

    >>> bank = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> knn_accuracy(bank, [0, 0, 1, 1], k=1)
    1.0
    """
    if queries is None:
        options.setdefault("exclude_self", True)
        query_labels = labels if query_labels is None else query_labels
    scores = torch.as_tensor(knn_scores(bank, labels, queries, **options))
    truth = class_indices(query_labels, len(scores), "query_labels", scores.device)
    if not bool((truth >= 0).any()):
        raise ValueError("query_labels hold no label (every one is -1): give some labels")
    known = truth >= 0
    return float((scores.argmax(dim=1) == truth)[known].double().mean())


def knn_probe(
    train: Array,
    train_labels: Any,
    test: Array,
    test_labels: Any,
    *,
    k: int = 200,
    temperature: float = 0.1,
    vote: Vote = "weighted",
    center: bool = False,
    device: torch.device | str | None = None,
) -> Classification:
    """All scores of the nearest-neighbour classifier (see :func:`knn_scores`) on test rows.

    >>> bank = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> knn_probe(bank, [0, 0, 1, 1], bank[::2], [0, 0], k=1).per_class
    {0: 0.5}
    """
    task = labelled_task(train, train_labels, test, test_labels, device=device)
    return knn_on(task, [k], temperature, vote, center)[k]


@torch.no_grad()
def knn_on(
    task: Task, ks: Sequence[int], temperature: float, vote: Vote, center: bool = False
) -> dict[int, Classification]:
    """:func:`knn_probe` for several k with one search, on a task that has been checked already."""
    start = time.perf_counter()
    for k in ks:
        check_neighbors(k, len(task.train), len(task.test), None, len(task.train))
    check_vote(vote, temperature)
    found = search(*both_unit(task.train, task.test, center), max(ks), None, None)
    votes = _votes(found, task.train_labels, task.n_classes, ks, vote, temperature)
    results = {}
    for k in ks:
        settings = {"k": k, "temperature": temperature, "vote": vote, "center": center}
        fields = classification(votes[k], task, settings, 0.0, [])
        results[k] = Classification(**{**fields, "seconds": time.perf_counter() - start})
    return results


def check_vote(vote: str, temperature: float) -> None:
    """Raise unless neighbours can vote like this."""
    if vote not in get_args(Vote):
        raise ValueError(f"vote is {vote!r}: give 'weighted' or 'majority'")
    number("temperature", temperature)


def _votes(
    found: Iterator[tuple[Tensor, Tensor]],
    classes: Tensor,
    n_classes: int,
    ks: Sequence[int],
    vote: Vote,
    temperature: float,
) -> dict[int, Tensor]:
    """The shares of the classes among the first k neighbours, for every k."""
    parts: dict[int, list[Tensor]] = {k: [] for k in ks}
    for similarities, places in found:
        for k in ks:
            near, labels = similarities[:, :k], classes[places[:, :k]]
            parts[k].append(_vote(near, labels, n_classes, vote, temperature))
    return {k: torch.cat(blocks) for k, blocks in parts.items()}


def _vote(
    similarities: Tensor, classes: Tensor, n_classes: int, vote: Vote, temperature: float
) -> Tensor:
    if vote == "majority":
        shares = torch.full_like(similarities, 1 / similarities.shape[1], dtype=torch.float64)
    else:
        # The softmax subtracts the greatest: exp(1 / 0.01) is no float32.
        shares = (similarities.double() / temperature).softmax(dim=1)
    # Integers add up to the same sum in any order, and a GPU adds in any order.
    parts = (shares * FIXED_POINT).round().long()
    votes = parts.new_zeros(len(parts), n_classes).scatter_add_(1, classes, parts)
    return (votes.double() / votes.sum(dim=1, keepdim=True)).float()
