"""A training that only has to be started: what is said before it, and what is left behind."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape

from likewise.data import Images, Source, StreamedImages
from likewise.data.source import count
from likewise.data.views import Views
from likewise.runs import Preparation, Run
from likewise.runs.files import write_atomically
from likewise.training.batches import BatchPlan
from likewise.training.checkpoints import step_of
from likewise.training.choices import choose_diagnose_every
from likewise.training.estimate import in_time
from likewise.training.fit import FirstStepError, Outcome, fit
from likewise.training.images import say_broken
from likewise.training.known import ANSWERS, Known
from likewise.training.learner import Learner
from likewise.training.machine import Machine
from likewise.training.module import Optimization
from likewise.training.processes import is_first_process, own_device
from likewise.training.rehearsal import rehearse
from likewise.training.settings import training_settings
from likewise.training.stopping import Stopped

COMPILING = " Compiling, before the first step, comes on top: on a CPU often minutes."


@dataclass
class Prepared:
    """A training that only has to be started."""

    run: Run
    config: dict[str, Any]
    source: Source
    images: Images | StreamedImages
    sample: Images
    learner: Learner
    known: Known
    same: dict[str, Any]
    views: Views
    plan: BatchPlan
    optimization: Optimization
    preparation: Preparation
    machine: Machine
    resume: bool
    console: Console
    given_data: bool
    given_graph: bool

    @property
    def first(self) -> bool:
        """Whether this process speaks and writes."""
        return is_first_process(self.machine.processes)

    @property
    def data(self) -> str:
        """The images in words, and what is known of them."""
        if not self.known.text:
            return self.source.description
        return f"{count(len(self.source), 'image')} in {self.source.place} ({self.known.text})"

    @property
    def command_to_resume(self) -> str:
        """How to go on: what only Python can give has to be given there again."""
        if not (self.given_data or self.given_graph):
            return f"likewise train --resume {shlex.quote(str(self.run.path))}"
        data = "data, " if self.given_data else ""
        graph = ", graph=graph" if self.given_graph else ""
        return f"likewise.train({data}resume={str(self.run.path)!r}{graph})"

    def announce(self) -> None:
        """Say what will be done and what it takes; refuse what will not fit."""
        config, machine = self.config, self.machine
        device = own_device(machine)
        steps = len(self.plan) * self.optimization.epochs
        begun = self.resume and self.run.checkpoint.is_file()
        first = step_of(self.run.checkpoint) if begun else 0
        try:
            estimate = rehearse(
                self.learner,
                self.views,
                self.sample.pixels,
                self.optimization,
                images=self.images,
                batch_size=self.plan.batch_size,
                steps=steps - first,
                machine=machine,
                device=device,
            )
        except (RuntimeError, AssertionError) as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            raise ValueError(
                f"encoder {config['encoder']} cannot take the views {config['views']!r} of images "
                f"of {self.preparation.size} pixels: {error}"
            ) from error
        self.console.print(
            f"{config['recipe']} on {self.data}: {config['encoder']}, "
            f"{self.preparation.size} x {self.preparation.size} pixels, batch "
            f"{self.plan.batch_size} x {self.views.n_views} views ({self.plan.reason}), "
            f"{count(self.optimization.epochs, 'epoch')}, {count(steps, 'step')}"
            + (f", of which {first:,} are done" if first else ""),
            estimate.text() + (COMPILING if machine.compile else ""),
            sep="\n",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )
        if not estimate.fits and not config["force"]:
            raise ValueError(f"{estimate.text()} --force trains all the same.")

    def train(self) -> Run:
        """Train, and leave the run's folder behind."""
        if self.first and not self.resume:
            self._begin()
        try:
            outcome = self._fit()
        except KeyboardInterrupt as stopped:
            if self.first:
                self._say_stopped(stopped)
            raise
        except FirstStepError:
            if self.first and not self.resume:
                # The folder was empty before, and nobody has use for what is in it.
                shutil.rmtree(self.run.path, ignore_errors=True)
            raise
        if self.first and isinstance(self.images, StreamedImages):
            say_broken(self.images.broken, self.console)
        if self.first:
            self.run.write_summary(self._summary(outcome))
            self.console.print(
                f"[bold]{escape(str(self.run.path))}[/bold]: {count(outcome.images, 'view')} in "
                f"{in_time(outcome.seconds)} ({outcome.images_per_second:,.0f} images/s)",
                highlight=False,
            )
        if outcome.signal:
            # It came in the last step: the run is finished, and whoever called is not to go on.
            raise Stopped(self.optimization.epochs, outcome.signal)
        return self.run

    def _begin(self) -> None:
        """Make the run's folder: everything has been checked."""
        if self.known.answers is not None:
            with write_atomically(self.run.path / ANSWERS) as aside:
                aside.write_bytes(self.known.answers)
        self.run.write_config(self.config)
        self.run.write_data(self.source, graph=self.given_graph, known=self.same)

    def _fit(self) -> Outcome:
        diagnose_every, diagnose_share = choose_diagnose_every(self.config)
        with training_settings(self.machine):
            return fit(
                self.learner,
                self.images,
                self.views,
                self.plan,
                self.optimization,
                run=self.run,
                preparation=self.preparation,
                sample=self.sample,
                machine=self.machine,
                seed=self.config["seed"],
                monitor_every=self.config["monitor_every"],
                diagnose_every=diagnose_every,
                diagnose_share=diagnose_share,
                checkpoint_minutes=self.config["checkpoint_minutes"],
                checkpoint_steps=self.config["checkpoint_steps"],
                log_every=self.config["log_every"],
                loggers=self.config["logger"],
                resume=self.resume,
                console=self.console,
            )

    def _say_stopped(self, stopped: KeyboardInterrupt) -> None:
        if isinstance(stopped, Stopped):
            text = f"stopped at epoch {stopped.epoch}; go on with: {self.command_to_resume}"
        elif self.run.checkpoint.is_file():
            text = f"stopped; go on from the last checkpoint with: {self.command_to_resume}"
        else:
            text = "stopped before a first checkpoint"
        self.console.print(text, soft_wrap=True, highlight=False, markup=False)

    def _summary(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "recipe": self.config["recipe"],
            "encoder": self.config["encoder"],
            "data": self.data,
            "known": self.known.counts,
            "images": len(self.images),
            "broken": len(self.images.broken),
            "epochs": self.config["epochs"],
            "seconds": round(outcome.seconds, 2),
            "images_per_second": round(outcome.images_per_second, 1),
            "steady_images_per_second": round(outcome.steady_images_per_second, 1),
            **{name: round(value, 6) for name, value in outcome.last.items()},
            "history": outcome.history,
        }
