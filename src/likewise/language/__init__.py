"""Matrix cross-entropy for language models.

The loss and the metrics need PyTorch alone; `MatrixTrainer` and the commands need
``likewise[language]``.
"""

from typing import TYPE_CHECKING, Any

from likewise.language.causal import CausalMatrixLoss
from likewise.language.loss import MatrixCrossEntropy
from likewise.language.metrics import predictive_entropy, predictive_rank, synonym_mass

if TYPE_CHECKING:
    from likewise.language.trainer import MatrixTrainer

__all__ = [
    "CausalMatrixLoss",
    "MatrixCrossEntropy",
    "MatrixTrainer",
    "predictive_entropy",
    "predictive_rank",
    "synonym_mass",
]


def __getattr__(name: str) -> Any:
    """Import transformers only for those who ask for the trainer."""
    if name == "MatrixTrainer":
        from likewise.language.trainer import MatrixTrainer

        return MatrixTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
