"""Reductions over all pairs of rows that never hold the matrix of pairs.

Small problems are dense and plain autograd. Large ones go through tiles (:mod:`.tiles`), keep one
number per row, and compute every tile a second time in the backward pass. Where both sides are the
same rows, only the tiles on and above the diagonal are visited.
"""

from __future__ import annotations

from typing import Any, Protocol, get_args

import torch
from torch import Tensor

from likewise.information.precision import without_autocast
from likewise.pairwise.products import Precision, product
from likewise.pairwise.tiles import (
    Job,
    Kernel,
    NoSelf,
    Tiled,
    is_safe,
    log_weights,
    lowest,
    refined_,
)

DENSE_LIMIT = 8192 * 8192  # pairs; up to here the matrix of pairs is simply held


class PairWeights(Protocol):
    """Weights w_ik >= 0 of all pairs, given tile by tile.

    They are constants. The backward pass asks for them again: they must not change in between.
    """

    @property
    def symmetric(self) -> bool:
        """Whether w_ik = w_ki for all pairs."""

    def tile(self, rows: slice, columns: slice, like: Tensor) -> Tensor | None:
        """The dense block w[rows, columns] on the device of `like`; None where all of it is 1."""


def row_logsumexp(
    queries: Tensor,
    keys: Tensor,
    *,
    scale: float | Tensor = 1.0,
    kernel: Kernel = "dot",
    weights: PairWeights | None = None,
    tile: int | None = None,
    precision: Precision = "split",
    bound: float | None = None,
) -> Tensor:
    r"""The logarithm of the weighted sum of exponentials over the keys, for every query:

    :math:`\log \sum_k w_{ik} \exp(a_i\, s(q_i, k_k))`, shape (R,).

    Weights that are all 0 give -inf, with a zero gradient. Differentiable twice where it is dense
    and once where it is tiled.

    Args:
        queries: (R, d). Half precision is computed in float32.
        keys: (M, d). The same tensor object as `queries` takes the symmetric path (half the
            similarities), if the scale is one number and the weights are symmetric.
        scale: the inverse temperature a, one number or (R,), a constant.
        kernel: s is "dot" :math:`q \cdot k`, "squared-distance" :math:`-|q - k|^2` or "distance"
            :math:`-|q - k|`, whose gradient at distance 0 is 0.
        weights: w, by default all 1.
        tile: rows and columns of a tile. By default dense up to `DENSE_LIMIT` pairs, above in
            tiles of 6144 x 6144 pairs.
        precision: how tiles of float32 are multiplied on an NVIDIA GPU: "split" as three TF32
            products with the accuracy of float32, "ieee" in float32 itself.
        bound: what no :math:`|a_i\, s(q_i, k_k)|` can exceed, where that is known (the inverse
            temperature, for unit rows): saves looking for it.
    """
    scale = _checked(queries, keys, scale, kernel, tile, precision)
    job = Job(kernel, scale, weights, tile, precision, summed=False, bound=bound)
    return _reduce(queries, keys, job)


def row_kernel_sum(
    queries: Tensor,
    keys: Tensor,
    *,
    kernel: Kernel,
    weights: PairWeights,
    scale: float | Tensor = 1.0,
    tile: int | None = None,
    precision: Precision = "split",
) -> Tensor:
    r"""The weighted sum of similarities to the keys, for every query:

    :math:`\sum_k w_{ik}\, a_i\, s(q_i, k_k)`, shape (R,), with the arguments of `row_logsumexp`.

    Distances of near pairs come from differences and keep their relative accuracy.
    """
    scale = _checked(queries, keys, scale, kernel, tile, precision)
    total = _reduce(queries, keys, Job(kernel, 1.0, weights, tile, precision, summed=True))
    # Constant along a row, the scale can wait until the sum is made.
    return total * (scale[:, 0] if isinstance(scale, Tensor) else scale)


def _checked(
    queries: Tensor,
    keys: Tensor,
    scale: float | Tensor,
    kernel: str,
    tile: int | None,
    precision: str,
) -> float | Tensor:
    """The scale as one number or a column; raises where an argument makes no sense."""
    for name, rows in (("queries", queries), ("keys", keys)):
        if rows.ndim != 2 or not rows.is_floating_point() or rows.shape[1] != queries.shape[1]:
            raise ValueError(
                f"{name} have shape {tuple(rows.shape)} and dtype {rows.dtype}: give floating "
                "tensors of (rows, dimensions), as many dimensions in queries as in keys"
            )
    for name, value, options in (
        ("kernel", kernel, get_args(Kernel)),
        ("precision", precision, get_args(Precision)),
    ):
        if value not in options:
            raise ValueError(f"{name} is {value!r}: give one of {', '.join(map(repr, options))}")
    if tile is not None and tile < 1:
        raise ValueError(f"tile is {tile}: give the rows of a tile, at least 1, or None")
    if not isinstance(scale, Tensor):
        return float(scale)
    if scale.shape != queries.shape[:1] or scale.requires_grad:
        raise ValueError(
            f"scale has shape {tuple(scale.shape)} and requires_grad={scale.requires_grad}: give "
            f"a number or constants of shape ({len(queries)},); to learn it, scale the queries"
        )
    return scale.to(queries.device, _dtype(queries, keys))[:, None]


def _dtype(queries: Tensor, keys: Tensor) -> torch.dtype:
    return torch.promote_types(torch.promote_types(queries.dtype, keys.dtype), torch.float32)


@without_autocast
def _reduce(queries: Tensor, keys: Tensor, job: Job) -> Tensor:
    pairs = len(queries) * len(keys)
    dense = pairs == 0 or (job.tile is None and pairs <= DENSE_LIMIT)
    right = keys.to(_dtype(queries, keys))
    left = right if queries is keys else queries.to(right.dtype)
    if job.kernel != "dot":
        # Distances do not depend on the origin; near it, their inner products lose fewer bits.
        centre = right.detach().mean(0)
        right = job.lift(right - centre)
        left = right if queries is keys else job.lift(left - centre)
    tied = queries is keys and job.symmetric
    if not dense and tied:
        result: Tensor = Tiled.apply(None, right, job)
        return result
    bounded = job.bound is not None and is_safe(job.bound, right.dtype)
    if dense and bounded and job.kernel == "dot" and pairs:
        result = Held.apply(None if tied else left, right, job)
        return result
    left = job.mirror(left)
    if dense:
        return _dense(left, right, job)
    result = Tiled.apply(left, right, job)
    return result


def _dense(queries: Tensor, keys: Tensor, job: Job) -> Tensor:
    logits = product(queries, keys)
    if job.refine:
        logits = refined_(logits, queries, keys)
    if job.root:
        apart = ~(logits.detach() >= 0)  # NaN stays NaN
        # The inner `where` keeps the infinite slope of the root at 0 out of the gradient.
        distances = torch.where(apart, -logits, 1.0).sqrt()
        logits = torch.where(apart, distances, 0.0) * -job.scale
    weights = job.weights_at(slice(0, len(queries)), slice(0, len(keys)), keys)
    if job.summed:
        return (logits if weights is None else logits * weights).sum(1)
    if weights is None:
        return logits.logsumexp(1)
    result = (logits + log_weights(weights)).logsumexp(1)
    return result.masked_fill(result.detach() < lowest(result.dtype) / 2, -torch.inf)


class Held(torch.autograd.Function):
    """The bounded dot kernel with its exponentials held: few launches, for small batches.

    From (queries or None where they are the keys, keys, job). Bounded logits need no maximum.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor | None, keys: Tensor, job: Job) -> Tensor:
        """Exponentials, their weights, and the logarithm of their sums."""
        left = job.mirror(keys if queries is None else queries)
        exponentials = product(left, keys).exp_()
        if isinstance(job.weights, NoSelf) and len(left) == len(keys):
            exponentials.fill_diagonal_(0.0)
        else:
            block = job.weights_at(slice(0, len(left)), slice(0, len(keys)), keys)
            if block is not None:
                exponentials.mul_(block)
        totals = exponentials.sum(1)
        ctx.save_for_backward(queries, keys, exponentials, totals)
        ctx.job = job
        return totals.log()

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """The slopes, a multiple of what is held; differentiable again through the dense form."""
        queries, keys, exponentials, totals = ctx.saved_tensors
        (gradient,) = gradients
        job: Job = ctx.job
        if torch.is_grad_enabled():
            # Views of their own: queries cut out of the keys must not receive the keys' gradient.
            queries = None if queries is None else queries.view_as(queries)
            keys = keys.view_as(keys)
            value = _dense(job.mirror(keys if queries is None else queries), keys, job)
            finite = torch.isfinite(value)
            wanted = [
                each if needed else None
                for each, needed in zip((queries, keys), ctx.needs_input_grad, strict=False)
            ]
            found = iter(
                torch.autograd.grad(
                    torch.where(finite, value, 0.0),
                    [each for each in wanted if each is not None],
                    gradient * finite,
                    create_graph=True,
                )
            )
            by_query, by_key = (None if each is None else next(found) for each in wanted)
            return by_query, by_key, None
        factor = (gradient / totals).masked_fill_(totals == 0, 0.0)
        if queries is None:
            slopes = exponentials * (factor[:, None] + factor)
            return None, product(slopes, job.mirror(keys).T), None
        slopes = exponentials * factor[:, None]
        by_query = product(slopes, keys.T) * job.scale if ctx.needs_input_grad[0] else None
        by_key = product(slopes.T, job.mirror(queries).T) if ctx.needs_input_grad[1] else None
        return by_query, by_key, None
