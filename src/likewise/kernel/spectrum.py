r"""The positive part of the spectrum of :math:`G - \lambda K^{-1}`, on the range of K."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

Matrix = NDArray[np.floating[Any]]

RANK_CUT = 1e-12
"""Eigenvalues of a kernel matrix below this share of the largest are round-off (ERRATA: an RBF
kernel has condition number 1e20, and the inverse of its noise has positive eigenvalues)."""

CUT_FLOAT32 = 1e-6
"""In float32 sums are good to about this share of the largest eigenvalue."""


def rank_cut(dtype: Any) -> float:
    """The share of the largest eigenvalue below which there is round-off."""
    return CUT_FLOAT32 if dtype == np.float32 else RANK_CUT


@dataclass(frozen=True)
class Range:
    """An orthonormal basis P of functions on the data, with what each direction costs.

    A function :math:`Z = P c` has the squared norm :math:`c^\\top T^{-1} c`. Where the kernel
    matrix is at hand, P and T are its eigenvectors and eigenvalues; with features
    :math:`\\Phi = P T^{1/2} Q^\\top` they come from :math:`\\Phi^\\top\\Phi`.
    """

    vectors: Matrix
    """The eigenvectors: U of K = U T U^T, or Q of Phi^T Phi = Q T Q^T; one column a direction."""
    spectrum: NDArray[np.float64]
    """T, in ascending order, all above 0."""

    @classmethod
    def of(cls, gram: Matrix, cut: float = RANK_CUT) -> Range:
        """The range of a positive semi-definite matrix: null directions are left out, since a
        pseudo-inverse would leave them without a penalty."""
        diagonal = np.diagonal(gram)
        if np.count_nonzero(gram) == np.count_nonzero(diagonal):
            order = np.argsort(diagonal)
            values, vectors = diagonal[order], np.eye(len(order))[:, order]
        else:
            values, vectors = eigh(gram, check_finite=False)
        largest = values[-1] if len(values) else 0.0
        kept = values > cut * largest if largest > 0 else np.zeros(len(values), dtype=bool)
        return cls(vectors[:, kept], values[kept].astype(np.float64))

    @property
    def rank(self) -> int:
        """The number of directions."""
        return len(self.spectrum)


def positive_eigenpairs(
    spectrum: NDArray[np.float64], graph: Matrix, regularization: float, n_components: int
) -> tuple[NDArray[np.float64], Matrix]:
    r"""The largest positive eigenvalues of :math:`M = P^\top G P - \lambda T^{-1}`, descending,
    and their eigenvectors c; both shorter than `n_components` where fewer are positive.

    M has entries up to :math:`\lambda / T_{min}`, beside which the wanted eigenvalues drown in
    round-off. With s above the norm of G and :math:`L^2 = s + \lambda T^{-1}`,

    .. math:: (s - M)^{-1} = L^{-1} (I - L^{-1} P^\top G P L^{-1})^{-1} L^{-1}

    is bounded and has the eigenvalues :math:`\nu = 1 / (s - \mu)`: the wanted ones are at its
    top, and stiff directions go to 0.

    Args:
        spectrum: T, the eigenvalues of the kernel matrix.
        graph: :math:`P^\top G P`, symmetric.
        regularization: :math:`\lambda`, at least 0.
        n_components: how many at most.

    >>> values, vectors = positive_eigenpairs(np.ones(2), np.diag([3.0, -1.0]), 0.5, 2)
    >>> values.round(6).tolist()
    [2.5]
    """
    rank = len(spectrum)
    bound = min(np.linalg.norm(graph), np.abs(graph).sum(axis=1).max(initial=0.0))
    if rank == 0 or bound == 0 or n_components == 0:
        return np.zeros(0), np.zeros((rank, 0))
    shift = 2.0 * float(bound)
    soft = 1.0 / np.sqrt(shift + regularization / spectrum)
    # The norm of the scaled graph is at most 1/2: well conditioned, whatever K is.
    factor = cho_factor(np.eye(rank) - soft[:, None] * graph * soft, check_finite=False)
    resolvent = cho_solve(factor, np.diag(soft), check_finite=False) * soft[:, None]
    inverse, vectors = _top((resolvent + resolvent.T) / 2, min(n_components, rank))
    values = shift - 1.0 / inverse
    kept = values > 8 * rank * np.finfo(np.float64).eps * shift
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    # The sign of an eigenvector means nothing; a fixed one makes a fit repeatable.
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return values, vectors * signs


def _top(matrix: Matrix, count: int) -> tuple[NDArray[np.float64], Matrix]:
    """The largest eigenvalues, ascending, and their vectors."""
    rank = len(matrix)
    if count < rank:
        # LAPACK's search by index fails, or silently finds fewer, where `count` cuts through equal
        # eigenvalues; labels without a penalty have many zeros.
        with contextlib.suppress(LinAlgError):
            values, vectors = eigh(
                matrix, subset_by_index=(rank - count, rank - 1), check_finite=False
            )
            if len(values) == count:
                return values, vectors
    values, vectors = eigh(matrix, driver="evd", check_finite=False)
    return values[rank - count :], vectors[:, rank - count :]
