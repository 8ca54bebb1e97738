"""What may be passed to this room: each check names the argument, the value and the remedy."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from likewise.information.precision import at_least_float32

Method = Literal["exact", "taylor", "taylor-shifted"]


def floating(x: Tensor, name: str) -> Tensor:
    """Return `x` in float32 or float64, or raise if it is no finite, non-empty, real tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a torch tensor, got {type(x).__name__}; "
            f"convert it with torch.as_tensor({name})."
        )
    if not x.is_floating_point():
        raise ValueError(
            f"{name} must hold real floating-point numbers, got {x.dtype}; "
            f"convert it with {name}.float()."
        )
    if x.numel() == 0:
        raise ValueError(
            f"{name} must not be empty, got shape {tuple(x.shape)}; "
            "pass at least one row and one column."
        )
    if not bool(torch.isfinite(x).all()):
        bad = int((~torch.isfinite(x)).sum())
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {bad} of {x.numel()} "
            f"entries; look for the step before this one that diverged."
        )
    return at_least_float32(x)


def rows(z: Tensor, name: str = "z") -> Tensor:
    """Return embeddings (..., n, d) in float32 or float64, or raise."""
    z = floating(z, name)
    if z.ndim < 2:
        raise ValueError(
            f"{name} must have shape (..., n, d) with one row per sample, "
            f"got {tuple(z.shape)}; add the missing dimension with {name}[None]."
        )
    return z


def square(a: Tensor, name: str) -> Tensor:
    """Return square matrices (..., d, d) in float32 or float64, or raise."""
    a = floating(a, name)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"{name} must be a square matrix (..., d, d), got shape "
            f"{tuple(a.shape)}; from rows z (n, d) form z.mT @ z / n first."
        )
    return a


def symmetric_part(a: Tensor) -> Tensor:
    """(A + A^T) / 2."""
    return (a + a.mT) / 2


def symmetric(a: Tensor, name: str, dtype: torch.dtype, remedy: str) -> Tensor:
    """Return (A + A^T) / 2, or raise if A is not symmetric up to sqrt(eps) of its largest entry.

    Taking the symmetric part makes the gradient symmetric: it is the gradient over symmetric
    matrices. `dtype` is the type that the caller passed, whose eps sets the tolerance.
    """
    largest = float(a.detach().abs().max())
    gap = float((a.detach() - a.detach().mT).abs().max())
    if gap > math.sqrt(torch.finfo(dtype).eps) * largest:
        raise ValueError(
            f"{name} must be symmetric, got a matrix that differs from its transpose "
            f"by {gap:.3g} (largest entry {largest:.3g}); {remedy}."
        )
    return symmetric_part(a)


def method(value: str) -> Method:
    """Return the name of a way to take a matrix logarithm, or raise."""
    for known in get_args(Method):
        if value == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(
        f"method must be one of {', '.join(map(repr, get_args(Method)))}, "
        f"got {value!r}; 'exact' is right for every symmetric matrix."
    )


def order(value: int) -> int:
    """Return the order of a Taylor series, or raise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"order must be an integer of at least 1, got {value!r}; "
            "the matrix-ssl paper uses order=4."
        )
    return value


def non_negative(value: float, name: str) -> float:
    """Return a finite number >= 0, or raise."""
    if not math.isfinite(value) or value < 0:
        raise ValueError(
            f"{name} must be finite and not negative, got {value!r}; pass {name}=0.0 for none."
        )
    return float(value)


def positive(value: float, name: str) -> float:
    """Return a finite number > 0, or raise."""
    if not math.isfinite(value) or value <= 0:
        raise ValueError(
            f"{name} must be finite and positive, got {value!r}; pass {name}=0.5, for example."
        )
    return float(value)
