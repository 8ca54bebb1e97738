"""Likewise learns representations from who is alike."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.commands.classify import classify
    from likewise.commands.cluster import cluster
    from likewise.commands.duplicates import duplicates
    from likewise.commands.embed import embed
    from likewise.commands.evaluate import evaluate
    from likewise.commands.export import export
    from likewise.commands.report import report
    from likewise.commands.search import search
    from likewise.commands.split import split
    from likewise.commands.subset import subset
    from likewise.commands.train import train
    from likewise.graph import Graph
    from likewise.runs import Run

__version__ = "0.1.0"
__all__ = [
    "Graph",
    "Run",
    "__version__",
    "classify",
    "cluster",
    "duplicates",
    "embed",
    "evaluate",
    "export",
    "report",
    "search",
    "split",
    "subset",
    "train",
]

_HOMES = {
    "Graph": "likewise.graph",
    "Run": "likewise.runs",
    "embed": "likewise.commands.embed",
    "evaluate": "likewise.commands.evaluate",
    "export": "likewise.commands.export",
    "report": "likewise.commands.report",
    "classify": "likewise.commands.classify",
    "cluster": "likewise.commands.cluster",
    "duplicates": "likewise.commands.duplicates",
    "search": "likewise.commands.search",
    "split": "likewise.commands.split",
    "subset": "likewise.commands.subset",
    "train": "likewise.commands.train",
}


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import: `likewise --help` does without it.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'likewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
