"""Reductions over a matrix of pairs, tile by tile.

Every kernel is a function of one inner product t: the dot product itself, and

    -|q - k|^2  =  t  =  (2q, -|q|^2, -1) . (k, 1, |k|^2),      -|q - k|  =  -sqrt(-t),

so that one loop serves all of them and, apart from the root, no kernel costs a pass over a tile.
The rows (k, 1, |k|^2) are called lifted, the rows (2q, -|q|^2, -1) their mirror image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from likewise.information.precision import without_autocast
from likewise.pairwise.fused import exp_sums, is_fused, symmetric_slopes_
from likewise.pairwise.products import (
    Operand,
    Precision,
    accumulate_,
    similarities,
    split_,
    tensor_cores,
)

if TYPE_CHECKING:
    from likewise.pairwise.reductions import PairWeights

Kernel = Literal["dot", "squared-distance", "distance"]

TILE = 6144  # rows and columns; a float32 tile takes 144 MiB, and two to four exist at a time
NEAR = 1 / 256  # share of what cancels in |q - k|^2 that is left: 8 bits lost, or more below
NEAR_LIMIT = 2**24  # numbers; more differences than this are not written out
BOUND = 0.68  # of the logarithm of the largest number; in float32, logits up to 60


@dataclass(frozen=True)
class Job:
    """What is reduced over the pairs, and how."""

    kernel: Kernel
    scale: float | Tensor
    """The factor of the kernel: one number, or a column (R, 1)."""
    weights: PairWeights | None
    tile: int | None
    precision: Precision
    summed: bool
    """Whether kernels are summed, rather than their exponentials."""
    bound: float | None = None
    """What no logit can exceed, where the caller knows it."""

    @property
    def symmetric(self) -> bool:
        """Whether rows that are compared with themselves make a symmetric matrix."""
        return isinstance(self.scale, float) and (self.weights is None or self.weights.symmetric)

    @property
    def root(self) -> bool:
        """Whether the kernel is a root of the inner product."""
        return self.kernel == "distance"

    @property
    def refine(self) -> bool:
        """Whether near pairs are computed from differences.

        A logit needs a small absolute error only, a root or a sum a small relative one.
        """
        return self.root or (self.summed and self.kernel == "squared-distance")

    def lift(self, points: Tensor) -> Tensor:
        """The key side of the inner product of a distance, (k, 1, |k|^2)."""
        squares = points.square().sum(1, keepdim=True)
        return torch.cat((points, torch.ones_like(squares), squares), 1)

    def mirror(self, rows: Tensor) -> Tensor:
        """The query side from the key side of the same rows, times the scale if it goes inside."""
        if self.kernel != "dot":
            points, one, squares = rows[:, :-2], rows[:, -2:-1], rows[:, -1:]
            rows = torch.cat((2 * points, -squares, -one), 1)
        outside = self.root or (isinstance(self.scale, float) and self.scale == 1)
        return rows if outside else rows * self.scale

    def scale_at(self, rows: slice) -> float | Tensor:
        """The scale of some rows, as a factor of their tile."""
        return self.scale[rows] if isinstance(self.scale, Tensor) else self.scale

    def weights_at(self, rows: slice, columns: slice, like: Tensor) -> Tensor | None:
        """A block of the weights, or None where all of them are 1."""
        block = None if self.weights is None else self.weights.tile(rows, columns, like.detach())
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        if block is not None and block.shape != shape:
            raise ValueError(f"weights.tile gave shape {tuple(block.shape)}: it must give {shape}")
        return None if block is None else block.to(like.dtype)


class NoSelf:
    """Weights that are 1, but 0 between a row and itself."""

    symmetric = True

    def tile(self, rows: slice, columns: slice, like: Tensor) -> Tensor | None:
        """The dense block, or None away from the diagonal."""
        if rows.stop <= columns.start or columns.stop <= rows.start:
            return None
        row = torch.arange(rows.start, rows.stop, device=like.device)
        column = torch.arange(columns.start, columns.stop, device=like.device)
        return (row[:, None] != column).to(like.dtype)


def is_safe(bound: float, dtype: torch.dtype) -> bool:
    """Whether exponentials of logits up to `bound` neither overflow nor vanish."""
    return bound < BOUND * math.log(torch.finfo(dtype).max)


def lowest(dtype: torch.dtype) -> float:
    """What stands for log 0: its exponential is 0 beside any logit, but it makes no NaN."""
    return torch.finfo(dtype).min / 4


def log_weights(weights: Tensor) -> Tensor:
    """log w, with `lowest` for log 0."""
    return weights.log().clamp_min_(lowest(weights.dtype))


def refined_(products: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """-|q - k|^2, the near pairs computed anew from their differences; differentiable."""
    # Near pairs have |q| = |k|, which makes 2 |q|^2 the size of what cancels.
    near = products.detach() > 2 * NEAR * queries.detach()[:, -2:-1]
    count = int(near.sum())
    left, right = queries[:, :-2] / 2, keys[:, :-2]
    if count * left.shape[1] > NEAR_LIMIT:
        distances = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
        return -distances.square()
    if count:
        i, k = near.nonzero(as_tuple=True)
        products.index_put_((i, k), -(left[i] - right[k]).square().sum(1))
    return products


class _Tiles:
    """One pass over the pairs; without queries, the keys are compared with themselves.

    A tile lives in one buffer and is gone with the next one.
    """

    def __init__(self, queries: Tensor | None, keys: Tensor, job: Job) -> None:
        split = job.precision == "split" and tensor_cores(keys)
        self.job, self.keys, self.symmetric = job, keys, queries is None
        self.queries = job.mirror(keys) if queries is None else queries
        self.left = Operand(self.queries, "left", split)
        self.right = Operand(keys, "right", split)
        if not job.refine:
            self.queries = self.queries[:0]  # a copy less to hold
        self.shape = (len(self.left.stacked), len(keys))
        rows, columns = (min(job.tile or TILE, length) for length in self.shape)
        if job.tile is None and not self.symmetric:
            # Few queries take wider tiles, few keys higher ones.
            columns = min(self.shape[1], TILE**2 // rows)
            rows = min(self.shape[0], TILE**2 // columns)
        self.edges = (rows, columns)
        self.buffer = keys.new_empty(rows * columns)
        self.spare: Tensor | None = None

    def __iter__(self) -> Iterator[tuple[slice, slice, bool]]:
        """Rows, columns, and whether the tile stands for its mirror image, too."""
        for row in range(0, self.shape[0], self.edges[0]):
            rows = slice(row, min(row + self.edges[0], self.shape[0]))
            for column in range(row if self.symmetric else 0, self.shape[1], self.edges[1]):
                columns = slice(column, min(column + self.edges[1], self.shape[1]))
                yield rows, columns, self.symmetric and row != column

    def empty(self, rows: slice, columns: slice) -> Tensor:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        return self.buffer[: height * width].view(height, width)

    def scratch(self, like: Tensor) -> Tensor:
        """A second tile, for what comes between."""
        if self.spare is None:
            self.spare = torch.empty_like(self.buffer)
        return self.spare[: like.numel()].view(like.shape)

    def logits(self, rows: slice, columns: slice) -> Tensor:
        tile = similarities(self.left, rows, self.right, columns, self.empty(rows, columns))
        if self.job.refine:
            tile = refined_(tile, self.queries[rows], self.keys[columns])
        if self.job.root:
            tile.clamp_max_(0).neg_().sqrt_().mul_(self.job.scale_at(rows)).neg_()
        return tile

    def weights(self, rows: slice, columns: slice) -> Tensor | None:
        return self.job.weights_at(rows, columns, self.keys)

    def weigh_(self, tile: Tensor, rows: slice, columns: slice) -> Tensor:
        """The tile times its weights."""
        if isinstance(self.job.weights, NoSelf) and rows == columns:
            return tile.fill_diagonal_(0.0)
        weights = self.weights(rows, columns)
        return tile if weights is None else tile.mul_(weights)

    def unweighted(self, rows: slice, columns: slice) -> bool:
        """Whether all weights of the tile are 1, without asking for them."""
        weights = self.job.weights
        apart = rows.stop <= columns.start or columns.stop <= rows.start
        return weights is None or (isinstance(weights, NoSelf) and apart)

    def bounded(self) -> bool:
        """Whether no logit can over- or underflow an exponential (Cauchy-Schwarz)."""
        if self.job.bound is not None:
            return is_safe(self.job.bound, self.keys.dtype)
        sides = (self.left.high, self.right.high)
        first, second = (torch.linalg.vector_norm(side, dim=1).max() for side in sides)
        reach = float(first * second)
        if self.job.root:
            reach = math.sqrt(reach) * float(torch.as_tensor(self.job.scale).abs().max())
        return is_safe(reach, self.keys.dtype)

    def totals(self) -> Tensor:
        """Row sums of weighted kernels, or of their weighted exponentials."""
        total = self.keys.new_zeros(self.shape[0])
        for rows, columns, both in self:
            tile = self.logits(rows, columns)
            if is_fused(tile) and not self.job.summed and self.unweighted(rows, columns):
                by_row, by_column = exp_sums(tile)
                total[rows] += by_row
                if both:
                    total[columns] += by_column
                continue
            if not self.job.summed:
                tile.exp_()
            self.weigh_(tile, rows, columns)
            total[rows] += tile.sum(1)
            if both:
                total[columns] += tile.sum(0)
        return total

    def tame(self) -> bool:
        """Whether weights of 0 and 1 leave something in every sum."""
        weights = self.job.weights
        return weights is None or (isinstance(weights, NoSelf) and self.shape[1] > 1)

    def logsumexp(self) -> tuple[Tensor, bool]:
        """The result, and whether plain exponentials are safe, in the backward pass too."""
        if self.bounded():
            total = self.totals()
            # Weights can be tiny or huge; only the sums tell.
            if self.tame() or bool(((total > 1e-30) & (total < 1e30)).all()):
                return total.log_(), True
        result = self.keys.new_full((self.shape[0],), -torch.inf)
        for rows, columns, both in self:
            tile = self.logits(rows, columns)
            weights = self.weights(rows, columns)
            if weights is not None:
                tile.add_(log_weights(weights))
            result[rows] = torch.logaddexp(result[rows], tile.logsumexp(1))
            if both:
                result[columns] = torch.logaddexp(result[columns], tile.logsumexp(0))
        return result.masked_fill_(result < lowest(result.dtype) / 2, -torch.inf), False

    def slopes(self, rows: slice, columns: slice, factor: Tensor, shift: Tensor | None) -> Tensor:
        """A tile of D = d(sum_i g_i result_i) / dt, plus that of its transpose if symmetric.

        With w the weights and f the `factor`, D = f_i w_ij for a sum of kernels, f_i w_ij exp(t_ij)
        with f = g exp(-result), and f_i w_ij exp(t_ij - shift_i) with f = g and shift = result.
        """
        job, chain, tile = self.job, None, self.empty(rows, columns)
        if job.root or not job.summed:
            tile = self.logits(rows, columns)
        if job.root:
            # d(-a sqrt(-t)) / dt = a / (2 sqrt(-t)) = -a^2 / (2 logit), taken to be 0 at t = 0.
            a = job.scale_at(rows)
            chain = tile.reciprocal().mul_(-0.5 * a * a).masked_fill_(tile == 0, 0)
        if shift is None:
            tile = tile.fill_(1) if job.summed else tile.exp_()
            self.weigh_(tile, rows, columns)
            if self.symmetric:
                tile.mul_(torch.add(factor[rows, None], factor[columns], out=self.scratch(tile)))
            else:
                tile.mul_(factor[rows, None])
        else:
            weights = self.weights(rows, columns)
            if weights is not None:
                tile.add_(log_weights(weights))
            if self.symmetric:
                other = torch.sub(tile, shift[columns], out=self.scratch(tile))
                other.exp_().mul_(factor[columns])
            tile.sub_(shift[rows, None]).exp_().mul_(factor[rows, None])
            if self.symmetric:
                tile.add_(other)
        return tile if chain is None else tile.mul_(chain)

    def parts(
        self, rows: slice, columns: slice, factor: Tensor, shift: Tensor | None
    ) -> tuple[Tensor, ...]:
        """The tile of slopes in the form that products want: (high, low), or whole."""
        split = self.left.split
        plain = shift is None and self.symmetric and not (self.job.root or self.job.summed)
        if plain and is_fused(self.empty(rows, columns)) and self.unweighted(rows, columns):
            tile = self.logits(rows, columns)
            high = self.scratch(tile) if split else None
            symmetric_slopes_(tile, high, factor[rows], factor[columns])
            return (tile,) if high is None else (high, tile)
        tile = self.slopes(rows, columns, factor, shift)
        return split_(tile, self.scratch(tile)) if split else (tile,)

    def gradients(
        self, factor: Tensor, shift: Tensor | None, needed: tuple[bool, bool]
    ) -> tuple[Tensor | None, Tensor | None]:
        """dQ = D K and dK = D^T Q; if symmetric, dK = (D + D^T) Q is all of it."""
        left, right = self.left, self.right
        by_query = self.keys.new_zeros(self.shape[0], right.width) if needed[0] else None
        by_key = self.keys.new_zeros(self.shape[1], left.width) if needed[1] else None
        for rows, columns, both in self:
            parts = self.parts(rows, columns, factor, shift)
            if by_query is not None:
                accumulate_(by_query[rows], parts, right, columns)
            if by_key is not None and self.symmetric:
                accumulate_(by_key[rows], parts, left, columns)
            if by_key is not None and (both or not self.symmetric):
                accumulate_(by_key[columns], tuple(part.T for part in parts), left, rows)
        return by_query, by_key


class Tiled(torch.autograd.Function):
    """result_i of a `Job`, from (mirrored queries or None, keys, job).

    Without queries, they are the mirror image of the keys, and the gradient goes to the keys.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor | None, keys: Tensor, job: Job) -> Tensor:
        """One pass over the tiles; what is kept is one number a row."""
        tiles = _Tiles(queries, keys, job)
        result, ctx.safe = (tiles.totals(), True) if job.summed else tiles.logsumexp()
        ctx.save_for_backward(queries, keys, result)
        ctx.job = job
        return result

    @staticmethod
    @once_differentiable
    @without_autocast
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """A second pass over the tiles, each computed again."""
        queries, keys, result = ctx.saved_tensors
        gradient, empty = gradients[0], result == -torch.inf
        gradient = gradient.masked_fill(empty, 0)
        # To scale 1, lest exp(-result) take a small gradient below the smallest number.
        size = gradient.abs().max().clamp_min(torch.finfo(keys.dtype).tiny)
        factor, shift = gradient / size, None
        if not ctx.safe:
            shift = result.masked_fill(empty, torch.inf)
        elif not ctx.job.summed:
            factor = factor * torch.exp(-result)
        found = _Tiles(queries, keys, ctx.job).gradients(factor, shift, ctx.needs_input_grad[:2])
        by_query, by_key = (
            None if each is None else each.mul_(size)[:, : keys.shape[1]] for each in found
        )
        return by_query, by_key, None
