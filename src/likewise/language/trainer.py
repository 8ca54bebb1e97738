"""transformers' Trainer with the matrix cross-entropy as its loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

try:
    from transformers import Trainer
except ImportError as error:  # the room itself needs only PyTorch
    raise ImportError(
        "MatrixTrainer needs transformers: pip install '.[language]' in the checkout. The loss "
        "alone, likewise.language.MatrixCrossEntropy, needs only PyTorch."
    ) from error

from likewise.language.causal import CausalMatrixLoss


class MatrixTrainer(Trainer):
    """``transformers.Trainer`` whose loss is cross-entropy plus matrix cross-entropy.

    Everything else is the Trainer's own; both parts of the loss are logged by name.

    Paper: matrix-ssl, appendix B.

    Args:
        *args: passed on.
        loss_options: options of `MatrixCrossEntropy`, such as ``{"top_k": 128}``.
        **kwargs: passed on.
    """

    def __init__(
        self, *args: Any, loss_options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        if kwargs.get("compute_loss_func") is not None:
            raise ValueError(
                "compute_loss_func is given: MatrixTrainer brings its own; use "
                "transformers.Trainer with compute_loss_func=CausalMatrixLoss(model)."
            )
        super().__init__(*args, **kwargs)
        self.matrix_loss = CausalMatrixLoss(self.model, **(loss_options or {}))
        self.compute_loss_func = self.matrix_loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Log, with the two parts of the loss beside their sum."""
        if "loss" in logs:
            logs = {**logs, **self.matrix_loss.means()}
        super().log(logs, *args, **kwargs)
