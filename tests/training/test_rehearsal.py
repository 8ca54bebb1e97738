"""Before a training: what a rehearsal counts and times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from likewise.data.views import Views
from likewise.models import build_encoder
from likewise.training import Learner, recipe, rehearsal
from likewise.training.machine import Machine
from likewise.training.module import Optimization
from tests.training.driver import pictures
from tests.training.test_prepared import prepared


@pytest.mark.parametrize(("devices", "name"), [(1, "sgd"), (2, "adamw")])
def test_a_rehearsal_is_of_one_process_and_its_optimiser(
    devices: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "_seconds", lambda *_: 0.5)
    learner = Learner(recipe("simclr"), build_encoder("tiny"), projector=[16, 8])
    found = rehearsal.rehearse(
        learner,
        Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3),
        torch.from_numpy(pictures(40)).permute(0, 3, 1, 2).contiguous(),
        Optimization(name, lr=0.1, weight_decay=0.0, epochs=1, warmup_epochs=0),
        batch_size=64,
        steps=10,
        bytes_data=0,
        machine=Machine(devices=devices),
        device=torch.device("cpu"),
    )
    learned = 4 * sum(p.numel() for p in learner.parameters())
    buffers = sum(b.nbytes for b in learner.buffers())
    assert found.bytes_model == (4 if name == "adamw" else 3) * learned + buffers
    # 16 samples took half a second; a process has its share of 64.
    assert found.seconds_per_step == pytest.approx(0.5 * 64 / devices / 16)
    assert found.seconds_total == pytest.approx(10 * found.seconds_per_step)


def test_the_rehearsal_of_parts_counts_a_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[int] = []
    original = rehearsal.estimate_activations

    def estimate(module: Any, crops: Any, batch: int, **options: Any) -> int:
        asked.append(batch)
        return original(module, crops, batch, **options)

    monkeypatch.setattr(rehearsal, "estimate_activations", estimate)
    for place, part in enumerate((None, 8)):
        prepared(pictures(40), tmp_path / str(place), batch_size=32, micro_batch=part)
    assert asked == [32, 4]  # samples: 8 views are those of four
