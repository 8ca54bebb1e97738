"""Triton kernels that pass over rows of logits: softmax, selection, weighting, gradient.

A program has one position. Probabilities are made of the logits and their log-sum-exp wherever
they are needed, so that no array of them is ever written.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # no GPU build: the plain path serves
    triton = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
BLOCK = 4096


def kernels_work_on(x: Tensor) -> bool:
    """Whether the kernels can take this tensor: CUDA from compute capability 8, or a test."""
    if triton is None:
        return False
    if x.is_cuda:
        return torch.cuda.get_device_capability(x.device) >= (8, 0)
    return INTERPRETED


if triton is not None:

    @triton.jit
    def _softmax(  # type: ignore[no-untyped-def]
        logits,
        position,
        label,
        log_sum,
        log_share,
        gradient,
        n,
        factor,
        DENSE: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        c = tl.program_id(0)
        row = tl.load(position + c).to(tl.int64) * n
        target = tl.load(label + c)
        columns = tl.arange(0, BLOCK)
        high = tl.full((BLOCK,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for begin in range(0, n, BLOCK):
            at = begin + columns
            x = tl.load(logits + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
            # Not tl.maximum, which drops NaN: a step that diverged is to be seen.
            above = tl.where(x <= high, high, x)
            known = above > -float("inf")
            before = tl.where(known, tl.exp(high - above), 0.0)
            total = total * before + tl.where(x == -float("inf"), 0.0, tl.exp(x - above))
            high = above
        most = tl.max(high, 0)
        part = tl.where(total == 0.0, 0.0, total * tl.exp(high - most))
        whole = most + tl.log(tl.sum(part, 0))
        tl.store(log_sum + c, whole)
        tl.store(log_share + c, tl.load(logits + row + target).to(tl.float32) - whole)
        if DENSE:
            for begin in range(0, n, BLOCK):
                at = begin + columns
                x = tl.load(logits + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
                slope = factor * (tl.exp(x - whole) - tl.where(at == target, 1.0, 0.0))
                tl.store(gradient + row + at, slope, mask=at < n)

    @triton.jit
    def _key(x, BITS: tl.constexpr):  # type: ignore[no-untyped-def]
        """Integers from 0 in the order of the numbers, of which the first BITS bits count."""
        raw = x.to(tl.float32).to(tl.uint32, bitcast=True)
        key = tl.where(raw >= 0x80000000, raw ^ 0xFFFFFFFF, raw | 0x80000000)
        if BITS == 16:
            return (key >> 16).to(tl.int32)
        else:
            return key.to(tl.int64)

    @triton.jit
    def _select(  # type: ignore[no-untyped-def]
        logits,
        position,
        label,
        tokens,
        slot,
        n,
        k,
        BITS: tl.constexpr,
        WIDTH: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """The k largest logits, the target always among them, in the order of the columns."""
        c = tl.program_id(0)
        row = tl.load(position + c).to(tl.int64) * n
        target = tl.load(label + c)
        columns = tl.arange(0, BLOCK)
        WIDE: tl.constexpr = tl.int32 if BITS == 16 else tl.int64
        top = tl.full((), (1 << BITS) - 1, WIDE)
        # The largest key that k tokens reach, two bits at a time.
        level = tl.full((), 0, WIDE)
        for step in tl.static_range(0, BITS // 2):
            unit = tl.full((), 1 << (BITS - 2 - 2 * step), WIDE)
            one = tl.zeros((BLOCK,), tl.int32)
            two = tl.zeros((BLOCK,), tl.int32)
            three = tl.zeros((BLOCK,), tl.int32)
            for begin in range(0, n, BLOCK):
                at = begin + columns
                x = tl.load(logits + row + at, mask=at < n, other=-float("inf"))
                key = tl.where(at == target, top, _key(x, BITS))
                key = tl.where(at < n, key, -1)
                one += (key >= level + unit).to(tl.int32)
                two += (key >= level + 2 * unit).to(tl.int32)
                three += (key >= level + 3 * unit).to(tl.int32)
            more = (tl.sum(one, 0) >= k).to(WIDE)
            more += (tl.sum(two, 0) >= k).to(WIDE)
            more += (tl.sum(three, 0) >= k).to(WIDE)
            level += more * unit
        above = tl.zeros((BLOCK,), tl.int32)
        for begin in range(0, n, BLOCK):
            at = begin + columns
            x = tl.load(logits + row + at, mask=at < n, other=-float("inf"))
            key = tl.where(at == target, top, _key(x, BITS))
            above += ((at < n) & (key > level)).to(tl.int32)
        first = tl.sum(above, 0)
        # Those above the level first, then as many of those at the level as there is room for.
        clear = tl.full((), 0, tl.int32)
        level_count = first
        for begin in range(0, n, BLOCK):
            at = begin + columns
            x = tl.load(logits + row + at, mask=at < n, other=-float("inf"))
            key = tl.where(at == target, top, _key(x, BITS))
            key = tl.where(at < n, key, -1)
            over = (key > level).to(tl.int32)
            equal = (key == level).to(tl.int32)
            place = tl.where(
                over > 0,
                clear + tl.cumsum(over, 0) - 1,
                level_count + tl.cumsum(equal, 0) - 1,
            )
            taken = (over + equal > 0) & (place < k)
            tl.store(tokens + c * WIDTH + place, at, mask=taken)
            tl.store(slot + c + 0 * at, place, mask=taken & (at == target))
            clear += tl.sum(over, 0)
            level_count += tl.sum(equal, 0)

    @triton.jit
    def _weigh(  # type: ignore[no-untyped-def]
        image,
        logits,
        position,
        log_sum,
        inverse_norm,
        weighted,
        square,
        n,
        BLOCK: tl.constexpr,
    ):
        c = tl.program_id(0)
        row = tl.load(position + c).to(tl.int64) * n
        own = c.to(tl.int64) * n
        whole = tl.load(log_sum + c)
        columns = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for begin in range(0, n, BLOCK):
            at = begin + columns
            inside = at < n
            y = tl.load(image + own + at, mask=inside, other=0.0)
            x = tl.load(logits + row + at, mask=inside, other=-float("inf")).to(tl.float32)
            scale = tl.load(inverse_norm + at, mask=inside, other=0.0)
            wide = tl.exp(x - whole) * scale * scale * y
            total += wide * y
            tl.store(weighted + own + at, wide, mask=inside)
        tl.store(square + c, tl.sum(total, 0))

    @triton.jit
    def _slope(  # type: ignore[no-untyped-def]
        image,
        stride,
        logits,
        position,
        label,
        log_sum,
        inverse_norm,
        factor,
        own,
        total,
        done,
        gradient,
        n,
        k,
        entropy_weight,
        matrix_weight,
        RANK: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """Gradient of a position's loss in all its logits; `own` is that of the target's share."""
        c = tl.program_id(0)
        if tl.load(done + c) != 0:
            row = tl.load(position + c).to(tl.int64) * n
            target = tl.load(label + c)
            whole = tl.load(log_sum + c)
            mine = tl.load(own + c)
            sum_ = tl.load(total + c)
            a = tl.arange(0, RANK)
            inside = (a[:, None] < k) & (a[None, :] < k)
            # Transposed: (r, a).
            turned = tl.load(
                factor + c * k * k + a[None, :] * k + a[:, None], mask=inside, other=0.0
            )
            for begin in range(0, n, BLOCK):
                at = begin + tl.arange(0, BLOCK)
                here = at < n
                y = tl.load(
                    image + a[:, None].to(tl.int64) * stride + c.to(tl.int64) * n + at[None, :],
                    mask=(a[:, None] < k) & here[None, :],
                    other=0.0,
                )
                x = tl.load(logits + row + at, mask=here, other=-float("inf")).to(tl.float32)
                scale = tl.load(inverse_norm + at, mask=here, other=0.0)
                q = tl.exp(x - whole)
                z = tl.dot(turned, y * scale[None, :], input_precision="tf32x3")
                mass = tl.where(at == target, -mine, -q * tl.sum(z * z, 0))
                slope = entropy_weight * (q - tl.where(at == target, 1.0, 0.0))
                slope += matrix_weight * (mass + q * sum_)
                tl.store(gradient + row + at, slope, mask=here)


def softmax(
    logits: Tensor, position: Tensor, label: Tensor, gradient: Tensor | None, factor: float
) -> tuple[Tensor, Tensor]:
    """log-sum-exp and log q_t of the rows `position`; factor (q - 1_t) into `gradient`."""
    c, n = len(position), logits.shape[1]
    log_sum, log_share = logits.new_empty(2, c, dtype=torch.float32)
    into = logits if gradient is None else gradient
    dense = gradient is not None
    _softmax[(c,)](
        logits, position, label, log_sum, log_share, into, n, factor, DENSE=dense, BLOCK=BLOCK
    )
    return log_sum, log_share


def select(logits: Tensor, position: Tensor, label: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k most probable tokens (c, k), the target among them, and the target's place (c,)."""
    c = len(position)
    tokens = torch.empty(c, k, dtype=torch.int32, device=logits.device)
    slot = torch.empty(c, dtype=torch.int32, device=logits.device)
    bits = 16 if logits.dtype == torch.bfloat16 else 32  # a bfloat16 is half a float32
    n = logits.shape[1]
    _select[(c,)](
        logits, position, label, tokens, slot, n, k, BITS=bits, WIDTH=k, BLOCK=2048, num_warps=8
    )
    return tokens, slot


def weigh(
    image: Tensor, logits: Tensor, position: Tensor, log_sum: Tensor, inverse_norm: Tensor
) -> tuple[Tensor, Tensor]:
    """q o |e|^-2 o `image` in bfloat16, (c, n), and v^T Q v, (c,), of image = E v."""
    c, n = image.shape
    weighted = image.new_empty(c, n, dtype=torch.bfloat16)
    square = image.new_empty(c)
    _weigh[(c,)](
        image, logits, position, log_sum, inverse_norm, weighted, square, n, BLOCK=2048, num_warps=8
    )
    return weighted, square


def slope(
    images: Tensor,
    logits: Tensor,
    position: Tensor,
    label: Tensor,
    log_sum: Tensor,
    inverse_norm: Tensor,
    factor: Tensor,
    own: Tensor,
    total: Tensor,
    done: Tensor,
    gradient: Tensor,
    weights: tuple[float, float],
) -> None:
    """Both losses' gradient in the logits into `gradient`, where `done`."""
    k, c, n = images.shape
    rank = max(16, triton.next_power_of_2(k))
    _slope[(c,)](
        images,
        images.stride(0),
        logits,
        position,
        label,
        log_sum,
        inverse_norm,
        factor,
        own,
        total,
        done,
        gradient,
        n,
        k,
        *weights,
        RANK=rank,
        BLOCK=256 if rank <= 16 else 128 if rank <= 32 else 64,
        num_warps=4,
    )
