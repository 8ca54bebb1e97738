"""Regression with a head that may only turn: embeddings must have the shape of the targets."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.information.derivatives import with_gradient
from likewise.information.precision import rounding
from likewise.objectives.base import Objective, Reduction
from likewise.objectives.batch import Batch
from likewise.objectives.targets import target_sums


class OrthogonalHead(Objective):
    r"""The squared error of the best orthogonal head from z to the targets behind the graph.

    .. math::
        \min_{W W^\top = I} \frac1N |Z W - Y|_F^2
        = \frac1N \Bigl[|Z|_F^2 + \mathrm{Tr}(G)
          - 2\, \mathrm{Tr}\sqrt{Z^\top G Z}\Bigr]

    without bias or centring. Where the graph was made from labels or codes the last trace is the
    sum of the singular values of :math:`Z^\top Y`, else that of the roots of the eigenvalues of
    :math:`Z^\top G Z`, of which negative ones (pairs that are different) count as 0. The gradient
    is finite at repeated and at zero singular values; the value can be differentiated once.

    Paper: supervised-theory, appendix B.
    Errata: exact for d <= C only, C the number of targets: more dimensions cannot be turned into
    fewer targets without loss. Targets of zeros may be added, as ``n_classes`` does.

    Args:
        reduction: "sum" is N times the value.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> graph = Graph.from_labels(torch.tensor([0, 0, 1]))
        >>> z = torch.tensor([[0.0, -1.0], [0.0, -1.0], [1.0, 0.0]])  # one-hot labels, turned
        >>> OrthogonalHead()(z, graph)
        tensor(0.)
    """

    self_pairs = True
    accepts_target = False

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        sums = target_sums(batch.graph, batch.z)
        targets = batch.n_rows if sums is None else len(sums)
        if batch.dim > targets:
            raise ValueError(
                f"z has {batch.dim} dimensions, but the graph has {targets} targets, and an "
                "orthogonal head needs at least as many targets as dimensions: give z fewer "
                "dimensions, Graph.from_labels(labels, n_classes=...) more classes, or use "
                "RelativeRegression, whose head is free"
            )
        overlap = root_trace(batch.z, batch.graph) if sums is None else nuclear_norm(sums)
        value = batch.z.square().sum() + batch.graph.trace() - 2 * overlap
        return {"regression": value if self.reduction == "sum" else value / batch.n_rows}


def nuclear_norm(matrix: Tensor) -> Tensor:
    """The sum of the singular values, with the gradient U V^T (0 where one is 0)."""
    left, values, right = torch.linalg.svd(matrix.detach(), full_matrices=False)
    kept = (values > rounding(values.dtype) * values.norm()).to(values.dtype)
    return with_gradient(values.sum(), (matrix, (left * kept) @ right))


def root_trace(z: Tensor, graph: Graph) -> Tensor:
    """:math:`\\mathrm{Tr}\\sqrt{Z^\\top G Z}` on the positive eigenvalues, with the gradient
    :math:`G Z (Z^\\top G Z)^{-1/2}`."""
    product = graph @ z.detach()
    moment = z.detach().T @ product
    values, vectors = torch.linalg.eigh((moment + moment.T) / 2)
    kept = values > rounding(values.dtype) * values.norm()
    roots = torch.where(kept, values, 0.0).sqrt()
    inverse = torch.where(kept, 1 / torch.where(kept, roots, 1.0), 0.0)
    return with_gradient(roots.sum(), (z, product @ ((vectors * inverse) @ vectors.T)))
