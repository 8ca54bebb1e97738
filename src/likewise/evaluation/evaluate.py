"""Score a representation in every way at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch

from likewise.evaluation.clustering import clustering_scores
from likewise.evaluation.embeddings import Embeddings
from likewise.evaluation.few_labels import Classifier, check_classifier, few_labels_on
from likewise.evaluation.knn import Vote, check_vote, knn_on
from likewise.evaluation.probe import Method, Scaling, checked_options, probe_on
from likewise.evaluation.scores import Evaluation
from likewise.evaluation.sets import task_of, two_sets
from likewise.evaluation.task import Task, listed, positive_integer
from likewise.graph.arrays import Array, is_numpy
from likewise.information import effective_rank, rank_me

Score = Literal["knn", "linear", "few-labels", "clustering"]

ROWS_FOR_RANK = 10_000
ROWS_FOR_CLUSTERING = 20_000
"""Of more rows, every second or third ... is taken: these scores do not need them all."""


@torch.no_grad()
def evaluate_embeddings(
    train: Array | Embeddings,
    train_labels: Any = None,
    test: Any = None,
    test_labels: Any = None,
    *,
    methods: Sequence[Score] | None = None,
    k: int | Sequence[int] = (200, 1),
    temperature: float = 0.1,
    vote: Vote = "weighted",
    probe: Method = "lbfgs",
    scaling: Scaling = "feature",
    probe_options: dict[str, Any] | None = None,
    labels_per_class: Sequence[int] = (1, 10, 100),
    draws: int = 5,
    classifier: Classifier = "linear",
    seed: int = 0,
    device: torch.device | str | None = None,
) -> Evaluation:
    """Score embeddings by what can be done with them.

    Called as ``evaluate_embeddings(train, train_labels, test, test_labels)`` with rows and class
    indices (-1: unknown), or as ``evaluate_embeddings(train, test)`` with :class:`Embeddings`,
    whose classes are then matched by name. Without a test set, a fifth of every class is held out
    of training and tested on. Rows without a label are left out, and counted in the notes.

    Args:
        train, train_labels: what classifiers learn from.
        test, test_labels: what they are scored on.
        methods: some of "knn", "linear", "few-labels", "clustering"; default: all.
        k: of the nearest-neighbour classifier, one or several; where there are fewer training
            rows, all of them vote, and a note says so.
        temperature, vote: see :func:`~likewise.evaluation.knn_scores`.
        probe, scaling, probe_options: the method, scaling and options of
            :func:`~likewise.evaluation.linear_probe`.
        labels_per_class: of the few-label probe; numbers that exceed the smallest class are left
            out, and a note says so.
        draws, classifier: of the few-label probe, see :func:`~likewise.evaluation.few_label_probe`.
        seed: of all that is drawn.
        device: where to compute; default: where `train` is.

    >>> import numpy as np
    >>> z = np.random.default_rng(0).normal(size=(60, 8)) + 3 * np.eye(3, 8)[np.arange(60) % 3]
    >>> y = np.arange(60) % 3
    >>> found = evaluate_embeddings(z[:40], y[:40], z[40:], y[40:], k=5, labels_per_class=(1, 5))
    >>> list(found.summary())
    ['knn-5', 'linear', 'few-labels-1', 'few-labels-5', 'nmi', 'ari', 'cluster-accuracy',
     'rank-me', 'effective-rank']
    """
    asked = _methods(methods)
    neighbors = [positive_integer("k", one) for one in ([k] if isinstance(k, int) else k)]
    if not neighbors:
        raise ValueError("k is empty: give a number of neighbours, or several")
    check_vote(vote, temperature)
    check_classifier(classifier)
    options = checked_options(probe, scaling, probe_options or {})
    positive_integer("draws", draws)
    for count in labels_per_class:
        positive_integer("labels_per_class", count)
    start = time.perf_counter()
    sets, names, notes = two_sets(train, train_labels, test, test_labels)
    task, more = task_of(*sets, seed, device)
    found = Evaluation(rank=_rank(task), class_names=names, notes=[*notes, *more, *task.notes])
    if "knn" in asked:
        ks = list(dict.fromkeys(min(one, len(task.train)) for one in neighbors))
        found.knn = knn_on(task, ks, temperature, vote)
        if (most := max(neighbors)) > len(task.train):
            found.notes.append(f"k is {most}, but only {len(task.train)} labelled rows can vote")
    if "linear" in asked:
        found.linear = probe_on(task, probe, scaling, seed, options, is_numpy(sets[0]))
        found.notes += found.linear.notes[len(task.notes) :]
    if "few-labels" in asked:
        smallest = int(torch.bincount(task.train_labels).min())
        for count in labels_per_class:
            if count <= smallest:
                few = few_labels_on(task, count, None, draws, classifier, seed)
                found.few_labels[count] = few
        if left_out := [count for count in labels_per_class if count > smallest]:
            found.notes.append(
                f"the smallest class has {smallest} labelled rows: no few-label score with "
                f"{listed(left_out)} labels a class"
            )
    if "clustering" in asked:
        _cluster(task, seed, found)
    found.settings = {
        "methods": list(asked),
        "n_train": len(task.train),
        "n_test": len(task.test),
        "unlabelled": dict(task.unlabelled),
        "seed": seed,
    }
    found.seconds = time.perf_counter() - start
    return found


def _methods(methods: Sequence[Score] | None) -> tuple[str, ...]:
    known = get_args(Score)
    if methods is None:
        return known
    if isinstance(methods, str) or not methods or set(methods) - set(known):
        raise ValueError(f"methods is {methods!r}: give some of {', '.join(map(repr, known))}")
    return tuple(methods)


def _rank(task: Task) -> dict[str, float]:
    rows = task.train[:: -(-len(task.train) // ROWS_FOR_RANK)]
    centred = rows - rows.mean(dim=0)
    covariance = centred.T @ centred / len(centred)
    return {
        "rank_me": float(rank_me(rows)),
        "effective_rank": float(effective_rank(covariance)),
        "dim": rows.shape[1],
        "rows": len(rows),
    }


def _cluster(task: Task, seed: int, found: Evaluation) -> None:
    every = slice(None, None, -(-len(task.test) // ROWS_FOR_CLUSTERING))
    labels = task.test_labels[every]
    if len(torch.unique(labels)) < 2:
        found.notes.append("the test rows are of one class only: no clustering scores")
        return
    found.clustering = clustering_scores(task.test[every], labels, seed=seed)
    found.notes += found.clustering.notes
