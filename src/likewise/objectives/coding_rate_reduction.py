"""Coding rate reduction: the whole fills the space, and each neighbourhood little of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.graph.views import ViewsGraph
from likewise.information import coding_rate, log_det_identity_plus
from likewise.information.derivatives import needs_gradient, with_gradient
from likewise.objectives.base import Objective, Reduction, positive
from likewise.objectives.batch import Batch, unit_rows

CHUNK = 1 << 22
"""Numbers that are held at a time, for graphs that are no classes."""


class MaximalCodingRateReduction(Objective):
    r"""Maximal coding rate reduction (MCR\ :sup:`2`): :math:`-(R(Z) - R_c(Z \mid G))`.

    .. math::
        R_c = \frac{1}{2N} \sum_i \log\det\Bigl(I + \frac{d}{d_i \epsilon^2}
              Z^\top \mathrm{diag}(G_{i\cdot}) Z\Bigr),
        \qquad R = \tfrac12 \log\det\Bigl(I + \frac{d}{N\epsilon^2} Z^\top Z\Bigr)

    on rows of norm 1, with :math:`d_i` the degree of row i. For classes this is the sum of
    :math:`\frac{n_c}{2N} \log\det(I + \frac{d}{n_c \epsilon^2} Z_c^\top Z_c)` over them. Only
    those alike shape a neighbourhood: a negative weight counts as 0, and a row that is alike to
    nobody has no neighbourhood and costs nothing in :math:`R_c`. A rate is a sum over dimensions:
    `reduction` changes nothing.

    Classes cost their own size; any other graph costs one log-determinant a sample, in tiles, and
    can be differentiated once.

    Paper: Yu et al. 2020 (MCR\ :sup:`2`); matrix-ssl, equation 6, is its first term.

    Args:
        epsilon: the distortion that the code allows.
        reduction: see :class:`Objective`.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.eye(2).repeat_interleave(2, dim=0)
        >>> objective = MaximalCodingRateReduction()
        >>> objective(z, Graph.from_labels(torch.tensor([0, 0, 1, 1])))  # orthogonal classes
        tensor(-0.5108)
        >>> objective(z, Graph.from_labels(torch.tensor([0, 1, 0, 1])))  # nothing is compressed
        tensor(0.)
    """

    self_pairs = True
    accepts_target = False

    def __init__(self, epsilon: float = 0.5, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        self.epsilon = positive("epsilon", epsilon)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        unit = unit_rows(batch.z)
        scale = batch.dim / self.epsilon**2
        # Weights over degrees: a factor of the whole graph drops out.
        graph = batch.graph
        factor = float(graph.diagonal().max()) if graph.class_labels is None else 1.0
        labels = (graph * (1 / factor)).class_labels if factor > 0 else None
        total = (
            neighbourhood_log_dets(unit, batch.graph, scale)
            if labels is None
            else class_log_dets(unit, labels, scale)
        )
        return {
            "expansion": -coding_rate(unit, self.epsilon),
            "compression": total / (2 * batch.n_rows),
        }


def class_log_dets(z: Tensor, labels: Tensor, scale: float) -> Tensor:
    """sum_c n_c log det(I + scale / n_c Z_c^T Z_c); a label below 0 is no class.

    Classes of like size are stacked, padded with rows of zeros (which change no determinant) to
    less than twice their size; each stack uses the smaller of its n_c x n_c and d x d forms."""
    order = torch.argsort(labels, stable=True)[int((labels < 0).sum()) :]
    counts = torch.bincount(labels[order])
    first = counts.cumsum(0) - counts
    total = z.new_zeros(())
    doublings = counts.clamp_min(1).to(torch.float64).log2().floor()
    for size in torch.unique(doublings[counts > 0]).tolist():
        members = ((doublings == size) & (counts > 0)).nonzero()[:, 0]
        count = counts[members][:, None]
        place = torch.arange(int(count.max()), device=z.device)
        rows = order[(first[members][:, None] + place).clamp_max(len(order) - 1)]
        share = torch.where(place < count, scale / count.to(z.dtype), 0.0)
        log_dets = log_det_identity_plus(z[rows] * share.sqrt()[..., None], 1.0)
        total = total + (count[:, 0] * log_dets).sum()
    return total


def neighbourhood_log_dets(z: Tensor, graph: Graph, scale: float) -> Tensor:
    """sum_i log det(I + scale / d_i Z^T diag(G_i.) Z), some rows of G at a time.

    The gradient is taken along the way, so that nothing is kept of a tile once it is done."""
    # All views of a sample have the same row of G.
    views = graph.n_views if isinstance(graph, ViewsGraph) else 1
    nodes = torch.arange(graph.n, device=z.device)
    wanted = needs_gradient(z)
    leaf = z.detach().requires_grad_() if wanted else z
    total, gradient = z.new_zeros(()), torch.zeros_like(z)
    for tile in nodes[::views].split(max(1, CHUNK // graph.n)):
        weights = graph._block(tile, nodes, z.dtype).clamp_min(0)
        most = max(1, int((weights > 0).sum(dim=1).max()))
        degrees = weights.sum(dim=1, keepdim=True)
        weights, columns = weights.topk(most, dim=1)
        shares = scale * weights / torch.where(degrees > 0, degrees, 1.0)
        size = max(1, CHUNK // (most * z.shape[1]))
        for rows, share in zip(columns.split(size), shares.split(size), strict=True):
            with torch.set_grad_enabled(wanted):
                part = log_det_identity_plus(leaf[rows] * share.sqrt()[..., None], 1.0).sum()
            total += part.detach()
            if wanted:
                gradient += torch.autograd.grad(part, leaf)[0]
    return with_gradient(views * total, (z, views * gradient)) if wanted else views * total
