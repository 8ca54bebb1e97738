"""The same losses and gradients as :mod:`.fused` by kernels of our own, where there is a GPU.

For Lanczos quadrature with products in bfloat16 and the gradient in the logits; everything else
goes the plain way. What differs is only who does the work: few large products by cuBLAS, and
between them one pass over each array, with no small step left to PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from likewise.language import device_full, device_rows, device_top
from likewise.language.density import UnitRows, product, product_into
from likewise.language.device_quadrature import Found, rules
from likewise.language.quadrature import LOWEST_LOG
from likewise.language.stages import stage

if TYPE_CHECKING:
    from likewise.language.fused import Plan, Values


MOST_PRODUCTS = 63
"""With more, the small matrices of a position would not fit into a program's registers."""


def serves(logits: Tensor, rows: UnitRows, plan: Plan, gradients: tuple[bool, bool]) -> bool:
    """Whether this way can be taken."""
    return (
        plan.accuracy.method == "lanczos"
        and plan.matrix_weight > 0
        and not plan.label_smoothing
        and not gradients[1]
        and rows.weight.dtype == torch.bfloat16
        and rows.working == torch.float32
        and (_is_full(logits, plan) or (plan.top_k or 0) <= device_top.MOST)
        and plan.accuracy.rounds(not _is_full(logits, plan))[-1] <= MOST_PRODUCTS
        and device_rows.kernels_work_on(logits)
    )


def _is_full(logits: Tensor, plan: Plan) -> bool:
    return plan.top_k is None or plan.top_k >= logits.shape[1]


@dataclass
class _Job:
    """What all chunks share."""

    logits: Tensor
    rows: UnitRows
    plan: Plan
    values: Values

    @property
    def weights(self) -> tuple[float, float]:
        return self.plan.cross_entropy_weight, self.plan.matrix_weight


@dataclass
class _Positions:
    """Some rows of the logits, with their targets."""

    index: Tensor
    label: Tensor
    log_sum: Tensor
    log_share: Tensor

    def rows(self, at: Tensor) -> _Positions:
        return _Positions(self.index[at], self.label[at], self.log_sum[at], self.log_share[at])


def all_positions(
    logits: Tensor, labels: Tensor, kept: Tensor, rows: UnitRows, plan: Plan, values: Values
) -> None:
    """The losses at the positions `kept`, into `values`."""
    job = _Job(logits.contiguous(), rows, plan, values)
    full = _is_full(logits, plan)
    size = max(1, plan.memory // _bytes(job, full))
    count = -(-len(kept) // size)
    waiting = _Waiting(job)
    for index in kept.chunk(max(count, 1)) if len(kept) else ():
        label = labels[index]
        dense = None if full else values.logits
        with stage("softmax"):
            found = device_rows.softmax(job.logits, index, label, dense, job.weights[0])
        values.cross_entropy[index] = -found[1]
        positions = _Positions(index, label, *found)
        if full:
            _full(job, positions, waiting)
        else:
            _top(job, positions)
    waiting.go_on()


def _bytes(job: _Job, full: bool) -> int:
    """What a position takes up."""
    plan, (n, d) = job.plan, job.rows.weight.shape
    counts = plan.accuracy.rounds(not full)
    if not full:
        k, m = counts[-1], plan.top_k or 0
        return 4 * m * m + 8 * k * (m + 3 * k) + 8 * m
    one = _Basis.bytes(n, d, counts[0])
    return one if len(counts) == 1 else 2 * one  # half is for those that need more products


# --- a few tokens a position ----------------------------------------------------------------------


def _top(job: _Job, positions: _Positions) -> None:
    plan, logits, index = job.plan, job.logits, positions.index
    with stage("selection"):
        tokens, slot = device_rows.select(logits, index, positions.label, plan.top_k or 1)
    with stage("gather and Gram"):
        gram = device_top.gram(job.rows, tokens)
    skip = torch.zeros(len(index), dtype=torch.int32, device=logits.device)
    counts = plan.accuracy.rounds(True)
    for k in counts:
        with stage("Lanczos"):
            basis = device_top.lanczos(gram, logits, index, tokens, slot, k, skip)
        with stage("quadrature"):
            share = basis.log_share.clamp_min(LOWEST_LOG).exp()
            found = rules(basis.gram, basis.rest, basis.residual, share, skip)
            enough = _enough(found, plan, last=k == counts[-1])
            done = enough & (skip == 0)
            own = _store(job, positions, found, share, basis.log_share, k, skip == 0)
        with stage("gradient"):
            if job.values.logits is not None:
                device_top.scatter(
                    basis,
                    logits,
                    index,
                    tokens,
                    slot,
                    positions.log_sum,
                    found.factor,
                    *own,
                    done.int(),
                    job.values.logits,
                    job.weights,
                )
        skip = (enough | (skip != 0)).int()
        if k < counts[-1] and bool(skip.all()):  # the only place where the host waits
            break


def _enough(found: Found, plan: Plan, *, last: bool) -> Tensor:
    """Where no more products are needed, (c,)."""
    if last:
        return torch.ones_like(found.error, dtype=torch.bool)
    # A NaN is not made better by more products.
    return ~(found.error > plan.accuracy.tolerance * (1 + found.value))


def _store(
    job: _Job,
    positions: _Positions,
    found: Found,
    share: Tensor,
    log_share: Tensor,
    k: int,
    where: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Keep the values; the target's part of q o g, and its sum over all tokens, (c,), float32.

    That sum is -tr(D Q) = -x^T x = -1: D is the derivative of the logarithm at Q.
    """
    own = found.own * share
    wide = log_share.double().clamp_min(torch.finfo(torch.float32).min)
    # Below the floor log q_t moves the value along a straight line (see the docs).
    value = 1 + found.value + own * (LOWEST_LOG - wide).clamp_min(0)
    values, index = job.values, positions.index
    value = value.to(values.matrix_cross_entropy.dtype)
    used = torch.full_like(index, k, dtype=torch.int32)
    if where is not None:
        value = torch.where(where, value, values.matrix_cross_entropy[index])
        used = torch.where(where, used, values.products[index])
    values.matrix_cross_entropy[index] = value
    values.products[index] = used
    total = torch.where(found.value.isnan(), torch.nan, 1.0).float()
    return own.float(), total


# --- the full vocabulary --------------------------------------------------------------------------


class _Basis:
    """Krylov bases at c positions with the images of their vectors, E v."""

    def __init__(self, rows: UnitRows, logits: Tensor, positions: _Positions, capacity: int):
        c, (n, d) = len(positions.index), rows.weight.shape
        self.rows_of, self.logits, self.positions = rows, logits, positions
        self.size = 0
        # One vector more than images: the next one, from which it may go on.
        self.vectors = rows.weight.new_empty(capacity + 1, c, 2, d)
        self.scale = rows.inverse_norm.new_ones(c, capacity + 1)
        self.images = rows.inverse_norm.new_empty(capacity, c, n)
        self.residual = torch.zeros(c, dtype=torch.float64, device=logits.device)

    @staticmethod
    def bytes(n: int, d: int, capacity: int) -> int:
        """What a position takes up."""
        return (4 * capacity + 2) * n + 4 * d * (capacity + 3)

    def start(self) -> None:
        """The targets' embeddings, scaled by a power of two: exact, and close to unit length."""
        rows, label = self.rows_of, self.positions.label
        inverse = rows.inverse_norm[label]
        power = inverse.log2().round().exp2()
        self.vectors[0, :, 0] = rows.weight[label] * power[:, None].to(rows.weight.dtype)
        self.vectors[0, :, 1] = 0
        self.scale[:, 0] = (inverse / power).square()

    def grow(self, count: int) -> None:
        """Multiply until there are `count` images."""
        rows, at = self.rows_of, self.positions
        for k in range(self.size, count):
            with stage("product E v"):
                if device_full.has_two_terms(k):
                    product_into(self.vectors[k].flatten(1), self._twice().mT, self.images[k])
                else:
                    product_into(self.vectors[k, :, 0], rows.weight.mT, self.images[k])
            with stage("weighting"):
                weighted, square = device_rows.weigh(
                    self.images[k], self.logits, at.index, at.log_sum, rows.inverse_norm
                )
            with stage("product E^T x"):
                following = product(weighted, rows.weight, rows.working)
            with stage("orthogonalisation"):
                self.residual = device_full.orthogonal(
                    self.vectors, self.scale, following, square, k + 1
                )
        self.size = count

    def _twice(self) -> Tensor:
        rows = self.rows_of
        return torch.cat([rows.weight, rows.weight], 1) if rows.doubled is None else rows.doubled

    def rows(self, piece: Tensor, capacity: int) -> _Basis:
        """The same at some of the positions, with room for more."""
        part = _Basis(self.rows_of, self.logits, self.positions.rows(piece), capacity)
        k = part.size = self.size
        torch.index_select(self.vectors[: k + 1], 1, piece, out=part.vectors[: k + 1])
        torch.index_select(self.images[:k], 1, piece, out=part.images[:k])
        part.scale[:, 0] = self.scale[piece, 0]
        return part

    @staticmethod
    def joined(parts: list[_Basis], capacity: int) -> _Basis:
        """One basis of several; these give their memory back one after the other."""
        at = _Positions(
            *(torch.cat([getattr(p.positions, f.name) for p in parts]) for f in fields(_Positions))
        )
        whole = _Basis(parts[0].rows_of, parts[0].logits, at, capacity)
        k = whole.size = parts[0].size
        begin = 0
        while parts:
            part = parts.pop(0)
            end = begin + len(part.positions.index)
            whole.vectors[: k + 1, begin:end] = part.vectors[: k + 1]
            whole.images[:k, begin:end] = part.images[:k]
            whole.scale[begin:end, 0] = part.scale[:, 0]
            begin = end
        return whole


class _Waiting:
    """Positions of all chunks whose bases are too small yet: they go on together.

    They are few, and a product with the whole vocabulary costs nearly as much for a few positions
    as for a hundred.
    """

    def __init__(self, job: _Job) -> None:
        self.job, self.parts = job, list[_Basis]()
        n, d = job.rows.weight.shape
        counts = job.plan.accuracy.rounds(False)
        # Joining holds a basis twice for a moment, once with room for more.
        each = sum(_Basis.bytes(n, d, count) for count in counts[:2])
        self.most = max(1, job.plan.memory // 2 // each)

    def add(self, basis: _Basis, index: Tensor) -> None:
        for piece in index.split(self.most):
            there = sum(len(part.positions.index) for part in self.parts)
            if there + len(piece) > self.most:
                self.go_on()
            with stage("compaction"):
                self.parts.append(basis.rows(piece, basis.size))

    def go_on(self) -> None:
        """Grow what has been gathered to the end."""
        if self.parts:
            counts = self.job.plan.accuracy.rounds(False)[1:]
            with stage("compaction"):
                basis = _Basis.joined(self.parts, counts[0])
            _grow(self.job, basis, counts, None)


def _full(job: _Job, positions: _Positions, waiting: _Waiting) -> None:
    counts = job.plan.accuracy.rounds(False)
    basis = _Basis(job.rows, job.logits, positions, counts[0])
    basis.start()
    _grow(job, basis, counts, waiting)


def _grow(job: _Job, basis: _Basis, counts: list[int], waiting: _Waiting | None) -> None:
    """Grow the bases by a round; those that are not there yet wait, or go on at once."""
    plan, rows, at, k = job.plan, job.rows, basis.positions, counts[0]
    basis.grow(k)
    images = basis.images[:k]
    given = (job.logits, at.index, at.label, at.log_sum, rows.inverse_norm)
    with stage("V^T V, V^T Q V"):
        inner = device_full.inner(basis.vectors, k)
        rest = device_full.compressed(images, *given)
    with stage("quadrature"):
        share = at.log_share.double().clamp_min(LOWEST_LOG).exp()
        found = rules(inner, rest, basis.residual, share)
        enough = _enough(found, plan, last=len(counts) == 1)
        own = _store(job, at, found, share, at.log_share, k)
    with stage("gradient"):
        if job.values.logits is not None:
            device_rows.slope(
                images, *given, found.factor, *own, enough.int(), job.values.logits, job.weights
            )
    if len(counts) == 1:
        return
    short = torch.nonzero(~enough)[:, 0]  # the only place where the host waits for the device
    if not len(short):
        return
    if waiting is not None:
        waiting.add(basis, short)
        return
    n, d = rows.weight.shape
    room = max(1, plan.memory // 4 // _Basis.bytes(n, d, counts[1]))
    for piece in short.split(room):
        with stage("compaction"):
            part = basis.rows(piece, counts[1])
        _grow(job, part, counts[1:], None)
