"""Classify from who is alike: labels, or a graph and one example of each class."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from typing_extensions import Self

from likewise.graph import Graph
from likewise.kernel.embedding import SpectralEmbedding
from likewise.kernel.estimator import (
    KernelEstimator,
    Solver,
    in_kind,
    not_negative,
    positive_integer,
)
from likewise.kernel.graph_input import as_array, as_graph, encode
from likewise.kernel.kernels import Kernel, Matrix
from likewise.kernel.optima import labels_from_templates
from likewise.kernel.ridge import ridge_head


class GraphClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    r"""The spectral embedding with a closed-form ridge head on it.

    With labels y (-1: unknown), the graph is that of the labels. With a graph and one template
    row of each class, labels are recovered by ``pal`` lemma 1, :math:`Y = Z Z_{templates}^\top`,
    and the head is fitted to those. That templates are of different classes is known, too: without
    it, answers that are all "alike" would be met best by one point for everything.

    Args:
        n_components: of the embedding; default: the number of classes.
        head_regularization: the ridge of the head.
        masked: whether only known pairs count: rows without a label are then left out, and what
            nobody was asked is not taken for "different".
        kernel, bandwidth, kernel_params, regularization, solver, n_features, chunk_size,
            random_state: see :class:`SpectralEmbedding`.

    Attributes:
        classes_: the names of the classes, in order.
        embedding_: the fitted :class:`SpectralEmbedding`.
        labels_: the label of every training row, as given or recovered.

    >>> X = np.array([[0.0], [0.1], [2.0], [2.1]])
    >>> model = GraphClassifier(bandwidth=1.0).fit(X, [5, -1, 7, -1])
    >>> model.predict(X).tolist()
    [5, 5, 7, 7]
    >>> answers = Graph.from_edges(np.array([0, 2]), np.array([1, 3]), 1.0, n=4)
    >>> by_template = GraphClassifier(bandwidth=1.0).fit(
    ...     X, answers + Graph.identity(4), templates={"left": 0, "right": 3}
    ... )
    >>> by_template.predict([[-0.2]]).tolist()
    ['left']
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Kernel = "laplace",
        bandwidth: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        regularization: float = 1e-3,
        head_regularization: float = 1e-6,
        solver: Solver = "auto",
        masked: bool = True,
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
        self.head_regularization = head_regularization
        self.masked = masked

    def fit(self, X: Any, y: Any, templates: Mapping[Hashable, int] | None = None) -> Self:
        """Fit to labels, or to a graph and one row of each class.

        Args:
            X: (N, features).
            y: labels, with the number -1 for unknown (where -1 and one other number are all that
                there is, they are two classes); or a :class:`likewise.Graph` or symmetric
                matrix over the rows, with `templates`.
            templates: the name of every class, and the number of a row that belongs to it.
        """
        self._check_parameters()
        not_negative("head_regularization", self.head_regularization)
        if self.n_components is not None:
            positive_integer("n_components", self.n_components)
        rows = self._rows(X, reset=True)
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: give labels, or a graph"
            )
        if isinstance(y, Graph) or templates is not None:
            graph = as_graph(y, len(rows))
            classes, places = _templates(templates, len(rows))
            self._fit_embedding(rows, graph + _set_apart(places, len(rows)), len(classes))
            Z = self.embedding_.transform(rows)
            scores = labels_from_templates(Z, places)
            codes = np.where(np.any(Z != 0, axis=1), scores.argmax(axis=1), -1)
            codes[places] = np.arange(len(classes))
        else:
            labels = as_array(y)
            if labels.ndim == 2 and labels.shape[1] == 1:
                from sklearn.exceptions import DataConversionWarning

                message = "A column-vector y was passed when a 1d array was expected"
                warnings.warn(message, DataConversionWarning, stacklevel=2)
                labels = labels[:, 0]
            if labels.ndim != 1 or len(labels) != len(rows):
                raise ValueError(
                    f"y has shape {labels.shape} for {len(rows)} rows: give one label per row, or "
                    "a graph and templates"
                )
            check_classification_targets(labels)
            classes, codes = encode(labels)
            if len(classes) == 1 and (codes < 0).any():
                # With one class there would be nothing to tell apart: -1 is the other.
                classes, codes = np.unique(labels, return_inverse=True)
            if len(classes) == 0:
                raise ValueError("every label is -1 (unknown): give at least one label")
            self._fit_embedding(rows, Graph.from_labels(codes), len(classes))
            Z = self.embedding_.transform(rows)
        self.classes_: NDArray[Any] = classes
        self.labels_ = np.append(classes.astype(object), -1)[codes]
        known = codes >= 0
        targets = np.eye(len(classes))[codes[known]]
        self.coef_, self.intercept_ = ridge_head(Z[known], targets, self.head_regularization)
        return self

    def decision_function(self, X: Any) -> Any:
        """The head's answer: near 1 for the own class, near 0 for others; for two classes, above
        0 where it is the second."""
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return in_kind(scores[:, 1] - scores[:, 0], X)
        return in_kind(scores, X)

    def predict_proba(self, X: Any) -> Any:
        """The nearest probabilities to the head's answer (its projection on the simplex)."""
        return in_kind(on_simplex(self._scores(X)), X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row."""
        best = self._scores(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def _scores(self, X: Any) -> Matrix:
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return np.asarray(self.embedding_.transform(rows) @ self.coef_ + self.intercept_)

    def _fit_embedding(self, rows: Matrix, graph: Graph, n_classes: int) -> None:
        parameters = self.get_params(deep=False)
        parameters.pop("head_regularization")
        if self.n_components is None:
            parameters["n_components"] = n_classes
        self.embedding_ = SpectralEmbedding(**parameters)
        with warnings.catch_warnings():
            # Columns of zeros cost the head nothing.
            warnings.filterwarnings("ignore", message="n_components is", category=UserWarning)
            self.embedding_.fit(rows, graph)


def _templates(
    templates: Mapping[Hashable, int] | None, n: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if not templates:
        raise ValueError(
            "y is a graph, which says who is alike but not what the classes are called: give "
            "templates={name: number of a row of that class}"
        )
    for name, row in templates.items():
        if row is None:
            raise ValueError(f"class {name!r} has no template: give the number of one of its rows")
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < n:
            raise ValueError(
                f"the template of class {name!r} is {row!r}: give the number of one of the {n} rows"
            )
    places = np.array(list(templates.values()), dtype=np.int64)
    if len(set(places.tolist())) < len(places):
        raise ValueError(f"templates are {dict(templates)}: one row cannot stand for two classes")
    names = list(templates)
    classes = np.array(names)
    if classes.dtype.kind not in "iuUf" or classes.ndim != 1 or len({*map(type, names)}) > 1:
        classes = np.empty(len(names), dtype=object)
        classes[:] = names
    return classes, places


def _set_apart(places: NDArray[np.int64], n: int) -> Graph:
    """A known 0 for every pair of templates."""
    one, other = np.triu_indices(len(places), 1)
    return Graph.from_edges(places[one], places[other], 0.0, n=n)


def on_simplex(scores: Matrix) -> NDArray[np.float64]:
    """The nearest row of probabilities to each row (Euclidean; Duchi et al. 2008).

    >>> on_simplex(np.array([[1.2, 0.2, -3.0]])).round(6).tolist()
    [[1.0, 0.0, 0.0]]
    """
    descending = -np.sort(-np.asarray(scores, dtype=np.float64), axis=1)
    count = np.arange(1, scores.shape[1] + 1)
    excess = (descending.cumsum(axis=1) - 1) / count
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(scores - excess[np.arange(len(scores)), last][:, None], 0.0)
