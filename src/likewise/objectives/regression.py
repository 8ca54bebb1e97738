"""Linear regression of the targets on the embeddings, in closed form: the supervised theory of SSL.

Regression on labels Y is a function of G = Y Y^T alone, so that the same loss serves labels, views
and answers. N counts rows (samples times views), and H = I - 11^T / N centres them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.information.derivatives import with_gradient
from likewise.information.precision import rounding
from likewise.objectives.base import Objective, Reduction, positive
from likewise.objectives.batch import Batch
from likewise.objectives.targets import graph_targets


class RelativeRegression(Objective):
    r"""How badly a linear head on z can tell who is alike: regression without its labels.

    .. math::
        \lambda\, \mathrm{Tr}\bigl(HGH\,(HZZ^\top H + \lambda N I)^{-1}\bigr)
        = \frac1N \Bigl[\mathrm{Tr}(HGH)
          - \mathrm{Tr}\bigl(Z_c^\top G Z_c\, (Z_c^\top Z_c + \lambda N I)^{-1}\bigr)\Bigr],
        \qquad Z_c = HZ

    which for :math:`G = YY^\top` is the least value of :class:`AbsoluteRegression` over its head
    (theorem 1). It needs products with the graph only, and one inverse of the smaller of d x d and
    N x N. Rows of which nothing is known count as rows with the target 0.

    Paper: supervised-theory, equation 2, with its constant.
    Errata: the singular vectors are those of the centred HZ, and this form needs none, so that its
    gradient is right for whitened and for rank-deficient z; bounded by Tr(HGH) / N from above and,
    for a positive semi-definite graph, by 0 from below.

    Args:
        regularization: lambda, the weight of the head's squared norm. 0 is a pseudo-inverse, which
            drops singular values below max(N, d) eps times the largest.
        reduction: "sum" is N times the value.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> labels = torch.tensor([0, 0, 1, 1])
        >>> z = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])  # tells the classes apart
        >>> RelativeRegression(regularization=1.0)(z, Graph.from_labels(labels))
        tensor(0.2500)
    """

    self_pairs = True
    accepts_target = False

    def __init__(self, regularization: float = 0.01, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        self.regularization = positive("regularization", regularization, zero=True)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        z, graph, rows = _centered(batch.z), batch.graph, batch.n_rows
        solution = ridge_solution(z, self.regularization * rows)
        product = graph @ solution
        # f = <A, G Z> with A = Z (Z^T Z + c I)^-1 has the gradient 2 (I - A Z^T) G A.
        explained = with_gradient(
            (product * z.detach()).sum(),
            (z, 2 * (product - solution @ (z.detach().T @ product))),
        )
        total = graph.trace() - float(graph._degrees(False, torch.float64).sum()) / rows
        scale = 1.0 if self.reduction == "sum" else 1 / rows
        return {"regression": scale * (total - explained)}


class AbsoluteRegression(Objective):
    r"""The squared error of the best linear head from z to the targets behind the graph.

    .. math:: \min_{W, b} \frac1N |Z W^\top + 1 b^\top - Y|_F^2 + \lambda |W|_F^2,
        \qquad W = Y^\top H Z\, (Z^\top H Z + \lambda N I)^{-1},
        \quad b = \tfrac1N (Y - Z W^\top)^\top 1

    Y are the labels (one-hot), soft labels or regression targets that the graph was made from, for
    each view of a sample; with G = identity, every sample is its own class. The sum of two graphs
    puts their targets side by side. Predictions of all N x C targets are written out: where C is
    large, :class:`RelativeRegression` has the same value and does not. The gradient takes the head
    as given, which at the best head is exact (the value can be differentiated once).

    Paper: supervised-theory, equation 1, with the head of appendix A.1.

    Args:
        regularization: lambda, the weight of the head's squared norm. 0 is the least head among the
            best ones (a pseudo-inverse).
        reduction: "sum" is N times the value.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> graph = Graph.from_labels(torch.tensor([0, 0, 1, 1]))
        >>> z = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
        >>> objective = AbsoluteRegression(regularization=0.0)
        >>> objective.head(z, graph)
        (tensor([[ 0.5000],
                [-0.5000]]), tensor([0.5000, 0.5000]))
    """

    self_pairs = True
    accepts_target = False

    def __init__(self, regularization: float = 0.01, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        self.regularization = positive("regularization", regularization, zero=True)

    def head(self, z: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """The best head (W, b) of shapes (C, d) and (C,): it predicts ``z @ W.T + b``."""
        self._check(z, graph, None, None)
        with torch.no_grad(), torch.autocast(device_type=z.device.type, enabled=False):
            batch = self._collect(z, graph, None, None, None)
            targets = _targets(batch)
            weight = self._weight(_centered(batch.z), targets)
            return weight, targets.mean(dim=0) - weight @ batch.z.mean(dim=0)

    def _weight(self, z: Tensor, targets: Tensor) -> Tensor:
        return targets.T @ ridge_solution(z, self.regularization * len(z))

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        z, targets = _centered(batch.z), _centered(_targets(batch))
        weight = self._weight(z, targets)
        error = z.detach() @ weight.T - targets
        penalty = batch.n_rows * self.regularization * weight.square().sum()
        value = with_gradient(error.square().sum() + penalty, (z, 2 * error @ weight))
        return {"regression": value if self.reduction == "sum" else value / batch.n_rows}


class TraceObjective(Objective):
    r"""Embeddings that span the graph's leading eigenvectors, without any inverse.

    .. math:: -\frac1N \mathrm{Tr}(HGH\, ZZ^\top) + \alpha\, |Z^\top H Z - I|_F^2

    The first term wants those alike on one side of the mean, the second keeps the dimensions
    orthonormal over the batch. Its optimum has the size of singular vectors, so that entries of z
    are of order :math:`1/\sqrt N`.

    Paper: supervised-theory, section 2.1, the display before the last.
    Errata: it is VICReg only for a graph with equal degrees c, and then with 1/(2N) and the target
    :math:`(1 + c/(2\alpha N)) I` for :math:`Z^\top H Z`.

    Args:
        weight: alpha.
        reduction: "sum" leaves out the 1/N of the trace; the other term is a sum over dimensions.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> graph = Graph.from_labels(torch.tensor([0, 0, 1, 1]))
        >>> z = torch.tensor([[0.5], [0.5], [-0.5], [-0.5]])
        >>> TraceObjective()(z, graph)  # orthonormal, and the eigenvalue of the graph is 2
        tensor(-0.5000)
    """

    self_pairs = True
    accepts_target = False

    def __init__(self, weight: float = 1.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        self.weight = positive("weight", weight)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        z = _centered(batch.z)
        trace = (z * (batch.graph @ z)).sum()
        identity = torch.eye(batch.dim, dtype=z.dtype, device=z.device)
        return {
            "trace": -trace if self.reduction == "sum" else -trace / batch.n_rows,
            "orthogonality": self.weight * (z.T @ z - identity).square().sum(),
        }


def ridge_solution(z: Tensor, ridge: float) -> Tensor:
    """Z (Z^T Z + ridge I)^-1 (N, d) of centred z, without a gradient; Y^T times it is the head.

    By a Cholesky factor of the smaller Gram matrix; where the ridge is not above its round-off, by
    the singular values of Z, of which those within round-off count as 0."""
    z = z.detach()
    rows, dim = z.shape
    if ridge > 100 * rounding(z.dtype) * float(z.square().sum()):
        gram = z.T @ z if dim <= rows else z @ z.T
        gram.diagonal().add_(ridge)
        factor = torch.linalg.cholesky(gram)
        if dim <= rows:
            return torch.cholesky_solve(z.T, factor).T
        # Z Z^T has the kernel 1, where an inverse makes round-off large; the solution has no part.
        return _centered(torch.cholesky_solve(z, factor))
    left, values, right = torch.linalg.svd(z, full_matrices=False)
    kept = values > max(rows, dim) * torch.finfo(z.dtype).eps * values[:1]
    inverse = torch.where(kept, values / torch.where(kept, values.square() + ridge, 1.0), 0.0)
    return (left * inverse) @ right


def _centered(z: Tensor) -> Tensor:
    return z - z.mean(dim=0)


def _targets(batch: Batch) -> Tensor:
    targets = graph_targets(batch.graph, batch.z.dtype)
    if targets is None:
        raise ValueError(
            f"{batch.graph!r} holds edges or negative weights, so that no targets Y with "
            "G = Y Y^T are known: use RelativeRegression, which needs the graph alone"
        )
    return targets
