"""Training and test sets in the forms that users have them in, as one task."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.evaluation.draws import places_in_class
from likewise.evaluation.embeddings import Embeddings
from likewise.evaluation.task import Task, class_indices, embedding_rows, labelled_task

HELD_OUT = 5
"""Without test rows, one of this many rows of each class is held out of training."""


def no_labels(name: str) -> ValueError:
    """The error for a set of which no label is known."""
    return ValueError(
        f"{name} has no labels: give images in one folder a class, a table (images or embeddings) "
        f"with a column label, or a CSV file (key,label) as --{name}-labels"
    )


def two_sets(
    train: Any, train_labels: Any, test: Any, test_labels: Any
) -> tuple[tuple[Any, Any, Any, Any], list[str] | None, list[str]]:
    """Rows and class indices of one common list of classes, the list, and notes."""
    if not isinstance(train, Embeddings):
        if isinstance(test, Embeddings) or isinstance(train_labels, Embeddings):
            raise ValueError("train is an array and test is Embeddings: give two of one kind")
        return (train, train_labels, test, test_labels), None, []
    if test_labels is not None or (train_labels is not None and test is not None):
        raise ValueError("train is Embeddings, which have their own labels: give (train, test)")
    other = train_labels if train_labels is not None else test
    if train.labels is None:
        raise no_labels("train")
    names = train.class_names
    notes: list[str] = []
    if other is None:
        return (train.rows, train.labels, None, None), names, notes
    if not isinstance(other, Embeddings):
        raise ValueError(f"train is Embeddings and test is {type(other).__name__}: give Embeddings")
    if other.labels is None:
        raise no_labels("test")
    labels = other.labels
    if names is not None and other.class_names is not None:
        names = names + [name for name in other.class_names if name not in set(names)]
        labels = other.labels_among(names)
    elif names is not None or other.class_names is not None:
        notes.append("only one of train and test has class names: classes are matched by index")
    leaked = _shared(train, other)
    if leaked:
        notes.append(
            f"{leaked} test items are in train with the same key and the same embedding: "
            "the scores flatter"
        )
    if _collapsed(train.rows) and _collapsed(other.rows):
        notes.append("all items have nearly the same embedding: the encoder has collapsed")
    elif (twins := _alike(train, other) - leaked) > 0:
        notes.append(
            f"{twins} test items have the embedding of a training item with another key: copies of "
            "one image flatter the scores"
        )
    return (train.rows, train.labels, other.rows, labels), names, notes


def _collapsed(rows: NDArray[np.float32]) -> bool:
    """Whether rows hardly differ, as :class:`likewise.training.monitor.Monitor` sees it."""
    squares = float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))
    mean = rows.mean(axis=0, dtype=np.float64)
    return squares - len(rows) * float(mean @ mean) < 1e-6 * squares


def _shared(train: Embeddings, test: Embeddings) -> int:
    """How many items of `test` are in `train`; row numbers as keys say nothing by themselves."""
    if train.rows.shape[1] != test.rows.shape[1]:
        return 0
    places = {key: index for index, key in enumerate(train.keys)}
    pairs = [(places[key], index) for index, key in enumerate(test.keys) if key in places]
    return sum(bool(np.array_equal(train.rows[i], test.rows[j])) for i, j in pairs)


def _alike(train: Embeddings, test: Embeddings) -> int:
    """How many rows of `test` are rows of `train`, but for what rounding makes of one image in two
    batches: each is compared with those that lie next to it along a random line."""
    if train.rows.shape[1] != test.rows.shape[1]:
        return 0
    line = np.random.default_rng(0).normal(size=train.rows.shape[1])
    along = train.rows @ line
    order = np.argsort(along)
    place = np.searchsorted(along[order], test.rows @ line)
    limit = 1e-4 * np.linalg.norm(test.rows, axis=1)
    found = np.zeros(len(test.rows), dtype=bool)
    for beside in (place - 1, place):
        near = train.rows[order[beside.clip(0, len(order) - 1)]]
        found |= np.linalg.norm(near - test.rows, axis=1) <= limit
    return int(found.sum())


def task_of(
    train: Any,
    train_labels: Any,
    test: Any,
    test_labels: Any,
    seed: int,
    device: torch.device | str | None,
) -> tuple[Task, list[str]]:
    """The task of two sets, or of one of which a part is held out; and notes."""
    if test is not None:
        return labelled_task(train, train_labels, test, test_labels, device=device), []
    if test_labels is not None:
        raise ValueError("test_labels are given and test is None: give test rows, too")
    rows = embedding_rows(train, "train", device)
    labels = class_indices(train_labels, len(rows), "train_labels", rows.device)
    places = places_in_class(labels, seed)
    out = (labels >= 0) & (places % HELD_OUT == HELD_OUT - 1)
    if not bool(out.any()):
        raise ValueError(
            f"test is None, and no class has {HELD_OUT} labelled rows to hold one out of: give "
            "test rows, or more labels"
        )
    task = labelled_task(rows[~out], labels[~out], rows[out], labels[out])
    return task, [f"no test rows are given: {len(task.test)} training rows were held out for it"]
