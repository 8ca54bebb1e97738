"""Training an encoder: recipes, batches, and the loop on Lightning's Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.training.learner import Learner
from likewise.training.machine import Machine
from likewise.training.recipe import Recipe
from likewise.training.recipes import RECIPES, recipe

if TYPE_CHECKING:
    from likewise.training.fit import Outcome, fit
    from likewise.training.module import Optimization

__all__ = [
    "RECIPES",
    "Learner",
    "Machine",
    "Optimization",
    "Outcome",
    "Recipe",
    "fit",
    "recipe",
]

_LAZY = {"fit": "fit", "Outcome": "fit", "Optimization": "module"}


def __getattr__(name: str) -> Any:
    # Lightning takes seconds to import, and a learner needs none of it.
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"likewise.training.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'likewise.training' has no attribute {name!r}")
