r"""What a pass over the data leaves behind: enough to solve, and it can be added up.

The closed form needs no row of the data, only sums over rows: :math:`\Phi^\top\Phi`,
:math:`\Phi^\top G \Phi`, and for labels the sum of the features of each class. A pass can
therefore be split over chunks, processes or machines.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.graph import Graph
from likewise.kernel.congruence import Rows, congruence
from likewise.kernel.features import FeatureMap, LandmarkMap
from likewise.kernel.kernels import Matrix
from likewise.kernel.spectrum import RANK_CUT, Range, rank_cut

Vector = NDArray[np.float64]

PANEL = 256
"""Columns of the Gram matrix that are multiplied at a time."""


@dataclass
class Moments:
    """Sums over rows of features; ``a + b`` are the sums over the rows of both.

    Pairs across the two sides of a ``+`` are alike where their labels agree; pairs that only a
    graph could tell of count as not alike, as unknown pairs do.
    """

    gram: NDArray[np.float64]
    """:math:`\\Phi^\\top\\Phi`, (m, m)."""
    alike: NDArray[np.float64]
    """:math:`\\Phi^\\top G \\Phi` of the graphs, (m, m)."""
    sums: Vector
    """:math:`\\Phi^\\top 1`, (m,)."""
    count: int = 0
    """N, the rows."""
    graph_norm: float = 0.0
    """The squared norm of the graphs."""
    class_sums: dict[Hashable, Vector] = field(default_factory=dict)
    """:math:`\\Phi^\\top y_c` of every label c."""
    class_counts: dict[Hashable, int] = field(default_factory=dict)
    cut: float = RANK_CUT
    """Eigenvalues of the Gram matrix below this share of the largest are round-off."""

    @classmethod
    def empty(cls, n_features: int) -> Moments:
        """Of no rows."""
        square = (n_features, n_features)
        return cls(np.zeros(square), np.zeros(square), np.zeros(n_features))

    @classmethod
    def of_graph(cls, features: FeatureMap, X: Matrix, graph: Graph, chunk: int) -> Moments:
        """One pass over the rows of X (edges look their rows up)."""
        moments = cls.empty(features.n_features)
        moments.cut = rank_cut(X.dtype)
        graph = graph.to("cpu")
        collected = congruence(graph, features.n_features, chunk)
        for start in range(0, len(X), chunk):
            phi = features(X[start : start + chunk])
            moments._add_rows(phi)
            if collected.needs_rows:
                collected.add(start, phi)
        moments._complete()

        def look_up(rows: Rows) -> Matrix:
            return features(X[rows])

        moments.alike = collected.total(look_up)
        moments.graph_norm = graph.norm_squared()
        return moments

    @classmethod
    def of_landmarks(cls, features: LandmarkMap, graph: Graph) -> Moments:
        """The rows are the landmarks (the exact solver): no round-off beyond the kernel's own."""
        phi = features.of_landmarks()
        moments = cls.empty(features.n_features)
        moments.gram = np.diag(features.span.spectrum)
        moments.sums, moments.count = phi.sum(axis=0), len(phi)
        moments.alike = phi.T @ (graph.to("cpu") @ torch.as_tensor(phi)).numpy()
        moments.graph_norm = graph.norm_squared()
        return moments

    @classmethod
    def of_labels(cls, features: FeatureMap, X: Matrix, labels: Any, chunk: int) -> Moments:
        """One pass over rows with labels; a label of -1 is unknown. The labels may go on in other
        moments."""
        moments = cls.empty(features.n_features)
        moments.cut = rank_cut(X.dtype)
        names, codes = np.unique(np.asarray(labels), return_inverse=True)
        sums = np.zeros((len(names), features.n_features))
        for start in range(0, len(X), chunk):
            phi = features(X[start : start + chunk])
            moments._add_rows(phi)
            here = codes.ravel()[start : start + chunk]
            for code in np.unique(here):
                sums[code] += phi[here == code].sum(axis=0)
        moments._complete()
        counts = np.bincount(codes.ravel(), minlength=len(names))
        for name, total, count in zip(names.tolist(), sums, counts.tolist(), strict=True):
            if not (isinstance(name, int) and name == -1):
                moments.class_sums[name], moments.class_counts[name] = total, count
        return moments

    def _add_rows(self, phi: Matrix) -> None:
        self.count += len(phi)
        self.sums += phi.sum(axis=0, dtype=np.float64)
        # The blocks on and above the diagonal only. All heavy steps of a pass are PyTorch's: its
        # threads and those of NumPy's BLAS would wait for each other in busy loops.
        rows, gram = torch.as_tensor(phi), torch.as_tensor(self.gram)
        for start in range(0, len(gram), PANEL):
            panel, rest = rows[:, start : start + PANEL], rows[:, start:]
            block = gram[start : start + PANEL, start:]
            if rows.dtype == torch.float64:
                block.addmm_(panel.T, rest)
            else:
                block += panel.T @ rest

    def _complete(self) -> None:
        upper = np.triu(self.gram)
        self.gram = upper + np.triu(upper, 1).T

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if self.gram.shape != other.gram.shape:
            raise ValueError(
                f"moments of {len(self.sums)} and of {len(other.sums)} features cannot be added: "
                "fit all parts with the same estimator settings and random_state"
            )
        merged = replace(
            self,
            gram=self.gram + other.gram,
            alike=self.alike + other.alike,
            sums=self.sums + other.sums,
            count=self.count + other.count,
            graph_norm=self.graph_norm + other.graph_norm,
            class_sums=dict(self.class_sums),
            class_counts=dict(self.class_counts),
            cut=max(self.cut, other.cut),
        )
        for name, total in other.class_sums.items():
            merged.class_sums[name] = merged.class_sums.get(name, 0.0) + total
            count = other.class_counts[name]
            merged.class_counts[name] = merged.class_counts.get(name, 0) + count
        return merged

    __radd__ = __add__

    @property
    def congruence(self) -> NDArray[np.float64]:
        """:math:`\\Phi^\\top G \\Phi` of the graphs and the labels."""
        if not self.class_sums:
            return self.alike
        sums = np.stack(list(self.class_sums.values()))
        return self.alike + sums.T @ sums

    @property
    def norm_squared(self) -> float:
        """:math:`\\|G\\|_F^2`."""
        return self.graph_norm + float(sum(count**2 for count in self.class_counts.values()))

    def centered(self) -> Moments:
        """The same with features of mean 0, :math:`\\Phi \\to H \\Phi`; the graph as it is."""
        mean = self.sums / max(self.count, 1)
        return replace(self, gram=self.gram - self.count * np.outer(mean, mean))

    def project(self, span: Range) -> NDArray[np.float64]:
        """:math:`P^\\top G P` in the orthonormal basis :math:`P = \\Phi Q T^{-1/2}`."""
        half = span.vectors / np.sqrt(span.spectrum)
        projected = half.T @ self.congruence @ half
        return np.asarray((projected + projected.T) / 2)
