"""What `likewise train` chooses where its user has not, and what it refuses."""

from __future__ import annotations

import importlib.util
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, get_args

import torch
from rich.console import Console

from likewise.data import Source, usual_size
from likewise.data.views import Policy, find_policy, plain_policy
from likewise.objectives.base import one_of
from likewise.optimizers import OptimizerName, scaled_lr
from likewise.training.batches.choice import Sampler
from likewise.training.loggers import LoggerName
from likewise.training.machine import Machine, Precision
from likewise.training.module import Optimization
from likewise.training.recipe import Recipe

SMALL = 96
"""Images with at most so many pixels a side are taken as they are."""


ALWAYS = ("epochs", "batch_size", "devices", "nodes", "log_every", "seed")
"""Numbers that have to be there: nothing is chosen in their place."""

USUAL_KNOWN_SHARE = 0.5

CHOICES = {
    "device": ("auto", "cpu", "cuda"),
    "precision": ("auto", *get_args(Precision)),
    "sampler": get_args(Sampler),
    "optimizer": get_args(OptimizerName),
}


def check_choices(config: dict[str, Any]) -> None:
    """Refuse names that stand for nothing: the command line looks at them itself, Python does not.

    >>> check_choices({"device": "gpu"})
    Traceback (most recent call last):
    ValueError: device is 'gpu': give one of 'auto', 'cpu', 'cuda'
    """
    for name, known in CHOICES.items():
        if (given := config[name]) is not None:
            one_of(name, given, known)
    if isinstance(config["logger"], str):
        config["logger"] = [config["logger"]]
    for name in config["logger"] or ():
        one_of("logger", name, get_args(LoggerName))


def check_numbers(config: dict[str, Any]) -> None:
    """Refuse numbers without a meaning, before anything is opened."""
    for name in ("lr", "weight_decay", "label_weight", "label_share", "known_share",
                 "warmup_epochs", "checkpoint_minutes"):  # fmt: skip
        value = config[name]
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}: give a number")
        config[name] = float(value)  # NumPy's cannot be written down
    least = {
        "epochs": 1,
        "batch_size": 2,
        "devices": 1,
        "nodes": 1,
        "log_every": 1,
        "image_size": 8,
        "canvas": 8,
        "n_views": 2,
        "micro_batch": 2,
        "checkpoint_steps": 1,
        "monitor_every": 0,
        "diagnose_every": 0,
        "workers": 0,
        "seed": 0,
    }
    for name, lowest in least.items():
        value = config[name]
        if value is None and name in ALWAYS:
            raise ValueError(f"{name} is empty: give a number of at least {lowest}")
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ValueError(f"{name} is {value!r}: give a whole number of at least {lowest}")
        if value < lowest:
            raise ValueError(f"{name} is {value}: give at least {lowest}")
        config[name] = int(value)
    if config["lr"] is not None and config["lr"] <= 0:
        raise ValueError(f"lr is {config['lr']}: give a number above 0")
    if config["weight_decay"] is not None and config["weight_decay"] < 0:
        raise ValueError(f"weight_decay is {config['weight_decay']}: give 0 or more")
    if config["projector"] is not None and any(width < 1 for width in config["projector"]):
        raise ValueError(f"projector is {config['projector']}: give widths of at least 1")
    weight = config["label_weight"]
    if weight is not None and not 0 <= weight <= 1:
        raise ValueError(f"label_weight is {weight}: give a number from 0 to 1")
    if not 0 < config["label_share"] <= 1:
        raise ValueError(f"label_share is {config['label_share']}: give a number above 0, up to 1")
    if not 0 < config["known_share"] < 1:
        raise ValueError(
            f"known_share is {config['known_share']}: give a number between 0 and 1 (0.5 is usual)"
        )
    if config["checkpoint_minutes"] < 0:
        raise ValueError(f"checkpoint_minutes is {config['checkpoint_minutes']}: give 0 or more")
    processes = config["devices"] * config["nodes"]
    if config["batch_size"] % processes:
        raise ValueError(
            f"batch_size is {config['batch_size']} for {processes} processes: give a multiple of "
            f"{processes}, so that each has as many images"
        )


def join_torchrun(config: dict[str, Any]) -> None:
    """Take devices and nodes from torchrun, which has started the processes already.

    >>> from unittest.mock import patch
    >>> config = {"devices": 1, "nodes": 1}
    >>> with patch.dict(os.environ, {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}):
    ...     join_torchrun(config)
    >>> config
    {'devices': 4, 'nodes': 2}
    """
    here, everywhere = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    if here is None or everywhere is None:
        # Lightning starts the other processes, or there are none.
        told = "SLURM_NTASKS" in os.environ or {"RANK", "WORLD_SIZE"} <= os.environ.keys()
        if config["nodes"] > 1 and not told:
            _check_meeting_place(config["nodes"])
        return
    devices, nodes = int(here), int(everywhere) // int(here)
    asked = config["devices"], config["nodes"]
    if asked not in ((1, 1), (devices, nodes)):
        raise ValueError(
            f"devices is {asked[0]} and nodes is {asked[1]}, and torchrun has started "
            f"{devices} a node on {nodes}: leave both out, or give --devices {devices} --nodes "
            f"{nodes}"
        )
    config["devices"], config["nodes"] = devices, nodes


def _check_meeting_place(nodes: int) -> None:
    """Refuse several machines that do not know of one another: each would wait for the others."""
    wanted = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")
    missing = [name for name in wanted if name not in os.environ]
    if missing:
        raise ValueError(
            f"nodes is {nodes}, and {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} "
            "not in the environment: give the first machine's address, a free port of it, and "
            "this machine's number from 0 on; or start the command by torchrun or Slurm"
        )


def choose_machine(config: dict[str, Any]) -> Machine:
    """The device, precision and processes; the choices go into `config`."""
    device = config["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        here = torch.cuda.device_count()
        if here == 0:
            raise ValueError(
                "device is cuda, and PyTorch finds no GPU here: give --device cpu, or a build of "
                "PyTorch for your GPU"
            )
        if config["devices"] > here:
            gpus = "is 1 GPU" if here == 1 else f"are {here} GPUs"
            raise ValueError(
                f"devices is {config['devices']}, and there {gpus} here: give at most {here}"
            )
    precision = config["precision"]
    if precision == "auto":
        half = device == "cuda" and torch.cuda.is_bf16_supported()
        precision = "bf16" if half else "32"
    if precision == "16" and device == "cpu":
        raise ValueError("precision is 16 on a CPU: give 32 or bf16")
    chosen = {
        "device": device,
        "precision": precision,
        "compile": device == "cuda" if config["compile"] is None else config["compile"],
        "workers": min(8, os.cpu_count() or 1) if config["workers"] is None else config["workers"],
        "logger": _loggers(config["logger"]),
    }
    if chosen["compile"] and config["deterministic"]:
        if config["compile"]:
            raise ValueError("both compile and deterministic are given: leave one of them out")
        chosen["compile"] = False
    config.update(chosen)
    return Machine(
        device=device,
        devices=config["devices"],
        nodes=config["nodes"],
        precision=precision,
        compile=chosen["compile"],
        workers=chosen["workers"],
        deterministic=config["deterministic"],
    )


def _loggers(asked: list[str] | None) -> list[str]:
    """Where figures go: what was asked for and is installed."""
    if asked is None:
        found = importlib.util.find_spec("tensorboard") is not None
        return ["csv", "tensorboard"] if found else ["csv"]
    for name in asked:
        if name != "csv" and importlib.util.find_spec(name) is None:
            raise ValueError(
                f"logger {name} is not installed: pip install '.[{name}]' in the checkout"
            )
    return asked


def check_parts(config: dict[str, Any], machine: Machine, n: int) -> None:
    """Refuse micro-batches of which the last would hold one view: batch norm needs two.

    n: images; a batch holds no more of them.
    """
    part = config["micro_batch"]
    if part is None:
        return
    policy = find_policy(config["views"], config["image_size"])
    samples = min(config["batch_size"], n) // machine.processes
    for views in filter(None, (config["n_views"], policy.local_views)):
        rows = samples * views
        if part < 2 or rows % part == 1:
            raise ValueError(
                f"micro_batch is {part} for {rows} views, of which one would be left alone: give a "
                f"number that divides {rows}"
            )


def choose_size(source: Source, device: str) -> int:
    """Pixels a side: those of small images, 224 of large ones (64 on a CPU)."""
    usual = usual_size(source)
    if usual <= SMALL and (device != "cpu" or usual <= 64):
        return max(usual, 8)
    return 64 if device == "cpu" else min(usual, 224)


def choose_canvas(source: Source, size: int, given: int | None = None) -> int:
    """Pixels a side that are kept of an image: a margin for crops where images are large."""
    if given is None:
        return size if usual_size(source) <= max(size, SMALL) else round(size * 8 / 7)
    if given < size:
        raise ValueError(f"canvas is {given} for views of {size} pixels: give at least {size}")
    return given


def choose_encoder(name: str, device: str, size: int) -> str:
    """ResNet-18, or the tiny network for small images on a CPU."""
    if name != "auto":
        return name
    return "tiny" if device == "cpu" and size <= 64 else "resnet18"


def choose_optimization(method: Recipe, config: dict[str, Any]) -> Optimization:
    """The recipe's optimiser, with what the user has set in its place; goes into `config`."""
    epochs = config["epochs"]
    warmup = config["warmup_epochs"]
    if warmup is None:
        warmup = min(10.0, 0.05 * epochs)
    if not 0 <= warmup < epochs:
        raise ValueError(f"warmup_epochs is {warmup} of {epochs} epochs: give fewer")
    name = config["optimizer"] or method.optimizer
    if config["lr"] is None and name != method.optimizer:
        raise ValueError(
            f"optimizer is {name!r}, and the recipe's learning rate is for {method.optimizer!r}: "
            "give --lr, too"
        )
    chosen = Optimization(
        name=name,
        lr=scaled_lr(method.lr, config["batch_size"]) if config["lr"] is None else config["lr"],
        weight_decay=(
            method.weight_decay if config["weight_decay"] is None else config["weight_decay"]
        ),
        epochs=epochs,
        warmup_epochs=warmup,
        trust_coefficient=method.trust_coefficient,
    )
    config.update(
        optimizer=chosen.name,
        lr=chosen.lr,
        weight_decay=chosen.weight_decay,
        warmup_epochs=warmup,
    )
    return chosen


def choose_monitor_every(config: dict[str, Any]) -> int:
    """Every epoch of a short run, twenty times in a long one."""
    every: int | None = config["monitor_every"]
    return max(1, config["epochs"] // 20) if every is None else every


def choose_diagnose_every(config: dict[str, Any]) -> tuple[int, float | None]:
    """Epochs between two looks, and which share of the time they may take.

    By default twenty times in a run, and less often where that would cost more than 1 %.

    >>> choose_diagnose_every({"diagnose_every": None, "epochs": 100})
    (5, 0.01)
    >>> choose_diagnose_every({"diagnose_every": 10, "epochs": 100})
    (10, None)
    """
    every: int | None = config["diagnose_every"]
    return (max(1, config["epochs"] // 20), 0.01) if every is None else (every, None)


def choose_views(method: Recipe, config: dict[str, Any]) -> dict[str, Any] | str:
    """The policy of augmentation: what was given, or the recipe's; digits have their own.

    A name stays one; a policy of one's own is a plain mapping, which can be written down. Fields
    without a base are over the recipe's.
    """
    given = config["views"]
    if isinstance(given, Mapping) and len(given) < len(fields(Policy)):
        given = {"base": _usual_views(method, config), **given}
    if given is not None:
        find_policy(given, config["image_size"])  # what is wrong is said before all else
        return plain_policy(given)
    return _usual_views(method, config)


def _usual_views(method: Recipe, config: dict[str, Any]) -> str:
    # A mirrored digit is no digit; a folder whose name begins so may hold anything.
    name = re.split(r"[:,]", str(config["data"]))[0]
    return "digits" if name == "digits" else method.views_of(config["image_size"])


def choose_sampler(method: Recipe, config: dict[str, Any]) -> Sampler:
    """How batches are drawn; regression on labels shuffles."""
    # It takes labels as they are: weights would not be labels any more.
    if method.regresses and config["sampler"] == "graph-aware":
        raise ValueError(f"sampler is 'graph-aware', which {method.title!r} has no use for")
    sampler: Sampler = "shuffled" if method.regresses else config["sampler"]
    if sampler == "shuffled" and config["known_share"] != USUAL_KNOWN_SHARE:
        way = "" if method.regresses else ", or give --sampler graph-aware"
        raise ValueError(
            f"known_share is {config['known_share']}, and samples are shuffled: leave it out{way}"
        )
    return sampler


def cut_batch(config: dict[str, Any], n: int, machine: Machine, console: Console | None) -> None:
    """A batch of more than the n images becomes one of all, or nearly all; it is said on the
    console, where there is one."""
    processes = machine.processes
    if n < config["batch_size"]:
        config["batch_size"] = n - n % processes
        if config["batch_size"] < 2 * processes:
            raise ValueError(f"{n} images are too few for {processes} processes")
        if console is not None:
            console.print(f"there are {n} images: the batch is cut to {config['batch_size']}")
