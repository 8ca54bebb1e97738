r"""What the losses of ``pal`` theorem 2 are minimised by, where Z may be anything.

With a rich encoder the loss sees Z alone (the "interpolation optimum"). In the ERRATA forms: the
graph of Barlow Twins is normalised by its degrees, and SimCLR's optimum is known for classes of
equal size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh

from likewise.graph import Graph
from likewise.information import simplex_etf
from likewise.kernel.estimator import positive_integer

DENSE_NODES = 5000


def vic2_optimum(graph: Graph, n_components: int) -> NDArray[np.float64]:
    r"""A minimiser of :math:`\|ZZ^\top - G\|_F^2`: the square root of the positive part of G.

    ``pal`` theorem 2: for labels and K >= C it is Y R with :math:`RR^\top = I`. With K < C, and
    for an indefinite G, the largest positive eigenvalues are kept.

    >>> z = vic2_optimum(Graph.from_labels(np.array([0, 1, 0])), 3)
    >>> (z @ z.T).round(6).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    positive_integer("n_components", n_components)
    values, vectors = _top(graph, n_components)
    return vectors * np.sqrt(values)


def barlow_twins_optimum(graph: Graph, n_components: int) -> NDArray[np.float64]:
    r"""A minimiser of :math:`\|\tilde Z^\top D^{-1/2} G D^{-1/2} \tilde Z - I\|_F^2` with unit
    columns, where the normalised graph has no eigenvalues but 0 and 1 (labels, views).

    ``pal`` theorem 2 (FALSE as printed): for labels and K = C it is
    :math:`Y (Y^\top Y)^{-1/2} R`; every column beyond C costs 1, and is an eigenvector of
    eigenvalue 0 here. For other graphs these are the top eigenvectors, which columns that are not
    orthogonal can outdo.
    """
    positive_integer("n_components", n_components)
    normalized = graph.normalized()
    values, vectors = eigh(_matrix(normalized))
    order = np.argsort(-values)[:n_components]
    columns = np.zeros((graph.n, n_components))
    columns[:, : len(order)] = vectors[:, order]
    return columns


def simclr_optimum(graph: Graph, n_components: int) -> NDArray[np.float64]:
    r"""The minimiser of NT-Xent on a graph of C classes of equal size: every class at one corner
    of a centred simplex, with cosines :math:`-1/(C-1)` between two classes; K >= C - 1.

    ``pal`` theorem 2. For classes of unequal size there is no closed form (the small ones merge:
    ERRATA on B.2.3), and an error says so.
    """
    positive_integer("n_components", n_components)
    labels: Any = graph.class_labels
    if labels is None or bool((labels < 0).any()):
        raise ValueError(
            "SimCLR's optimum is known for complete labels only: give Graph.from_labels(y) "
            "without -1, or train with NTXent"
        )
    counts = torch.bincount(labels)
    counts = counts[counts > 0]
    if len(counts) < 2 or bool((counts != counts[0]).any()):
        raise ValueError(
            f"classes have {counts.tolist()} members: SimCLR's optimum has a closed form for two "
            "or more classes of equal size; balance them, or train with NTXent"
        )
    classes = len(counts)
    if n_components < classes - 1:
        raise ValueError(
            f"n_components is {n_components}: a simplex of {classes} corners needs {classes - 1}"
        )
    corners = simplex_etf(classes, max(n_components, classes), dtype=torch.float64).numpy()
    # The corners sum to 0, so one dimension fewer holds them.
    if n_components < corners.shape[1]:
        _, _, axes = np.linalg.svd(corners, full_matrices=False)
        corners = corners @ axes[:n_components].T
    _, codes = np.unique(labels.cpu().numpy(), return_inverse=True)
    return np.asarray(corners[codes.ravel()])


def labels_from_templates(
    Z: NDArray[np.floating[Any]], templates: NDArray[np.int64]
) -> NDArray[np.float64]:
    r""":math:`Y = Z Z_{templates}^\top`: one-hot labels from any Z with :math:`ZZ^\top = G` and
    one row of each class (``pal`` lemma 1; no inverse is needed, the printed one is a slip).

    >>> y = np.array([1, 0, 1, 2])
    >>> z = vic2_optimum(Graph.from_labels(y), 3)
    >>> labels_from_templates(z, np.array([1, 0, 3])).argmax(axis=1).tolist()
    [1, 0, 1, 2]
    """
    return np.asarray(Z @ Z[templates].T, dtype=np.float64)


def _matrix(graph: Graph) -> NDArray[np.float64]:
    if graph.n > DENSE_NODES:
        raise ValueError(
            f"the graph has {graph.n} nodes: without a kernel the optimum is computed densely, up "
            f"to {DENSE_NODES}; use SpectralEmbedding"
        )
    nodes = torch.arange(graph.n, device=graph.device)
    block: NDArray[np.float64] = graph.block(nodes, dtype=torch.float64).cpu().numpy()
    return block


def _top(graph: Graph, n_components: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest positive eigenvalues and their vectors, with zeros up to `n_components`."""
    values, vectors = eigh(_matrix(graph))
    # Zero what is round-off before a root is taken of it (ERRATA).
    noise = graph.n * np.finfo(np.float64).eps * max(abs(values[0]), abs(values[-1]))
    order = np.argsort(-values)[:n_components]
    order = order[values[order] > noise]
    kept, columns = np.zeros(n_components), np.zeros((graph.n, n_components))
    kept[: len(order)], columns[:, : len(order)] = values[order], vectors[:, order]
    return kept, columns
