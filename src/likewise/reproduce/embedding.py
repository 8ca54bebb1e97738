"""The closed form of the controlled experiments, for many graphs over the same points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.kernel.kernels import kernel_matrix
from likewise.kernel.spectrum import Range, positive_eigenpairs
from likewise.reproduce.problems import CLASSES, Labels, Matrix, Problem

BANDWIDTH = 0.2
REGULARIZATION = 1e-3
COMPONENTS = CLASSES + 1


class Embedding:
    r"""A function of the points that reproduces a graph (``pal`` section 5).

    .. math::
        \min_f \|ZZ^\top - G\|_F^2 + 2 \lambda \mathrm{Tr}(Z^\top K^{-1} Z), \quad Z = f(X),
        \qquad k(x, y) = e^{-\|x - y\| / \sigma}

    is solved by the positive part of the spectrum of :math:`G - \lambda K^{-1}` (errata: with the
    factor 2 in front of lambda, and on the range of K). K depends on the points alone: its
    spectrum is computed once, and every graph is then one eigenproblem.

    Args:
        points: (n, d), those the graph is over.
        test_points: (m, d), where f is judged.
        bandwidth: sigma.
    """

    def __init__(self, points: Matrix, test_points: Matrix, bandwidth: float = BANDWIDTH) -> None:
        self.kernel = kernel_matrix("laplace", points, points, bandwidth=bandwidth)
        self.range = Range.of(self.kernel)
        across = kernel_matrix("laplace", test_points, points, bandwidth=bandwidth)
        self._to_test = across @ (self.range.vectors / self.range.spectrum)

    def fit(
        self,
        graph: Matrix,
        regularization: float = REGULARIZATION,
        components: int = COMPONENTS,
    ) -> tuple[Matrix, Matrix]:
        """Embeddings of the points and of the test points, for a graph as a matrix."""
        return self.at(self.coefficients(graph, regularization, components))

    def coefficients(
        self,
        graph: Matrix,
        regularization: float = REGULARIZATION,
        components: int = COMPONENTS,
    ) -> Matrix:
        """c with Z = U c, U the eigenvectors of K; zero columns where there are too few."""
        basis = self.range.vectors
        values, vectors = positive_eigenpairs(
            self.range.spectrum, basis.T @ (graph @ basis), regularization, components
        )
        found = vectors * np.sqrt(values)
        return np.pad(found, ((0, 0), (0, components - found.shape[1])))

    def at(self, coefficients: Matrix) -> tuple[Matrix, Matrix]:
        """The function with these coefficients, at the points and at the test points."""
        return self.range.vectors @ coefficients, self._to_test @ coefficients


def probe_error(
    z: Matrix, labels: Labels, test_z: Matrix, test_labels: Labels, classes: int = CLASSES
) -> float:
    """The share of test points that a linear probe puts into the wrong class.

    The probe has no intercept: least squares from `z` to the one-hot labels, the largest output
    wins. Fitted on the test points themselves it is the probe of ``pal``'s experiments.
    """
    weights = np.linalg.lstsq(z, np.eye(classes)[labels], rcond=None)[0]
    return float(np.mean((test_z @ weights).argmax(axis=1) != test_labels))


def both_errors(embeddings: tuple[Matrix, Matrix], problem: Problem) -> NDArray[Any]:
    """The paper's error (probe fitted on the test labels) and the honest one (on training labels).

    Where points have several views, the embeddings have as many rows a label.
    """
    z, test_z = embeddings
    labels = np.repeat(problem.labels, len(z) // len(problem.labels))
    test_labels = problem.test_labels
    return np.array(
        [
            probe_error(test_z, test_labels, test_z, test_labels),
            probe_error(z, labels, test_z, test_labels),
        ]
    )
