"""Rows grouped by class: means, and the scatter within; effective rank within and between."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import labels_of, rows_of, wide_chunks
from likewise.diagnostics.moments import eigenvalues, exp_entropy
from likewise.graph.arrays import Array, in_kind, is_numpy
from likewise.information.precision import rounding

ONE_CLASS = "there is one class only: nothing lies between classes"


@dataclass(frozen=True)
class Classes:
    """Labelled rows by class, in float64 where they are summed.

    Attributes:
        rows: the labelled rows (n, d).
        codes: the class of each, from 0 in the order of `names`.
        names: the class indices that occur.
        counts: (K,).
        means: (K, d).
        within: (1/n) sum (z - mean of its class)(...)^T, (d, d).
        unlabelled: how many rows had no label.
    """

    rows: Tensor
    codes: Tensor
    names: Tensor
    counts: Tensor
    means: Tensor
    within: Tensor
    unlabelled: int

    @property
    def global_mean(self) -> Tensor:
        """The mean of all labelled rows."""
        return (self.counts[:, None] * self.means).sum(dim=0) / self.counts.sum()

    @property
    def centered_means(self) -> Tensor:
        """Class means less the global mean, (K, d)."""
        return self.means - self.global_mean

    def groups(self) -> Iterator[Tensor]:
        """The rows of each class, in float64."""
        order = torch.argsort(self.codes, stable=True)
        for index in order.split(self.counts.long().tolist()):
            yield self.rows[index].double()


def classes_of(z: Array, labels: Any, name: str = "z") -> Classes:
    """Group rows by label; rows labelled -1 are left out.

    >>> classes_of(torch.eye(3), [4, 4, 7]).means
    tensor([[0.5000, 0.5000, 0.0000],
            [0.0000, 0.0000, 1.0000]], dtype=torch.float64)
    """
    rows = rows_of(z, name)
    indices = labels_of(labels, len(rows), device=rows.device)
    known = indices >= 0
    if not bool(known.any()):
        raise ValueError("labels hold no label (every one is -1): give some labels")
    if not bool(known.all()):
        rows, indices = rows[known], indices[known]
    names, codes = torch.unique(indices, return_inverse=True)
    sums = torch.zeros(len(names), rows.shape[1], dtype=torch.float64, device=rows.device)
    for start, chunk in wide_chunks(rows):
        sums.index_add_(0, codes[start : start + len(chunk)], chunk)
    counts = torch.bincount(codes, minlength=len(names)).double()
    means = sums / counts[:, None]
    within = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64, device=rows.device)
    for start, chunk in wide_chunks(rows):
        chunk = chunk - means[codes[start : start + len(chunk)]]
        within.addmm_(chunk.T, chunk)
    left = len(known) - len(rows)
    return Classes(rows, codes, names, counts, means, within / len(rows), left)


@dataclass(frozen=True)
class ClassRanks(Figures):
    """What :func:`class_ranks` found.

    Attributes:
        intra: mean effective rank of the covariance within a class.
        inter: effective rank of the covariance of class means.
        per_class: that of each class, in the order of the class indices; NaN where undefined.
        classes: K.
    """

    intra: float
    inter: float
    per_class: Any
    classes: int


@torch.no_grad()
def class_ranks(z: Array, labels: Any) -> ClassRanks:
    r"""Effective rank within classes and between classes.

    .. math:: \mathrm{intra} = \frac1K \sum_c \mathrm{erank}\Bigl(\frac{1}{n_c} \sum_{y_i = c}
        (z_i - \mu_c)(\cdot)^\top\Bigr), \qquad
        \mathrm{inter} = \mathrm{erank}\Bigl(\frac1K \sum_c (\mu_c - \mu_G)(\cdot)^\top\Bigr)

    Paper: matrix-ssl, definitions E.1 and E.2. Errata: a class without variance (one row, or equal
    rows) has no effective rank: it is left out of the mean and noted. A class of n_c rows cannot
    be above n_c - 1.

    Args:
        z: embeddings (n, d).
        labels: class indices (n,), -1 where unknown (left out).

    >>> z = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, 1.0]])
    >>> found = class_ranks(z, [0, 0, 1, 1])
    >>> round(found.intra, 6), round(found.inter, 6)
    (1.0, 1.0)
    """
    groups = classes_of(z, labels)
    notes = [f"{groups.unlabelled} rows without a label are left out"] * bool(groups.unlabelled)
    scale = float(torch.linalg.vector_norm(groups.means)) + float(groups.within.trace()) ** 0.5
    least = (rounding(groups.rows.dtype) * scale) ** 2
    ranks = torch.tensor([_scatter_rank(rows, least) for rows in groups.groups()])
    defined = ranks[~ranks.isnan()]
    if len(defined) < len(ranks):
        left = len(ranks) - len(defined)
        notes.append(f"{left} classes have one row, or equal rows: they have no rank within")
    inter = UNDEFINED
    if len(ranks) == 1:
        notes.append(ONE_CLASS)
    else:
        inter = _scatter_rank(groups.centered_means, least, centre=False)
        if math.isnan(inter):
            notes.append("all class means are equal: they have no rank")
    intra = float(defined.mean()) if len(defined) else UNDEFINED
    return ClassRanks(tuple(notes), intra, inter, in_kind(ranks, is_numpy(z)), len(ranks))


def _scatter_rank(rows: Tensor, least: float, centre: bool = True) -> float:
    """Effective rank of the rows' covariance; NaN where its trace is round-off."""
    if centre:
        rows = rows - rows.mean(dim=0)
    if float(rows.square().sum()) / len(rows) <= least:
        return UNDEFINED
    gram = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    return exp_entropy(eigenvalues(gram))
