"""SwAV: predict the prototype code of what is alike."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from likewise.objectives.base import Objective, Reduction, positive
from likewise.objectives.batch import Batch, unit_rows
from likewise.objectives.similarity import pair_mean


class SwAV(Objective):
    r"""Swapped prediction of prototype codes (Caron et al. 2020):

    .. math::
        -\frac{\sum_{ij} A_{ij}\, q_j^\top \log p_i}{\sum_{ij} |A_{ij}|}, \qquad
        p_i = \operatorname{softmax}(C \tilde z_i / \tau), \quad
        \tilde z = z / |z|

    C holds the prototypes, of unit norm. The codes q, without a gradient, are the balanced
    assignment of the rows of a view to the prototypes: Sinkhorn's algorithm on
    :math:`\exp(C \tilde t_j / \epsilon)`, in which every prototype gets the same share of the
    rows and every row one unit. Each view has codes of its own, over the rows of all ranks;
    `negatives` (a queue) are assigned along with every view and then left out. With a target the
    codes are those of its rows (multi-crop: the global views), for all other views of z to
    predict. A are the pairs of the graph without those of a row with itself; the prediction of
    what is different (-1) is pushed away. The graph form is ours; for two views of every sample it
    is the original.

    Args:
        dim: the dimensions of z.
        prototypes: how many there are.
        temperature: :math:`\tau`.
        epsilon: the regularisation of the codes: large makes them uniform, small one-hot.
        sinkhorn_iterations: how often the shares of prototypes and rows are balanced.
        seed: of the first prototypes, which are drawn uniformly from the sphere.
        reduction: "mean", or "sum" for the sum over ordered pairs.

    >>> import torch
    >>> from likewise import Graph
    >>> objective = SwAV(2, prototypes=2)
    >>> with torch.no_grad():
    ...     _ = objective.prototypes.copy_(torch.eye(2))
    >>> z = torch.eye(2).repeat_interleave(2, dim=0)  # every row sits at a prototype of its own
    >>> objective(z, Graph.identity(2).views(2)).item() < 1e-4
    True
    """

    accepts_negatives = True

    def __init__(
        self,
        dim: int,
        prototypes: int = 3000,
        *,
        temperature: float = 0.1,
        epsilon: float = 0.05,
        sinkhorn_iterations: int = 3,
        seed: int = 0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        for name, value, least in (
            ("dim", dim, 1),
            ("prototypes", prototypes, 2),
            ("sinkhorn_iterations", sinkhorn_iterations, 1),
        ):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}: give a whole number of at least {least}")
        self.temperature = positive("temperature", temperature)
        self.epsilon = positive("epsilon", epsilon)
        self.sinkhorn_iterations = sinkhorn_iterations
        generator = torch.Generator().manual_seed(seed)
        self.prototypes = nn.Parameter(unit_rows(torch.randn(prototypes, dim, generator=generator)))

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        if batch.dim != self.prototypes.shape[1]:
            raise ValueError(
                f"z has {batch.dim} dimensions and the prototypes have "
                f"{self.prototypes.shape[1]}: make SwAV(dim={batch.dim})"
            )
        prototypes = unit_rows(self.prototypes.to(batch.z.dtype))
        scores = unit_rows(batch.z) @ prototypes.T
        predictions = (scores / self.temperature).log_softmax(dim=1)
        with torch.no_grad():
            codes = self._codes(batch, prototypes, scores)
            wanted = batch.pairs @ codes
        likelihood = (wanted * predictions).sum()
        return {"prediction": -pair_mean(batch, likelihood, self.reduction)}

    def _codes(self, batch: Batch, prototypes: Tensor, scores: Tensor) -> Tensor:
        """The codes of the target's rows, every view balanced on its own."""
        if batch.has_teacher:
            scores = unit_rows(batch.target) @ prototypes.T
        grouped = scores.reshape(batch.n_samples, batch.target_views, -1).transpose(0, 1)
        if batch.negatives is not None:
            queue = unit_rows(batch.negatives) @ prototypes.T
            grouped = torch.cat([grouped, queue.expand(batch.target_views, -1, -1)], dim=1)
        codes = balanced_codes(grouped, self.epsilon, self.sinkhorn_iterations)
        return codes[:, : batch.n_samples].transpose(0, 1).reshape(scores.shape)


def balanced_codes(scores: Tensor, epsilon: float, iterations: int) -> Tensor:
    r"""Sinkhorn's algorithm on :math:`\exp(s / \epsilon)`, (..., rows, prototypes): every
    prototype gets the same mass, then every row sums to 1; in logarithms, which do not overflow.

    >>> balanced_codes(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), epsilon=0.1, iterations=3)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    logarithms = scores / epsilon
    for _ in range(iterations):
        logarithms = logarithms - logarithms.logsumexp(dim=-2, keepdim=True)
        logarithms = logarithms - logarithms.logsumexp(dim=-1, keepdim=True)
    return logarithms.exp()
