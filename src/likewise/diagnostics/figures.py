"""What diagnostics answer with: figures, and notes on what could not be measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from torch import Tensor

UNDEFINED = math.nan
"""A figure that has no value for this input; a note of the result says why."""


@dataclass(frozen=True)
class Figures:
    """Named figures. NaN means undefined, and then `notes` says why.

    Attributes:
        notes: what a reader of the figures should know.
    """

    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, as JSON has them; an undefined figure is None."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


def plain(value: Any) -> Any:
    """`value` as JSON has it; NaN becomes None.

    >>> plain((1, float("nan"), np.array([2.0])))
    [1, None, [2.0]]
    """
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Figures):
        return value.to_dict()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
