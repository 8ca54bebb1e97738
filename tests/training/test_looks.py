"""The loss that is shown is never older than the last step of the last epoch."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import likewise
from likewise.data import open_source
from likewise.training.module import TrainingModule
from tests.training.driver import pictures


def train(folder: Path, images: int, batch: int, **options: Any) -> likewise.Run:
    return likewise.train(
        open_source(pictures(images)),
        out=folder,
        encoder="tiny",
        projector=[16, 8],
        batch_size=batch,
        device="cpu",
        logger=["csv"],
        diagnose_every=0,
        **options,
    )


def losses(run: likewise.Run) -> dict[int, float]:
    with (run.path / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row.get("train/loss")]
    return {int(row["step"]): float(row["train/loss"]) for row in rows}


def test_with_a_step_an_epoch_the_last_loss_is_that_of_the_last_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(tmp_path / "run", images=12, batch=12, epochs=4)
    found = losses(run)
    assert sorted(found) == [0, 1, 2, 3]
    assert run.summary["loss"] == pytest.approx(found[3], abs=1e-6)
    assert run.summary["loss"] != pytest.approx(found[0], abs=1e-6)
    assert f"epoch 4/4  loss {found[3]:.4g}" in capsys.readouterr().err


def test_values_are_read_back_every_so_many_steps_and_once_an_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    original = TrainingModule._look

    def look(self: Any, loss: Any, terms: Any, step: int) -> None:
        looked.append(step)
        original(self, loss, terms, step)

    monkeypatch.setattr(TrainingModule, "_look", look)
    train(tmp_path / "run", images=12, batch=2, epochs=2, log_every=4)
    assert looked == [0, 4, 5, 8, 11]
