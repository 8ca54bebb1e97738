"""One training, from a learner and its batches to a run folder, on Lightning's Trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import lightning as L
import torch
from rich.console import Console

from likewise.data import Images, StreamedImages
from likewise.data.views import Views
from likewise.models import convert_batch_norm
from likewise.runs import Preparation, Run
from likewise.training.batches import BatchPlan
from likewise.training.checkpoints import AtomicCheckpointIO, Checkpoints, step_of
from likewise.training.diagnosis import Diagnosis
from likewise.training.learner import Learner
from likewise.training.loggers import LoggerName, build_logger
from likewise.training.machine import Machine
from likewise.training.module import DivergedError, Optimization, TrainingModule
from likewise.training.monitor import Monitor
from likewise.training.processes import is_first_process
from likewise.training.progress import ProgressLine
from likewise.training.stopping import CheckpointWritten, Stopped, StopSignals
from likewise.training.stopwatch import Stopwatch

_PRECISIONS: dict[str, Any] = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}


class FirstStepError(ValueError):
    """Not even the first step of a training could be taken: its arguments do not go together."""


@dataclass(frozen=True)
class Outcome:
    """What a training took and what was seen on the way."""

    seconds: float
    images: int
    history: list[dict[str, float]]
    last: dict[str, float]
    epoch_images: int
    epoch_seconds: list[float]
    signal: int = 0
    """The signal that came during the last step, if one did; else 0."""

    @property
    def images_per_second(self) -> float:
        """Augmented views a second, all that training did included."""
        return self.images / self.seconds if self.seconds else 0.0

    @property
    def steady_images_per_second(self) -> float:
        """Augmented views a second in the median epoch; the first, which compiles, left out."""
        seconds = self.epoch_seconds[1:] or self.epoch_seconds
        return self.epoch_images / median(seconds) if seconds else 0.0


def fit(
    learner: Learner,
    images: Images | StreamedImages,
    views: Views,
    plan: BatchPlan,
    optimization: Optimization,
    *,
    run: Run,
    preparation: Preparation,
    sample: Images,
    machine: Machine,
    seed: int,
    monitor_every: int,
    diagnose_every: int,
    diagnose_share: float | None,
    checkpoint_minutes: float,
    checkpoint_steps: int | None,
    log_every: int,
    loggers: Sequence[LoggerName],
    resume: bool,
    console: Console,
) -> Outcome:
    """Train `learner`, and leave checkpoints, the encoder and logs in the run's folder.

    Args:
        learner: what learns.
        images: all images, in memory or streamed.
        views: the augmentation.
        plan: batches and their graphs.
        optimization: optimiser and schedule.
        run: the folder to write to.
        preparation: how images become the encoder's input outside of training.
        sample: a few thousand images to watch.
        machine: where to run.
        seed: of views and dropout.
        monitor_every: epochs between two looks at the representation; 0 for none.
        diagnose_every: epochs between two lines of diagnostics.jsonl; 0 for none.
        diagnose_share: the share of the time that these may take; None for any.
        checkpoint_minutes: the least time between two checkpoints.
        checkpoint_steps: a checkpoint after every so many steps, whatever the time.
        log_every: steps between two looks at the loss; every epoch ends with one.
        loggers: where figures go.
        resume: go on from the run's checkpoint.
        console: where progress is shown.

    Raises :class:`~likewise.training.stopping.Stopped` where Ctrl-C or SIGTERM came, once the step
    is done and a checkpoint is written.
    """
    several = machine.processes > 1
    if several:
        convert_batch_norm(learner)
    learner = learner.to(memory_format=torch.channels_last)
    module = TrainingModule(
        learner,
        images,
        views,
        plan,
        optimization,
        seed=seed,
        workers=machine.workers,
        log_every=log_every,
        compile=machine.compile,
    )
    monitor = Monitor(sample, preparation, learner.recipe, every=monitor_every)
    signals = StopSignals()
    line = ProgressLine(console, monitor, plan.batch_size * views.n_views, signals)
    monitor.say = line.say
    diagnosis = Diagnosis(
        sample,
        views,
        run.path,
        every=diagnose_every,
        share=diagnose_share,
        seed=seed,
        say=line.say,
    )

    def write_encoder(trained: Any) -> None:
        run.write_encoder(trained.learner.encoder, preparation)

    keeper = Checkpoints(
        run.checkpoint,
        minutes=checkpoint_minutes,
        after=write_encoder,
        every_steps=checkpoint_steps,
        signals=signals,
    )
    if resume:
        remove_leftovers(run.checkpoint)
    begun = resume and run.checkpoint.is_file()
    first_step = step_of(run.checkpoint) if begun else 0
    writes = is_first_process(machine.processes)
    stopwatch = Stopwatch()
    trainer = L.Trainer(
        accelerator="gpu" if machine.device == "cuda" else "cpu",
        devices=machine.devices,
        num_nodes=machine.nodes,
        strategy="ddp" if several else "auto",
        precision=_PRECISIONS[machine.precision],
        max_epochs=optimization.epochs,
        use_distributed_sampler=False,
        reload_dataloaders_every_n_epochs=1,
        logger=[
            build_logger(name, run, first_step if begun else None, first=writes) for name in loggers
        ],
        callbacks=[monitor, diagnosis, line, keeper, signals, stopwatch],
        plugins=[AtomicCheckpointIO()],
        deterministic=machine.deterministic,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        log_every_n_steps=log_every,
    )
    try:
        trainer.fit(module, ckpt_path=str(run.checkpoint) if begun else None, weights_only=False)
    except ValueError as error:
        if trainer.global_step == 0:
            raise FirstStepError(str(error)) from error
        raise
    except DivergedError:
        if not trainer.is_global_zero:
            raise SystemExit(1) from None  # rank 0 says it
        raise
    except CheckpointWritten as stop:
        if not trainer.is_global_zero:
            # Rank 0 speaks and writes; Lightning would kill it if another rank failed meanwhile.
            raise SystemExit(0) from None
        raise Stopped(stop.epoch, stop.number) from None
    except SystemExit:
        # What Lightning makes of a KeyboardInterrupt, after its own cleaning up.
        raise KeyboardInterrupt from None
    if machine.device == "cuda":
        torch.cuda.synchronize()
    seconds = stopwatch.seconds
    if trainer.is_global_zero:
        # A run that was killed between its last checkpoint and this file has no step left to do.
        write_encoder(module)
    timed_steps = trainer.global_step - (0 if stopwatch.has_gone_on else first_step)
    return Outcome(
        seconds=seconds,
        images=timed_steps * plan.batch_size * views.n_views,
        history=monitor.history,
        last={**module.last, **monitor.last},
        epoch_images=len(plan) * plan.batch_size * views.n_views,
        epoch_seconds=line.epoch_seconds,
        signal=signals.received,
    )


def remove_leftovers(path: Path) -> None:
    """Remove what a run that was killed in the middle of a write has left beside `path`."""
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)
