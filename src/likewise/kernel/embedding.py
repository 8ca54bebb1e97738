"""The exact minimiser of a graph loss, from features to embeddings, without training."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from typing_extensions import Self

from likewise.graph import Graph
from likewise.kernel.estimator import KernelEstimator, Solver, in_kind, positive_integer
from likewise.kernel.graph_input import (
    as_array,
    as_graph,
    doubly_centered,
    encode,
    is_continuous,
)
from likewise.kernel.kernels import Kernel, Matrix
from likewise.kernel.masked import known_part, masked_embedding
from likewise.kernel.moments import Moments
from likewise.kernel.spectrum import Range, positive_eigenpairs

Objective = Literal["vic2", "barlow-twins", "whitening", "relative"]
OBJECTIVES = ("vic2", "barlow-twins", "whitening", "relative")


def _takes_parts(model: SpectralEmbedding) -> bool:
    if model.solver == "exact" and model._solver_for(1) == "exact":
        raise AttributeError(
            "solver is 'exact', which needs all rows at once: use 'nystrom' or 'fourier'"
        )
    return True


class SpectralEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):  # type: ignore[misc]
    r"""Embed rows of features so that inner products tell who is alike, in closed form.

    Minimises over functions f of the kernel's space, with :math:`Z = f(X)`,

    .. math:: \|ZZ^\top - G\|_F^2 + 2\lambda \mathrm{Tr}(Z^\top K^{-1} Z)

    (``pal`` section 5, with the factor 2 that its solution needs). The solution is the positive
    part of the top of the spectrum of :math:`G - \lambda K^{-1}` on the range of K,
    :math:`Z = V \sqrt\mu`, and :math:`f(x) = k(x, X) K^{-1} V \sqrt\mu` for new rows. Components
    beyond the positive eigenvalues (C of them for C classes, C - 1 for a signed graph) are columns
    of zeros.

    Args:
        n_components: d, the dimension of the embedding.
        objective: "vic2" as above. The others have a constraint in place of the square, and the
            same eigenvectors: "whitening" maximises :math:`\mathrm{Tr}\,Z^\top(G - \lambda
            K^{-1})Z` with :math:`Z^\top Z = N I`; "barlow-twins" does so for the graph normalised
            by its degrees (``pal`` theorem 2 in its ERRATA form; exact for :math:`\lambda = 0`
            and d at most C); "relative" for the centred graph and centred features, whose span is
            optimal for the relative loss of ``supervised-theory`` (eq. 2) as its head's penalty
            goes to 0.
        masked: whether only known pairs count (:meth:`likewise.Graph.known`). As printed, the
            closed form takes an unknown pair for "not alike". Rows of which nothing is known then
            play no part; where all other pairs are known (some labels), the form stays closed,
            else a quasi-Newton method starts at it.
        n_neighbors: the graph of ``fit(X)`` without y: every row is alike to itself and its
            nearest neighbours.
        kernel, bandwidth, kernel_params, regularization, solver, n_features, chunk_size,
            random_state: see :class:`~likewise.kernel.estimator.KernelEstimator`.

    Attributes:
        eigenvalues_: :math:`\mu`, descending, with zeros where none is positive.
        loss_: the minimum, for "vic2".
        feature_map_, weights_, offset_: the embedding is ``feature_map_(X) @ weights_ + offset_``.
        moments_: the sums over rows that it was solved from (approximate solvers).

    >>> X = np.array([[0.0], [0.1], [2.0], [2.1]])
    >>> z = SpectralEmbedding(2, bandwidth=1.0).fit_transform(X, [0, 0, 1, 1])
    >>> (z @ z.T).round(2)[0].tolist()[:2]
    [1.0, 1.0]
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Kernel = "laplace",
        bandwidth: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        regularization: float = 1e-3,
        solver: Solver = "auto",
        objective: Objective = "vic2",
        masked: bool = False,
        n_neighbors: int = 10,
        n_features: int = 1000,
        chunk_size: int = 8192,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            bandwidth=bandwidth,
            kernel_params=kernel_params,
            regularization=regularization,
            solver=solver,
            n_features=n_features,
            chunk_size=chunk_size,
            random_state=random_state,
        )
        self.n_components = n_components
        self.objective = objective
        self.masked = masked
        self.n_neighbors = n_neighbors

    # --- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows and who is alike among them.

        Args:
            X: (N, features), a NumPy array, a data frame or a tensor.
            y: a :class:`likewise.Graph` over the rows, a symmetric matrix, labels (-1: unknown)
                or real targets (:func:`~likewise.kernel.graph_input.as_graph`). Default: the
                graph of the rows' own neighbours.
        """
        self._check_parameters()
        rows = self._rows(X, reset=True)
        graph = self._graph(rows, y)
        self._choose_bandwidth(rows)
        complete = True
        if self.masked:
            rows, graph, complete = known_part(rows, graph)
        self.feature_map_ = self._fit_features(rows)
        moments = self._moments(rows, graph)
        self.moments_ = moments
        span, directions = self._solve(moments)
        if not complete:
            directions = self._refine(rows, graph, span, directions)
        self._set_weights(moments, span, directions)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and embed the same rows."""
        return self.fit(X, y).transform(X)

    @available_if(_takes_parts)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take more rows into account.

        Labels go on from call to call (those of an earlier ``fit`` do not); a graph is over the
        rows of its own call, and pairs across calls count as not alike. The first call fixes the
        features: to split a pass over workers, give `bandwidth` and the same `random_state` to
        all of them, use solver="fourier" (or the linear kernel), and :meth:`merge` what they
        bring.

        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
        >>> whole = SpectralEmbedding(2, solver="fourier", bandwidth=1.0, n_features=20).fit(X, y)
        >>> parts = SpectralEmbedding(2, solver="fourier", bandwidth=1.0, n_features=20)
        >>> for rows in np.array_split(np.arange(40), 4):
        ...     parts = parts.partial_fit(X[rows], y[rows])
        >>> np.allclose(whole.eigenvalues_, parts.eigenvalues_)
        True
        """
        self._check_parameters()
        self._check_parts("partial_fit")
        first = not hasattr(self, "moments_")
        rows = self._rows(X, reset=first)
        if first:
            self._choose_bandwidth(rows)
            self.feature_map_ = self._fit_features(rows)
        features, chunk = self.feature_map_, self.chunk_size
        labels = None if y is None or isinstance(y, Graph) else as_array(y)
        if labels is not None and labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels is None or labels.ndim == 2 or is_continuous(labels):
            added = Moments.of_graph(features, rows, self._graph(rows, y), chunk)
        else:
            if len(labels) != len(rows):
                raise ValueError(f"y has {len(labels)} labels, but X has {len(rows)} rows")
            classes, codes = encode(labels)
            names = np.append(classes.astype(object), -1)[codes]
            added = Moments.of_labels(features, rows, names, chunk)
        self.moments_ = added if first else self.moments_ + added
        self._set_weights(self.moments_, *self._solve(self.moments_))
        return self

    @classmethod
    def merge(cls, parts: Iterable[SpectralEmbedding]) -> SpectralEmbedding:
        """One estimator from several that saw different rows: their sums are added, and solved.

        >>> from joblib import Parallel, delayed
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
        >>> empty = SpectralEmbedding(2, solver="fourier", bandwidth=1.0, n_features=20)
        >>> work = (delayed(empty.partial_fit)(X[i::2], y[i::2]) for i in range(2))
        >>> merged = SpectralEmbedding.merge(Parallel(n_jobs=2, prefer="threads")(work))
        """
        from sklearn.base import clone

        fitted = list(parts)
        if not fitted:
            raise ValueError("there is nothing to merge: give fitted estimators")
        for part in fitted:
            check_is_fitted(part)
            part._check_parts("merge")
        first = fitted[0]
        for other in fitted[1:]:
            if not first._same_features(other):
                raise ValueError(
                    "the parts have different features: give all of them the same settings, a "
                    "bandwidth, and solver='fourier' or the linear kernel"
                )
        merged: SpectralEmbedding = clone(first)
        for name in ("feature_map_", "bandwidth_", "solver_", "n_features_in_"):
            setattr(merged, name, getattr(first, name))
        if hasattr(first, "feature_names_in_"):
            merged.feature_names_in_ = first.feature_names_in_
        moments = first.moments_
        for other in fitted[1:]:
            moments = moments + other.moments_
        merged.moments_ = moments
        merged._set_weights(moments, *merged._solve(moments))
        return merged

    def transform(self, X: Any) -> Any:
        """f(x) for every row, (N, n_components); a tensor for a tensor."""
        check_is_fitted(self)
        return in_kind(self._apply(X, self.weights_, self.offset_), X)

    # --- the solution --------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive_integer("n_components", self.n_components)
        positive_integer("n_neighbors", self.n_neighbors)
        if self.objective not in OBJECTIVES:
            raise ValueError(
                f"objective is {self.objective!r}: give one of {', '.join(OBJECTIVES)}; NT-Xent's "
                "optimum is known without a kernel only (likewise.kernel.simclr_optimum)"
            )
        if self.masked and self.objective != "vic2":
            raise ValueError(
                f"masked is True and objective is {self.objective!r}: only 'vic2' is a sum over "
                "pairs, of which some can be left out"
            )

    def _check_parts(self, name: str) -> None:
        if self.masked or self.objective in ("barlow-twins", "relative"):
            raise ValueError(
                f"{name} sums over parts of the data: masked=True and the objectives "
                "'barlow-twins' and 'relative' need the whole graph; use fit"
            )

    def _graph(self, rows: Matrix, y: Any) -> Graph:
        n = len(rows)
        if y is None:
            graph = Graph.identity(n)
            if n > 1:
                graph = graph + Graph.from_neighbors(rows, min(self.n_neighbors, n - 1))
        else:
            graph = as_graph(y, n)
        if self.objective == "barlow-twins":
            return graph.normalized()
        return doubly_centered(graph) if self.objective == "relative" else graph

    def _solve(self, moments: Moments) -> tuple[Range, Matrix]:
        """The basis of functions, and the components' coefficients in it."""
        if self.objective == "relative":
            moments = moments.centered()
        span = Range.of(moments.gram, moments.cut)
        values, vectors = positive_eigenpairs(
            span.spectrum, moments.project(span), float(self.regularization), self.n_components
        )
        self.eigenvalues_ = np.zeros(self.n_components)
        self.eigenvalues_[: len(values)] = values
        self.loss_ = moments.norm_squared - float((values**2).sum())
        if len(values) < self.n_components:
            warnings.warn(
                f"n_components is {self.n_components}, but G - lambda K^-1 has {len(values)} "
                "positive eigenvalues: the other columns are 0 (C classes give C of them, a "
                "signed graph C - 1)",
                UserWarning,
                stacklevel=3,
            )
        scale = np.sqrt(values) if self.objective == "vic2" else np.sqrt(moments.count)
        directions = np.zeros((span.rank, self.n_components))
        directions[:, : len(values)] = vectors * scale
        return span, directions

    def _refine(self, rows: Matrix, graph: Graph, span: Range, start: Matrix) -> Matrix:
        """From unknown pairs as "not alike" to known pairs alone."""
        whole = span.vectors / np.sqrt(span.spectrum)
        basis: NDArray[np.float64] = np.empty((len(rows), span.rank))
        for first in range(0, len(rows), self.chunk_size):
            part = slice(first, first + self.chunk_size)
            basis[part] = self.feature_map_(rows[part]) @ whole
        directions, self.loss_ = masked_embedding(
            basis, span.spectrum, graph, float(self.regularization), start
        )
        return directions

    def _set_weights(self, moments: Moments, span: Range, directions: Matrix) -> None:
        self.weights_ = (span.vectors / np.sqrt(span.spectrum)) @ directions
        self.offset_ = np.zeros(self.n_components)
        if self.objective == "relative":
            self.offset_ = -(moments.sums / moments.count) @ self.weights_

    def _same_features(self, other: SpectralEmbedding) -> bool:
        mine, theirs = self.feature_map_, other.feature_map_
        if type(mine) is not type(theirs) or mine.n_features != theirs.n_features:
            return False
        return all(
            np.array_equal(getattr(mine, name), getattr(theirs, name))
            for name in ("frequencies", "landmarks", "kernel", "bandwidth", "parameters")
            if hasattr(mine, name)
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.weights_.shape[1])
