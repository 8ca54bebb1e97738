"""Likewise learns representations from who is alike."""

from likewise.graph import Graph

__version__ = "0.1.0"
__all__ = ["Graph", "__version__"]
