"""From the arguments of `likewise train` to a training: every choice made, every check passed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from likewise.data import Source, channel_statistics, open_source
from likewise.data.views import Views
from likewise.diagnostics.figures import plain
from likewise.models import Encoder, build_encoder
from likewise.runs import Preparation, Run
from likewise.runs.files import check_folder
from likewise.training.batches import plan_batches
from likewise.training.choices import (
    check_choices,
    check_numbers,
    check_parts,
    choose_canvas,
    choose_encoder,
    choose_machine,
    choose_monitor_every,
    choose_optimization,
    choose_sampler,
    choose_size,
    choose_views,
    cut_batch,
    join_torchrun,
)
from likewise.training.given_labels import read_labels
from likewise.training.images import open_images, watched
from likewise.training.known import GraphOfAnswers, known_graph
from likewise.training.learner import Learner
from likewise.training.merging import with_twins
from likewise.training.prepared import Prepared
from likewise.training.processes import is_first_process, own_device
from likewise.training.recipe import Recipe
from likewise.training.recipes import recipe as find_recipe
from likewise.training.resuming import (
    check_same_data,
    check_same_knowledge,
    fingerprint,
    resumed_config,
)


def prepare(
    *,
    resume: Path | None,
    data: Any,
    out: Path | None,
    graph: Any = None,
    graph_of_answers: GraphOfAnswers | None = None,
    **options: Any,
) -> Prepared:
    """Resolve the arguments of :func:`likewise.train`, open the data, and build what learns.

    `graph_of_answers` reads a project of answers, about which this room knows nothing: it is called
    with the source, the project, the file that keeps what was read, and whether to write that.
    Nothing is written here: the run's folder begins with the training.
    """
    console = Console(stderr=True)
    if resume is None:
        run, config = _new(data, out, options)
    else:
        run = Run.open(resume)
        config = resumed_config(run, force=options.get("force", False))
    method = find_recipe(config["recipe"])
    check_choices(config)
    check_numbers(config)
    join_torchrun(config)
    first = is_first_process(config["devices"] * config["nodes"])
    if first and resume is None:
        _check_empty(run)
    source = _open_data(data, config)
    machine = choose_machine(config)
    config["image_size"] = size = config["image_size"] or choose_size(source, machine.device)
    config["encoder"] = choose_encoder(config["encoder"], machine.device, size)
    config["views"] = choose_views(method, config)
    config["n_views"] = config["n_views"] or method.n_views
    config["monitor_every"] = choose_monitor_every(config)
    # A checkpoint has all weights: those that the run began with need not be there any more.
    begun = resume is not None and run.checkpoint.is_file()
    encoder = _encoder(config, pretrained=None if begun else config["pretrained"])
    if encoder.name != "tiny":  # which has one stem, by no choice
        config["stem"] = encoder.config["stem"]
    widths = method.projector if config["projector"] is None else config["projector"]
    config["projector"] = [int(width) for width in widths]
    arguments = {**method.options, **(config["objective"] or {})}
    config["objective"] = plain(arguments)  # NumPy's numbers cannot be written down
    config["canvas"] = canvas = choose_canvas(source, size, config["canvas"])
    check_parts(config, machine, len(source))
    if config["answers"] is None and graph is None:
        read_labels(source, source, method, config)  # what is wrong with them is said before
    images = open_images(source, canvas, config, machine, console)
    if resume is not None:
        check_same_data(run, source)
    cut_batch(config, len(images), machine, console if first else None)
    check_parts(config, machine, len(images))
    optimization = choose_optimization(method, config)
    known = known_graph(
        source,
        images,
        method,
        config,
        run,
        graph=graph,
        graph_of_answers=graph_of_answers,
        resume=resume is not None,
    )
    of_file = None if config["labels"] in (None, "source") else known.labels
    sample = watched(images, config["seed"], of_file)
    same = fingerprint(images, sample, known, graph=graph is not None)
    if resume is not None:
        check_same_knowledge(run, same, force=options.get("force", False))
    alike = with_twins(known.graph, source, images, method, config, console if first else None)
    mean, std = channel_statistics(sample.pixels)
    prepared = Prepared(
        run=run,
        config=config,
        source=source,
        images=images,
        sample=sample,
        learner=_learner(method, encoder, known.classes, config),
        known=known,
        same=same,
        views=Views(config["views"], size, config["n_views"], mean=mean, std=std, canvas=canvas),
        plan=plan_batches(
            alike.to(own_device(machine)),
            len(images),
            config["batch_size"],
            config["seed"],
            sampler=choose_sampler(method, config),
            known_share=config["known_share"],
        ),
        optimization=optimization,
        preparation=Preparation(size, mean, std),
        machine=machine,
        resume=resume is not None,
        console=console,
        given_data=data is not None and not isinstance(data, (str, Path)),
        given_graph=graph is not None,
    )
    if first:
        prepared.announce()
    return prepared


def _new(data: Any, out: Path | None, options: dict[str, Any]) -> tuple[Run, dict[str, Any]]:
    """A run in a folder of its own, and its arguments."""
    if data is None or out is None:
        raise ValueError("give the images to train on and --out, the folder of the run")
    run = Run(out)
    check_folder(run.path)
    return run, {"data": data, "out": str(out), **options}


def _check_empty(run: Run) -> None:
    if run.path.is_dir() and any(run.path.iterdir()):
        raise ValueError(
            f"{run.path} is not empty: resume its run with `likewise train --resume {run.path}`, "
            "or give another --out"
        )


def _open_data(data: Any, config: dict[str, Any]) -> Source:
    """The images that were given, or those of the run that is resumed."""
    try:
        source = open_source(
            config["data"] if data is None else data,
            image_column=config["image_column"],
            label_column=config["label_column"],
        )
    except ValueError as error:
        if data is not None or "is not there" not in str(error):
            raise
        raise ValueError(
            f"{config['out']} was trained on {config['data']!r}, which is not there (seen from "
            f"here): `likewise train NEW_PLACE --resume {config['out']}` goes on where images have "
            "moved"
        ) from error
    if isinstance(config["data"], Path):
        config["data"] = str(config["data"])
    if not isinstance(config["data"], str):
        # What is not a path cannot be written down; it is named, and given again to resume. A part
        # of a folder, too: the folder's name would stand for all of it.
        config["data"] = f"{source.place}, given in Python"
    return source


def _encoder(config: dict[str, Any], *, pretrained: str | None) -> Encoder:
    return build_encoder(
        config["encoder"],
        stem=config["stem"],
        pretrained=pretrained == "timm" or pretrained or False,
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
