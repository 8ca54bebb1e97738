"""Long-tailed subsets of a balanced data set, and uniform ones of the same size."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.diagnostics.given import labels_of, positive
from likewise.graph.arrays import in_kind, is_numpy


def long_tail_sizes(
    classes: int, largest: int, smallest: int, *, shape: float = 6.0
) -> np.ndarray[Any, Any]:
    r"""Class sizes of a long tail, largest first.

    The quantiles :math:`q_c = (c/K)^{-1/\mathrm{shape}} - 1`, c = 1..K, of a Lomax distribution,
    rescaled affinely so that the first is `largest` and the last is `smallest`, and rounded.

    Paper: balanced, A.3.4 (ImageNet-LT: 1000 classes, shape 6, 1280 down to 5 images). Errata: a
    Pareto-I law with minimum 5 gives at most 16 images a class; Lomax (Pareto-II) with affine
    rescaling reproduces the printed sizes, with 121,937 images instead of a draw's 115,846.

    >>> sizes = long_tail_sizes(1000, 1280, 5)
    >>> int(sizes[0]), int(sizes[-1]), int(sizes.sum())
    (1280, 5, 121937)
    """
    if classes < 2 or not 1 <= smallest <= largest:
        raise ValueError(
            f"classes is {classes}, largest {largest} and smallest {smallest}: give at least two "
            "classes, and sizes with 1 <= smallest <= largest"
        )
    positive("shape", shape, "ImageNet-LT has 6")
    tail = (np.arange(classes) + 1) / classes
    lomax = tail ** (-1 / shape) - 1
    scaled = (lomax - lomax[-1]) / (lomax[0] - lomax[-1])
    return np.round(smallest + (largest - smallest) * scaled).astype(np.int64)


def long_tail_subset(
    labels: Any,
    *,
    largest: int | None = None,
    smallest: int = 5,
    shape: float = 6.0,
    seed: int = 0,
) -> Any:
    """Row numbers of a long-tailed subset, in order; which class is frequent is drawn, too.

    Paper: balanced, section 5.4 and A.3.4; see :func:`long_tail_sizes`.

    Args:
        labels: class indices (n,); -1 is never drawn.
        largest: rows of the most frequent class; default: those of the smallest class, which any
            class can give.
        smallest: rows of the rarest class.
        shape: of the tail; larger is less extreme at the head.
        seed: of the order of classes and of the rows drawn.

    >>> rows = long_tail_subset(np.arange(100) % 4, largest=20, smallest=2)
    >>> sorted(np.bincount(rows % 4).tolist(), reverse=True)
    [20, 10, 5, 2]
    """
    indices, order, places = _shuffled(labels, seed)
    names, counts = torch.unique(indices[indices >= 0], return_counts=True)
    if len(names) < 2:
        raise ValueError("labels hold one class only: a long tail needs at least two")
    most = int(counts.min()) if largest is None else largest
    sizes = torch.from_numpy(long_tail_sizes(len(names), most, smallest, shape=shape))
    generator = torch.Generator().manual_seed(seed)
    sizes = sizes[torch.randperm(len(names), generator=generator)]
    if bool((sizes > counts).any()):
        short = int((sizes > counts).nonzero()[0])
        raise ValueError(
            f"class {int(names[short])} has {int(counts[short])} rows and {int(sizes[short])} are "
            f"asked for: give largest={int(counts.min())} at most"
        )
    wanted = torch.zeros(int(names.max()) + 1, dtype=torch.int64)
    wanted[names] = sizes
    known = indices >= 0
    kept = known & (places < wanted[indices.clamp_min(0)])
    return in_kind(kept.nonzero()[:, 0], is_numpy(labels))


def uniform_subset(labels: Any, total: int, *, seed: int = 0) -> Any:
    """Row numbers of a subset of `total` rows, drawn uniformly from the labelled ones, in order.

    Paper: balanced, A.3.4 (ImageNet-Uni: as many images as the long tail, drawn uniformly).

    >>> len(uniform_subset(np.arange(100) % 4, 35))
    35
    """
    indices, order, _ = _shuffled(labels, seed)
    order = order[indices[order] >= 0]
    if not 1 <= total <= len(order):
        raise ValueError(f"total is {total} of {len(order)} labelled rows: give a number of these")
    return in_kind(order[:total].sort().values, is_numpy(labels))


def _shuffled(labels: Any, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Class indices, a random order of rows, and every row's place in it within its class."""
    n = len(labels) if hasattr(labels, "__len__") else 0
    indices = labels_of(labels, n).cpu()
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + 1))
    by_class = order[torch.argsort(indices[order], stable=True)]
    starts = torch.cat([torch.ones(1, dtype=torch.bool), indices[by_class].diff() != 0])
    position = torch.arange(n)
    first = torch.where(starts, position, 0).cummax(0).values
    places = torch.empty(n, dtype=torch.int64)
    places[by_class] = position - first
    return indices, order, places
