"""The quadrature of :mod:`.quadrature` as one Triton kernel: a program has one small matrix.

Thousands of matrices of ten rows are no work, but hundreds of calls: in PyTorch the host takes
longer to start them than the device takes for all products with Q. Everything is float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.language.quadrature import between
from likewise.language.tridiagonal import STEP, nodes

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

DEPENDENT = 1e-4
"""A vector of which less than this share (of its square) is new adds round-off, and no more."""

RULES = 4
"""Gauss, Gauss before the last product, and the upper rules after and before it."""


if triton is not None:

    @triton.jit
    def _column(a, index, j):  # type: ignore[no-untyped-def]
        return tl.sum(tl.where(index[None, :] == j, a, 0.0), 1)

    @triton.jit
    def _row(a, index, j):  # type: ignore[no-untyped-def]
        return tl.sum(tl.where(index[:, None] == j, a, 0.0), 0)

    @triton.jit
    def _entry(v, index, j):  # type: ignore[no-untyped-def]
        return tl.sum(tl.where(index == j, v, 0.0), 0)

    @triton.jit
    def _rules(  # type: ignore[no-untyped-def]
        gram,
        rest,
        residual,
        share,
        skip,
        node,
        corners,
        factor,
        own,
        count,
        k,
        node_count,
        STEP: tl.constexpr,
        DEPENDENT: tl.constexpr,
        SIZE: tl.constexpr,
        NODES: tl.constexpr,
    ):
        c, rule = tl.program_id(0), tl.program_id(1)
        if tl.load(skip + c) == 0:
            i = tl.arange(0, SIZE)
            both = (i[:, None] < k) & (i[None, :] < k)
            at = c * k * k + i[:, None] * k + i[None, :]
            G = tl.load(gram + at, mask=both, other=0.0)
            R = tl.load(rest + at, mask=both, other=0.0)
            least = tl.load(share + c)
            one = tl.where(i[:, None] == i[None, :], 1.0, 0.0).to(tl.float64)
            # Anything infinite makes 0 * x a NaN, which differs from itself.
            trace = tl.sum(tl.sum(G * 0.0 + R * 0.0, 1), 0) + least * 0.0
            broken = tl.where(trace == 0.0, 0, 1)
            size = tl.sum(tl.where(i[:, None] == i[None, :], G, 0.0), 1)
            there = tl.where((size > 0.0) & (i < k), 1, 0) * (1 - broken)
            outside = there[:, None] * there[None, :] == 0
            G = tl.where(outside, one, G)
            R = tl.where(outside, one, R)

            # G = C C^T; R becomes C^-1 R C^-T and W becomes C^-1. A vector that lies in the span of
            # those before it, up to round-off, becomes one on its own, with eigenvalue 1.
            W = one
            for j in range(0, k):
                column = _column(G, i, j)
                pivot_ = _entry(column, i, j)
                spent = pivot_ < DEPENDENT * _entry(size, i, j)
                alone = tl.where(i == j, 1.0, 0.0).to(tl.float64)
                s = tl.where(spent, 1.0, 1.0 / tl.sqrt(tl.maximum(pivot_, 1e-300)))
                low = tl.where((i > j) & (spent == 0), column * s, 0.0)
                G = G - low[:, None] * low[None, :]
                row = tl.where(spent, alone, _row(R, i, j) * s)
                R = tl.where(i[:, None] == j, row[None, :], R - low[:, None] * row[None, :])
                side = tl.where(spent, alone, _column(R, i, j) * s)
                R = tl.where(i[None, :] == j, side[:, None], R - side[:, None] * low[None, :])
                row = tl.where(spent, 0.0, _row(W, i, j) * s)
                W = tl.where(i[:, None] == j, row[None, :], W - low[:, None] * row[None, :])
            T = (R + tl.trans(R)) * 0.5
            T = T + tl.where((i[:, None] == 0) & (i[None, :] == 0), least, 0.0)

            # T = L L^T, z = L^-1 e_1: (T^-1)_11 and the last pivot of every leading block.
            diagonal = tl.sum(tl.where((i[:, None] == i[None, :]) & both, T, 0.0), 1)
            A = T + one * (2.220446049250313e-16 * tl.sum(diagonal, 0))
            b = tl.where(i == 0, 1.0, 0.0).to(tl.float64)
            z = tl.zeros((SIZE,), tl.float64)
            pivot = tl.zeros((SIZE,), tl.float64)
            for j in range(0, k):
                column = _column(A, i, j)
                s = tl.sqrt(tl.maximum(_entry(column, i, j), 1e-300))
                low = tl.where(i > j, column / s, 0.0)
                A = A - low[:, None] * low[None, :]
                zj = _entry(b, i, j) / s
                z = tl.where(i == j, zj, z)
                b = b - low * zj
                pivot = tl.where(i == j, s, pivot)

            # The matrix of this rule.
            m = tl.where((rule == 1) | (rule == 3), k - 1, k)
            A = tl.where((i[:, None] < m) & (i[None, :] < m), T, one)
            if rule >= 2:
                last = m - 1
                beta = tl.load(residual + c)
                if rule == 3:
                    beta = tl.abs(_entry(_column(T, i, k - 2), i, k - 1))
                moment = tl.sum(tl.where(i <= last, z * z, 0.0), 0)
                missing = tl.maximum(1.0 / least - moment, 2.2250738585072014e-308)
                zl = _entry(z, i, last)
                ratio = beta / _entry(pivot, i, last)
                extra = (zl * zl / missing + 1.0) * ratio * ratio
                # Not finite, or the space was exhausted: no further node.
                more = tl.where(beta > 0.0, tl.where(extra * 0.0 == 0.0, 1, 0), 0)
                extra = tl.where(more > 0, tl.minimum(extra, 1e3), 1.0)
                beta = tl.where(more > 0, beta, 0.0)
                extra = tl.where(m == 0, least, extra)
                beta = tl.where(m == 0, 0.0, beta)
                corner = (i[:, None] == m) & (i[None, :] == m)
                side_ = (i[:, None] == m) & (i[None, :] == last)
                side_ = side_ | ((i[None, :] == m) & (i[:, None] == last))
                A = tl.where(corner, extra, tl.where(side_, beta, A))

            # Householder's reflections leave e_1 and make A tridiagonal.
            P = one
            off = tl.zeros((SIZE,), tl.float64)
            for j in range(0, k - 1):
                v = tl.where(i > j, _column(A, i, j), 0.0)
                length = tl.sqrt(tl.sum(v * v, 0))
                v0 = _entry(v, i, j + 1)
                beta_j = tl.where(v0 < 0.0, length, -length)
                v0 = v0 - beta_j
                v = tl.where(i == j + 1, v0, v)
                u = v / tl.maximum(tl.abs(beta_j * v0), 2.2250738585072014e-308)
                p = tl.where(i > j, tl.sum(A * u[None, :], 1), 0.0)
                w = p - v * (tl.sum(u * p, 0) * 0.5)
                A = A - v[:, None] * w[None, :] - w[:, None] * v[None, :]
                off = tl.where(i == j, beta_j, off)
                if rule == 0:
                    P = P - tl.sum(P * u[None, :], 1)[:, None] * v[None, :]
            off = tl.where(i == k - 1, _entry(_column(A, i, k - 1), i, k), off)
            inside = i <= k
            diagonal = tl.sum(tl.where(i[:, None] == i[None, :], A, 0.0), 1)
            diagonal = tl.where(inside, diagonal, 0.0)

            # Pivots of A + s from the last row up, for all nodes s of the integral.
            e = tl.arange(0, NODES)
            s = tl.load(node + e, mask=e < node_count, other=1.0)
            weight = tl.where(e < node_count, STEP * s, 0.0)
            floor = s + 1e-15 * tl.sum(diagonal, 0)
            pivots = tl.zeros((SIZE, NODES), tl.float64)
            below = tl.maximum(_entry(diagonal, i, k) + s, floor)
            pivots = tl.where(i[:, None] == k, below[None, :], pivots)
            for step in range(0, k):
                j = k - 1 - step
                beta_j = _entry(off, i, j)
                here = _entry(diagonal, i, j) + s - beta_j * beta_j / below
                below = tl.maximum(here, tl.where(j > 0, floor, least + s))
                pivots = tl.where(i[:, None] == j, below[None, :], pivots)
            corner_value = tl.sum(weight * (1.0 / (1.0 + s) - 1.0 / below), 0)
            value = -corner_value
            tl.store(corners + rule * count + c, tl.where(broken > 0, float("nan"), value))

            if rule == 0:
                # The resolvents' first column, and D = sum of their outer products.
                y = tl.sqrt(weight) / below
                Y = tl.where(i[:, None] == 0, y[None, :], tl.zeros((SIZE, NODES), tl.float64))
                for j in range(1, k + 1):
                    pj = tl.sum(tl.where(i[:, None] == j, pivots, 0.0), 0)
                    y = -y * _entry(off, i, j - 1) / tl.where(pj > 0.0, pj, 1.0)
                    Y = tl.where(i[:, None] == j, y[None, :], Y)
                D = tl.zeros((SIZE, SIZE), tl.float64)
                for j in range(0, k + 1):
                    y = tl.sum(tl.where(i[:, None] == j, Y, 0.0), 0)
                    side = tl.sum(Y * y[None, :], 1)
                    D = tl.where(i[None, :] == j, side[:, None], D)
                B = tl.zeros((SIZE, SIZE), tl.float64)
                for j in range(0, k + 1):
                    B = B + _column(P, i, j)[:, None] * _row(D, i, j)[None, :]
                D = tl.zeros((SIZE, SIZE), tl.float64)
                for j in range(0, k + 1):
                    D = D + _column(B, i, j)[:, None] * _column(P, i, j)[None, :]
                own_value = _entry(_column(D, i, 0), i, 0)
                tl.store(own + c, tl.where(broken > 0, float("nan"), own_value))

                # D = L L^T, whose directions without weight get a trace of round-off.
                ridge = tl.sum(tl.where(i[:, None] == i[None, :], D, 0.0), 1)
                D = D + one * (1e-13 * ridge + 1e-300)[:, None]
                F = tl.zeros((SIZE, SIZE), tl.float64)
                for j in range(0, k):
                    column = _column(D, i, j)
                    piv = tl.sqrt(tl.maximum(_entry(column, i, j), 1e-300))
                    low = tl.where(i >= j, column / piv, 0.0)
                    low = tl.where(i < k, low, 0.0)
                    D = D - low[:, None] * low[None, :]
                    # Column j of C^-T L.
                    side = tl.sum(tl.trans(W) * low[None, :], 1)
                    F = tl.where(i[None, :] == j, side[:, None], F)
                F = tl.where(broken > 0, float("nan"), F)
                tl.store(factor + at, F.to(tl.float32), mask=both)


@dataclass
class Found:
    """What :class:`.quadrature.Estimate` has, as far as the gradient in the logits needs it."""

    value: Tensor
    error: Tensor
    factor: Tensor
    own: Tensor

    @staticmethod
    def empty(c: int, k: int, device: torch.device) -> Found:
        """Room for c positions with bases of k."""
        wide = torch.zeros(2, c, dtype=torch.float64, device=device)
        own = torch.zeros(c, dtype=torch.float64, device=device)
        return Found(wide[0], wide[1], torch.empty(c, k, k, device=device), own)


def rules(
    gram: Tensor,
    rest: Tensor,
    residual: Tensor,
    share: Tensor,
    skip: Tensor | None = None,
) -> Found:
    """:func:`.quadrature.estimate` for targets, (c, k, k) float64; not where `skip` is not 0."""
    c, k = gram.shape[:2]
    device = gram.device
    found = Found.empty(c, k, device)
    corners = torch.zeros(RULES, c, dtype=torch.float64, device=device)
    s = nodes(device)
    if skip is None:
        skip = torch.zeros(c, dtype=torch.int32, device=device)
    size = triton.next_power_of_2(k + 1)
    _rules[(c, RULES)](
        gram,
        rest,
        residual,
        share,
        skip,
        s,
        corners,
        found.factor,
        found.own,
        c,
        k,
        len(s),
        STEP=STEP,
        DEPENDENT=DEPENDENT,
        SIZE=size,
        NODES=triton.next_power_of_2(len(s)),
        num_warps=2 if size <= 16 else 4 if size <= 32 else 8,
    )
    lower, before, upper, above = corners
    upper = upper.maximum(lower)
    found.value, error = between(lower, upper, lower - before, above - upper)
    found.error = torch.where(torch.isfinite(error), error, 0.0)
    return found
