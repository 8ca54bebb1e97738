"""A graph that someone has as a matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.graph.arrays import as_tensor, floating, is_numpy
from likewise.graph.base import Graph
from likewise.graph.edges import EdgeGraph

ROUNDING = 1e-6
"""How far a symmetric matrix may be from its transpose, as a share of its largest entry."""


def from_matrix(matrix: Any) -> Graph:
    """G itself, as a symmetric array or tensor (N, N), or a SciPy sparse matrix.

    All pairs of an array are known, and a 0 says "neither"; of a sparse matrix, the pairs that it
    stores (an explicit 0 included) are.

    >>> import torch
    >>> graph = from_matrix(torch.tensor([[1.0, -1.0], [-1.0, 0.0]]))
    >>> graph.known().dense().int().tolist()
    [[1, 1], [1, 1]]
    """
    sparse = hasattr(matrix, "tocoo")
    shape = tuple(matrix.shape) if sparse else tuple(as_tensor(matrix).shape)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(f"the matrix has shape {shape}: a graph over N nodes is (N, N)")
    i, j, weight = _stored(matrix.tocoo(copy=True)) if sparse else _all_pairs(as_tensor(matrix))
    if not bool(torch.isfinite(weight).all()):
        raise ValueError("the matrix holds NaN or infinity: a pair of which nothing is known is 0")
    i, j, weight = _once(i, j, weight, shape[0])
    graph = EdgeGraph(i, j, weight, shape[0])
    graph.answers_numpy = sparse or is_numpy(matrix)
    return graph


def _stored(matrix: Any) -> tuple[Tensor, Tensor, Tensor]:
    matrix.sum_duplicates()
    i, j = (torch.as_tensor(index.copy(), dtype=torch.long) for index in matrix.coords)
    return i, j, floating(torch.as_tensor(matrix.data.copy()))


def _all_pairs(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    n = len(matrix)
    index = torch.arange(n * n, device=matrix.device)
    row = torch.div(index, n, rounding_mode="floor")
    return row, index - row * n, floating(matrix).reshape(-1)


def _once(i: Tensor, j: Tensor, weight: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Every unordered pair once, in order; an error where the two directions disagree."""
    upper, lower = i <= j, i >= j
    keys, order = torch.sort(i[upper] * n + j[upper])
    mirrored, mirror_order = torch.sort(j[lower] * n + i[lower])
    first, second = weight[upper][order], weight[lower][mirror_order]
    largest = weight.abs().max() if len(weight) else weight.new_zeros(())
    if len(keys) != len(mirrored) or not bool((keys == mirrored).all()):
        both = torch.cat([keys, mirrored])
        values, counts = both.unique(return_counts=True)
        at = int(values[counts == 1][0])
        raise ValueError(
            f"the matrix is not symmetric: only one of ({at // n}, {at % n}) and "
            f"({at % n}, {at // n}) is stored; give (G + G.T) / 2"
        )
    apart = (first - second).abs() > ROUNDING * largest
    if bool(apart.any()):
        at = int(keys[apart][0])
        a, b = float(first[apart][0]), float(second[apart][0])
        raise ValueError(
            f"the matrix is not symmetric: entry ({at // n}, {at % n}) is {a:g} and "
            f"({at % n}, {at // n}) is {b:g}; give (G + G.T) / 2"
        )
    row = torch.div(keys, n, rounding_mode="floor")
    return row, keys - row * n, first.contiguous()
