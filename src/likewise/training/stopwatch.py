"""How long a training has taken, however often it was resumed."""

from __future__ import annotations

import time
from typing import Any

import lightning as L


class Stopwatch(L.Callback):
    """Seconds of training, kept in the checkpoint.

    What a killed run did after its last checkpoint is done again, and counts once.

    >>> first = Stopwatch()
    >>> second = Stopwatch()
    >>> second.load_state_dict({"seconds": 60.0})
    >>> first.seconds < 1, second.seconds >= 60
    (True, True)
    """

    def __init__(self) -> None:
        self._before = 0.0
        self._began = time.monotonic()

    def on_train_start(self, trainer: L.Trainer, pl_module: Any) -> None:
        """Time counts from here, and not from when other processes were started."""
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Up to now, those before the run was resumed included."""
        return self._before + time.monotonic() - self._began

    @property
    def has_gone_on(self) -> bool:
        """Whether a checkpoint told how long it had taken until then."""
        return self._before > 0

    def state_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From the checkpoint."""
        self._before = float(state_dict["seconds"])
