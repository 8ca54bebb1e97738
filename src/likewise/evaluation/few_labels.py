"""Few labels: how well embeddings do when only some rows of each class have a label."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from likewise.evaluation.classification import classification
from likewise.evaluation.draws import places_in_class
from likewise.evaluation.knn import knn_on
from likewise.evaluation.neighbors import unit_rows
from likewise.evaluation.probe import checked_options, probe_on
from likewise.evaluation.task import Task, labelled_task, positive_integer
from likewise.graph.arrays import Array
from likewise.information.precision import without_autocast
from likewise.pairwise.products import product

Classifier = Literal["linear", "knn", "mean"]


@dataclass
class FewLabels:
    """Accuracies over several draws of labelled rows.

    Attributes:
        mean: the mean accuracy.
        deviation: the standard deviation over the draws (0 for a single one).
        accuracies: one per draw.
        n_labels: how many labels a draw has.
        n_test: how many test rows were scored.
        unlabelled: how many rows had no label and did not take part.
        settings: what it was computed with.
        seconds: how long that took.
        notes: what a reader of the scores should know.
    """

    mean: float
    deviation: float
    accuracies: list[float]
    n_labels: int
    n_test: int
    unlabelled: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries, as JSON has them."""
        return asdict(self)


@torch.no_grad()
@without_autocast
def few_label_probe(
    train: Array,
    train_labels: Any,
    test: Array,
    test_labels: Any,
    *,
    labels_per_class: int | None = None,
    share: float | None = None,
    draws: int = 5,
    classifier: Classifier = "linear",
    seed: int = 0,
    device: torch.device | str | None = None,
) -> FewLabels:
    """Keep a few labels of each class, classify the test rows, and repeat with other draws.

    Args:
        train, train_labels, test, test_labels: see :func:`~likewise.evaluation.linear_probe`.
        labels_per_class: how many labels of each class to keep.
        share: or which share of each class, and at least one row of it. Give one of the two.
        draws: how often to repeat; draw i uses seed + i.
        classifier: "linear" is :func:`~likewise.evaluation.linear_probe` by L-BFGS; "knn" lets
            the 200 nearest labelled rows vote (all, where there are fewer); "mean" takes the
            class whose mean of normalised rows is nearest (cosine).
        seed: of the first draw. With one seed, the rows of a smaller draw are part of a larger's.
        device: where to compute; default: where `train` is.

    >>> z = torch.eye(2).repeat(5, 1)
    >>> few_label_probe(z, [0, 1] * 5, z, [0, 1] * 5, labels_per_class=2, draws=3).accuracies
    [1.0, 1.0, 1.0]
    """
    check_classifier(classifier)
    task = labelled_task(train, train_labels, test, test_labels, device=device)
    return few_labels_on(task, labels_per_class, share, draws, classifier, seed)


def check_classifier(classifier: str) -> None:
    """Raise unless it is one of those that there are."""
    if classifier not in get_args(Classifier):
        raise ValueError(f"classifier is {classifier!r}: give 'linear', 'knn' or 'mean'")


def few_labels_on(
    task: Task,
    labels_per_class: int | None,
    share: float | None,
    draws: int,
    classifier: Classifier,
    seed: int,
) -> FewLabels:
    """:func:`few_label_probe` on a task that has been checked already."""
    positive_integer("draws", draws)
    counts = _counts(task, labels_per_class, share)
    start = time.perf_counter()
    accuracies = []
    for draw in range(draws):
        kept = places_in_class(task.train_labels, seed + draw) < counts[task.train_labels]
        few = replace(task, train=task.train[kept], train_labels=task.train_labels[kept])
        accuracies.append(_accuracy(few, classifier, seed + draw))
    amount = {"share": share} if labels_per_class is None else {"per_class": labels_per_class}
    return FewLabels(
        mean=statistics.fmean(accuracies),
        deviation=statistics.stdev(accuracies) if draws > 1 else 0.0,
        accuracies=accuracies,
        n_labels=int(counts.sum()),
        n_test=len(task.test),
        unlabelled=dict(task.unlabelled),
        settings={**amount, "draws": draws, "classifier": classifier, "seed": seed},
        seconds=time.perf_counter() - start,
        notes=list(task.notes),
    )


def _counts(task: Task, labels_per_class: int | None, share: float | None) -> Tensor:
    """How many rows of each class to keep."""
    sizes = torch.bincount(task.train_labels, minlength=task.n_classes)
    if (labels_per_class is None) == (share is None):
        raise ValueError(
            f"labels_per_class is {labels_per_class} and share is {share}: give one of the two"
        )
    if labels_per_class is not None:
        positive_integer("labels_per_class", labels_per_class)
        smallest = int(sizes.min())
        if labels_per_class > smallest:
            name = int(task.classes[int(sizes.argmin())])
            raise ValueError(
                f"labels_per_class is {labels_per_class}, but class {name} has {smallest} labelled "
                f"rows: give at most {smallest}, or a share"
            )
        return torch.full_like(sizes, labels_per_class)
    if isinstance(share, bool) or not isinstance(share, float | int) or not 0 < share <= 1:
        raise ValueError(f"share is {share!r}: give a number above 0 and up to 1, such as 0.01")
    return (sizes * share).round().long().clamp_min(1)


def _accuracy(task: Task, classifier: Classifier, seed: int) -> float:
    if classifier == "linear":
        options = checked_options("lbfgs", "feature", {})
        return probe_on(task, "lbfgs", "feature", seed, options).accuracy
    if classifier == "knn":
        k = min(200, len(task.train))
        return knn_on(task, [k], 0.1, "weighted")[k].accuracy
    members = one_hot(task.train_labels, task.n_classes).float()
    sums = product(members.T, unit_rows(task.train).T)
    scores = product(unit_rows(task.test), unit_rows(sums))
    return float(classification(scores, task, {}, 0.0, [])["accuracy"])
