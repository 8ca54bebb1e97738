"""The papers' figures and claims, as experiments that run: one folder a paper.

>>> from likewise.reproduce import reproduction
>>> reproduction("pal-3").claim[:34]
'Asking with templates (algorithm 3'
"""

from likewise.reproduce.findings import (
    Check,
    Figure,
    Findings,
    Reproduction,
    TrainedReproduction,
)
from likewise.reproduce.registry import REPRODUCTIONS, reproduction, select

__all__ = [
    "REPRODUCTIONS",
    "Check",
    "Figure",
    "Findings",
    "Reproduction",
    "TrainedReproduction",
    "reproduction",
    "select",
]
