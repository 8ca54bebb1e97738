"""Which classes the embedding tells apart: the kNN classifier's confusion, and figures by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.diagnostics import NeuralCollapse, class_ranks, neural_collapse
from likewise.evaluation import knn_scores
from likewise.reports.subject import Sample

NEIGHBORS = 20


@dataclass(frozen=True)
class Classes:
    """What the labels of a sample say about its rows.

    present: the class indices that occur, in order.
    confusion: (K, K) counts, the true class down and the kNN classifier's across.
    predicted: of every item of the sample the classifier's class; -1 where it has no label.
    accuracy: share of labelled items that it gets right.
    balanced: the mean of the classes' own shares.
    neighbors: k; each item is classified by all others.
    cohesion: mean cosine of a class's rows to their mean direction.
    ranks: effective rank within each class; NaN where undefined.
    collapse: the measures of neural collapse.
    """

    present: NDArray[np.int64]
    confusion: NDArray[np.int64]
    predicted: NDArray[np.int64]
    accuracy: float
    balanced: float
    neighbors: int
    cohesion: NDArray[np.float64]
    ranks: NDArray[np.float64]
    collapse: NeuralCollapse

    @property
    def recall(self) -> NDArray[np.float64]:
        """Share of each class's items that are given their class."""
        return _shares(np.diag(self.confusion), self.confusion.sum(axis=1))

    @property
    def precision(self) -> NDArray[np.float64]:
        """Share of the items given a class that are of it; NaN where it is never given."""
        return _shares(np.diag(self.confusion), self.confusion.sum(axis=0))

    def mistaken_for(self, place: int) -> tuple[int, int] | None:
        """(place of another class, how often) that the class at `place` is most taken for."""
        row = self.confusion[place].copy()
        row[place] = 0
        other = int(row.argmax())
        return (other, int(row[other])) if row[other] else None


def class_figures(sample: Sample) -> Classes | None:
    """The figures, or None where labels of two classes, and two items, are not known."""
    known = sample.known
    if sample.labels is None or known.sum() < 3 or len(np.unique(sample.labels[known])) < 2:
        return None
    rows, labels = sample.rows[known], sample.labels[known]
    present, codes = np.unique(labels, return_inverse=True)
    k = min(NEIGHBORS, len(rows) - 1)
    scores = knn_scores(rows, codes, k=k, exclude_self=True)
    said = np.asarray(scores).argmax(axis=1)
    confusion = np.zeros((len(present), len(present)), dtype=np.int64)
    np.add.at(confusion, (codes, said), 1)
    predicted = np.full(len(sample), -1, dtype=np.int64)
    predicted[known] = present[said]
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    unit = (rows / lengths).astype(np.float64)
    means = np.stack([unit[codes == c].mean(axis=0) for c in range(len(present))])
    directions = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-300)
    cosines = (unit * directions[codes]).sum(axis=1)
    cohesion = np.array([cosines[codes == c].mean() for c in range(len(present))])
    recall = _shares(np.diag(confusion), confusion.sum(axis=1))
    return Classes(
        present=present,
        confusion=confusion,
        predicted=predicted,
        accuracy=float(np.mean(said == codes)),
        balanced=float(recall.mean()),
        neighbors=k,
        cohesion=cohesion,
        ranks=np.asarray(class_ranks(unit, codes).per_class, dtype=float),
        collapse=neural_collapse(unit, codes),
    )


def _shares(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
