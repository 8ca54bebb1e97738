"""Records, while training, the figures that a verdict rests on: diagnostics.jsonl."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch

from likewise.data import Images
from likewise.data.views import Views
from likewise.objectives.contrast import Contrastive
from likewise.training.metrics import MetricsFile
from likewise.training.records import append_record, keep_records, measure, scalars
from likewise.training.two_views import TwoViews, embed_two_views

LOOKED_AT = 512
"""Images of a look, two views each."""


class Diagnosis(L.Callback):
    """Looks at two views of a fixed sample now and then, and writes a line of figures.

    What differs from :class:`likewise.training.monitor.Monitor`: that one embeds plain images with
    the encoder for the progress line (rank, kNN accuracy); this one embeds the augmented views that
    the loss sees, with encoder and projector. Only the two forward passes are in the way of
    training: from a GPU rows are copied without waiting, and a thread works out the figures while
    training goes on. Random states that training uses are not touched, and the same views are made
    at every look, so that a run with looks takes the same steps as one without.

    Args:
        images: where the sample is drawn from (the monitor's).
        views: the augmentation of the run.
        folder: of the run.
        every: epochs between two looks; the first is before the first step, the last after the
            last epoch. 0 for none.
        share: leave a look between these two out where looks would have taken more than this share
            of the time of training; None to leave none out.
        seed: of the sample and its views.
        say: where a failure is told.
    """

    def __init__(
        self,
        images: Images,
        views: Views,
        folder: Path,
        *,
        every: int,
        share: float | None = None,
        seed: int = 0,
        say: Callable[[str], None] = print,
    ) -> None:
        self.images = drawn_sample(images, seed)
        self.views = views
        self.folder = folder
        self.every = every
        self.share = share
        self.seed = seed
        self.say = say
        self._worker: ThreadPoolExecutor | None = None
        self._pending: Future[dict[str, Any]] | None = None
        self._began = self._spent = self._last = 0.0

    def on_train_start(self, trainer: L.Trainer, pl_module: Any) -> None:
        """A look at what training starts with; a resumed run forgets looks that come again."""
        if not self.every or not trainer.is_global_zero:
            return
        # Once, so that a look copies no pixels.
        self.images = self.images.to(pl_module.device)
        keep_records(self.folder, trainer.global_step)
        if not trainer.global_step:
            self.look(trainer, pl_module, 0)
        self._began = time.perf_counter()

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: Any, *args: Any) -> None:
        """Write down a look whose figures have been worked out meanwhile."""
        if self._pending is not None and self._pending.done():
            self._write(trainer)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """Look, where it is time."""
        if not self.every or not trainer.is_global_zero:
            return
        epoch = trainer.current_epoch + 1
        due = epoch % self.every == 0 and self._affordable()
        if due or epoch == trainer.max_epochs:
            self.look(trainer, pl_module, epoch)

    def _affordable(self) -> bool:
        """Whether one more look, as long as the last one, stays within the share of time."""
        if self.share is None:
            return True
        return self._spent + self._last <= self.share * (time.perf_counter() - self._began)

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: Any, checkpoint: Any) -> None:
        """Figures are on the disk before the checkpoint that a resumed run starts from."""
        self._write(trainer)
        for logger in trainer.loggers:
            if isinstance(logger, MetricsFile):
                logger.save()

    def on_train_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """Write down the last look."""
        self._stop(trainer)

    def on_exception(self, trainer: L.Trainer, pl_module: Any, exception: BaseException) -> None:
        """Write down what was seen before."""
        self._stop(trainer)

    def look(self, trainer: L.Trainer, pl_module: Any, epoch: int) -> None:
        """Embed two views of the sample, and have its figures worked out."""
        self._write(trainer)
        student = pl_module.learner.student
        device = pl_module.device
        began = time.perf_counter()
        before, after = (
            torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None for _ in "12"
        )
        if before is not None:
            before.record()
        rows = embed_two_views(
            student.encoder,
            student.projector,
            self.images.pixels,
            self.views,
            seed=self.seed,
            device=device,
        ).cpu()
        if after is not None:
            after.record()
        objective = pl_module.learner.objective
        contrastive = isinstance(objective, Contrastive) and objective.similarity == "cosine"
        beta = objective.inverse_temperature if contrastive else None
        about = {"step": trainer.global_step, "epoch": epoch}
        held = time.perf_counter() - began

        def figures() -> dict[str, Any]:
            took = held
            if before is not None and after is not None:
                # The host only starts what the device does later, in the way of training.
                after.synchronize()
                took = max(held, before.elapsed_time(after) / 1000)
                self._account(epoch, took)
            return {**about, **self._figures(rows, beta), "held_seconds": round(took, 4)}

        if device.type == "cuda":
            self._worker = self._worker or ThreadPoolExecutor(1, "diagnosis")
            self._pending = self._worker.submit(figures)
        else:
            # On a CPU a thread would only take the cores from training.
            self._pending = Future()
            self._pending.set_result(figures())
            self._write(trainer)
            self._account(epoch, time.perf_counter() - began)

    def _account(self, epoch: int, seconds: float) -> None:
        """Remember what a look took; the one before the first step is always taken."""
        if epoch:
            self._last = seconds
            self._spent += seconds

    def _figures(self, rows: TwoViews, beta: float | None) -> dict[str, Any]:
        try:
            return measure(rows, self.images.labels, inverse_temperature=beta)
        except ValueError as error:  # NaN: the training itself stops at the next look at its loss
            return {"error": str(error)}

    def _write(self, trainer: L.Trainer) -> None:
        """Wait for the figures of the last look, and write them down."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        record = pending.result()
        append_record(self.folder, record)
        if "error" in record:
            self.say(f"diagnostics of step {record['step']}: {record['error']}")
            return
        metrics = {**scalars(record), "epoch": record["epoch"]}
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=record["step"])

    def _stop(self, trainer: L.Trainer) -> None:
        self._write(trainer)
        if self._worker is not None:
            self._worker.shutdown()
            self._worker = None


def drawn_sample(images: Images, seed: int, most: int = LOOKED_AT) -> Images:
    """At most so many of the images, drawn by the seed, in their order."""
    if len(images) <= most:
        return images
    index = np.random.default_rng([seed, 17]).permutation(len(images))[:most]
    return images.subset(np.sort(index))
