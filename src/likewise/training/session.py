"""From the arguments of `likewise train` to a training: every choice made, every check passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from likewise.data import Images, Source, StreamedImages, channel_statistics, open_source
from likewise.data.views import Views
from likewise.graph import Graph
from likewise.models import Encoder, build_encoder
from likewise.runs import Preparation, Run
from likewise.training.batches import BatchPlan, plan_batches
from likewise.training.choices import (
    check_numbers,
    choose_canvas,
    choose_diagnose_every,
    choose_encoder,
    choose_machine,
    choose_monitor_every,
    choose_optimization,
    choose_sampler,
    choose_size,
    choose_views,
    cut_batch,
)
from likewise.training.fit import Machine, Outcome, fit
from likewise.training.images import bytes_on, open_images, watched
from likewise.training.known import known_graph
from likewise.training.learner import Learner
from likewise.training.merging import with_twins
from likewise.training.module import Optimization
from likewise.training.processes import is_first_process, own_device
from likewise.training.recipe import Recipe
from likewise.training.recipes import recipe as find_recipe
from likewise.training.rehearsal import rehearse


@dataclass
class Prepared:
    """A training that only has to be started."""

    run: Run
    config: dict[str, Any]
    source: Source
    images: Images | StreamedImages
    sample: Images
    learner: Learner
    views: Views
    plan: BatchPlan
    optimization: Optimization
    preparation: Preparation
    machine: Machine
    resume: bool
    console: Console
    given_graph: bool

    def announce(self) -> None:
        """Say what will be done and what it takes; refuse what will not fit."""
        config, machine = self.config, self.machine
        device = own_device(machine)
        steps = len(self.plan) * self.optimization.epochs
        estimate = rehearse(
            self.learner,
            self.views,
            self.sample.pixels,
            self.optimization,
            batch_size=self.plan.batch_size,
            steps=steps,
            bytes_data=bytes_on(device, self.images),
            machine=machine,
            device=device,
        )
        self.console.print(
            f"{config['recipe']} on {self.source.description}: {config['encoder']}, "
            f"{self.preparation.size} x {self.preparation.size} pixels, batch "
            f"{self.plan.batch_size} x {self.views.n_views} views ({self.plan.reason}), "
            f"{self.optimization.epochs} epochs, {steps:,} steps",
            estimate.text(),
            sep="\n",
            soft_wrap=True,
            highlight=False,
        )
        if not estimate.fits and not config["force"]:
            raise ValueError(f"{estimate.text()} --force trains all the same.")

    def train(self) -> Run:
        """Train, and leave the run's folder behind."""
        if is_first_process() and not self.resume:
            self.run.write_config(self.config)
            self.run.write_data(self.source, graph=self.given_graph)
        diagnose_every, diagnose_share = choose_diagnose_every(self.config)
        outcome = fit(
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
        if is_first_process():
            self.run.write_summary(self._summary(outcome))
            self.console.print(
                f"[bold]{self.run.path}[/bold]: {outcome.images:,} views in "
                f"{outcome.seconds:,.0f} s ({outcome.images_per_second:,.0f} images/s)",
                highlight=False,
            )
        return self.run

    def _summary(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "recipe": self.config["recipe"],
            "encoder": self.config["encoder"],
            "data": self.source.description,
            "images": len(self.images),
            "broken": len(self.images.broken),
            "epochs": self.config["epochs"],
            "seconds": round(outcome.seconds, 2),
            "images_per_second": round(outcome.images_per_second, 1),
            "steady_images_per_second": round(outcome.steady_images_per_second, 1),
            **{name: round(value, 6) for name, value in outcome.last.items()},
            "history": outcome.history,
        }


def prepare(
    *,
    resume: Path | None,
    data: Any,
    out: Path | None,
    graph: Any = None,
    graph_of_answers: Callable[..., Graph] | None = None,
    **options: Any,
) -> Prepared:
    """Resolve the arguments of :func:`likewise.train`, open the data, and build what learns.

    `graph_of_answers` reads a project of answers, about which this room knows nothing: it is called
    with the source, the project, the file that keeps what was read, and whether to write that.
    """
    console = Console(stderr=True)
    run, config = _new(data, out, options) if resume is None else _resumed(resume)
    method = find_recipe(config["recipe"])
    check_numbers(config)
    source = _open_data(data, config)
    machine = choose_machine(config)
    config["image_size"] = size = config["image_size"] or choose_size(source, machine.device)
    config["encoder"] = choose_encoder(config["encoder"], machine.device, size)
    config["views"] = choose_views(method, config)
    config["n_views"] = config["n_views"] or method.n_views
    config["monitor_every"] = choose_monitor_every(config)
    encoder = _encoder(config)
    canvas = choose_canvas(source, size)
    images = open_images(source, canvas, config, machine, console)
    if resume is not None:
        _check_same_data(run, source)
    cut_batch(config, len(images), machine, console)
    optimization = choose_optimization(method, config)
    known, classes = known_graph(
        source,
        images,
        method,
        config,
        run,
        graph=graph,
        graph_of_answers=graph_of_answers,
        take=resume is None and is_first_process(),
    )
    told = console if is_first_process() else None
    known = with_twins(known, source, images, method, config, told)
    sample = watched(images, config["seed"])
    mean, std = channel_statistics(sample.pixels)
    prepared = Prepared(
        run=run,
        config=config,
        source=source,
        images=images,
        sample=sample,
        learner=_learner(method, encoder, classes, config),
        views=Views(config["views"], size, config["n_views"], mean=mean, std=std, canvas=canvas),
        plan=plan_batches(
            known.to(own_device(machine)),
            len(images),
            config["batch_size"],
            config["seed"],
            sampler=choose_sampler(method, config),
        ),
        optimization=optimization,
        preparation=Preparation(size, mean, std),
        machine=machine,
        resume=resume is not None,
        console=console,
        given_graph=graph is not None,
    )
    if is_first_process():
        prepared.announce()
    return prepared


def _new(data: Any, out: Path | None, options: dict[str, Any]) -> tuple[Run, dict[str, Any]]:
    """A run in a folder of its own, and its arguments."""
    if data is None or out is None:
        raise ValueError("give the images to train on and --out, the folder of the run")
    run = Run(out)
    if is_first_process() and run.path.is_dir() and any(run.path.iterdir()):
        raise ValueError(
            f"{out} is not empty: resume its run with `likewise train --resume {out}`, "
            "or give another --out"
        )
    return run, {"data": data, "out": str(out), **options}


def _resumed(folder: Path) -> tuple[Run, dict[str, Any]]:
    """A run that goes on, and the arguments that it was started with."""
    run = Run.open(folder)
    if not run.checkpoint.is_file():
        raise ValueError(
            f"{folder} holds no checkpoint to resume from: start it again with "
            f"`likewise train --config {run.path / 'config.yaml'} --out ANOTHER`"
        )
    # Runs of before an option was there go on without it.
    return run, {"diagnose_every": 0, **run.config, "out": str(run.path)}


def _open_data(data: Any, config: dict[str, Any]) -> Source:
    """The images that were given, or those of the run that is resumed."""
    source = open_source(
        config["data"] if data is None else data,
        image_column=config["image_column"],
        label_column=config["label_column"],
    )
    # What is not a path cannot be written down; it is named, and given again to resume.
    config["data"] = config["data"] if isinstance(config["data"], str) else source.place
    return source


def _check_same_data(run: Run, source: Source) -> None:
    saved = run.data_fingerprint
    if saved is not None and saved != source.fingerprint():
        raise ValueError(
            f"the images are not those that {run.path} was trained on (files were added, removed "
            "or renamed): put them back, or start a new run, with --pretrained "
            f"{run.path / 'encoder.safetensors'}"
        )


def _encoder(config: dict[str, Any]) -> Encoder:
    return build_encoder(
        config["encoder"],
        stem=config["stem"],
        pretrained=config["pretrained"] == "timm" or config["pretrained"] or False,
        image_size=config["image_size"],
        seed=config["seed"],
    )


def _learner(
    method: Recipe, encoder: Encoder, classes: int | None, config: dict[str, Any]
) -> Learner:
    with torch.random.fork_rng():
        torch.manual_seed(config["seed"])
        return Learner(
            method,
            encoder,
            options=config["objective"],
            projector=config["projector"],
            classes=classes,
            seed=config["seed"],
            micro_batch=config["micro_batch"],
        )
