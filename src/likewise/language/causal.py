"""The loss in the shape that training scripts call: model outputs and unshifted labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from likewise.language.loss import MatrixCrossEntropy


class CausalMatrixLoss:
    """`MatrixCrossEntropy` of a causal language model, as Hugging Face trainers take it.

    Give it to ``transformers.Trainer`` or TRL's ``SFTTrainer`` as ``compute_loss_func``. Logits
    at position i predict label i + 1; positions labelled `ignore_index` (the prompt, padding) do
    not count. Over several batches of one optimiser step the sum is divided by
    `num_items_in_batch`, so that accumulating gradients changes nothing.

    Args:
        model: the language model, plain or wrapped by PEFT. Its output embeddings are the token
            embeddings, as in the paper's experiments (matrix-ssl, appendix B).
        **options: those of `MatrixCrossEntropy`, but for the reduction.

    Example:
        >>> import torch
        >>> model = torch.nn.Embedding(7, 4)
        >>> model.get_output_embeddings = lambda: model
        >>> loss = CausalMatrixLoss(model, top_k=5)
        >>> outputs = {"logits": torch.zeros(1, 3, 7, requires_grad=True)}
        >>> loss(outputs, torch.tensor([[-100, 2, 3]])).shape
        torch.Size([])
    """

    def __init__(self, model: nn.Module | None, **options: Any) -> None:
        find: Any = getattr(model, "get_output_embeddings", None)
        head = None if find is None else find()
        if head is None:
            raise ValueError(
                f"model is a {type(model).__name__} without output embeddings: give a causal "
                "language model (AutoModelForCausalLM), or use MatrixCrossEntropy(embedding)."
            )
        if "reduction" in options:
            raise ValueError(
                f"reduction is {options['reduction']!r}: leave it out, the trainer says what to "
                "divide by."
            )
        self.loss = MatrixCrossEntropy(head, reduction="sum", **options)
        self._sums = torch.zeros(3, dtype=torch.float64)

    def __call__(
        self,
        outputs: Any,
        labels: Tensor | None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """The loss of a batch; `labels` (batch, length) stand as the model's inputs do."""
        if labels is None:
            raise ValueError("labels are missing from the batch: give labels (batch, length).")
        logits = outputs["logits"] if isinstance(outputs, dict) else outputs.logits
        wanted = labels[:, 1:].to(logits.device)
        total: Tensor = self.loss(logits[:, :-1], wanted)
        kept = (wanted != self.loss.ignore_index).sum()
        self._note(kept)
        items = kept.clamp_min(1) if num_items_in_batch is None else num_items_in_batch
        return total / (items.to(total.device) if isinstance(items, Tensor) else items)

    def _note(self, kept: Tensor) -> None:
        last = self.loss.last
        assert last is not None
        sums = (last.cross_entropy.sum(), last.matrix_cross_entropy.sum(), kept)
        # Left on the device: reading them here would make every step wait.
        self._sums = self._sums.to(kept.device) + torch.stack([x.double() for x in sums])

    def means(self) -> dict[str, float]:
        """Mean cross-entropy and matrix cross-entropy a token since the last call."""
        entropy, matrix, kept = self._sums.tolist()
        self._sums.zero_()
        if not kept:
            return {}
        return {"cross_entropy": entropy / kept, "matrix_cross_entropy": matrix / kept}
