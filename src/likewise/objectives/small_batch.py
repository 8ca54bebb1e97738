"""A contrastive loss of unit rows in one step, for batches whose pairs fit in memory.

At a thousand rows a GPU waits for launches, not for arithmetic: this is the general form of
:mod:`.contrast` with the fewest of them, and one node in autograd's graph. The gradient is made
with the value, while the exponentials are at hand: nothing of size n x n is kept for the backward.
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


def cosine_contrast(
    z: Tensor,
    pairs: Pairs,
    scale: float,
    weights: PairWeights | None,
    factors: tuple[float, float],
    plain: Callable[[Tensor], Tensor],
) -> Tensor:
    r""":math:`-a \sum_{ij} A_{ij} s_{ij} + b \sum_i d_i \log \sum_k w_{ik} e^{\alpha s_{ik}}`
    over rows compared among themselves.

    Args:
        z: rows of any length; s is their cosine.
        pairs: A, symmetric and nonnegative.
        scale: :math:`\alpha`, small enough for plain exponentials.
        weights: w, symmetric.
        factors: a and b.
        plain: the same value from the same rows in differentiable steps, for second derivatives.
    """
    sloped = z.requires_grad and torch.is_grad_enabled()
    value: Tensor = _CosineContrast.apply(z, pairs, scale, weights, factors, plain, sloped)
    return value


class _CosineContrast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        pairs: Pairs,
        scale: float,
        weights: PairWeights | None,
        factors: tuple[float, float],
        plain: Callable[[Tensor], Tensor],
        sloped: bool,
    ) -> Tensor:
        # A zero row has no direction: it stays zero, and so does its gradient.
        length = torch.linalg.vector_norm(z, dim=1, keepdim=True)
        torch.threshold_(length, 0.0, torch.inf)
        unit = z / length
        reduced = is_reduced(z.device)
        if reduced:
            exponentials = product(unit * scale, unit).exp_()
        else:
            # With beta = 0 the first argument is not read.
            exponentials = torch.addmm(length, unit, unit.T, beta=0, alpha=scale).exp_()
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
            logs.masked_fill_(totals == 0, 0.0)
        neighbours = pairs.constant_product(unit)
        # The factor of the second sum is in the degrees, which the graph remembers.
        degrees = pairs.weighted_degrees(z.dtype, factors[1])
        alike = unit.view(-1).dot(neighbours.view(-1))
        value = torch.sub(degrees.dot(logs), alike, alpha=factors[0])
        if sloped:
            slopes = degrees / totals
            if may_be_empty:
                slopes.masked_fill_(totals == 0, 0.0)
            # A and E are symmetric: both ends of a pair give the same slope.
            exponentials.mul_(slopes.unsqueeze(1) + slopes)
            toward, away = -2.0 * factors[0], scale
            if reduced:
                gradient = toward * neighbours + away * product(exponentials, unit.T)
            else:
                gradient = torch.addmm(neighbours, exponentials, unit, beta=toward, alpha=away)
            along = torch.bmm(unit.unsqueeze(1), gradient.unsqueeze(2)).squeeze(2)
            gradient.addcmul_(unit, along, value=-1.0).div_(length)
            ctx.save_for_backward(z, gradient)
            ctx.plain = plain
        return value

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Any) -> Any:
        z, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():
            (found,) = torch.autograd.grad(ctx.plain(z), z, gradients, create_graph=True)
        else:
            found = gradient * gradients[0]
        return found, None, None, None, None, None, None
