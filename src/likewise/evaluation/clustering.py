"""Clustering scores: whether the classes lie apart without being told what they are."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.evaluation.neighbors import unit_rows
from likewise.evaluation.task import class_indices, embedding_rows, known_rows, positive_integer
from likewise.graph.arrays import Array


@dataclass
class Clustering:
    """How well k-means finds the classes again.

    Attributes:
        nmi: mutual information of clusters and classes over the mean of their entropies: from 0
            (independent) to 1 (the same partition).
        ari: the Rand index, adjusted so that a random partition scores 0 and the same one 1.
        accuracy: the share of rows in the right class when clusters are named after classes in
            the best way, one name for one cluster.
        silhouette: of the classes, cosine distance, on a sample: from -1 to 1; None if not asked.
        clusters: how many clusters were sought.
        n: how many rows took part.
        unlabelled: how many rows had no label and did not take part.
        settings: what it was computed with.
        seconds: how long that took.
        notes: what a reader of the scores should know.
    """

    nmi: float
    ari: float
    accuracy: float
    silhouette: float | None
    clusters: int
    n: int
    unlabelled: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries, as JSON has them."""
        return asdict(self)


def clustering_scores(
    embeddings: Array,
    labels: Any,
    *,
    clusters: int | None = None,
    restarts: int = 5,
    silhouette_rows: int = 0,
    seed: int = 0,
) -> Clustering:
    """Run k-means on normalised rows, and compare the clusters with the classes.

    Args:
        embeddings: (n, d).
        labels: (n,) class indices; rows with -1 are left out and counted.
        clusters: how many to seek; default: as many as there are classes.
        restarts: k-means is started this often, and the best run is taken.
        silhouette_rows: on how many rows to compute the silhouette of the classes; 0: not at all.
            It compares all pairs of these rows.
        seed: of the starts and of that sample.

    >>> z = np.repeat(np.eye(3), 4, axis=0)
    >>> scores = clustering_scores(z, np.repeat([0, 1, 2], 4))
    >>> scores.nmi, scores.ari, scores.accuracy
    (1.0, 1.0, 1.0)
    """
    rows = embedding_rows(embeddings, "embeddings")
    classes = class_indices(labels, len(rows), "labels", rows.device)
    rows, classes, without = known_rows(rows, classes, "labels")
    truth = np.unique(classes.cpu().numpy(), return_inverse=True)[1]
    n_classes = int(truth.max()) + 1
    if n_classes < 2:
        raise ValueError("labels hold one class only: there is nothing to find; give at least two")
    sought = n_classes if clusters is None else positive_integer("clusters", clusters)
    positive_integer("restarts", restarts)
    if sought > len(rows):
        raise ValueError(f"clusters is {sought}, but there are {len(rows)} labelled rows")
    if silhouette_rows:
        positive_integer("silhouette_rows", silhouette_rows)

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    start = time.perf_counter()
    unit = unit_rows(rows).cpu().numpy()
    notes = [f"{without} rows have no label and are left out"] if without else []
    with warnings.catch_warnings():
        # Fewer different rows than clusters: scikit-learn warns, the result has a note.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(sought, n_init=restarts, random_state=seed).fit(unit)
    found = np.unique(model.labels_, return_inverse=True)[1]
    if (different := int(found.max()) + 1) < sought:
        notes.append(f"k-means found {different} of {sought} clusters: many rows are the same")
    return Clustering(
        nmi=float(normalized_mutual_info_score(truth, found)),
        ari=float(adjusted_rand_score(truth, found)),
        accuracy=matched_accuracy(truth, found),
        silhouette=_silhouette(unit, truth, silhouette_rows, seed) if silhouette_rows else None,
        clusters=sought,
        n=len(unit),
        unlabelled=without,
        settings={"restarts": restarts, "silhouette_rows": silhouette_rows, "seed": seed},
        seconds=time.perf_counter() - start,
        notes=notes,
    )


def matched_accuracy(truth: NDArray[Any], found: NDArray[Any]) -> float:
    """The share of rows that agree under the best one-to-one naming of clusters (Hungarian).

    >>> matched_accuracy(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1]))
    0.75
    """
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((truth.max() + 1, found.max() + 1), dtype=np.int64)
    np.add.at(counts, (truth, found), 1)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(truth))


def _silhouette(
    unit: NDArray[np.float32], truth: NDArray[Any], most: int, seed: int
) -> float | None:
    from sklearn.metrics import silhouette_score

    order = torch.randperm(len(unit), generator=torch.Generator().manual_seed(seed))
    sample = order[:most].numpy()
    classes = len(np.unique(truth[sample]))
    # It is not defined for one class, nor where every row is a class of its own.
    if not 2 <= classes < len(sample):
        return None
    return float(silhouette_score(unit[sample], truth[sample], metric="cosine"))
