"""The absolute loss in closed form, and the relative loss that it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d
from typing_extensions import Self

from likewise.graph import Graph
from likewise.kernel.estimator import KernelEstimator, in_kind
from likewise.kernel.features import LandmarkMap
from likewise.kernel.graph_input import as_array, as_graph, doubly_centered
from likewise.kernel.spectrum import Range


class AbsoluteRegressor(MultiOutputMixin, RegressorMixin, KernelEstimator):  # type: ignore[misc]
    r"""Ridge regression in the kernel's features: the absolute objective of ``supervised-theory``
    (eq. 1) in closed form,

    .. math:: \min_{W, b} \frac1N \|\Phi W + 1 b^\top - Y\|_F^2 + \lambda \|W\|_F^2.

    Its minimum is a function of the graph :math:`G = YY^\top` alone (lemma 1): with
    :math:`H\Phi = V S U^\top` and :math:`D = S^2 / (S^2 + \lambda N)`,

    .. math:: \min_{W, b} = \frac1N \mathrm{Tr}(HGH) - \frac1N \mathrm{Tr}(V^\top G V D).

    The left side is :attr:`absolute_loss_`, computed from the labels; :meth:`relative_loss`
    computes the right side from a graph, without labels. For a graph that has no labels,
    ``SpectralEmbedding(objective="relative")`` finds the embedding; the pair is one method.

    Args:
        kernel, bandwidth, kernel_params, regularization, solver, n_features, chunk_size,
            random_state: see :class:`~likewise.kernel.estimator.KernelEstimator`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2))
    >>> Y = np.stack([np.sin(X[:, 0]), X[:, 1]], axis=1)
    >>> model = AbsoluteRegressor(regularization=0.01).fit(X, Y)
    >>> np.isclose(model.absolute_loss_, model.relative_loss(Graph.from_targets(Y)))
    np.True_
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to targets (N,) or (N, targets)."""
        self._check_parameters()
        rows = self._rows(X, reset=True)
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: give one target per row"
            )
        values = as_array(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = column_or_1d(values, warn=True)
        if len(values) != len(rows):
            raise ValueError(f"y has {len(values)} targets, but X has {len(rows)} rows")
        self._one_target = values.ndim == 1
        Y = values.reshape(len(values), -1).astype(np.float64)
        self._choose_bandwidth(rows)
        self.feature_map_ = self._fit_features(rows)
        self.rows_ = rows
        # The graph of the targets is of low rank: beside Phi^T Phi it costs the pass little.
        moments = self._moments(rows, Graph.from_targets(Y))
        mean = moments.sums / moments.count
        self.span_ = Range.of(moments.centered().gram, moments.cut)
        target = Y.mean(axis=0)
        cross = self._cross(Y - target, mean)
        vectors, spectrum = self.span_.vectors, self.span_.spectrum
        ridge = float(self.regularization) * moments.count
        inner = vectors.T @ cross
        self.coef_ = vectors @ (inner / (spectrum + ridge)[:, None])
        self.intercept_ = target - mean @ self.coef_
        explained = (inner**2 / (spectrum + ridge)[:, None]).sum()
        self.absolute_loss_ = float((((Y - target) ** 2).sum() - explained) / moments.count)
        self._mean = mean
        return self

    def predict(self, X: Any) -> Any:
        """The regression at every row."""
        check_is_fitted(self)
        found = self._apply(X, self.coef_, self.intercept_)
        return in_kind(found[:, 0] if self._one_target else found, X)

    def relative_loss(self, graph: Any) -> float:
        r""":math:`\frac1N \mathrm{Tr}(HGH) - \frac1N\mathrm{Tr}(V^\top G V D)`: what the best
        head would reach on any labels Y with :math:`YY^\top = G`, without knowing them
        (``supervised-theory`` eq. 2 and lemma 1, with the centred features of its appendix).

        Args:
            graph: over the rows that the regressor was fitted to.
        """
        check_is_fitted(self)
        alike = doubly_centered(as_graph(graph, len(self.rows_)))
        moments = self._moments(self.rows_, alike)
        spectrum = self.span_.spectrum
        ridge = float(self.regularization) * moments.count
        along = np.diagonal(moments.project(self.span_))
        trace = alike.trace()
        return float((trace - (along * spectrum / (spectrum + ridge)).sum()) / moments.count)

    def _cross(self, Y: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """(H Phi)^T Y."""
        if self.solver_ == "exact":
            assert isinstance(self.feature_map_, LandmarkMap)
            total: NDArray[np.float64] = self.feature_map_.of_landmarks().T @ Y
        else:
            total = np.zeros((self.feature_map_.n_features, Y.shape[1]))
            for start in range(0, len(Y), self.chunk_size):
                part = slice(start, start + self.chunk_size)
                total += self.feature_map_(self.rows_[part]).T @ Y[part]
        return total - np.outer(mean, Y.sum(axis=0))
