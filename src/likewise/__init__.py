"""Likewise learns representations from who is alike."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.commands.embed import embed
    from likewise.commands.evaluate import evaluate
    from likewise.commands.export import export
    from likewise.commands.train import train
    from likewise.graph import Graph
    from likewise.runs import Run

__version__ = "0.1.0"
__all__ = ["Graph", "Run", "__version__", "embed", "evaluate", "export", "train"]

_HOMES = {
    "Graph": "likewise.graph",
    "Run": "likewise.runs",
    "embed": "likewise.commands.embed",
    "evaluate": "likewise.commands.evaluate",
    "export": "likewise.commands.export",
    "train": "likewise.commands.train",
}


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import: `likewise --help` does without it.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'likewise' has no attribute {name!r}")
