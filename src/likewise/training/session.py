"""From the arguments of `likewise train` to a training: every choice made, every check passed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from likewise.data import (
    Images,
    Source,
    StreamedImages,
    channel_statistics,
    fits_in_memory,
    labelled,
    load_images,
    open_source,
)
from likewise.data.views import Views
from likewise.graph import Graph
from likewise.models import build_encoder
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
    choose_size,
    known_labels,
    sample_graph,
)
from likewise.training.fit import Machine, Outcome, fit
from likewise.training.learner import Learner
from likewise.training.merging import with_twins
from likewise.training.module import Optimization
from likewise.training.recipe import Recipe
from likewise.training.recipes import recipe as find_recipe
from likewise.training.rehearsal import rehearse

WATCHED = 4096
"""Images that the monitor embeds."""


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
        device = _own_device(machine)
        steps = len(self.plan) * self.optimization.epochs
        estimate = rehearse(
            self.learner,
            self.views,
            self.sample.pixels,
            self.optimization,
            batch_size=self.plan.batch_size,
            steps=steps,
            # On a CPU the images are in memory already.
            bytes_data=_bytes_on(device, self.images),
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
        if _is_first_process() and not self.resume:
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
        if _is_first_process():
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


ANSWERS = "answers.jsonl"
"""The answers that a run was trained on, in its folder: whoever resumes it trains on the same."""


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
    if resume is not None:
        run = Run.open(resume)
        if not run.checkpoint.is_file():
            raise ValueError(
                f"{resume} holds no checkpoint to resume from: start it again with "
                f"`likewise train --config {run.path / 'config.yaml'} --out ANOTHER`"
            )
        # Runs of before an option was there go on without it.
        config = {"diagnose_every": 0, **run.config, "out": str(run.path)}
    else:
        if data is None or out is None:
            raise ValueError("give the images to train on and --out, the folder of the run")
        run = Run(out)
        if _is_first_process() and run.path.is_dir() and any(run.path.iterdir()):
            raise ValueError(
                f"{out} is not empty: resume its run with `likewise train --resume {out}`, "
                "or give another --out"
            )
        config = {"data": data, "out": str(out), **options}
    method = find_recipe(config["recipe"])
    check_numbers(config)
    source = open_source(
        config["data"] if data is None else data,
        image_column=config["image_column"],
        label_column=config["label_column"],
    )
    # What is not a path cannot be written down; it is named, and given again to resume.
    config["data"] = config["data"] if isinstance(config["data"], str) else source.place
    machine = choose_machine(config)
    config["image_size"] = size = config["image_size"] or choose_size(source, machine.device)
    config["encoder"] = choose_encoder(config["encoder"], machine.device, size)
    config["views"] = config["views"] or _policy(method, config["data"])
    config["n_views"] = config["n_views"] or method.n_views
    config["monitor_every"] = choose_monitor_every(config)
    network = build_encoder(
        config["encoder"],
        stem=config["stem"],
        pretrained=config["pretrained"] == "timm" or config["pretrained"] or False,
        image_size=size,
        seed=config["seed"],
    )
    canvas = choose_canvas(source, size)
    images = open_images(source, canvas, config, machine, console)
    _check_same_data(run, source) if resume is not None else None
    _cut_batch(config, len(images), machine, console)
    optimization = choose_optimization(method, config)
    answered = config.get("answers") is not None
    if answered:
        _check_answers(graph, method, config)
    labels, classes = (None, None) if answered else _labels(source, images, method, config)
    if answered:
        assert graph_of_answers is not None
        take = resume is None and _is_first_process()
        said = graph_of_answers(source, config["answers"], run.path / ANSWERS, take=take)
        config["answers"] = without_password(config["answers"])
        known = _mixed(_of_images(said, source, images), config["label_weight"])
    elif graph is not None or run.has_graph:
        known = _given(graph, source, images, run, config)
    else:
        known = sample_graph(len(images), labels, config["label_weight"])
    told = console if _is_first_process() else None
    known = with_twins(known, source, images, method, config, told)
    sample = watched(images, config["seed"])
    mean, std = channel_statistics(sample.pixels)
    with torch.random.fork_rng():
        torch.manual_seed(config["seed"])
        learner = Learner(
            method,
            network,
            options=config["objective"],
            projector=config["projector"],
            classes=classes,
            seed=config["seed"],
            micro_batch=config["micro_batch"],
        )
    prepared = Prepared(
        run=run,
        config=config,
        source=source,
        images=images,
        sample=sample,
        learner=learner,
        views=Views(config["views"], size, config["n_views"], mean=mean, std=std, canvas=canvas),
        plan=plan_batches(
            known.to(_own_device(machine)),
            len(images),
            config["batch_size"],
            config["seed"],
            sampler=_sampler(method, config),
        ),
        optimization=optimization,
        preparation=Preparation(size, mean, std),
        machine=machine,
        resume=resume is not None,
        console=console,
        given_graph=graph is not None,
    )
    if _is_first_process():
        prepared.announce()
    return prepared


def open_images(
    source: Source, canvas: int, config: dict[str, Any], machine: Machine, console: Console
) -> Images | StreamedImages:
    """The images in memory, or streamed where they do not fit; what is broken is said."""
    stream = config["stream"]
    if stream is None:
        stream = not fits_in_memory(len(source), canvas, _own_device(machine))
    config["stream"] = stream
    if stream:
        images: Images | StreamedImages = StreamedImages(source, canvas)
    else:
        with decoding(console) as progress:
            images = load_images(source, canvas, progress=progress)
    if images.broken and _is_first_process():
        shown = [f"  {key}: {reason}" for key, reason in list(images.broken.items())[:5]]
        more = len(images.broken) - len(shown)
        console.print(
            f"{len(images.broken)} broken images are left out:",
            *shown,
            *([f"  and {more} more"] if more else []),
            sep="\n",
            highlight=False,
        )
    return images


@contextmanager
def decoding(console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar for reading images, on a terminal."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading images", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def watched(images: Images | StreamedImages, seed: int) -> Images:
    """A few thousand images to look at while training, drawn once."""
    n = len(images)
    if n <= WATCHED and isinstance(images, Images):
        return images
    index = np.sort(np.random.default_rng([seed, 13]).permutation(n)[:WATCHED])
    if isinstance(images, Images):
        return images.subset(index)
    return load_images(images.source.subset(index), images.size)


def _labels(
    source: Source, images: Images | StreamedImages, method: Recipe, config: dict[str, Any]
) -> tuple[np.ndarray | None, int | None]:
    """The labels of the graph with their number of classes, by the images that were read."""
    wanted = config["labels"]
    if wanted is None and not method.needs_labels:
        if config["label_weight"]:
            raise ValueError(
                "label_weight is given without labels: add --labels source, or a CSV file"
            )
        return None, None
    if config["label_weight"] is None:
        config["label_weight"] = 1.0 if method.needs_labels else 0.5
    known = source if wanted in (None, "source") else labelled(source, wanted)
    if known.labels is None:
        raise ValueError(
            "the images have no labels: put them into one folder a class, or give --labels FILE.csv"
        )
    return known_labels(known.labels[known.index_of(images.keys)], method, config)


def _given(
    graph: Any, source: Source, images: Images | StreamedImages, run: Run, config: dict[str, Any]
) -> Graph:
    """The graph that was given from Python, over the images that could be read."""
    if graph is None:
        raise ValueError(
            f"{run.path} was trained on a graph given in Python: resume it there, with "
            "likewise.train(resume=..., graph=...)"
        )
    if not isinstance(graph, Graph):
        raise ValueError(f"graph is a {type(graph).__name__}: give a likewise.Graph")
    if graph.n != len(source):
        raise ValueError(
            f"graph has {graph.n} nodes for {len(source)} images: give one node an image, in the "
            "order of the source's keys"
        )
    if config["labels"] is not None or config["label_weight"]:
        raise ValueError("both graph and labels are given: put the labels into the graph")
    return _of_images(graph, source, images)


def _of_images(graph: Graph, source: Source, images: Images | StreamedImages) -> Graph:
    """A graph over the source, on the images that could be read."""
    if len(images) == len(source):
        return graph
    return graph.subset(torch.from_numpy(source.index_of(images.keys)))


def _check_answers(graph: Any, method: Recipe, config: dict[str, Any]) -> None:
    if graph is not None or config["labels"] is not None:
        other = "labels" if graph is None else "graph"
        raise ValueError(f"both answers and {other} are given: train on one of them")
    if method.needs_labels:
        raise ValueError(
            f"recipe {config['recipe']!r} needs labels, and answers say who is alike: give another "
            "recipe, such as simclr"
        )
    if config["label_weight"] is None:
        config["label_weight"] = 0.5


def _mixed(known: Graph, weight: float) -> Graph:
    """(1 - w) I + w G."""
    return known if weight == 1 else (1 - weight) * Graph.identity(known.n) + weight * known


def without_password(project: str) -> str:
    """The URL of a database as it may be written down.

    >>> without_password("postgresql://ada:secret@host/animals")
    'postgresql://ada@host/animals'
    """
    return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1@", project)


def _sampler(method: Recipe, config: dict[str, Any]) -> Any:
    # Regression on labels takes them as they are: weights would not be labels any more.
    regresses = method.objective == "ClassRegression"
    if regresses and config["sampler"] == "graph-aware":
        raise ValueError(f"sampler is 'graph-aware', which {method.title!r} has no use for")
    return "shuffled" if regresses else config["sampler"]


def _policy(method: Recipe, data: Any) -> str:
    # A mirrored digit is no digit.
    return "digits" if str(data).startswith("digits") else method.views


def _cut_batch(config: dict[str, Any], n: int, machine: Machine, console: Console) -> None:
    processes = machine.devices * machine.nodes
    if n < config["batch_size"]:
        config["batch_size"] = n - n % processes
        if config["batch_size"] < 2 * processes:
            raise ValueError(f"{n} images are too few for {processes} processes")
        console.print(f"there are {n} images: the batch is cut to {config['batch_size']}")


def _check_same_data(run: Run, source: Source) -> None:
    saved = run.data_fingerprint
    if saved is not None and saved != source.fingerprint():
        raise ValueError(
            f"the images are not those that {run.path} was trained on (files were added, removed "
            "or renamed): put them back, or start a new run, with --pretrained "
            f"{run.path / 'encoder.safetensors'}"
        )


def _bytes_on(device: torch.device, images: Images | StreamedImages) -> int:
    held = isinstance(images, Images) and device.type != "cpu"
    return images.pixels.nbytes if held and isinstance(images, Images) else 0


def _own_device(machine: Machine) -> torch.device:
    if machine.device == "cpu":
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))


def _is_first_process() -> bool:
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", 0))) == 0
