"""Two processes with the same global batch take the steps of one."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.training.driver import pictures


def losses(folder: Path) -> list[float]:
    with (folder / "metrics.csv").open() as file:
        return [float(row["train/loss"]) for row in csv.DictReader(file) if row["train/loss"]]


@pytest.mark.parametrize("recipe", ["simclr", "byol", "vicreg", "swav", "moco-v2"])
def test_two_processes_have_the_loss_curve_of_one(recipe: str, tmp_path: Path) -> None:
    np.save(tmp_path / "pictures.npy", pictures(32))
    curves = []
    for devices in (1, 2):
        out = tmp_path / f"run{devices}"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "likewise.commands", "train"),
                str(tmp_path / "pictures.npy"),
                *("--out", str(out), "--recipe", recipe, "--encoder", "tiny"),
                *("--projector", "[16, 8]", "--epochs", "3", "--batch-size", "8"),
                *("--device", "cpu", "--devices", str(devices), "--log-every", "1"),
                *("--logger", "[csv]", "--monitor-every", "0"),
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        curves.append(losses(out))
    one, two = map(np.array, curves)
    assert len(one) == len(two) == 12
    assert one[0] == pytest.approx(two[0], rel=1e-5)
    # Sums of float32 in another order drift apart slowly, more where batch norm divides.
    assert np.allclose(one, two, rtol=2e-3)
    assert np.abs(np.diff(one)).max() > 0
