"""How often a classifier is right: in all, in the first five, for each class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.evaluation.task import Task

MANY_CLASSES = 100
"""Beyond this many classes the confusion matrix is left out of :meth:`Classification.to_dict`."""


@dataclass(eq=False)
class Classification:
    """The scores of a classifier on labelled test rows.

    Attributes:
        accuracy: the share of test rows whose class comes first.
        top5: the share whose class is among the first five; None below six classes, where it
            would say little.
        classes: the class indices that occur in training or test, in order.
        per_class: for every class of the test rows, the share of its rows that are right.
        confusion: (classes, classes) counts; row: the true class, column: the predicted one.
        n_train, n_test: how many rows took part.
        unlabelled: how many rows had no label and did not take part.
        settings: what it was computed with.
        seconds: how long that took.
        notes: what a reader of the scores should know.
    """

    accuracy: float
    top5: float | None
    classes: list[int]
    per_class: dict[int, float]
    confusion: NDArray[np.int64]
    n_train: int
    n_test: int
    unlabelled: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries, as JSON has them."""
        plain: dict[str, Any] = {
            "accuracy": self.accuracy,
            "top5": self.top5,
            "per_class": {str(name): share for name, share in self.per_class.items()},
            "n_train": self.n_train,
            "n_test": self.n_test,
            "unlabelled": dict(self.unlabelled),
            "settings": dict(self.settings),
            "seconds": self.seconds,
            "notes": list(self.notes),
        }
        if len(self.classes) <= MANY_CLASSES:
            plain["classes"] = list(self.classes)
            plain["confusion"] = self.confusion.tolist()
        return plain


def classification(
    scores: Tensor, task: Task, settings: dict[str, Any], seconds: float, notes: list[str]
) -> dict[str, Any]:
    """The fields of :class:`Classification` from scores (n_test, n_classes); the highest wins.

    Equal scores go to the class with the lower index.

    >>> from likewise.evaluation.task import labelled_task
    >>> task = labelled_task(np.eye(2), [0, 1], np.eye(2)[[0, 0, 1]], [0, 1, 1])
    >>> result = Classification(**classification(task.test, task, {}, 0.0, []))
    >>> result.confusion.tolist(), result.per_class
    ([[1, 0], [1, 1]], {0: 1.0, 1: 0.5})
    """
    predicted = task.classes[scores.argmax(dim=1)]
    truth = task.test_labels
    classes = torch.unique(torch.cat([task.classes, truth]))
    size = len(classes)
    cells = torch.searchsorted(classes, truth) * size + torch.searchsorted(classes, predicted)
    confusion = torch.bincount(cells, minlength=size * size).reshape(size, size).cpu().numpy()
    names, right, total = classes.tolist(), confusion.diagonal(), confusion.sum(axis=1)
    top5 = None
    if task.n_classes >= 6:
        # The first five by score, equal scores by index: a stable sort of the negative.
        first = torch.argsort(-scores, dim=1, stable=True)[:, :5]
        top5 = float((task.classes[first] == truth[:, None]).any(dim=1).float().mean())
    return {
        "accuracy": float(right.sum() / total.sum()),
        "top5": top5,
        "classes": names,
        "per_class": {c: float(right[i] / total[i]) for i, c in enumerate(names) if total[i]},
        "confusion": confusion,
        "n_train": len(task.train),
        "n_test": len(task.test),
        "unlabelled": dict(task.unlabelled),
        "settings": settings,
        "seconds": seconds,
        "notes": [*task.notes, *notes],
    }
