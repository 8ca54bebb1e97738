"""What may be passed to this room: each check names the argument, the value and the remedy."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from torch import Tensor, nn

Number = TypeVar("Number", int, float)


def weights_of(embedding: nn.Module | Tensor) -> Tensor:
    """The matrix (n, d) of a linear layer, an embedding or a tensor, or raise."""
    weight = embedding if isinstance(embedding, Tensor) else getattr(embedding, "weight", None)
    if not isinstance(weight, Tensor):
        raise TypeError(
            f"embedding is a {type(embedding).__name__} without a weight: give the LM head "
            "(model.get_output_embeddings()), an nn.Embedding, or a tensor (n, d)."
        )
    if weight.ndim != 2 or not weight.is_floating_point() or weight.numel() == 0:
        raise ValueError(
            f"embedding has shape {tuple(weight.shape)} and type {weight.dtype}: give one "
            "floating-point row a token, (n, d)."
        )
    return weight


def one_of(value: Any, name: str, known: tuple[Any, ...]) -> Any:
    """Return `value` if it is known, or raise."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}: give one of {', '.join(map(repr, known))}.")
    return value


def at_least(value: Number, least: Number, name: str) -> Number:
    """Return a number that is finite and not below `least`, or raise."""
    whole = isinstance(least, int)
    if isinstance(value, bool) or (whole and not isinstance(value, int)):
        raise ValueError(f"{name} is {value!r}: give a whole number of at least {least}.")
    if not math.isfinite(value) or value < least:
        raise ValueError(f"{name} is {value!r}: give a number of at least {least}.")
    return value


def share(value: float, name: str) -> float:
    """Return a number from 0 to below 1, or raise."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} is {value!r}: give a number from 0 to below 1, such as 0.1.")
    return float(value)
