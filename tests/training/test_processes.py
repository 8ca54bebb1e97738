"""Two processes with the same global batch take the steps of one."""

from __future__ import annotations

import csv
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch.utilities import rank_zero_only
from torch import nn

import likewise
from likewise import Graph
from likewise.commands.errors import UsageError
from likewise.models import build_encoder, convert_batch_norm
from likewise.training import RECIPES, Learner, recipe
from likewise.training.choices import join_torchrun
from likewise.training.machine import Machine
from likewise.training.processes import is_first_process, own_device
from tests.processes import ProcessPair
from tests.training.driver import pictures

SAMPLES, VIEWS, STEPS = 16, 2, 3


def losses_of(name: str, rank: int, world: int) -> list[float]:
    """The losses of a few steps on this rank's share of every batch."""
    torch.manual_seed(0)
    options: dict[str, Any] = {"w-mse": {"slice_size": 12}, "swav": {"prototypes": 5}}
    classes = 4 if RECIPES[name].objective == "ClassRegression" else None
    learner = Learner(
        recipe(name),
        build_encoder("tiny", seed=0),
        projector=[16, 8] if classes is None else [16],
        classes=classes,
        options=options.get(name),
    )
    module: nn.Module = learner
    if world > 1:
        module = nn.parallel.DistributedDataParallel(convert_batch_norm(learner))
    optimizer = torch.optim.SGD(learner.student.parameters(), lr=1e-4)
    labels = torch.arange(SAMPLES) % 4
    graph = Graph.from_labels(labels)
    if classes is None:
        graph = 0.5 * Graph.identity(SAMPLES) + 0.5 * graph
    share = SAMPLES * VIEWS // world
    found = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        crops = torch.rand(SAMPLES * VIEWS, 3, 16, 16, generator=generator)
        own = crops[rank * share : (rank + 1) * share]
        terms = module([own], graph, generator=torch.Generator().manual_seed(step))
        loss = torch.stack([*terms.values()]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        learner.follow(0.9)
        found.append(float(loss.detach()))
    return found


def all_recipes(rank: int) -> dict[str, list[float]]:
    return {name: losses_of(name, rank, world=2) for name in RECIPES}


@pytest.fixture(scope="module")
def in_pairs(process_pair: ProcessPair) -> list[dict[str, list[float]]]:
    return process_pair.call(all_recipes)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_the_losses_of_one_process(
    name: str, in_pairs: list[dict[str, list[float]]]
) -> None:
    alone = losses_of(name, rank=0, world=1)
    assert alone[0] != alone[-1]
    for found in in_pairs:
        # Sums of float32 in another order drift apart slowly, more where batch norm divides.
        assert found[name] == pytest.approx(alone, rel=2e-3)
        assert found[name][0] == pytest.approx(alone[0], rel=1e-4)


def curve(folder: Path) -> list[float]:
    with (folder / "metrics.csv").open() as file:
        return [float(row["train/loss"]) for row in csv.DictReader(file) if row["train/loss"]]


LIGHTNING = (sys.executable, "-m", "likewise.commands")
TORCHRUN = (
    *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
    *("-m", "likewise.commands"),
)


def command(start: tuple[str, ...], data: Path, out: Path, *more: str) -> list[str]:
    return [
        *(*start, "train", str(data)),
        *("--out", str(out), "--recipe", "byol", "--encoder", "tiny"),
        *("--projector", "[16, 8]", "--epochs", "3", "--batch-size", "8"),
        *("--device", "cpu", "--log-every", "1", "--logger", "[csv]"),
        *more,
    ]


def trained(start: tuple[str, ...], data: Path, out: Path, *more: str) -> list[float]:
    """The loss curve of the command, as it was started."""
    words = command(start, data, out, *more)
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return curve(out)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """The images, and the loss curve of one process on them."""
    folder = tmp_path_factory.mktemp("alone")
    data = folder / "pictures.npy"
    np.save(data, pictures(32))
    return data, trained(LIGHTNING, data, folder / "one")


def same_curves(one: list[float], two: list[float]) -> None:
    assert len(one) == len(two) == 12
    assert one[0] == pytest.approx(two[0], rel=1e-5)
    assert np.allclose(one, two, rtol=2e-3)
    assert np.abs(np.diff(one)).max() > 0


@pytest.mark.parametrize(
    ("start", "more"),
    [(LIGHTNING, ("--devices", "2")), (TORCHRUN, ("--stream", "true"))],
    ids=["lightning", "torchrun, streamed"],
)
def test_the_command_in_two_processes_has_the_loss_curve_of_one(
    start: tuple[str, ...], more: tuple[str, ...], alone: tuple[Path, list[float]], tmp_path: Path
) -> None:
    data, curve_of_one = alone
    same_curves(curve_of_one, trained(start, data, tmp_path / "two", *more))


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def test_the_command_on_two_machines_has_the_loss_curve_of_one(
    alone: tuple[Path, list[float]], tmp_path: Path
) -> None:
    data, curve_of_one = alone
    out = tmp_path / "two"
    words = command(LIGHTNING, data, out, "--nodes", "2")
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    machines = [
        subprocess.Popen(
            words,
            env={**os.environ, **told, "NODE_RANK": machine},
            stderr=subprocess.PIPE,
            text=True,
        )
        for machine in ("0", "1")
    ]
    said = [machine.communicate(timeout=300)[1] for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], said
    # One of them speaks, and writes the folder that both of them see.
    assert ["byol on 32 images" in text for text in said] == [True, False]
    same_curves(curve_of_one, curve(out))


@pytest.mark.parametrize(
    ("told", "first", "device"),
    [
        ({}, True, 0),
        # torchrun: the rank among all decides, whichever machine it is.
        ({"RANK": "0", "LOCAL_RANK": "0"}, True, 0),
        ({"RANK": "2", "LOCAL_RANK": "0"}, False, 0),
        # Lightning's own processes on the first and on the second machine.
        ({"NODE_RANK": "0", "LOCAL_RANK": "1"}, False, 1),
        ({"NODE_RANK": "1"}, False, 0),
        # Slurm's tasks, two a machine.
        ({"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, True, 0),
        ({"SLURM_PROCID": "3", "SLURM_LOCALID": "1"}, False, 1),
    ],
)
def test_who_speaks_and_which_device_is_whose(
    told: dict[str, str], first: bool, device: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert is_first_process(8) == first
    assert own_device(Machine(device="cuda", devices=2, nodes=4)).index == device
    # One that trains alone is the first, wherever it stands in a cluster's numbers.
    assert is_first_process(1)
    assert own_device(Machine(device="cuda")).index == 0


@pytest.mark.parametrize("name", ["NODE_RANK", "RANK", "LOCAL_RANK", "SLURM_PROCID"])
def test_a_training_alone_leaves_its_run_whatever_the_cluster_calls_the_machine(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(rank_zero_only, "rank", 1)  # what Lightning has read from it
    run = tmp_path / "run"
    few = {"encoder": "tiny", "device": "cpu", "batch_size": 16, "epochs": 1, "logger": "csv"}
    likewise.train(pictures(32), out=run, **few)
    written = {"config.yaml", "data.json", "summary.json", "metrics.csv", "encoder.safetensors"}
    assert written <= {file.name for file in run.iterdir()}
    with pytest.raises(UsageError, match="is not empty"):
        likewise.train(pictures(32), out=run, **few)


def test_torchrun_and_the_arguments_have_to_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    join_torchrun({"devices": 2, "nodes": 2})
    with pytest.raises(ValueError, match="torchrun has started 2 a node on 2"):
        join_torchrun({"devices": 4, "nodes": 1})


@pytest.mark.parametrize(
    "told", [{"SLURM_NTASKS": "2"}, {"RANK": "0", "WORLD_SIZE": "2"}], ids=["slurm", "others"]
)
def test_machines_that_others_have_brought_together_need_no_address(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_NTASKS", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="MASTER_ADDR"):
        join_torchrun({"devices": 1, "nodes": 2})
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    join_torchrun({"devices": 1, "nodes": 2})
