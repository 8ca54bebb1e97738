"""Triton kernels for a few tokens a position: their Gram matrix, Lanczos on it, the gradient.

The whole basis of a position grows inside one program that holds the Gram matrix in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.language.density import UnitRows
from likewise.language.device_rows import INTERPRETED

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

MOST = 128
"""Tokens whose Gram matrix fits into the registers of a program."""


if triton is not None:

    @triton.jit
    def _gram(  # type: ignore[no-untyped-def]
        weight,
        tokens,
        inverse_norm,
        gram,
        m,
        d,
        WIDE: tl.constexpr,
        SIZE: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        c = tl.program_id(0)
        i = tl.arange(0, SIZE)
        token = tl.load(tokens + c * m + i, mask=i < m, other=0)
        row = token.to(tl.int64) * d
        total = tl.zeros((SIZE, SIZE), tl.float32)
        for begin in range(0, d, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            inside = (i[:, None] < m) & (at[None, :] < d)
            part = tl.load(weight + row[:, None] + at[None, :], mask=inside, other=0.0)
            if WIDE:
                part = part.to(tl.float32)
            total = tl.dot(part, tl.trans(part), total)
        scale = tl.load(inverse_norm + token, mask=i < m, other=0.0)
        total = total * scale[:, None] * scale[None, :]
        both = (i[:, None] < m) & (i[None, :] < m)
        tl.store(gram + c.to(tl.int64) * m * m + i[:, None] * m + i[None, :], total, mask=both)

    @triton.jit
    def _lanczos(  # type: ignore[no-untyped-def]
        gram,
        logits,
        position,
        tokens,
        slot,
        skip,
        image,
        inner,
        rest,
        residual,
        log_share,
        log_part,
        n,
        m,
        k,
        SIZE: tl.constexpr,
        RANK: tl.constexpr,
    ):
        c = tl.program_id(0)
        if tl.load(skip + c) == 0:
            i = tl.arange(0, SIZE)
            a = tl.arange(0, RANK)
            both = (i[:, None] < m) & (i[None, :] < m)
            at = c.to(tl.int64) * m * m + i[:, None] * m + i[None, :]
            G = tl.load(gram + at, mask=both, other=0.0)
            token = tl.load(tokens + c * m + i, mask=i < m, other=0)
            row = tl.load(position + c).to(tl.int64) * n
            x = tl.load(logits + row + token, mask=i < m, other=-float("inf")).to(tl.float64)
            target = tl.load(slot + c)
            # Probabilities of these tokens alone; a NaN among them is to be seen.
            most = tl.max(x, 0)
            whole = most + tl.log(tl.sum(tl.exp(x - most), 0))
            log_q = x - whole
            tl.store(log_part + c, whole)
            tl.store(log_share + c, tl.sum(tl.where(i == target, log_q, 0.0), 0))
            q = tl.exp(log_q)
            root = tl.exp(log_q * 0.5)

            v = tl.where(i == target, 1.0, 0.0).to(tl.float64)
            V = tl.zeros((RANK, SIZE), tl.float64)
            U = tl.zeros((RANK, SIZE), tl.float64)
            alive = tl.full((), 1.0, tl.float64)
            # u = G v, by columns, as G is symmetric.
            u = tl.sum(G.to(tl.float64) * v[:, None], 0)
            short = 1.0 / tl.sqrt(tl.sum(u * v, 0))
            v = v * short
            u = u * short
            for j in range(0, k):
                V = tl.where(a[:, None] == j, v[None, :], V)
                U = tl.where(a[:, None] == j, u[None, :], U)
                image_j = root * u
                tl.store(image + (c * k + j).to(tl.int64) * m + i, image_j, mask=i < m)
                others = tl.where(i == target, 0.0, q * u)
                h = tl.sum(U * others[None, :], 1)
                tl.store(rest + c * k * k + j * k + a, h, mask=a <= j)
                tl.store(rest + c * k * k + a * k + j, h, mask=a <= j)
                same = tl.where(a == j, alive, 0.0)
                tl.store(inner + c * k * k + j * k + a, same, mask=a < k)
                # Q v over the tokens, made orthogonal to all before, twice.
                w = q * u
                for _ in range(0, 2):
                    overlap = tl.sum(U * w[None, :], 1)
                    w = w - tl.sum(V * overlap[:, None], 0)
                g = tl.sum(G.to(tl.float64) * w[:, None], 0)
                length = tl.sqrt(tl.maximum(tl.sum(g * w, 0), 0.0))
                # Coefficients that cancel out leave the float32 round-off of the entries of G.
                noise = 1e-8 * tl.sqrt(tl.sum(image_j * image_j, 0))
                noise = tl.maximum(noise, 5e-4 * tl.sum(tl.abs(w), 0))
                alive = tl.where(length > noise, 1.0, 0.0).to(tl.float64)
                tl.store(residual + c, tl.where(length > noise, length, 0.0))
                inverse = tl.where(length > noise, 1.0 / length, 0.0)
                v = w * inverse
                u = g * inverse

    @triton.jit
    def _scatter(  # type: ignore[no-untyped-def]
        image,
        logits,
        position,
        tokens,
        slot,
        log_sum,
        log_part,
        factor,
        own,
        total,
        done,
        gradient,
        n,
        m,
        k,
        entropy_weight,
        matrix_weight,
        SIZE: tl.constexpr,
        RANK: tl.constexpr,
    ):
        c = tl.program_id(0)
        if tl.load(done + c) != 0:
            i = tl.arange(0, SIZE)
            a = tl.arange(0, RANK)
            inside = (a[:, None] < k) & (a[None, :] < k)
            turned = tl.load(
                factor + c * k * k + a[None, :] * k + a[:, None], mask=inside, other=0.0
            )
            y = tl.load(
                image + c.to(tl.int64) * k * m + a[:, None] * m + i[None, :],
                mask=(a[:, None] < k) & (i[None, :] < m),
                other=0.0,
            )
            token = tl.load(tokens + c * m + i, mask=i < m, other=0)
            row = tl.load(position + c).to(tl.int64) * n
            x = tl.load(logits + row + token, mask=i < m, other=-float("inf")).to(tl.float32)
            target = tl.load(slot + c)
            z = tl.dot(turned, y, input_precision="tf32x3")
            mass = tl.where(i == target, -tl.load(own + c), -tl.sum(z * z, 0))
            # Among all tokens for the cross-entropy, and among these for the density.
            whole = tl.exp(x - tl.load(log_sum + c))
            q = tl.exp(x - tl.load(log_part + c))
            slope = entropy_weight * (whole - tl.where(i == target, 1.0, 0.0))
            slope += matrix_weight * (mass + q * tl.load(total + c))
            tl.store(gradient + row + token, slope, mask=i < m)


def gram(rows: UnitRows, tokens: Tensor) -> Tensor:
    """Inner products of the unit embeddings of `tokens` (c, m): (c, m, m), float32."""
    c, m = tokens.shape
    weight = rows.weight
    out = rows.inverse_norm.new_empty(c, m, m)
    size = max(16, triton.next_power_of_2(m))
    _gram[(c,)](
        weight,
        tokens,
        rows.inverse_norm,
        out,
        m,
        weight.shape[1],
        WIDE=INTERPRETED,  # Triton's interpreter multiplies the bits of bfloat16 as integers
        SIZE=size,
        BLOCK=64,
        num_warps=8 if size >= 128 else 4,
        num_stages=4,
    )
    return out


@dataclass
class TopBasis:
    """A Krylov basis over some tokens at c positions."""

    images: Tensor
    """sqrt(q) o (E v), (c, k, m), float32."""
    gram: Tensor
    """V^T V, (c, k, k), float64: 1, or 0 where the space was exhausted."""
    rest: Tensor
    """V^T Q V without the target's own term."""
    residual: Tensor
    log_share: Tensor
    """log q_t among these tokens, (c,), float64."""
    log_part: Tensor
    """log-sum-exp of these tokens' logits, (c,), float32."""


def lanczos(
    gram: Tensor,
    logits: Tensor,
    position: Tensor,
    tokens: Tensor,
    slot: Tensor,
    k: int,
    skip: Tensor,
) -> TopBasis:
    """k products from the target, at the positions where `skip` is 0."""
    c, m = tokens.shape
    inner, rest = torch.empty(2, c, k, k, dtype=torch.float64, device=gram.device)
    residual, log_share = torch.zeros(2, c, dtype=torch.float64, device=gram.device)
    images = torch.empty(c, k, m, device=gram.device)
    log_part = torch.zeros(c, device=gram.device)
    out = TopBasis(images, inner, rest, residual, log_share, log_part)
    _lanczos[(c,)](
        gram,
        logits,
        position,
        tokens,
        slot,
        skip,
        out.images,
        out.gram,
        out.rest,
        out.residual,
        out.log_share,
        out.log_part,
        logits.shape[1],
        m,
        k,
        SIZE=max(16, triton.next_power_of_2(m)),
        RANK=max(16, triton.next_power_of_2(k)),
        num_warps=8,
    )
    return out


def scatter(
    basis: TopBasis,
    logits: Tensor,
    position: Tensor,
    tokens: Tensor,
    slot: Tensor,
    log_sum: Tensor,
    factor: Tensor,
    own: Tensor,
    total: Tensor,
    done: Tensor,
    gradient: Tensor,
    weights: tuple[float, float],
) -> None:
    """Both losses' gradient in the logits of `tokens` into `gradient`, where `done`."""
    c, k, m = basis.images.shape
    _scatter[(c,)](
        basis.images,
        logits,
        position,
        tokens,
        slot,
        log_sum,
        basis.log_part,
        factor,
        own,
        total,
        done,
        gradient,
        logits.shape[1],
        m,
        k,
        *weights,
        SIZE=max(16, triton.next_power_of_2(m)),
        RANK=max(16, triton.next_power_of_2(k)),
        num_warps=4,
    )
