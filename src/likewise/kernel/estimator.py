"""What the estimators of this room share: kernel, solver, and rows in chunks."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from likewise.graph import Graph
from likewise.kernel.features import (
    FeatureMap,
    FourierMap,
    LandmarkMap,
    LinearMap,
    refuse_fourier,
    spread_landmarks,
)
from likewise.kernel.kernels import (
    SHIFT_INVARIANT,
    Kernel,
    Matrix,
    check_kernel,
    median_distance,
)
from likewise.kernel.moments import Moments

Solver = Literal["auto", "exact", "nystrom", "fourier"]
SOLVERS = ("auto", "exact", "nystrom", "fourier")
EXACT_ROWS = 2000
"""Up to here, "auto" is exact."""


class KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that is linear in the features of a kernel.

    Args:
        kernel: "laplace", "gaussian", "linear", "polynomial", one of scikit-learn's names, or a
            function of two rows.
        bandwidth: :math:`\\sigma` of the Laplace and the Gaussian kernel. Default: the median
            distance between two rows.
        kernel_params: further parameters of the kernel, such as degree and coef0.
        regularization: :math:`\\lambda`.
        solver: "exact" (dense, N^3), "nystrom" (functions spanned by `n_features` landmarks),
            "fourier" (`n_features` random features, for the Laplace and the Gaussian kernel), or
            "auto": exact up to 2,000 rows, then nystrom. The last two take one pass over the data
            in chunks, N m^2. The linear kernel is its own feature map, and exact at any N.
        n_features: m, of the approximate solvers.
        chunk_size: rows whose features are held at a time.
        random_state: seed of landmarks and random features.
    """

    def __init__(
        self,
        *,
        kernel: Kernel = "laplace",
        bandwidth: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        regularization: float = 1e-3,
        solver: Solver = "auto",
        n_features: int = 1000,
        chunk_size: int = 8192,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.kernel_params = kernel_params
        self.regularization = regularization
        self.solver = solver
        self.n_features = n_features
        self.chunk_size = chunk_size
        self.random_state = random_state

    # --- input ---------------------------------------------------------------------------------

    def _rows(self, X: Any, *, reset: bool) -> Matrix:
        """X as a checked float array."""
        if isinstance(X, Tensor):
            X = X.detach().cpu().numpy()
        checked: Matrix = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        return np.ascontiguousarray(checked)

    def _check_parameters(self) -> None:
        check_kernel(self.kernel)
        if self.solver not in SOLVERS:
            raise ValueError(f"solver is {self.solver!r}: give one of {', '.join(SOLVERS)}")
        if self.solver == "fourier" and self.kernel not in (*SHIFT_INVARIANT, "linear"):
            refuse_fourier(self.kernel)
        not_negative("regularization", self.regularization)
        if self.bandwidth is not None:
            not_negative("bandwidth", self.bandwidth)
            if self.bandwidth == 0:
                raise ValueError("bandwidth is 0: give a number above 0, or None for the median")
        for name in ("n_features", "chunk_size"):
            positive_integer(name, getattr(self, name))
        if self.n_features < 2:
            raise ValueError(f"n_features is {self.n_features}: give at least 2")
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"random_state is {self.random_state!r}: give a whole number, which gives the "
                "same features on every worker"
            )

    # --- features ------------------------------------------------------------------------------

    def _solver_for(self, n: int) -> Literal["exact", "nystrom", "fourier", "linear"]:
        if self.kernel == "linear" and not self.kernel_params:
            return "linear"
        if self.solver != "auto":
            return self.solver
        return "exact" if n <= EXACT_ROWS else "nystrom"

    def _choose_bandwidth(self, X: Matrix) -> None:
        if self.bandwidth is not None:
            self.bandwidth_ = float(self.bandwidth)
        elif self.kernel in SHIFT_INVARIANT:
            self.bandwidth_ = median_distance(X, int(self.random_state))
        else:
            self.bandwidth_ = 1.0

    def _fit_features(self, X: Matrix) -> FeatureMap:
        """The features, from the first rows that come."""
        solver = self._solver_for(len(X))
        self.solver_ = solver
        if solver == "linear":
            return LinearMap(X.shape[1])
        parameters = dict(self.kernel_params or {})
        if solver == "fourier":
            if parameters:
                raise ValueError(
                    f"kernel_params is {parameters}, but random features have only a bandwidth"
                )
            return FourierMap.draw(
                X.shape[1],
                self.n_features,
                self.kernel,
                self.bandwidth_,
                int(self.random_state),
                X.dtype,
            )
        landmarks = X
        if solver == "nystrom":
            landmarks = spread_landmarks(X, self.n_features, int(self.random_state))
        return LandmarkMap.fit(landmarks, self.kernel, self.bandwidth_, parameters)

    def _moments(self, rows: Matrix, graph: Graph) -> Moments:
        """One pass over the rows that the features were fitted to."""
        if self.solver_ == "exact":
            assert isinstance(self.feature_map_, LandmarkMap)
            return Moments.of_landmarks(self.feature_map_, graph)
        return Moments.of_graph(self.feature_map_, rows, graph, self.chunk_size)

    def _apply(self, X: Any, weights: Matrix, offset: Matrix | None = None) -> Matrix:
        """(phi(x) - mean) W in chunks, for rows that were not seen."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        found = np.empty((len(rows), weights.shape[1]), dtype=rows.dtype)
        for start in range(0, len(rows), self.chunk_size):
            part = slice(start, start + self.chunk_size)
            found[part] = self.feature_map_(rows[part]) @ weights
        return found if offset is None else found + offset.astype(found.dtype)


def not_negative(name: str, value: Any) -> None:
    """Refuse what is not a finite number of at least 0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value!r}: give a number of at least 0")


def positive_integer(name: str, value: Any) -> None:
    """Refuse what is not a whole number above 0."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}: give a whole number above 0")


def in_kind(found: NDArray[Any], like: Any) -> Any:
    """A tensor for who gave a tensor."""
    if isinstance(like, Tensor):
        import torch

        return torch.as_tensor(found, device=like.device)
    return found
