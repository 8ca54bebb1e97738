"""A training leaves the process as it found it."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.utilities import rank_zero_only

import likewise
from likewise.training.machine import Machine
from likewise.training.settings import training_settings
from tests.training.driver import pictures

FEW: dict[str, Any] = {
    "encoder": "tiny",
    "device": "cpu",
    "batch_size": 16,
    "epochs": 1,
    "logger": ["csv"],
}


def settings() -> tuple[object, ...]:
    return (
        torch.get_rng_state().tolist(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.benchmark,
        list(warnings.filters),
        [logging.getLogger(f"lightning.{room}").level for room in ("pytorch", "fabric")],
    )


@pytest.mark.parametrize("lr", [0.1, 1e30])
def test_whoever_trains_finds_everything_as_it_was(lr: float, tmp_path: Path) -> None:
    # Loading a library may set filters of its own, once.
    likewise.train(pictures(32), out=tmp_path / "first", **FEW)
    torch.manual_seed(123)
    before = settings()
    options = {**FEW, "lr": lr, "log_every": 1, "deterministic": True}
    if lr > 1:
        with pytest.raises(RuntimeError, match="loss is"):
            likewise.train(pictures(32), out=tmp_path / "run", **options)
    else:
        likewise.train(pictures(32), out=tmp_path / "run", **options)
    assert settings() == before


def test_what_was_chosen_before_is_chosen_again() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with training_settings(Machine()):
            torch.use_deterministic_algorithms(False)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_what_is_chosen_meanwhile_is_forgotten() -> None:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    ranks = rank_zero_only.rank
    with training_settings(Machine(device="cpu")):
        assert torch.get_float32_matmul_precision() == before[0]
        assert rank_zero_only.rank == 0
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == before
    assert rank_zero_only.rank == ranks


@pytest.mark.parametrize("deterministic", [False, True])
def test_products_on_a_gpu(deterministic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "likewise.training.settings.own_device", lambda machine: torch.device("cpu")
    )
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    with training_settings(Machine(device="cuda", deterministic=deterministic)):
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.backends.cudnn.benchmark is not deterministic
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == before


NEWER = """
import torch
if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
    torch.backends.cuda.matmul.fp32_precision = "tf32"
from likewise.training.machine import Machine
from likewise.training.settings import training_settings
with training_settings(Machine()):
    pass
import likewise.training.settings as settings
settings.own_device = lambda machine: torch.device("cpu")
with training_settings(Machine(device="cuda")):
    pass
"""


def test_a_process_that_has_chosen_by_the_newer_names_can_train() -> None:
    done = subprocess.run([sys.executable, "-c", NEWER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
