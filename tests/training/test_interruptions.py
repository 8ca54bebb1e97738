"""A run that is killed and resumed ends with the weights of one that was not."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

DRIVER = Path(__file__).with_name("driver.py")


def drive(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DRIVER), str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    done = drive(folder)
    assert done.returncode == 0, done.stderr
    return folder


def same_weights(a: Path, b: Path) -> bool:
    left = torch.load(a / "checkpoints/last.ckpt", weights_only=False)
    right = torch.load(b / "checkpoints/last.ckpt", weights_only=False)
    assert left["global_step"] == right["global_step"] == 18
    states = left["state_dict"], right["state_dict"]
    assert states[0].keys() == states[1].keys()
    encoders = [load_file(folder / "encoder.safetensors") for folder in (a, b)]
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0]) and all(
        torch.equal(encoders[0][name], encoders[1][name]) for name in encoders[0]
    )


def lines(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


# 6 steps an epoch, checkpoints after steps 4, 6, 8, 12, ...
@pytest.mark.parametrize(
    "how",
    [
        ("--die-in-step", "7"),  # after the end of an epoch
        ("--die-in-step", "10"),  # in the middle of one
        ("--die-in-save", "1"),  # no checkpoint is there yet
        ("--die-in-save", "3"),  # an older one is there
    ],
)
def test_killed_and_resumed_is_as_if_never_killed(
    how: tuple[str, str], uninterrupted: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    killed = drive(folder, *how)
    assert killed.returncode == -9, killed.stderr
    resumed = drive(folder, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert same_weights(uninterrupted, folder)
    assert lines(folder) == lines(uninterrupted)
    # The first step and the last one of every epoch.
    logged = [line["step"] for line in lines(folder) if line["train/loss"]]
    assert logged == ["0", "5", "11", "17"]
    assert not list((folder / "checkpoints").glob(".*")), "half a file was left behind"
