"""A bar with the time left; below it epoch, images per second, loss, rank and kNN accuracy."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import lightning as L
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from likewise.training.monitor import Monitor
from likewise.training.stopping import STOPPING, StopSignals


class BarAndFigures(Progress):
    """The bar on a line of its own: with the figures beside it, 80 columns are too few."""

    def __init__(self, signals: StopSignals, *columns: ProgressColumn, **options: Any) -> None:
        self.signals = signals
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, and the figures below it; what is too long ends with dots."""
        if self.signals.received:
            yield Text(STOPPING, no_wrap=True, overflow="ellipsis")
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            yield Text(task.description, no_wrap=True, overflow="ellipsis")


class ProgressLine(L.Callback):
    """Progress on a terminal, and a line an epoch where output goes to a file.

    On a terminal a line stays for every look of the monitor.

    Args:
        console: where to write.
        monitor: whose latest figures are shown.
        images_per_step: augmented views of one step, of all ranks.
        signals: that ask to stop, of which a bar tells.
    """

    def __init__(
        self,
        console: Console,
        monitor: Monitor,
        images_per_step: int,
        signals: StopSignals | None = None,
    ) -> None:
        self.signals = signals or StopSignals()
        self.console = console
        self.monitor = monitor
        self.images_per_step = images_per_step
        self.images_per_second = 0.0
        self._progress: Progress | None = None
        self._task: Any = None
        self._counted = (0.0, 0)
        self._shown = 0.0
        self._line = 0.0
        self.epoch_seconds: list[float] = []
        self._epoch_began = 0.0

    def on_train_start(self, trainer: L.Trainer, pl_module: Any) -> None:
        """Begin the line."""
        self._epoch_began = time.monotonic()
        self._counted = (self._epoch_began, trainer.global_step)
        if not trainer.is_global_zero or not self.console.is_terminal:
            return
        self.signals.is_shown = True
        self._progress = BarAndFigures(
            self.signals,
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:.0f}%"),
            TimeElapsedColumn(),
            TextColumn("gone,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self.console,
            refresh_per_second=4,
            expand=True,
            transient=True,  # the lines of the looks stay
        )
        self._task = self._progress.add_task(
            "training", total=pl_module.steps, completed=trainer.global_step
        )
        self._progress.start()

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: Any, *args: Any) -> None:
        """Move, a few times a second."""
        now = time.monotonic()
        if self._progress is not None and now - self._shown > 0.25:
            self._shown = now
            self._count(trainer)
            self._move(trainer, pl_module)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """A line that stays: of a look on a terminal, where the bar shows the rest."""
        self._count(trainer)
        self.epoch_seconds.append(time.monotonic() - self._epoch_began)
        self._epoch_began = time.monotonic()
        last = trainer.current_epoch + 1 == trainer.max_epochs
        now = time.monotonic()
        if self._progress is not None:
            self._move(trainer, pl_module)
            looked = bool(self.monitor.history) and (
                self.monitor.history[-1]["epoch"] == trainer.current_epoch + 1
            )
            if looked or last:
                text = self.text(trainer, pl_module)
                self.console.print(text, no_wrap=True, overflow="ellipsis", highlight=False)
        elif trainer.is_global_zero and (last or now - self._line > 2):
            self._line = now
            self.console.print(self.text(trainer, pl_module), soft_wrap=True, highlight=False)

    def on_train_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """End the line."""
        self._stop()

    def on_exception(self, trainer: L.Trainer, pl_module: Any, exception: BaseException) -> None:
        """Give the terminal back."""
        self._stop()

    def say(self, text: str) -> None:
        """A line above the bar."""
        self.console.print(text, soft_wrap=True, highlight=False)

    def text(self, trainer: L.Trainer, pl_module: Any) -> str:
        """What the line says; the parts of the loss come last, where a narrow terminal cuts."""
        parts = [f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"]
        if self.images_per_second:
            parts.append(f"{self.images_per_second:,.0f} images/s")
        losses = [f"{name} {value:.4g}" for name, value in pl_module.last.items()]
        parts += losses[:1]
        if "effective_rank" in self.monitor.last:
            parts.append(f"rank {self.monitor.last['effective_rank']:.1f}")
        if "knn" in self.monitor.last:
            parts.append(f"kNN {self.monitor.last['knn']:.1%}")
        return "  ".join([*parts, *losses[1:]])

    def _move(self, trainer: L.Trainer, pl_module: Any) -> None:
        if self._progress is not None:
            self._progress.update(
                self._task,
                completed=trainer.global_step,
                description=self.text(trainer, pl_module),
            )

    def _count(self, trainer: L.Trainer) -> None:
        then, step = self._counted
        now = time.monotonic()
        if trainer.global_step > step and now - then > 1:
            done = (trainer.global_step - step) * self.images_per_step
            self.images_per_second = done / (now - then)
            self._counted = (now, trainer.global_step)

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self.signals.is_shown = False
