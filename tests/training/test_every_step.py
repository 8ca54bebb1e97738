"""What the arguments say is what every step gets: rates, decay, momentum, views, seeds."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest
import torch

import likewise
from likewise.data import open_source
from likewise.data.views import Views
from likewise.training.learner import Learner
from tests.training.driver import pictures

STEPS, EPOCHS = 6, 4


def train(out: Path, **changes: Any) -> likewise.Run:
    settings: dict[str, Any] = {
        "encoder": "tiny",
        "projector": [16, 8],
        "epochs": EPOCHS,
        "batch_size": 8,
        "device": "cpu",
        "logger": ["csv"],
        "log_every": 1,
        "monitor_every": 0,
        "diagnose_every": 0,
    }
    return likewise.train(open_source(pictures(8 * STEPS)), out=out, **{**settings, **changes})


def test_the_learning_rate_of_every_step(tmp_path: Path) -> None:
    run = train(tmp_path / "run", lr=0.5, warmup_epochs=1.5)
    with (run.path / "metrics.csv").open() as file:
        found = [float(row["train/lr"]) for row in csv.DictReader(file) if row["train/lr"]]
    total, warmup = STEPS * EPOCHS, 9
    expected = [
        k / warmup if k < warmup else (1 + math.cos(math.pi * (k - warmup) / (total - warmup))) / 2
        for k in range(total)
    ]
    assert found == pytest.approx([0.5 * factor for factor in expected], abs=1e-7)


@pytest.mark.parametrize("decay", [0.0, 0.25])
def test_the_optimiser_has_what_was_asked_for(decay: float, tmp_path: Path) -> None:
    run = train(tmp_path / "run", recipe="vicreg", weight_decay=decay, epochs=1)
    state = torch.load(run.checkpoint, weights_only=False)["optimizer_states"][0]
    groups = {group["adapt"]: group for group in state["param_groups"]}
    assert (groups[True]["weight_decay"], groups[False]["weight_decay"]) == (decay, 0.0)
    assert groups[True]["trust_coefficient"] == likewise.training.recipe("vicreg").trust_coefficient
    assert groups[True]["momentum"] == 0.9
    assert run.config["weight_decay"] == decay


def test_the_teacher_follows_along_half_a_cosine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    momenta: list[float] = []
    monkeypatch.setattr(Learner, "follow", lambda self, momentum: momenta.append(momentum))
    train(tmp_path / "run", recipe="byol")
    total = STEPS * EPOCHS
    expected = [1 - 0.01 * (math.cos(math.pi * k / total) + 1) / 2 for k in range(total)]
    assert momenta == pytest.approx(expected, abs=1e-9)


def test_no_two_steps_or_seeds_have_the_views_or_the_dropout_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes: list[torch.Tensor] = []
    seeds: list[int] = []
    apply, forward = Views.apply, Learner.forward

    def applied(self: Any, pixels: Any, parameters: Any) -> Any:
        if len(pixels) == 8:
            boxes.append(parameters.groups[0]["crop"].clone())
        return apply(self, pixels, parameters)

    def forwarded(self: Any, crops: Any, graph: Any, *, generator: Any, **options: Any) -> Any:
        seeds.extend([torch.initial_seed(), generator.initial_seed()])
        return forward(self, crops, graph, generator=generator, **options)

    monkeypatch.setattr(Views, "apply", applied)
    monkeypatch.setattr(Learner, "forward", forwarded)
    steps = STEPS * EPOCHS
    drawn: list[bytes] = []
    for seed in (0, 1):
        boxes.clear()
        train(tmp_path / str(seed), seed=seed)
        drawn += [box.numpy().tobytes() for box in boxes[-steps:]]  # before: those of the rehearsal
    assert len(set(drawn)) == len(drawn) == 2 * steps
    assert len(set(seeds)) == len(seeds) == 2 * 2 * steps
