"""Triton kernels for bases over the full vocabulary: orthogonal vectors, and sums over tokens.

A basis vector is two bfloat16 terms, side by side as the large products take it, (k, c, 2, d).
"""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

LARGE = 1 / 16
"""Tokens above this probability count in float64 in V^T Q V; float32 serves for the others."""

EXACT = 3
"""The vectors up to this one keep 16 bits, in two terms; those after it 8.

Where a few tokens hold nearly all of q, the first vectors point at them: what rounding leaves of
that direction outside of the basis would count with the whole weight of these tokens. The first
one is an embedding and has one term as it is."""

SHARES = 4
"""Programs that share the tokens of a position in V^T Q V."""


if triton is not None:

    @triton.jit
    def _basis(rows, a, at, size, d, EXACT: tl.constexpr):  # type: ignore[no-untyped-def]
        """Columns `at` of the vectors a < size, each the sum of its terms."""
        inside = (a[:, None] < size) & (at[None, :] < d)
        v = tl.load(rows + at[None, :], mask=inside, other=0.0).to(tl.float32)
        inside = inside & (a[:, None] <= EXACT)
        return v + tl.load(rows + d + at[None, :], mask=inside, other=0.0).to(tl.float32)

    @triton.jit(do_not_specialize=["size", "capacity"])
    def _orthogonal(  # type: ignore[no-untyped-def]
        vectors,
        stride,
        scale,
        following,
        square,
        residual,
        d,
        size,
        capacity,
        EXACT: tl.constexpr,
        RANK: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """The next vector of the basis from `following` = Q v, which is overwritten."""
        c = tl.program_id(0).to(tl.int64)
        a = tl.arange(0, RANK)
        base = a[:, None].to(tl.int64) * stride + c * 2 * d
        factor = tl.load(scale + c * capacity + a, mask=a < size, other=0.0)
        first = tl.zeros((RANK,), tl.float32)
        for begin in range(0, d, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            v = _basis(vectors + base, a, at, size, d, EXACT)
            w = tl.load(following + c * d + at, mask=at < d, other=0.0)
            first += tl.sum(v * w[None, :], 1)
        first = first * factor
        second = tl.zeros((RANK,), tl.float32)
        for begin in range(0, d, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            v = _basis(vectors + base, a, at, size, d, EXACT)
            w = tl.load(following + c * d + at, mask=at < d, other=0.0)
            w = w - tl.sum(v * first[:, None], 0)
            second += tl.sum(v * w[None, :], 1)
        second = second * factor
        length = tl.zeros((BLOCK,), tl.float32)
        for begin in range(0, d, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            v = _basis(vectors + base, a, at, size, d, EXACT)
            w = tl.load(following + c * d + at, mask=at < d, other=0.0)
            w = w - tl.sum(v * first[:, None], 0)
            w = w - tl.sum(v * second[:, None], 0)
            length += w * w
            tl.store(following + c * d + at, w, mask=at < d)
        tl.debug_barrier()  # what another thread stored is read now
        whole = tl.sqrt(tl.sum(length, 0))
        # |Q v| <= |B^T v|: below round-off of that, the space is invariant and the answer exact.
        noise = tl.sqrt(tl.load(square + c)) * (16 * 1.1920929e-07)
        alive = whole > noise
        tl.store(residual + c, tl.where(alive, whole, 0.0).to(tl.float64))
        inverse = tl.where(alive, 1.0 / whole, 0.0)
        if size < capacity:
            to = vectors + (c * 0 + size) * stride + c * 2 * d
            for begin in range(0, d, BLOCK):
                at = begin + tl.arange(0, BLOCK)
                w = tl.load(following + c * d + at, mask=at < d, other=0.0) * inverse
                high = w.to(tl.bfloat16)
                tl.store(to + at, high, mask=at < d)
                low = (w - high.to(tl.float32)).to(tl.bfloat16)
                low = tl.where(size <= EXACT, low, 0.0)
                tl.store(to + d + at, low, mask=at < d)

    @triton.jit
    def _inner(  # type: ignore[no-untyped-def]
        vectors,
        stride,
        out,
        d,
        k,
        RANK: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        c = tl.program_id(0).to(tl.int64)
        a = tl.arange(0, RANK)
        base = a[:, None].to(tl.int64) * stride + c * 2 * d
        total = tl.zeros((RANK, RANK), tl.float64)
        for begin in range(0, d, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            inside = (a[:, None] < k) & (at[None, :] < d)
            v = tl.load(vectors + base + at[None, :], mask=inside, other=0.0).to(tl.float32)
            v += tl.load(vectors + base + d + at[None, :], mask=inside, other=0.0).to(tl.float32)
            total += tl.dot(v, tl.trans(v), input_precision="tf32x3").to(tl.float64)
        both = (a[:, None] < k) & (a[None, :] < k)
        tl.store(out + c * k * k + a[:, None] * k + a[None, :], total, mask=both)

    @triton.jit
    def _compressed(  # type: ignore[no-untyped-def]
        images,
        stride,
        logits,
        position,
        label,
        log_sum,
        inverse_norm,
        out,
        n,
        k,
        SHARES: tl.constexpr,
        LARGE: tl.constexpr,
        RANK: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        c = tl.program_id(0).to(tl.int64)
        share = tl.program_id(1)
        row = tl.load(position + c).to(tl.int64) * n
        target = tl.load(label + c)
        whole = tl.load(log_sum + c)
        a = tl.arange(0, RANK)
        base = a[:, None].to(tl.int64) * stride + c * n
        total = tl.zeros((RANK, RANK), tl.float64)
        for begin in range(share * BLOCK, n, SHARES * BLOCK):
            at = begin + tl.arange(0, BLOCK)
            inside = (a[:, None] < k) & (at[None, :] < n)
            y = tl.load(images + base + at[None, :], mask=inside, other=0.0)
            x = tl.load(logits + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
            scale = tl.load(inverse_norm + at, mask=at < n, other=0.0)
            root = tl.exp((x - whole) * 0.5)
            root = tl.where(at == target, 0.0, root)
            y = y * (root * scale)[None, :]
            if tl.max(root, 0) * tl.max(root, 0) > LARGE:
                wide = y.to(tl.float64)
                for j in range(0, k):
                    one = tl.sum(tl.where(a[:, None] == j, wide, 0.0), 0)
                    side = tl.sum(wide * one[None, :], 1)
                    total += tl.where(a[None, :] == j, side[:, None], 0.0)
            else:
                total += tl.dot(y, tl.trans(y), input_precision="tf32x3").to(tl.float64)
        both = (a[:, None] < k) & (a[None, :] < k)
        to = out + (c * SHARES + share) * k * k
        tl.store(to + a[:, None] * k + a[None, :], total, mask=both)


def has_two_terms(k: int) -> bool:
    """Whether vector k of a basis is the sum of two terms."""
    return 1 <= k <= EXACT


def orthogonal(
    vectors: Tensor, scale: Tensor, following: Tensor, square: Tensor, size: int
) -> Tensor:
    """Make vectors[size] of Q v, where there is room; its length before it was scaled, (c,)."""
    capacity, c, _, d = vectors.shape
    residual = torch.empty(c, dtype=torch.float64, device=vectors.device)
    rank = triton.next_power_of_2(size)
    _orthogonal[(c,)](
        vectors,
        vectors.stride(0),
        scale,
        following,
        square,
        residual,
        d,
        size,
        capacity,
        EXACT=EXACT,
        RANK=rank,
        BLOCK=min(2048, 8192 // rank) if rank <= 16 else 128,
        num_warps=4,
    )
    return residual


def inner(vectors: Tensor, k: int) -> Tensor:
    """V^T V of the first k vectors, (c, k, k), float64."""
    _, c, _, d = vectors.shape
    out = torch.empty(c, k, k, dtype=torch.float64, device=vectors.device)
    rank = max(16, triton.next_power_of_2(k))
    block = 128 if rank <= 32 else 64
    _inner[(c,)](vectors, vectors.stride(0), out, d, k, RANK=rank, BLOCK=block)
    return out


def compressed(
    images: Tensor,
    logits: Tensor,
    position: Tensor,
    label: Tensor,
    log_sum: Tensor,
    inverse_norm: Tensor,
) -> Tensor:
    """V^T Q V without the target's own term, (c, k, k), float64, of images = E V, (k, c, n)."""
    k, c, n = images.shape
    out = torch.empty(c, SHARES, k, k, dtype=torch.float64, device=images.device)
    rank = max(16, triton.next_power_of_2(k))
    _compressed[(c, SHARES)](
        images,
        images.stride(0),
        logits,
        position,
        label,
        log_sum,
        inverse_norm,
        out,
        n,
        k,
        SHARES=SHARES,
        LARGE=LARGE,
        RANK=rank,
        BLOCK=128 if rank <= 16 else 32,
        num_warps=1,
    )
    return out.sum(1)
