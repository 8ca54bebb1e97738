"""Whole trainings on a GPU: in every precision, compiled, streamed, stopped and resumed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import likewise
from likewise.commands import main
from tests.training.driver import pictures
from tests.training.test_stopping import signalled

pytestmark = pytest.mark.gpu

QUICK: dict[str, Any] = {
    "encoder": "tiny",
    "projector": [32],
    "views": "small",
    "optimizer": "adamw",
    "lr": 0.003,
    "epochs": 12,
    "batch_size": 16,
    "device": "cuda",
    "logger": ["csv"],
    "monitor_every": 1,
}


def losses(run: Path) -> list[float]:
    with (run / "metrics.csv").open() as file:
        return [float(row["train/loss"]) for row in csv.DictReader(file) if row["train/loss"]]


@pytest.mark.parametrize("precision", ["32", "bf16", "16"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("recipe", ["simclr", "byol"])
def test_the_loss_falls(precision: str, compiled: bool, recipe: str, tmp_path: Path) -> None:
    options = {**QUICK, "precision": precision, "compile": compiled, "recipe": recipe}
    run = likewise.train(pictures(96), out=tmp_path / "run", log_every=1, **options)
    seen = losses(run.path)
    quarter = len(seen) // 4
    assert quarter > 10 and np.isfinite(seen).all()
    assert np.mean(seen[-quarter:]) < 0.9 * np.mean(seen[:quarter])
    weights = load_file(run.path / "encoder.safetensors")
    assert all(torch.isfinite(weight).all() for weight in weights.values())
    encoder, preparation = run.encoder("cuda")
    assert next(encoder.parameters()).device.type == "cuda" and preparation.size == 16


def test_streamed_images_train_as_those_in_memory(tmp_path: Path) -> None:
    one, two = (
        likewise.train(
            pictures(96), out=tmp_path / name, stream=stream, workers=2, precision="32",
            deterministic=True, compile=False, **QUICK
        ).path
        for name, stream in (("memory", False), ("stream", True))
    )  # fmt: skip
    assert losses(one) == pytest.approx(losses(two), rel=1e-4)


@pytest.mark.parametrize("precision", ["bf16", "16"])
def test_stopped_and_resumed_is_as_if_never_stopped(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "pictures.npy", pictures(48))
    given = ["train", str(tmp_path / "pictures.npy"), "--recipe=byol", "--encoder=tiny",
             "--epochs=3", "--batch-size=8", "--device=cuda", "--logger=[csv]",
             "--deterministic", f"--precision={precision}"]  # fmt: skip
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert main([*given, "--out", str(whole)]) == 0
    signalled(monkeypatch, 8, 2)
    assert main([*given, "--out", str(run)]) == 130
    monkeypatch.undo()
    assert main(["train", "--resume", str(run)]) == 0
    found, expected = (load_file(path / "encoder.safetensors") for path in (run, whole))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert losses(run) == losses(whole)
