"""Matrix products of tiles at full float32 accuracy, on tensor cores where the device has them.

A tensor core reads float32 numbers as TF32, which keeps 10 of the 23 mantissa bits. Written as
x = high + low with both parts in TF32, a product keeps float32 accuracy in three fast products:

    a b  =  a_low b_high + a_high b_low + a_high b_high  +  O(2^-22 |a| |b|)

(Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022). For A B^T the
three terms are one product over a threefold inner dimension, [a_low, a_high, a_high] .
[b_high, b_low, b_high]; the two corrections come first, so that they are added up while the
accumulator is still small.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

Precision = Literal["split", "ieee"]

DROPPED_BITS = 13  # float32 has 23 explicit mantissa bits, TF32 has 10
ALIGNMENT = 8  # columns; tensor-core kernels want rows that start on a 16-byte boundary


def tensor_cores(like: Tensor) -> bool:
    """Whether products with `like` can run as TF32: float32, NVIDIA, compute capability >= 8."""
    if not like.is_cuda or like.dtype != torch.float32 or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(like.device)[0] >= 8


@lru_cache
def _setting(device_type: str) -> tuple[Any, str] | None:
    """Where the precision of float32 products on this kind of device is set: object, attribute."""
    backend: Any = None
    if device_type == "cuda":
        backend = torch.backends.cuda.matmul
    elif device_type == "cpu":
        backend = getattr(torch.backends.mkldnn, "matmul", None)
    if backend is None:
        return None
    # Before PyTorch 2.9 there is only the older name. Where both exist, only one may be used.
    return backend, "fp32_precision" if hasattr(backend, "fp32_precision") else "allow_tf32"


def is_reduced(device: torch.device) -> bool:
    """Whether the user allows float32 products on this kind of device in a smaller format."""
    setting = _setting(device.type)
    return setting is not None and getattr(*setting) not in ("none", "ieee", False)


@contextmanager
def matmul_precision(device: torch.device, mode: Literal["tf32", "ieee"]) -> Iterator[None]:
    """Set the precision of float32 products, and put the user's setting back.

    Wraps single products only: the setting belongs to the whole process, and torch.compile may
    refuse to work while it disagrees with the setting under its older name, which stays untouched.
    """
    setting = _setting(device.type)
    if setting is None:
        yield
        return
    backend, name = setting
    before = getattr(backend, name)
    setattr(backend, name, mode if name == "fp32_precision" else mode == "tf32")
    try:
        yield
    finally:
        setattr(backend, name, before)


def round_to_tf32(x: Tensor, out: Tensor | None = None) -> Tensor:
    """x to the nearest number with 10 explicit mantissa bits (ties away from 0), as float32."""
    out = torch.empty_like(x) if out is None else out
    # A float32 is sign and magnitude, so adding half a unit to the bits rounds the magnitude.
    bits = torch.add(x.view(torch.int32), 1 << (DROPPED_BITS - 1), out=out.view(torch.int32))
    bits.bitwise_and_(-1 << DROPPED_BITS)
    return out


class Operand:
    """A matrix (n, d) prepared once for many products of its row blocks.

    `stacked` is the matrix itself, or with `split` its parts side by side, each `width` columns
    wide (d and a padding of zeros): [low, high, high] for the left side of A B^T, [high, low, high]
    for the right one.
    """

    def __init__(self, matrix: Tensor, side: Literal["left", "right"], split: bool) -> None:
        self.split = split
        self.width = matrix.shape[1]
        self.stacked = self.pair = self.high = matrix
        if not split:
            return
        columns = matrix.shape[1]
        self.width = width = -(-columns // ALIGNMENT) * ALIGNMENT
        self.stacked = matrix.new_zeros(matrix.shape[0], 3 * width)
        first, second, third = (self.stacked[:, i * width : i * width + columns] for i in range(3))
        low, high = (first, second) if side == "left" else (second, first)
        round_to_tf32(matrix, out=high)
        third.copy_(high)
        torch.sub(matrix, high, out=low)
        # A tensor core would cut bits off the low part; rounding first removes that bias.
        round_to_tf32(low, out=low)
        self.pair = self.stacked[:, : 2 * width]
        at = width if side == "left" else 0
        self.high = self.stacked[:, at : at + width]


def similarities(left: Operand, rows: slice, right: Operand, columns: slice, out: Tensor) -> Tensor:
    """left[rows] @ right[columns].T, written to `out`."""
    with matmul_precision(out.device, "tf32" if left.split else "ieee"):
        return torch.mm(left.stacked[rows], right.stacked[columns].T, out=out)


def split_(tile: Tensor, scratch: Tensor) -> tuple[Tensor, Tensor]:
    """(high, low) of a tile; `tile` becomes the low part and `scratch` the high one."""
    high = round_to_tf32(tile, out=scratch)
    return high, tile.sub_(high)


def accumulate_(
    total: Tensor, coefficients: tuple[Tensor, ...], operand: Operand, rows: slice
) -> None:
    """total += coefficients @ operand[rows], where a split operand wants (high, low)."""
    with matmul_precision(total.device, "tf32" if operand.split else "ieee"):
        if not operand.split:
            total.addmm_(coefficients[0], operand.stacked[rows])
            return
        high, low = coefficients
        both = torch.mm(high, operand.pair[rows])
        total.addmm_(low, operand.high[rows])
    total.add_(both[:, : operand.width]).add_(both[:, operand.width :])


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b.T at the accuracy of its inputs, whatever the user allows; differentiable twice."""
    if a.dtype == torch.float32 and is_reduced(a.device):
        exact: Tensor = _ExactProduct.apply(a, b)
        return exact
    return a @ b.T


class _ExactProduct(torch.autograd.Function):
    """a @ b.T in IEEE float32, backwards too, where the setting would be the user's again."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        with matmul_precision(a.device, "ieee"):
            return a @ b.T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        (gradient,) = gradients
        return (
            product(gradient, b.T) if ctx.needs_input_grad[0] else None,
            product(gradient.T, a.T) if ctx.needs_input_grad[1] else None,
        )
