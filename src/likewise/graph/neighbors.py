"""Graphs of nearest neighbours."""

from __future__ import annotations

import torch

from likewise.graph.arrays import Array, as_tensor, floating, is_numpy
from likewise.graph.base import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.kind import TILE_ROWS


def from_neighbors(x: Array, k: int) -> Graph:
    """i and j are alike where either is among the k nearest of the other (Euclidean).

    ``pal`` algorithm 4 (NNCLR) corrected: a sample is not its own neighbour (as printed, G = I),
    and the graph is symmetrised by "or". Ties go to the lower index. Distances are computed in
    tiles: N^2 time, N k memory.

    >>> import torch
    >>> from_neighbors(torch.tensor([[0.0], [1.0], [5.0]]), k=1).dense().int().tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    points = floating(as_tensor(x))
    if points.ndim != 2 or len(points) < 2 or not bool(torch.isfinite(points).all()):
        raise ValueError(
            f"x has shape {tuple(points.shape)}: give at least two rows of finite features"
        )
    n = len(points)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < n:
        raise ValueError(f"k is {k!r}: give a number of neighbours from 1 to {n - 1}")
    points = points - points.mean(dim=0)
    ends = []
    for rows in torch.arange(n, device=points.device).split(TILE_ROWS):
        # From differences: the usual product form loses the neighbours of distant clusters.
        distances = torch.cdist(points[rows], points, compute_mode="donot_use_mm_for_euclid_dist")
        distances[torch.arange(len(rows), device=points.device), rows] = torch.inf
        # A stable sort keeps the lower index among ties, which top-k does not promise.
        nearest = distances.sort(dim=1, stable=True).indices[:, :k]
        ends.append(torch.stack([rows[:, None].expand_as(nearest), nearest], dim=-1))
    pairs = torch.cat(ends).reshape(-1, 2)
    keys = torch.unique(pairs.amin(dim=1) * n + pairs.amax(dim=1))
    i = torch.div(keys, n, rounding_mode="floor")
    graph = EdgeGraph(i, keys - i * n, points.new_ones(len(keys)), n)
    graph.answers_numpy = is_numpy(x)
    return graph
