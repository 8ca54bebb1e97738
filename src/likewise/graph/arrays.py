"""NumPy in, NumPy out: the boundary between the user's arrays and the tensors inside."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

Array: TypeAlias = "Tensor | np.ndarray[Any, Any]"


def as_tensor(value: Any, device: torch.device | str | None = None) -> Tensor:
    """`value` as a tensor, sharing memory with it where that is possible."""
    if isinstance(value, Tensor):
        return value if device is None else value.to(device)
    return torch.as_tensor(np.asarray(value), device=device)


def is_numpy(*values: Any) -> bool:
    """Whether the caller speaks NumPy: an array was given, and no tensor."""
    return any(isinstance(value, np.ndarray) for value in values) and not any(
        isinstance(value, Tensor) for value in values
    )


def in_kind(result: Tensor, numpy: bool) -> Any:
    """`result` as an array for a caller who speaks NumPy."""
    return result.detach().cpu().numpy() if numpy else result


def floating(tensor: Tensor) -> Tensor:
    """A floating tensor of at least float32: half precision loses whole samples in a sum."""
    if tensor.dtype in (torch.float32, torch.float64):
        return tensor
    return tensor.to(torch.float32 if tensor.is_floating_point() else torch.get_default_dtype())
