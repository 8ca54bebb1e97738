"""Float32 at least, whatever autocast says; and how large round-off then is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def without_autocast(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run `function` with autocast switched off on the device of its first tensor argument.

    `eigh`, `cholesky` and `svdvals` do not exist in half precision, and an autocast matrix
    product would round a Gram matrix to 8 bits before its logarithm is taken.
    """

    @wraps(function)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        tensors = (x for x in (*args, *kwargs.values()) if isinstance(x, Tensor))
        device = next((x.device.type for x in tensors), "cpu")
        # Entering a context costs as much as a small kernel: only where there is one to leave.
        if not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return wrapped


def at_least_float32(x: Tensor) -> Tensor:
    """Cast half precision up to float32; leave float32 and float64 alone."""
    if x.dtype in (torch.float32, torch.float64):
        return x
    return x.to(torch.promote_types(x.dtype, torch.float32))


def wide(x: Tensor) -> Tensor:
    """Cast to float64 for a cheap scalar sum (float32 on MPS, which has no float64)."""
    return x.to(torch.float32 if x.device.type == "mps" else torch.float64)


def frobenius(a: Tensor) -> Tensor:
    """Frobenius norm (...) of matrices (..., m, n); the squares neither overflow nor vanish."""
    norm: Tensor = torch.linalg.vector_norm(wide(a), dim=(-2, -1))
    return norm.to(a.dtype)


def rounding(dtype: torch.dtype) -> float:
    """Round-off in an eigenvalue or singular value, as a share of the Frobenius norm.

    A matrix of type `dtype` has entries that are off by half a unit in the last place, which moves
    its eigenvalues by less than eps |A|_F; the factorisation in float32 (or float64) adds its own
    few eps. Measured for Gram matrices of up to 1024 dimensions: at most 4 eps; 8 eps is used.
    """
    computed = torch.promote_types(dtype, torch.float32)
    share = 8 * torch.finfo(computed).eps
    return share if computed == dtype else share + torch.finfo(dtype).eps
