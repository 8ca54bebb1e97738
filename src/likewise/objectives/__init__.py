"""Every loss of this literature as ``objective(z, graph)``."""

from likewise.objectives.base import Batch, Objective
from likewise.objectives.contrastive import (
    BalancedContrastive,
    DecoupledContrastive,
    GeneralizedNTXent,
    InfoNCE,
    NTXent,
)
from likewise.objectives.prototype import PrototypeContrast

__all__ = [
    "BalancedContrastive",
    "Batch",
    "DecoupledContrastive",
    "GeneralizedNTXent",
    "InfoNCE",
    "NTXent",
    "Objective",
    "PrototypeContrast",
]
