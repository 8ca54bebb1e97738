"""Attraction and repulsion of unit rows in one step, for batches whose pairs fit in memory.

At a thousand rows a GPU waits for launches, not for arithmetic: this is the general form of
:mod:`.contrast` with the fewest of them, and one node in autograd's graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from likewise.graph import Pairs
from likewise.information.precision import without_autocast
from likewise.pairwise.products import is_reduced, product
from likewise.pairwise.reductions import PairWeights
from likewise.pairwise.tiles import NoSelf

Parts = tuple[Tensor, Tensor]


def cosine_contrast(
    z: Tensor,
    pairs: Pairs,
    scale: float,
    weights: PairWeights | None,
    factors: tuple[float, float],
    plain: Callable[[Tensor], Parts],
) -> Parts:
    r"""The sums :math:`-\sum_{ij} A_{ij} s_{ij}` and
    :math:`\sum_i d_i \log \sum_k w_{ik} e^{\alpha s_{ik}}` over rows compared among themselves,
    each times its factor.

    Args:
        z: rows of any length; s is their cosine.
        pairs: A, symmetric and nonnegative.
        scale: :math:`\alpha`, small enough for plain exponentials.
        weights: w, symmetric.
        factors: of the first and of the second sum.
        plain: the same two results from the same rows in differentiable steps, for second
            derivatives.
    """
    attraction, repulsion = _CosineContrast.apply(z, pairs, scale, weights, factors, plain)
    return attraction, repulsion


class _CosineContrast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        pairs: Pairs,
        scale: float,
        weights: PairWeights | None,
        factors: tuple[float, float],
        plain: Callable[[Tensor], Parts],
    ) -> Parts:
        # A zero row has no direction: it stays zero, and so does its gradient.
        inverse = torch.linalg.vector_norm(z, dim=1, keepdim=True).reciprocal_()
        inverse.nan_to_num_(posinf=0.0)
        unit = z * inverse
        reduced = is_reduced(z.device)
        if reduced:
            exponentials = product(unit * scale, unit).exp_()
        else:
            # With beta = 0 the first argument is not read.
            exponentials = torch.addmm(inverse, unit, unit.T, beta=0, alpha=scale).exp_()
        may_be_empty = False
        if isinstance(weights, NoSelf):
            exponentials.fill_diagonal_(0.0)
        elif weights is not None:
            everyone = slice(0, z.shape[0])
            block = weights.tile(everyone, everyone, unit)
            may_be_empty = block is not None
            if block is not None:
                exponentials.mul_(block)
        totals = exponentials.sum(1)
        logs = totals.log()
        if may_be_empty:
            logs.masked_fill_(logs == -torch.inf, 0.0)
        neighbours = pairs.constant_product(unit)
        # The factor of the second sum is in the degrees, which the graph remembers.
        degrees = pairs.weighted_degrees(z.dtype, factors[1])
        ctx.save_for_backward(z, unit, inverse, exponentials, totals, neighbours, degrees)
        ctx.scale, ctx.factors, ctx.plain = scale, factors, plain
        ctx.reduced, ctx.may_be_empty = reduced, may_be_empty
        attraction = unit.reshape(-1).dot(neighbours.reshape(-1))
        return attraction.mul_(-factors[0]), degrees.dot(logs)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Any) -> Any:
        z, unit, inverse, exponentials, totals, neighbours, degrees = ctx.saved_tensors
        if torch.is_grad_enabled():
            found = torch.autograd.grad(ctx.plain(z), z, gradients, create_graph=True)
            return found[0], None, None, None, None, None
        pull, push = gradients
        factor = degrees / totals
        if ctx.may_be_empty:
            factor.masked_fill_(totals == 0, 0.0)
        # A and E are symmetric: both ends of a pair give the same slope.
        toward, away = -2.0 * ctx.factors[0], ctx.scale
        if pull is push:
            # The parts were added, as they are in the loss: their common slope can wait.
            inverse = inverse * push
        else:
            neighbours, factor = neighbours * pull, factor * push
        slopes = exponentials * (factor[:, None] + factor)
        if ctx.reduced:
            gradient = toward * neighbours + away * product(slopes, unit.T)
        else:
            gradient = torch.addmm(neighbours, slopes, unit, beta=toward, alpha=away)
        along = torch.bmm(unit[:, None], gradient[:, :, None])[:, 0]
        gradient.addcmul_(unit, along, value=-1.0).mul_(inverse)
        return gradient, None, None, None, None, None
