"""Graphs from labels, soft labels and regression targets."""

from __future__ import annotations

import math
from numbers import Integral

import torch
from torch import Tensor

from likewise.graph.arrays import Array, as_tensor, floating, is_numpy
from likewise.graph.base import Graph
from likewise.graph.factored import FactoredGraph


def identity(n: int) -> Graph:
    """The identity over n samples."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n is {n!r}: a graph needs at least one sample")
    return FactoredGraph(int(n))


def from_labels(
    labels: Array,
    *,
    n_classes: int | None = None,
    balance: float = 0.0,
    class_weights: Array | None = None,
) -> Graph:
    """Supervised: :math:`G = Y \\,\\mathrm{diag}(w)\\, Y^\\top` with one-hot or soft rows Y.

    ``pal`` eq. 6 in its corrected form: G_ij = 1 where y_i = y_j (the paper prints the negated
    indicator). A label of -1, or a soft label of zeros, is unknown: partial labels are the same
    call.

    Args:
        labels: class numbers (N,) with -1 for unknown, or nonnegative soft labels (N, C).
        n_classes: the number of classes, where not all of them occur.
        balance: the power p in w_c = n_c^-p: 0 counts every pair alike, so that a class weighs
            with the square of its size, 1 makes every class weigh as much as its size
            (``supervised-theory``: eigenvalues of G are the class counts; 1/n_c equalises them).
        class_weights: the weights w_c themselves, (C,), multiplied with the balance.

    >>> import torch
    >>> from_labels(torch.tensor([0, 1, 0, -1])).dense().int().tolist()
    [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    """
    # Its own copy: labels that change under a graph would change half of it.
    given = as_tensor(labels).clone()
    if given.ndim == 2:
        graph = _soft(given, n_classes, balance, class_weights)
    else:
        graph = _hard(given, n_classes, balance, class_weights)
    graph.answers_numpy = is_numpy(labels)
    return graph


def _hard(
    labels: Tensor, n_classes: int | None, balance: float, class_weights: Array | None
) -> FactoredGraph:
    if labels.ndim != 1 or labels.is_floating_point() or labels.dtype == torch.bool:
        raise ValueError(
            f"labels have shape {tuple(labels.shape)} and dtype {labels.dtype}: give class "
            "numbers (N,) with -1 for unknown, or soft labels (N, C)"
        )
    if len(labels) == 0:
        raise ValueError("labels are empty: a graph needs at least one sample")
    labels = labels.long()
    lowest, largest = int(labels.min()), int(labels.max())
    if lowest < -1 or (n_classes is not None and largest >= n_classes):
        expected = f"0 to {n_classes - 1}" if n_classes is not None else "0 and up"
        raise ValueError(
            f"labels run from {lowest} to {largest}: give classes {expected}, and -1 for unknown"
        )
    classes = n_classes if n_classes is not None else largest + 1
    if n_classes is None and class_weights is None and classes > 2 * len(labels):
        # Class numbers far beyond the number of samples are names: number them anew.
        _, compact = torch.unique(labels.clamp_min(0), return_inverse=True)
        labels = torch.where(labels < 0, labels, compact)
        classes = int(compact.max()) + 1
    classes = max(classes, 1)
    counts = torch.bincount(labels[labels >= 0], minlength=classes)
    middle = _class_weights(counts.to(torch.float64), balance, class_weights)
    return FactoredGraph(len(labels), labels=labels, n_classes=classes, middle=middle)


def _soft(
    labels: Tensor, n_classes: int | None, balance: float, class_weights: Array | None
) -> FactoredGraph:
    codes = floating(labels)
    if not bool(torch.isfinite(codes).all()) or bool((codes < 0).any()) or len(codes) == 0:
        raise ValueError(
            "soft labels must be finite and nonnegative, with a row of zeros for unknown; for "
            "regression targets use Graph.from_targets"
        )
    if n_classes is not None and n_classes != codes.shape[1]:
        raise ValueError(
            f"soft labels have {codes.shape[1]} columns, but n_classes is {n_classes}: give one "
            "column per class"
        )
    middle = _class_weights(codes.sum(dim=0).to(torch.float64), balance, class_weights)
    return FactoredGraph(len(codes), codes=codes, middle=middle, known_rows=(codes > 0).any(dim=1))


def _class_weights(counts: Tensor, balance: float, class_weights: Array | None) -> Tensor | None:
    if not math.isfinite(balance):
        raise ValueError(f"balance is {balance}: give a finite power, 0 to 1 as a rule")
    if class_weights is None and balance == 0.0:
        return None
    weights = torch.where(counts > 0, counts.clamp_min(1e-12).pow(-balance), 0.0)
    if class_weights is not None:
        given = floating(as_tensor(class_weights, counts.device))
        if given.shape != counts.shape or not bool(torch.isfinite(given).all()):
            raise ValueError(
                f"class_weights have shape {tuple(given.shape)} for {len(counts)} classes: give "
                "one finite weight per class"
            )
        weights = weights * given
    return weights


def from_targets(targets: Array, *, centered: bool = False) -> Graph:
    """Regression: :math:`G_{ij} = +y_i^\\top y_j` (``pal`` B.2.1 corrected: the printed minus
    sign makes the graph negative and VIC2's optimum collapse).

    >>> import torch
    >>> from_targets(torch.tensor([1.0, 2.0])).dense().tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    codes = floating(as_tensor(targets)).detach().clone()
    codes = codes[:, None] if codes.ndim == 1 else codes
    if codes.ndim != 2 or len(codes) == 0 or not bool(torch.isfinite(codes).all()):
        raise ValueError(
            f"targets have shape {tuple(codes.shape)}: give one finite row (or number) per sample"
        )
    if centered:
        codes = codes - codes.mean(dim=0)
    graph = FactoredGraph(len(codes), codes=codes)
    graph.answers_numpy = is_numpy(targets)
    return graph
