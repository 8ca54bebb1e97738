"""Likewise learns representations from who is alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.graph import Graph

__version__ = "0.1.0"
__all__ = ["Graph", "__version__"]


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import: `likewise --help` does without it.
    if name == "Graph":
        from likewise.graph import Graph

        return Graph
    raise AttributeError(f"module 'likewise' has no attribute {name!r}")
