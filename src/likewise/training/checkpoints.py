"""Checkpoints that are there as a whole, and from which a run goes on as if it had not stopped."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import lightning as L
import torch
from lightning.fabric.plugins import TorchCheckpointIO

from likewise.runs.files import write_atomically
from likewise.training.module import TrainingModule
from likewise.training.stopping import CheckpointWritten, StopSignals

FIRST_MINUTES = 1.0
"""After this time the end of an epoch writes a first checkpoint, and the first encoder."""


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
        minutes: the least time between two of them. The first comes earlier, with the first epoch
            that ends after a minute; the end of training always writes one.
        after: called after each, with the module: the encoder is written there.
        every_steps: also after every so many steps, whatever the time.
        signals: where one of them came, a checkpoint is written at once, and training is left.
    """

    def __init__(
        self,
        path: Path,
        *,
        minutes: float,
        after: Callable[[L.LightningModule], None],
        every_steps: int | None = None,
        signals: StopSignals | None = None,
    ) -> None:
        self.path = path
        self.minutes = minutes
        self.after = after
        self.every_steps = every_steps
        self.signals = signals
        self._last = time.monotonic()
        self._saved_step = -1
        self._group: Any = None

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Time counts from here; a run that is resumed has a checkpoint already."""
        self._last = time.monotonic()
        self._saved_step = trainer.global_step or -1
        if trainer.world_size > 1:
            # Ranks talk after every step: on their CPUs, so that nobody waits for a GPU.
            self._group = torch.distributed.new_group(backend="gloo")

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, *args: Any
    ) -> None:
        """Between two steps, where it is time."""
        # The last batch of an epoch waits for the epoch's end, which comes at once.
        if trainer.is_last_batch:
            return
        due, stop = self._agreed(trainer, self._waited(self.minutes))
        by_steps = self.every_steps is not None and trainer.global_step % self.every_steps == 0
        if by_steps or due or stop:
            self._save(trainer, pl_module)
        if stop:
            raise CheckpointWritten(trainer.current_epoch + 1, stop)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """At the end of an epoch, where it is time."""
        first = self._saved_step < 0
        minutes = min(self.minutes, FIRST_MINUTES) if first else self.minutes
        due, stop = self._agreed(trainer, self._waited(minutes))
        if self.every_steps is not None or due or stop:
            self._save(trainer, pl_module)
        if stop and trainer.current_epoch + 1 != trainer.max_epochs:
            raise CheckpointWritten(trainer.current_epoch + 1, stop)

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """At the end of training, always."""
        self._save(trainer, pl_module)

    def _waited(self, minutes: float) -> bool:
        return time.monotonic() - self._last >= 60 * minutes

    def _agreed(self, trainer: L.Trainer, due: bool) -> tuple[bool, int]:
        """Whether it is time, and the signal that one of the processes got (0: none)."""
        received = 0 if self.signals is None else self.signals.received
        if trainer.world_size == 1:
            return due, received
        # All ranks save together: rank 0 has the clock, and any of them may be told to stop.
        told = torch.tensor([int(due and trainer.is_global_zero), received])
        torch.distributed.all_reduce(told, torch.distributed.ReduceOp.MAX, group=self._group)
        clock, stop = told.tolist()
        return bool(clock), int(stop)

    def _save(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._saved_step == trainer.global_step:
            return
        cast(TrainingModule, pl_module).check_finite()
        trainer.save_checkpoint(self.path)
        self._last = time.monotonic()
        self._saved_step = trainer.global_step
        if trainer.is_global_zero:
            self.after(pl_module)


def step_of(checkpoint: Path) -> int:
    """How many steps were taken when it was written."""
    # mmap: the counter is wanted, not the weights.
    try:
        content = torch.load(checkpoint, map_location="cpu", weights_only=False, mmap=True)
        return int(content["global_step"])
    except (RuntimeError, EOFError, pickle.UnpicklingError, KeyError) as error:
        raise ValueError(
            f"{checkpoint} cannot be read ({str(error).splitlines()[0]}): remove it, and the run "
            "begins at its first step"
        ) from error
