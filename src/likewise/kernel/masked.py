r"""The graph loss on known pairs alone.

As printed, ``pal``'s closed form takes a pair of which nothing is known for "not alike" (target
0). Here the sum runs over the known pairs only, :math:`k_{ij} = 1`:

.. math::
    \min_Z \sum_{ij} k_{ij} (z_i^\top z_j - G_{ij})^2 + 2 \lambda \mathrm{Tr}(Z^\top K^{-1} Z).

There is no closed form; a quasi-Newton method starts at the one for unknown pairs as 0. The sum
of squares needs no N x N matrix, since :math:`(z_i^\top z_j)^2` is the inner product of the rows
:math:`f_i = z_i \otimes z_i`:

.. math:: \sum_{ij} k_{ij} (z_i^\top z_j)^2 = \mathrm{Tr}(F^\top k F).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits
from torch import Tensor

from likewise.graph import Graph

Matrix = NDArray[np.floating[Any]]
Pairs = Callable[[Matrix], tuple[float, Matrix]]

DENSE_NODES = 2000
"""Up to here, the pairs are held as a matrix."""


def known_pairs_loss(z: Tensor, graph: Graph) -> Tensor:
    r""":math:`\sum_{ij} k_{ij} (z_i^\top z_j - G_{ij})^2` over the known pairs of a graph.

    >>> graph = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), -1.0, n=3)
    >>> float(known_pairs_loss(torch.eye(3), graph))
    2.0
    """
    d = z.shape[1]
    first, second = torch.triu_indices(d, d)
    # Products of two different coordinates occur twice in z (x) z.
    weight = torch.where(first == second, 1.0, 2.0).to(z).sqrt()
    products = z[:, first] * z[:, second] * weight
    squares = (products * (graph.known() @ products)).sum()
    return squares - 2 * (z * (graph @ z)).sum() + graph.norm_squared()


def known_part(rows: Matrix, graph: Graph) -> tuple[Matrix, Graph, bool]:
    """The rows of which anything is known, the graph over them, and whether all their pairs are.

    By the representer theorem the other rows have no influence: they are in no term of the sum,
    and the penalty is least where they follow.
    """
    degrees = graph.known().to("cpu")._degrees(False, torch.float64)
    kept = (degrees > 0).nonzero()[:, 0]
    if len(kept) == 0:
        raise ValueError("the graph knows no pair: give labels or answers, or masked=False")
    if len(kept) < len(rows):
        rows, graph, degrees = rows[kept.numpy()], graph.subset(kept), degrees[kept]
    return rows, graph, bool((degrees == len(kept)).all())


def masked_embedding(
    basis: Matrix,
    spectrum: NDArray[np.float64],
    graph: Graph,
    regularization: float,
    start: Matrix,
    *,
    max_iterations: int = 2000,
    tolerance: float = 1e-8,
) -> tuple[Matrix, float]:
    r"""Coefficients c (rank, d) of the minimiser :math:`Z = P c`, and the loss there.

    Args:
        basis: P (N, rank): orthonormal functions on the nodes of the graph, such as the
            eigenvectors of K (:attr:`likewise.kernel.spectrum.Range.vectors`).
        spectrum: T (rank,), the eigenvalues of K: c costs :math:`2\lambda c^\top T^{-1} c`.
        graph: G over the N nodes; `graph.known()` says which pairs count.
        regularization: :math:`\lambda`.
        start: c (rank, d) to begin with, for example :math:`c \sqrt\mu` of
            :func:`~likewise.kernel.spectrum.positive_eigenpairs`, or an earlier solution. Columns
            of zeros are a saddle point and receive a little noise.
        max_iterations: of L-BFGS.
        tolerance: relative change of the loss at which to stop.
    """
    rank, d = start.shape
    graph = graph.to("cpu")
    # The curvature is about s + lambda / T: in these units, it is about 1 in every direction.
    size = max(graph.norm_squared() ** 0.5, 1e-12)
    soft = 1.0 / np.sqrt(size + regularization / spectrum)[:, None]
    given = start / soft
    begin = given.copy()
    empty = np.linalg.norm(begin, axis=0) == 0
    if empty.any():
        noise = np.random.default_rng(0).standard_normal((rank, int(empty.sum())))
        begin[:, empty] = 1e-3 * noise / np.linalg.norm(noise, axis=0) * size

    pairs = _dense_pairs(graph) if graph.n <= DENSE_NODES else partial(_implicit_pairs, graph)

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        c = soft * flat.reshape(rank, d)
        value, slope = pairs(basis @ c)
        priced = c / spectrum[:, None]
        value += 2 * regularization * float((c * priced).sum())
        return value, (soft * (basis.T @ slope + 4 * regularization * priced)).ravel()

    # Thousands of short steps with thin matrices: on several threads they take ten times as long.
    with threadpool_limits(1 if graph.n <= DENSE_NODES else None, user_api="blas"):
        found = minimize(
            loss,
            begin.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iterations, "ftol": tolerance, "gtol": 0.0, "maxcor": 20},
        )
    # The noise must not leave a solution worse than it was.
    as_given = loss(given.ravel())[0]
    if as_given <= found.fun:
        return start, as_given
    return soft * found.x.reshape(rank, d), float(found.fun)


def _dense_pairs(graph: Graph) -> Pairs:
    """Loss and slope from the whole matrix: the fastest where it is small."""
    nodes = torch.arange(graph.n)
    target = graph.block(nodes, dtype=torch.float64).numpy()
    known = graph.known().block(nodes, dtype=torch.float64).numpy()

    def pairs(z: Matrix) -> tuple[float, Matrix]:
        residual = z @ z.T
        residual -= target
        slope = known * residual
        return float(np.vdot(slope, residual)), 4 * (slope @ z)

    return pairs


def _implicit_pairs(graph: Graph, z: Matrix) -> tuple[float, Matrix]:
    """The same from products with the graph."""
    rows = torch.as_tensor(z).requires_grad_()
    value = known_pairs_loss(rows, graph)
    (slope,) = torch.autograd.grad(value, rows)
    return float(value.detach()), slope.numpy()
