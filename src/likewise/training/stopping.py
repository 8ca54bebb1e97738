"""Ctrl-C while training: the step is finished, a checkpoint is written, and the run can go on."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

import lightning as L

HEARD = (signal.SIGINT, signal.SIGTERM)
"""What asks a training to stop: Ctrl-C, and what schedulers of clusters send."""


STOPPING = "stopping after this step; once more stops at once"


class Stopped(KeyboardInterrupt):
    """A training was asked to stop, and did so with a checkpoint on the disk.

    Args:
        epoch: the epoch that it was in, from 1 on.
        number: of the signal.
    """

    def __init__(self, epoch: int, number: int) -> None:
        super().__init__(f"stopped at epoch {epoch}")
        self.epoch = epoch
        self.number = number


class CheckpointWritten(Exception):  # noqa: N818 (an event)
    """Leaves Lightning's loop between two steps, where a stop was asked for: of a
    KeyboardInterrupt Lightning would make an exit of its own."""

    def __init__(self, epoch: int, number: int) -> None:
        super().__init__(epoch, number)
        self.epoch = epoch
        self.number = number


class StopSignals(L.Callback):
    """Remembers the first signal until the step is done; the second stops at once.

    While training runs these handlers stand in place of all others, Lightning's among them, which
    would leave without a checkpoint. Outside of the main thread Python gives no signals, and none
    is heard.
    """

    def __init__(self) -> None:
        self.received = 0
        """The number of the signal; 0 while there was none."""
        self.is_shown = False
        """Whether a bar says that a signal came: what is written past it would be gone at once."""
        self._speaks = True
        self._before: dict[int, Any] = {}

    def on_train_start(self, trainer: L.Trainer, pl_module: Any) -> None:
        """Begin to listen; Lightning has set its own handlers just before."""
        self._speaks = trainer.is_global_zero
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in HEARD}

    def on_train_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """All is written: there is nothing to wait for any more."""
        self.close()

    def on_exception(self, trainer: L.Trainer, pl_module: Any, exception: BaseException) -> None:
        """Give the signals back."""
        self.close()

    def close(self) -> None:
        """Put the handlers of before back."""
        before, self._before = self._before, {}
        for number, handler in before.items():
            # None: it was not set from Python, and cannot be set back from there.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            self.close()
            raise KeyboardInterrupt
        self.received = number
        if self._speaks and not self.is_shown:
            # Past all streams and their locks: one may be held by what the signal interrupted.
            with suppress(OSError):  # the terminal may be gone
                os.write(2, f"\n{STOPPING}\n".encode())


def leave_signals_to_the_trainer(worker: int) -> None:
    """For processes that decode images: Ctrl-C reaches them, too, and the step that is under way
    still needs them. They end with the process that they work for."""
    for number in HEARD:
        signal.signal(number, signal.SIG_IGN)
