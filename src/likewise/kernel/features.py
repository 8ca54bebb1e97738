r"""Maps x -> phi(x) with :math:`k(x, y) = \phi(x)^\top \phi(y)`, exactly or nearly.

Every estimator of this room is linear in such features. A map is fitted once, to little data, and
then applied to one chunk of rows after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.kernel.kernels import SHIFT_INVARIANT, Kernel, Matrix, kernel_matrix
from likewise.kernel.spectrum import Range, rank_cut

FEW_ROWS = 20
"""Rows on which a user's kernel is checked for symmetry."""


class FeatureMap(Protocol):
    """phi, applied to rows."""

    @property
    def n_features(self) -> int:
        """m, the length of phi(x)."""
        ...

    def __call__(self, X: Matrix) -> Matrix:
        """phi(x) for every row, (N, m)."""
        ...


@dataclass(frozen=True)
class LinearMap:
    """phi(x) = x: the linear kernel is its own feature map."""

    n_features: int

    def __call__(self, X: Matrix) -> Matrix:
        """The rows themselves."""
        return X


@dataclass(frozen=True)
class LandmarkMap:
    r"""Nystrom: :math:`\phi(x) = T^{-1/2} U^\top k(L, x)` with :math:`k(L, L) = U T U^\top`.

    The functions spanned by :math:`k(\cdot, l)` for landmarks l, with the kernel's own norm. With
    all points as landmarks nothing is lost.
    """

    landmarks: Matrix
    kernel: Kernel
    bandwidth: float
    parameters: dict[str, Any]
    span: Range
    """The eigenvectors U and eigenvalues T of the landmarks' kernel matrix."""

    @classmethod
    def fit(
        cls, landmarks: Matrix, kernel: Kernel, bandwidth: float, parameters: dict[str, Any]
    ) -> LandmarkMap:
        """The map for given landmarks."""
        gram = kernel_matrix(
            kernel, landmarks, landmarks, bandwidth=bandwidth, parameters=parameters
        )
        asymmetry = np.abs(gram - gram.T).max(initial=0.0)
        if callable(kernel):
            # scikit-learn calls a function for one half of a square and mirrors it.
            few = landmarks[:FEW_ROWS]
            both = kernel_matrix(
                kernel, few, few.copy(), bandwidth=bandwidth, parameters=parameters
            )
            asymmetry = max(asymmetry, np.abs(both - both.T).max(initial=0.0))
        if not np.isfinite(gram).all() or asymmetry > 1e-6 * np.abs(gram).max(initial=0.0):
            raise ValueError(
                f"kernel {kernel!r} gives NaN, infinity or a matrix that is not symmetric: give a "
                "function with k(x, y) = k(y, x)"
            )
        span = Range.of((gram + gram.T) / 2, rank_cut(gram.dtype))
        return cls(landmarks, kernel, bandwidth, parameters, span)

    @property
    def n_features(self) -> int:
        """The rank of the landmarks' kernel matrix."""
        return self.span.rank

    def __call__(self, X: Matrix) -> Matrix:
        """phi(x) for every row."""
        similar = kernel_matrix(
            self.kernel,
            X,
            self.landmarks,
            bandwidth=self.bandwidth,
            parameters=self.parameters,
        )
        return np.asarray(similar @ self._weights.astype(X.dtype, copy=False))

    def of_landmarks(self) -> Matrix:
        r"""phi of the landmarks themselves, :math:`U T^{1/2}`, without round-off of its own."""
        return np.asarray(self.span.vectors * np.sqrt(self.span.spectrum))

    @cached_property
    def _weights(self) -> Matrix:
        return np.asarray(self.span.vectors / np.sqrt(self.span.spectrum))


@dataclass(frozen=True)
class FourierMap:
    r"""Random features :math:`\phi(x) = \sqrt{2/m}\, (\cos w_j^\top x, \sin w_j^\top x)`.

    Rahimi and Recht 2007. The frequencies w are drawn from the kernel's Fourier transform: normal
    for the Gaussian kernel, and for the Laplace kernel :math:`\exp(-\|x-y\|/\sigma)` a
    multivariate Cauchy distribution, :math:`w = g / (\sigma |u|)` with normal g and u.
    """

    frequencies: Matrix

    @classmethod
    def draw(
        cls,
        dimension: int,
        n_features: int,
        kernel: Kernel,
        bandwidth: float,
        seed: int,
        dtype: Any = np.float64,
    ) -> FourierMap:
        """m / 2 frequencies; the same seed gives the same map on every worker."""
        if kernel not in SHIFT_INVARIANT:
            refuse_fourier(kernel)
        generator = np.random.default_rng(seed)
        frequencies = generator.standard_normal((dimension, n_features // 2)) / bandwidth
        if kernel == "laplace":
            frequencies /= np.abs(generator.standard_normal(n_features // 2))
        return cls(frequencies.astype(dtype))

    @property
    def n_features(self) -> int:
        """m."""
        return 2 * int(self.frequencies.shape[1])

    def __call__(self, X: Matrix) -> Matrix:
        """phi(x) for every row."""
        half = self.frequencies.shape[1]
        phase = torch.as_tensor(X) @ torch.as_tensor(self.frequencies.astype(X.dtype, copy=False))
        # PyTorch's cosine runs on all cores, and in float64 four times as fast as NumPy's.
        features = phase.new_empty(len(X), 2 * half)
        torch.cos(phase, out=features[:, :half])
        torch.sin(phase, out=features[:, half:])
        found: Matrix = features.mul_(half**-0.5).numpy()
        return found


def refuse_fourier(kernel: Kernel) -> None:
    """There are no random features of this kernel."""
    raise ValueError(
        f"solver is 'fourier' and kernel is {kernel!r}: random features exist for "
        f"{' and '.join(SHIFT_INVARIANT)}; use solver='nystrom'"
    )


def spread_landmarks(X: Matrix, count: int, seed: int) -> Matrix:
    """`count` rows drawn without repetition (all of them where there are fewer)."""
    if count >= len(X):
        return X
    rows: NDArray[np.int64] = np.random.default_rng(seed).choice(len(X), count, replace=False)
    return X[np.sort(rows)]
