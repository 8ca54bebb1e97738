"""Checkpoints that are there as a whole, and from which a run goes on as if it had not stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.fabric.plugins import TorchCheckpointIO

from likewise.runs.files import write_atomically


class AtomicCheckpointIO(TorchCheckpointIO):
    """Lightning's checkpoints, written aside and renamed."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        """Write all of it, or leave the old one."""
        with write_atomically(Path(path)) as aside:
            torch.save(checkpoint, aside)


class Checkpoints(L.Callback):
    """Writes a checkpoint every so often, at the end of an epoch or between two steps.

    Args:
        path: the checkpoint, which is always the last one.
        minutes: the least time between two of them; the end of training always writes one.
        after: called after each, with the module: the encoder is written there.
        every_steps: also after every so many steps, whatever the time.
    """

    def __init__(
        self,
        path: Path,
        *,
        minutes: float,
        after: Callable[[L.LightningModule], None],
        every_steps: int | None = None,
    ) -> None:
        self.path = path
        self.minutes = minutes
        self.after = after
        self.every_steps = every_steps
        self._last = time.monotonic()
        self._saved_step = -1

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, *args: Any
    ) -> None:
        """Between two steps, where it is time."""
        step = trainer.global_step
        by_steps = self.every_steps is not None and step % self.every_steps == 0
        # The last batch of an epoch waits for the epoch's end, which comes at once.
        if not trainer.is_last_batch and (by_steps or self._is_time(trainer)):
            self._save(trainer, pl_module)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """At the end of an epoch, where it is time."""
        if self.every_steps is not None or self._is_time(trainer):
            self._save(trainer, pl_module)

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """At the end of training, always."""
        self._save(trainer, pl_module)

    def _is_time(self, trainer: L.Trainer) -> bool:
        due = time.monotonic() - self._last >= 60 * self.minutes
        # All ranks save together: rank 0 has the clock.
        return bool(trainer.strategy.broadcast(due)) if trainer.world_size > 1 else due

    def _save(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._saved_step == trainer.global_step:
            return
        trainer.save_checkpoint(self.path)
        self._last = time.monotonic()
        self._saved_step = trainer.global_step
        if trainer.is_global_zero:
            self.after(pl_module)
