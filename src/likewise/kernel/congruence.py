r""":math:`\Phi^\top G \Phi` in passes over the rows, without N x N and without N x m.

One pass over chunks of rows serves every part of a graph that has few columns: for labels it sums
the features of each class, for views those of each sample. Edges are walked as edges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.graph import Graph
from likewise.graph.edges import EdgeGraph
from likewise.graph.factored import FactoredGraph
from likewise.graph.ordered import AbsoluteDifferenceGraph
from likewise.graph.sums import SumGraph
from likewise.graph.views import ViewsGraph
from likewise.kernel.kernels import Matrix

FEW_CLASSES = 64
"""Up to here, a product with one-hot rows is faster than adding row by row."""

Rows = NDArray[np.int64]
Features = Callable[[Rows], Matrix]
"""phi of given rows of the data, computed when asked for."""


class Congruence(ABC):
    """Collects what :math:`\\Phi^\\top G \\Phi` needs, chunk by chunk in the order of the rows."""

    needs_rows = True
    """Whether `add` has to be called for every row."""

    @abstractmethod
    def add(self, start: int, features: Matrix) -> None:
        """Take the features of rows start, start + 1, ..."""

    @abstractmethod
    def total(self, features: Features) -> NDArray[np.float64]:
        """The (m, m) matrix, after the last row."""


def congruence(graph: Graph, n_features: int, chunk: int) -> Congruence:
    """What to collect for a graph."""
    if isinstance(graph, SumGraph):
        return _OfSum([congruence(term, n_features, chunk) for term in graph.terms])
    if isinstance(graph, ViewsGraph):
        return _OfViews(graph, n_features, chunk)
    if isinstance(graph, EdgeGraph):
        return _OfEdges(graph, n_features, chunk)
    if isinstance(graph, FactoredGraph):
        if graph.labels is None and graph.codes is None:
            return _OfDiagonal(graph, n_features)
        return _OfFactors(graph._compact, n_features)
    if isinstance(graph, AbsoluteDifferenceGraph):
        return _OfDifferences(graph, n_features, chunk)
    raise TypeError(f"{type(graph).__name__} has no features form: add a Congruence for it")


def _gram(left: Matrix, right: Matrix) -> NDArray[np.float64]:
    return (left.T @ right).astype(np.float64)


class _OfSum(Congruence):
    def __init__(self, parts: list[Congruence]) -> None:
        self.parts = parts
        self.needs_rows = any(part.needs_rows for part in parts)

    def add(self, start: int, features: Matrix) -> None:
        for part in self.parts:
            if part.needs_rows:
                part.add(start, features)

    def total(self, features: Features) -> NDArray[np.float64]:
        return np.sum([part.total(features) for part in self.parts], axis=0)


class _OfDiagonal(Congruence):
    """w Phi^T S^2 Phi (M and S of the identity: a weight a node)."""

    def __init__(self, graph: FactoredGraph, n_features: int) -> None:
        self.diagonal = graph._diagonal(torch.float64).numpy()
        self.sum = np.zeros((n_features, n_features))

    def add(self, start: int, features: Matrix) -> None:
        weight = self.diagonal[start : start + len(features)].astype(features.dtype)
        self.sum += _gram(features * weight[:, None], features)

    def total(self, features: Features) -> NDArray[np.float64]:
        return self.sum


class _OfFactors(Congruence):
    """(Y^T S Phi)^T w M (Y^T S Phi)."""

    def __init__(self, graph: FactoredGraph, n_features: int) -> None:
        self.graph = graph
        self.sums = torch.zeros(graph.rank + 1, n_features, dtype=torch.float64)

    def add(self, start: int, features: Matrix) -> None:
        graph, rows = self.graph, slice(start, start + len(features))
        z = torch.as_tensor(features)
        if graph.scale is not None:
            z = z * graph.scale[rows].to(z.dtype)[:, None]
        if graph.codes is not None:
            self.sums[:-1] += graph.codes[rows].to(z.dtype).T @ z
            return
        assert graph.labels is not None
        labels = graph.labels[rows]
        # The slot beyond the last class takes the rows without a label. Classes that do not occur
        # in this chunk cost nothing.
        present, slot = torch.unique(
            torch.where(labels < 0, graph.rank, labels), return_inverse=True
        )
        if len(present) <= FEW_CLASSES:
            sums = (slot == torch.arange(len(present))[:, None]).to(z.dtype) @ z
        else:
            sums = z.new_zeros(len(present), z.shape[1]).index_add_(0, slot, z)
        self.sums[present] += sums.to(torch.float64)

    def total(self, features: Features) -> NDArray[np.float64]:
        sums = self.sums[:-1]
        product: Tensor = sums.T @ self.graph._apply_middle(sums)
        return self.graph.weight * product.numpy()


class _OfViews(Congruence):
    """The samples' graph on the sums over views."""

    def __init__(self, graph: ViewsGraph, n_features: int, chunk: int) -> None:
        self.views = graph.n_views
        self.inner = congruence(graph.samples, n_features, max(chunk // self.views, 1))
        self.needs_rows = self.inner.needs_rows
        self.rest: Matrix | None = None

    def add(self, start: int, features: Matrix) -> None:
        # A chunk may end within a sample: what is left waits for the next.
        if self.rest is not None:
            start, features = start - len(self.rest), np.concatenate([self.rest, features])
        whole = len(features) // self.views * self.views
        self.rest = features[whole:].copy() if whole < len(features) else None
        pooled = features[:whole].reshape(-1, self.views, features.shape[1]).sum(axis=1)
        self.inner.add(start // self.views, pooled)

    def total(self, features: Features) -> NDArray[np.float64]:
        def pooled(samples: Rows) -> Matrix:
            rows = samples[:, None] * self.views + np.arange(self.views)
            phi = features(rows.ravel())
            return phi.reshape(len(samples), self.views, -1).sum(axis=1)

        return self.inner.total(pooled)


class _OfEdges(Congruence):
    """The sum over edges of w (phi_i phi_j^T + phi_j phi_i^T)."""

    needs_rows = False

    def __init__(self, graph: EdgeGraph, n_features: int, chunk: int) -> None:
        self.graph, self.n_features, self.chunk = graph, n_features, chunk

    def add(self, start: int, features: Matrix) -> None:
        """Edges ask for the rows that they need."""

    def total(self, features: Features) -> NDArray[np.float64]:
        half = np.zeros((self.n_features, self.n_features))
        i, j = self.graph.i.numpy(), self.graph.j.numpy()
        # A pair is stored once: half of its own pair, all of the others, then both directions.
        weight = self.graph.weight.to(torch.float64).numpy() * np.where(i == j, 0.5, 1.0)
        for start in range(0, len(i), self.chunk):
            part = slice(start, start + self.chunk)
            # Edges are in the order of i: a chunk has few different rows.
            rows, inverse = np.unique(np.concatenate([i[part], j[part]]), return_inverse=True)
            phi = features(rows)
            left, right = np.split(inverse.ravel(), 2)
            weighted = phi[left] * weight[part].astype(phi.dtype)[:, None]
            half += _gram(weighted, phi[right])
        return half + half.T


class _OfDifferences(Congruence):
    r"""G_ij = w s_i s_j (c - |y_i - y_j|), along the sorted line.

    Between a chunk and all rows before it, :math:`|y_i - y_j| = y_i - y_j`, so that the sums of
    phi and of y phi over what came before suffice.
    """

    needs_rows = False

    def __init__(self, graph: AbsoluteDifferenceGraph, n_features: int, chunk: int) -> None:
        self.graph, self.n_features, self.chunk = graph, n_features, chunk

    def add(self, start: int, features: Matrix) -> None:
        """Rows are asked for in the order of y."""

    def total(self, features: Features) -> NDArray[np.float64]:
        graph = self.graph
        order = graph._order.numpy()
        values = (graph.values - graph.values.mean()).to(torch.float64).numpy()
        scale = None if graph.scale is None else graph.scale.to(torch.float64).numpy()
        m = self.n_features
        before, before_y = np.zeros(m), np.zeros(m)
        total = np.zeros((m, m))
        for start in range(0, len(order), self.chunk):
            rows = order[start : start + self.chunk]
            phi = features(rows).astype(np.float64)
            if scale is not None:
                phi = phi * scale[rows][:, None]
            y = values[rows]
            sums, sums_y = phi.sum(axis=0), y @ phi
            # Within the chunk: running sums, as in the graph's own product.
            below, below_y = phi.cumsum(axis=0), (y[:, None] * phi).cumsum(axis=0)
            absolute = y[:, None] * (2 * below - sums) - (2 * below_y - sums_y)
            total += phi.T @ (graph.offset * sums - absolute)
            cross = np.outer(graph.offset * sums - sums_y, before) + np.outer(sums, before_y)
            total += cross + cross.T
            before, before_y = before + sums, before_y + sums_y
        return graph.weight * total
