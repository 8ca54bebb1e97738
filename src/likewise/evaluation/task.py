"""What is scored: labelled rows to learn from and labelled rows to be tested on, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.graph.arrays import Array, as_tensor

LARGEST_CLASS_INDEX = 2**20
"""A larger label is taken for an identifier: a table of votes has a column per class index."""


def embedding_rows(
    value: Array, name: str, device: torch.device | str | None = None, at_least: int = 1
) -> Tensor:
    """Embeddings as a float32 tensor (n, d) without gradients, or an error that names `name`.

    >>> embedding_rows(np.ones((2, 3)), "train").dtype
    torch.float32
    """
    rows = as_tensor(value, device).detach()
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)}: give one row of numbers per item, (n, d)"
        )
    if len(rows) < at_least:
        raise ValueError(f"{name} has {len(rows)} rows: give at least {at_least}")
    if rows.is_complex():
        raise ValueError(f"{name} is {rows.dtype}: give real numbers")
    rows = rows.float()
    if not bool(torch.isfinite(rows).all()):
        bad = (~torch.isfinite(rows)).any(dim=1).nonzero()[:, 0]
        raise ValueError(
            f"{name} holds NaN or infinity in {len(bad)} of {len(rows)} rows (the first is row "
            f"{int(bad[0])}): leave these rows out, or look for the step that diverged"
        )
    return rows


def class_indices(
    value: Any, n: int, name: str, device: torch.device | str | None = None
) -> Tensor:
    """Labels as int64 (n,): class indices from 0, and -1 for unknown; or an error.

    >>> class_indices([0, 2, -1], 3, "train_labels").tolist()
    [0, 2, -1]
    """
    if value is None:
        raise ValueError(f"{name} is None: give one class index per row (-1 where it is unknown)")
    if not isinstance(value, Tensor):
        value = np.asarray(value)
        if value.dtype.kind not in "iub":
            raise ValueError(
                f"{name} holds {value.dtype} values: give class indices 0, 1, 2, ... "
                f"(np.unique({name}, return_inverse=True) makes them from names)"
            )
        value = torch.as_tensor(value.astype(np.int64))
    if value.is_floating_point() or value.is_complex():
        raise ValueError(f"{name} holds {value.dtype} values: give class indices 0, 1, 2, ...")
    labels: Tensor = value.to(device=device, dtype=torch.int64)
    if labels.shape != (n,):
        raise ValueError(
            f"{name} has shape {tuple(labels.shape)} for {n} rows: give one class index per row"
        )
    low, high = (labels.min().item(), labels.max().item()) if n else (0, 0)
    if low < -1 or high >= LARGEST_CLASS_INDEX:
        wrong = low if low < -1 else high
        raise ValueError(
            f"{name} holds {wrong}: give class indices 0, 1, 2, ..., and -1 for unknown "
            f"(np.unique({name}, return_inverse=True) makes them from other numbers)"
        )
    return labels


def same_width(first: Tensor, first_name: str, second: Tensor, second_name: str) -> None:
    """Raise unless both have rows of the same length."""
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"{first_name} has rows of {first.shape[1]} numbers and {second_name} of "
            f"{second.shape[1]}: both have to come from the same encoder"
        )


def positive_integer(name: str, value: Any) -> int:
    """`value` as an integer of at least 1, or an error."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} is {value!r}: give an integer of at least 1")
    return int(value)


def number(name: str, value: Any, *, zero: bool = False) -> float:
    """`value` as a finite number above 0 (or 0, where `zero`), or an error."""
    fits = isinstance(value, int | float | np.number) and math.isfinite(value)
    if isinstance(value, bool) or not fits or value < 0 or (value == 0 and not zero):
        raise ValueError(
            f"{name} is {value!r}: give a {'number from 0' if zero else 'positive number'}"
        )
    return float(value)


def listed(values: Sequence[int], most: int = 5) -> str:
    """1, 2, 3, ... for messages."""
    return ", ".join(map(str, values[:most])) + (", ..." if len(values) > most else "")


@dataclass(frozen=True)
class Task:
    """Labelled training rows and labelled test rows; rows without a label are left out.

    Attributes:
        train, test: float32 rows.
        train_labels: positions in `classes`.
        test_labels: class indices as given: a test row may be of a class that training never saw.
        classes: the class indices that occur in training, in order.
        unlabelled: how many rows of each were left out.
        notes: what a reader of the scores should know.
    """

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
    classes: Tensor
    unlabelled: dict[str, int]
    notes: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        """How many classes occur in training."""
        return len(self.classes)


def labelled_task(
    train: Array,
    train_labels: Any,
    test: Array,
    test_labels: Any,
    *,
    device: torch.device | str | None = None,
) -> Task:
    """Check both sets and drop what has no label.

    >>> task = labelled_task(np.eye(3), [4, 7, -1], np.eye(3)[:1], [7])
    >>> task.train_labels.tolist(), task.classes.tolist(), task.unlabelled
    ([0, 1], [4, 7], {'train': 1, 'test': 0})
    """
    rows = embedding_rows(train, "train", device)
    queries = embedding_rows(test, "test", rows.device)
    same_width(rows, "train", queries, "test")
    labels = class_indices(train_labels, len(rows), "train_labels", rows.device)
    truth = class_indices(test_labels, len(queries), "test_labels", rows.device)
    rows, labels, without = known_rows(rows, labels, "train_labels")
    queries, truth, without_test = known_rows(queries, truth, "test_labels")
    classes, codes = torch.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"train_labels hold one class only ({int(classes[0])}): there is nothing to tell "
            "apart; give labels of at least two classes"
        )
    notes = []
    unseen = ~torch.isin(truth, classes)
    if bool(unseen.all()):
        raise ValueError(
            f"no class of test_labels ({listed(torch.unique(truth).tolist())}) occurs in "
            f"train_labels ({listed(classes.tolist())}): are the class indices those of one list?"
        )
    if bool(unseen.any()):
        names = torch.unique(truth[unseen]).tolist()
        notes.append(
            f"{int(unseen.sum())} test rows are of a class that training never saw "
            f"({listed(names)}); they count as wrong"
        )
    unlabelled = {"train": without, "test": without_test}
    for name, count in unlabelled.items():
        if count:
            notes.append(f"{count} {name} rows have no label and are left out")
    return Task(rows, codes, queries, truth, classes, unlabelled, tuple(notes))


def known_rows(rows: Tensor, labels: Tensor, name: str) -> tuple[Tensor, Tensor, int]:
    """The rows that have a label, their labels, and how many had none."""
    known = labels >= 0
    without = len(labels) - int(known.sum())
    if without == len(labels):
        raise ValueError(f"{name} hold no label (every one is -1): give some labels")
    if without:
        rows, labels = rows[known], labels[known]
    return rows, labels, without
