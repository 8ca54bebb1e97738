"""Graphs from a loss between labels."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from likewise.graph.arrays import Array, as_tensor, floating, is_numpy
from likewise.graph.base import Graph
from likewise.graph.factored import FactoredGraph
from likewise.graph.labels import from_labels
from likewise.graph.ordered import AbsoluteDifferenceGraph
from likewise.graph.sums import SumGraph

LOSSES = ("zero-one", "squared", "absolute", "kendall")
FORMS = ("raw", "shifted", "centered")


def from_loss(
    labels: Array,
    loss: Literal["zero-one", "squared", "absolute", "kendall"],
    *,
    form: Literal["raw", "shifted", "centered"] = "centered",
) -> Graph:
    """:math:`G_{ij} = -\\ell(y_i, y_j)` (``pal`` eq. 12), raw, shifted or doubly centred.

    -l has a zero diagonal and so is never positive semi-definite: as printed, its square root is
    complex. The centred form H(-l)H is, for all four losses; the shifted form c - l is for
    zero-one and Kendall (for the squared loss no constant suffices in general).

    Args:
        labels: "zero-one": class numbers (N,), -1 for unknown; "squared": numbers or vectors;
            "absolute": numbers (N,); "kendall": rankings (N, m), each a permutation of 0..m-1
            (the position of every item), with l the share of item pairs in another order.
        loss: the loss l.
        form: "raw" -l; "shifted" 1 - l (zero-one), 1 - 2l (kendall; rank m(m-1)/2), and
            max(l) - l (squared, absolute); "centered" H(-l)H.

    >>> import torch
    >>> from_loss(torch.tensor([0.0, 1.0, 3.0]), "absolute", form="raw").dense().int().tolist()
    [[0, -1, -3], [-1, 0, -2], [-3, -2, 0]]
    """
    if loss not in LOSSES:
        raise ValueError(f"loss is {loss!r}: give one of {', '.join(LOSSES)}")
    if form not in FORMS:
        raise ValueError(f"form is {form!r}: give one of {', '.join(FORMS)}")
    given = as_tensor(labels).clone()
    if loss == "zero-one":
        graph = _zero_one(given, form)
    elif loss == "kendall":
        graph = _kendall(given, form)
    else:
        graph = _squared(given, form) if loss == "squared" else _absolute(given, form)
    if form == "centered":
        graph = graph.centered()
    graph.answers_numpy = is_numpy(labels)
    return graph


def _zero_one(labels: Tensor, form: str) -> Graph:
    same = from_labels(labels)
    # 1 - l and -l differ by a constant, which centring removes.
    return same - same.known() if form == "raw" else same


def _kendall(rankings: Tensor, form: str) -> Graph:
    if rankings.ndim != 2 or rankings.shape[1] < 2 or rankings.is_floating_point():
        raise ValueError(
            f"rankings have shape {tuple(rankings.shape)} and dtype {rankings.dtype}: give one "
            "permutation of 0..m-1 per row"
        )
    m = rankings.shape[1]
    expected = torch.arange(m, device=rankings.device)
    if not bool((rankings.sort(dim=1).values == expected).all()):
        raise ValueError(f"every ranking must be a permutation of 0..{m - 1}: a row is not")
    first, second = torch.triu_indices(m, m, offset=1, device=rankings.device)
    signs = (rankings[:, first] - rankings[:, second]).sign().to(torch.get_default_dtype())
    agreement = FactoredGraph(len(rankings), codes=signs, weight=1.0 / len(first))
    if form == "shifted":
        return agreement
    codes = torch.cat([signs, signs.new_ones(len(signs), 1)], dim=1)
    middle = codes.new_full((codes.shape[1],), 0.5 / len(first), dtype=torch.float64)
    middle[-1] = -0.5
    return FactoredGraph(len(rankings), codes=codes, middle=middle)


def _squared(targets: Tensor, form: str) -> Graph:
    y = _numbers(targets, vectors=True)
    y = y - y.mean(dim=0)
    squares = y.square().sum(dim=1, keepdim=True)
    codes = torch.cat([y, squares, torch.ones_like(squares)], dim=1)
    d = y.shape[1]
    middle = torch.zeros(d + 2, d + 2, dtype=y.dtype, device=y.device)
    middle[:d, :d] = 2 * torch.eye(d, dtype=y.dtype, device=y.device)
    middle[d, d + 1] = middle[d + 1, d] = -1.0
    graph: Graph = FactoredGraph(len(y), codes=codes, middle=middle)
    if form == "shifted":
        if d == 1:
            largest = float(y.max() - y.min()) ** 2
        else:
            largest = max(float(torch.cdist(rows, y).max()) ** 2 for rows in y.split(1024))
        shift = FactoredGraph(len(y), codes=torch.ones_like(squares), weight=largest)
        graph = SumGraph([graph, shift])
    return graph


def _absolute(targets: Tensor, form: str) -> Graph:
    y = _numbers(targets, vectors=False)
    offset = float(y.max() - y.min()) if form == "shifted" else 0.0
    return AbsoluteDifferenceGraph(y, offset=offset)


def _numbers(targets: Tensor, *, vectors: bool) -> Tensor:
    y = floating(targets)
    y = y[:, None] if vectors and y.ndim == 1 else y
    if y.ndim != (2 if vectors else 1) or len(y) == 0 or not bool(torch.isfinite(y).all()):
        raise ValueError(
            f"labels have shape {tuple(targets.shape)}: give one finite "
            f"{'number or row' if vectors else 'number'} per sample"
        )
    return y
