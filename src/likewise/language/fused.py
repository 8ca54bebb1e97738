"""Value and gradient together, a chunk of positions at a time, as fused cross-entropies do it.

The gradient in the logits is made in the forward pass, while the images of the Krylov basis are
still there, and is all that is kept: one number a logit, in the format of the logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from likewise.information.derivatives import once
from likewise.language import device
from likewise.language.density import Density, FullVocabulary, TopTokens, UnitRows, largest
from likewise.language.methods import Accuracy, Result, evaluate
from likewise.language.quadrature import LOWEST_LOG
from likewise.pairwise.products import matmul_precision

BLOCK = 4096
"""Tokens that a quadratic form is evaluated for at a time."""


@dataclass(frozen=True)
class Plan:
    """What is computed at every position."""

    cross_entropy_weight: float = 1.0
    matrix_weight: float = 1.0
    label_smoothing: float = 0.0
    top_k: int | None = None
    accuracy: Accuracy = field(default_factory=Accuracy)
    memory: int = 5 * 2**28
    """Bytes that a chunk may take up, about."""


@dataclass
class Values:
    """What was found, and how it depends on the input."""

    cross_entropy: Tensor
    """(N,); 0 where a position is ignored, as in the next two."""
    matrix_cross_entropy: Tensor
    products: Tensor
    """How many products each position took, (N,), integers."""
    logits: Tensor | None
    """Gradient of each position's loss in its logits, (N, n), in their format."""
    embedding: Tensor | None
    """Gradient of the weighted sum of the losses in the embedding, (n, d)."""


def all_positions(
    logits: Tensor,
    labels: Tensor,
    kept: Tensor,
    weight: Tensor,
    rows: UnitRows,
    plan: Plan,
    *,
    gradients: tuple[bool, bool],
    generator: torch.Generator | None,
) -> Values:
    """The losses at the positions `kept` of `logits` (N, n), in chunks.

    Args:
        logits: (N, n), any floating-point format.
        labels: (N,), in range at the positions `kept`.
        kept: indices of the positions that count.
        weight: what each of them counts in the embedding's gradient, (len(kept),).
        rows: the token embeddings.
        plan: the loss.
        gradients: whether the gradients in the logits and in the embedding are wanted.
        generator: where the signs of the smoothing term's probe come from.
    """
    N, n = logits.shape
    working = rows.working
    values = Values(
        torch.zeros(N, dtype=working, device=logits.device),
        torch.zeros(N, dtype=working, device=logits.device),
        torch.zeros(N, dtype=torch.int32, device=logits.device),
        _room(logits, kept) if gradients[0] else None,
        torch.zeros_like(rows.weight, dtype=working) if gradients[1] else None,
    )
    if device.serves(logits, rows, plan, gradients):
        # A kernel is launched on the current device, which need not be that of the logits.
        with torch.cuda.device(logits.device) if logits.is_cuda else nullcontext():
            device.all_positions(logits, labels, kept, rows, plan, values)
        return values
    with matmul_precision(logits.device, "ieee"):
        for index, share in _chunks(kept, weight, N, n, rows, plan):
            _Chunk(logits, labels, index, share, rows, plan, values, generator).run()
    return values


def _room(logits: Tensor, kept: Tensor) -> Tensor:
    """Where the gradient goes: zero where a position is ignored, and else overwritten."""
    like = {"memory_format": torch.contiguous_format}
    make = torch.empty_like if len(kept) == len(logits) else torch.zeros_like
    return make(logits, **like)  # type: ignore[arg-type]


def _chunks(
    kept: Tensor, weight: Tensor, total: int, n: int, rows: UnitRows, plan: Plan
) -> Iterator[tuple[Tensor | slice, Tensor]]:
    """Indices of positions whose intermediate results fit into the plan's memory."""
    item = rows.inverse_norm.element_size()
    vectors = plan.accuracy.rounds(plan.top_k is not None)[0]
    if plan.top_k is None:
        numbers = (vectors + 7) * n * item
    else:
        numbers = (3 * n + 2 * plan.top_k**2 + 4 * vectors * plan.top_k) * item
    size = max(1, plan.memory // numbers)
    # Chunks of one size: a short last one would leave the device half idle.
    count = -(-len(kept) // size)
    size = -(-len(kept) // max(count, 1)) or 1
    for begin in range(0, len(kept), size):
        part: Tensor | slice = slice(begin, min(begin + size, len(kept)))
        share = weight[part]
        if len(kept) < total:  # else a view does, without a copy
            part = kept[part]
        yield part, share


class _Chunk:
    """Some positions: their losses, and what is added to the gradients."""

    def __init__(
        self,
        logits: Tensor,
        labels: Tensor,
        index: Tensor | slice,
        weight: Tensor,
        rows: UnitRows,
        plan: Plan,
        values: Values,
        generator: torch.Generator | None,
    ) -> None:
        self.index, self.weight, self.rows = index, weight, rows
        self.plan, self.values, self.generator = plan, values, generator
        self.labels = labels[index]
        self.log_q = torch.log_softmax(logits[index], -1, dtype=rows.working)

    def run(self) -> None:
        plan, values, smoothing = self.plan, self.values, self.plan.label_smoothing
        chosen = self.log_q.gather(1, self.labels[:, None])[:, 0]
        entropy = -(1 - smoothing) * chosen
        if smoothing:
            # A masked token (-inf) has no share in the smoothing, as it has none in q.
            finite = self.log_q > -torch.inf
            uniform = finite / finite.sum(1, keepdim=True)
            entropy = entropy - smoothing * (uniform * self.log_q.clamp_min(-1e30)).sum(1)
        values.cross_entropy[self.index] = entropy
        gradient = None
        if values.logits is not None:
            gradient = self.log_q.exp().mul_(plan.cross_entropy_weight)
            if smoothing:
                gradient.sub_(uniform, alpha=plan.cross_entropy_weight * smoothing)
            own = gradient.new_full((len(chosen), 1), -plan.cross_entropy_weight * (1 - smoothing))
            gradient.scatter_add_(1, self.labels[:, None], own)
        if plan.matrix_weight:
            self._matrix_terms(gradient)
        if values.logits is not None and gradient is not None:
            values.logits[self.index] = gradient.to(values.logits.dtype)

    def _matrix_terms(self, gradient: Tensor | None) -> None:
        plan, smoothing = self.plan, self.plan.label_smoothing
        density, tokens, log_q = self._density()
        share = log_q.gather(1, density.target[:, None])[:, 0]
        limit = plan.memory // 2 // self.rows.inverse_norm.element_size()
        value = torch.zeros_like(share, dtype=torch.float64)
        used = torch.zeros(len(share), dtype=torch.int32, device=share.device)
        mass = torch.zeros_like(density.root) if gradient is not None else None
        floored = share.clamp_min(LOWEST_LOG)
        for result in evaluate(density, density.start(), floored, plan.accuracy, limit):
            at, found = result.index, result.found
            # Below the floor log q_t moves the value along a straight line (see the docs).
            own = found.own * floored[at].double().exp()
            below = (floored - share.clamp_min(torch.finfo(share.dtype).min))[at].double()
            value[at] = found.value + own * below
            used[at] = len(result.projected)
            if mass is not None:
                part = _quadratic(result)
                column = density.target[at][:, None]
                part.scatter_(1, column, -own[:, None].to(part.dtype))
                mass[at] = part.to(mass.dtype)
            self._embedding_terms(result, tokens, 1 - smoothing, None)
        if smoothing:
            self._smoothing_terms(density, tokens, value, mass, limit)
        self.values.matrix_cross_entropy[self.index] = (1 + value).to(share.dtype)
        self.values.products[self.index] = used
        if gradient is not None and mass is not None:
            # In the logits: q o g - q <q, g>, and `mass` is q o g.
            mass.sub_(density.root.square() * mass.sum(1, keepdim=True))
            if tokens is None:
                gradient.add_(mass, alpha=plan.matrix_weight)
            else:
                gradient.scatter_add_(1, tokens, mass * plan.matrix_weight)

    def _density(self) -> tuple[Density, Tensor | None, Tensor]:
        """Q, the tokens that it is made of (None for all), and their log-probabilities."""
        plan, top_k, n = self.plan, self.plan.top_k, self.log_q.shape[1]
        if top_k is None or top_k >= n:
            return FullVocabulary(self.rows, self.log_q, self.labels), None, self.log_q
        tokens = largest(self.log_q, top_k)
        least = self.log_q.gather(1, tokens).argmin(1, keepdim=True)
        there = (tokens == self.labels[:, None]).any(1, keepdim=True)
        tokens.scatter_(1, least, torch.where(there, tokens.gather(1, least), self.labels[:, None]))
        log_q = torch.log_softmax(self.log_q.gather(1, tokens), -1)
        target = (tokens == self.labels[:, None]).int().argmax(1)
        return TopTokens(self.rows, tokens, log_q, target, plan.memory), tokens, log_q

    def _smoothing_terms(
        self,
        density: Density,
        tokens: Tensor | None,
        value: Tensor,
        mass: Tensor | None,
        limit: int,
    ) -> None:
        """The uniform part of P through one random probe x a position, E x x^T = sum e e^T / m."""
        smoothing = self.plan.label_smoothing
        signs = torch.randint(
            0, 2, density.root.shape, generator=self.generator, device=density.root.device
        )
        signs = (2 * signs - 1).to(density.root.dtype)
        accuracy = self.plan.accuracy
        own = torch.zeros_like(value)
        spread = None if mass is None else torch.zeros_like(mass)
        for result in evaluate(density, density.probe(signs), None, accuracy, limit):
            own[result.index] = result.found.value
            if spread is not None:
                spread[result.index] = _quadratic(result).to(spread.dtype)
            self._embedding_terms(result, tokens, smoothing, signs)
        value.lerp_(own, smoothing)
        if mass is not None and spread is not None:
            mass.lerp_(spread, smoothing)

    def _embedding_terms(
        self, result: Result, tokens: Tensor | None, part: float, signs: Tensor | None
    ) -> None:
        """-2 q_j D e_j for every token, and -2 log(Q) x for those that x is made of."""
        total = self.values.embedding
        if total is None:
            return
        at, found, density = result.index, result.found, result.density
        share = self.weight[at].to(total.dtype) * (-2 * part * self.plan.matrix_weight)
        vectors = result.directions().to(total.dtype)
        if result.short is not None:  # those come again
            share = torch.where(result.short, 0.0, share)
        k = found.factor.shape[1]
        factor = found.factor.to(total.dtype)
        basis = torch.einsum("ckr,kcd->crd", factor, vectors[:k])
        if found.signs is not None:
            factor = factor * found.signs.to(total.dtype)
        x = result.projected.permute(1, 2, 0).to(total.dtype)
        images = x @ factor * (density.root[..., None] * share[:, None, None]).to(total.dtype)
        logs = torch.einsum("ck,kcd->cd", found.log_vector.to(total.dtype), vectors)
        logs = logs * share[:, None]
        if tokens is None:
            total.add_(torch.einsum("cnr,crd->nd", images, basis))
        else:
            total.index_add_(0, tokens[at].flatten(), (images @ basis).flatten(0, 1))
        if signs is None:
            total.index_add_(0, self.labels[at], logs)
        elif tokens is None:
            total.add_(signs[at].mT @ logs, alpha=signs.shape[1] ** -0.5)
        else:
            spread = signs[at][..., None] * logs[:, None] * signs.shape[1] ** -0.5
            total.index_add_(0, tokens[at].flatten(), spread.flatten(0, 1))


def _quadratic(result: Result) -> Tensor:
    """-q_j e_j^T D e_j = -|F^T x_j|^2 for every token, (r, m)."""
    x, found = result.projected, result.found
    factor = found.factor.to(x.dtype).mT
    out = x.new_empty(x.shape[1:])
    for begin in range(0, x.shape[2], BLOCK):
        turned = torch.bmm(factor, x[:, :, begin : begin + BLOCK].transpose(0, 1))
        if found.signs is None:
            part = torch.linalg.vector_norm(turned, dim=1).square_()
        else:
            part = (turned.square() * found.signs.to(x.dtype)[:, None]).sum(1)
        out[:, begin : begin + BLOCK] = part.neg_()
    return out


class FusedLoss(torch.autograd.Function):
    """The losses (N,), or their weighted sum, whose gradients are made with the values."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, weight: Tensor, job: Any, summed: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Run `job`, which returns per-position weights and `Values`."""
        shares, values, plan = job((ctx.needs_input_grad[0], ctx.needs_input_grad[1]))
        loss = plan.cross_entropy_weight * values.cross_entropy
        loss = loss + plan.matrix_weight * values.matrix_cross_entropy
        ctx.summed = summed
        ctx.save_for_backward(logits, weight, shares, values.logits, values.embedding)
        out = (loss * shares).sum() if summed else loss
        ctx.mark_non_differentiable(
            values.cross_entropy, values.matrix_cross_entropy, values.products
        )
        return out, values.cross_entropy, values.matrix_cross_entropy, values.products

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Scale what was made in the forward pass."""
        logits, weight, shares, in_logits, in_embedding = ctx.saved_tensors
        sources = (upstream[0], logits, weight)  # to raise where a second derivative is asked for
        given = upstream[0].detach()
        each = given * shares if ctx.summed else given
        first = second = None
        if in_logits is not None:
            first = once(in_logits * each[:, None].to(in_logits.dtype), *sources)
        if in_embedding is not None:
            second = once(in_embedding * given.to(in_embedding.dtype), *sources)
        return first, second, None, None
