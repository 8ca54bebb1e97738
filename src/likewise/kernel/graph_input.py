"""What scikit-learn calls y, as a graph: a Graph, a matrix, labels, or regression targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import type_of_target
from torch import Tensor

from likewise.graph import Graph


def as_graph(y: Any, n: int) -> Graph:
    """The graph over n rows that `y` stands for.

    - a :class:`likewise.Graph`
    - a symmetric (n, n) array, all of whose pairs are known, or a sparse matrix, whose stored
      entries are
    - labels (n,): whatever is equal is alike; the number -1 is unknown
    - real numbers (n,) or (n, targets): alike as their inner product

    >>> as_graph(["cat", "dog", "cat"], 3).dense().tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    if isinstance(y, Graph):
        graph = y
    elif sparse.issparse(y):
        graph = Graph.from_matrix(y)
    else:
        values = as_array(y)
        if len(values) != n:
            raise ValueError(
                f"y has shape {values.shape}, but X has {n} rows: give one row per node"
            )
        if values.ndim == 2 and values.shape[0] == values.shape[1] == n and n > 1:
            graph = Graph.from_matrix(values)
        elif values.ndim == 2 and values.shape[1] == 1:
            return as_graph(values[:, 0], n)
        elif is_continuous(values):
            graph = Graph.from_targets(values.astype(np.float64))
        elif values.ndim == 2:
            graph = Graph.from_labels(values.astype(np.float64))
        else:
            codes = encode(values)[1]
            if (codes < 0).all():
                raise ValueError("every label is -1 (unknown): give at least one label, or a graph")
            graph = Graph.from_labels(codes)
    if graph.n != n:
        views = f" in {graph.n_views} views each" if graph.n_views > 1 else ""
        raise ValueError(
            f"the graph has {graph.n} nodes{views}, but X has {n} rows: give one row per node"
        )
    return graph


def doubly_centered(graph: Graph) -> Graph:
    """H G H over all rows: where nothing is known of a row, its target is 0 (as in
    :class:`likewise.objectives.RelativeRegression`; :meth:`likewise.Graph.centered` leaves such
    rows out)."""
    everywhere = Graph.from_targets(torch.zeros(graph.n, device=graph.device))
    return (graph + everywhere).centered()


def as_array(y: Any) -> NDArray[Any]:
    """Labels or targets as an array."""
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    values = np.asarray(y)
    if values.ndim not in (1, 2):
        raise ValueError(
            f"y has shape {values.shape}: give a Graph, labels (n,), a symmetric matrix (n, n) or "
            "targets (n, targets)"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(
            "y holds NaN or infinity: give finite targets, and -1 for a label that is unknown"
        )
    return values


def is_continuous(values: NDArray[Any]) -> bool:
    """Whether y holds targets to regress on rather than names of classes."""
    return values.dtype.kind == "f" and type_of_target(values).startswith("continuous")


def encode(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in order, and the class number of every row (-1 stays -1: unknown)."""
    values = np.asarray(labels)
    classes, codes = np.unique(values, return_inverse=True)
    codes = codes.ravel().astype(np.int64)
    if classes.dtype.kind in "if" and len(classes) and (classes == -1).any():
        place = int(np.flatnonzero(classes == -1)[0])
        codes = np.where(codes == place, -1, codes - (codes > place))
        classes = np.delete(classes, place)
    return classes, codes
