"""The learning rate at both ends, in between, and through a checkpoint."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.optimizers import scaled_lr, warmup_cosine, warmup_cosine_schedule


@given(
    steps=st.integers(1, 300),
    share=st.floats(0, 1),
    start=st.floats(0, 1),
    end=st.floats(0, 1),
)
def test_it_rises_then_falls_between_its_ends(steps, share, start, end):
    warmup = int(share * steps)
    values = [
        warmup_cosine(k, steps, warmup=warmup, start=start, end=end) for k in range(steps + 1)
    ]
    if warmup:
        assert values[0] == pytest.approx(start)
    if warmup < steps:
        assert values[warmup] == pytest.approx(1.0)
    assert values[-1] == end
    assert all(a <= b + 1e-12 for a, b in zip(values[:warmup], values[1:warmup], strict=False))
    assert all(a >= b - 1e-12 for a, b in zip(values[warmup:], values[warmup + 1 :], strict=False))
    assert all(min(start, end) - 1e-12 <= value <= 1 + 1e-12 for value in values)


def test_values():
    assert warmup_cosine(3, 100, warmup=12) == pytest.approx(0.25)
    assert warmup_cosine(3, 100, warmup=12, start=0.2) == pytest.approx(0.4)
    # A quarter of the way down the cosine: (1 + cos(pi / 4)) / 2.
    assert warmup_cosine(30, 90, warmup=10) == pytest.approx((1 + math.sqrt(0.5)) / 2)
    assert warmup_cosine(30, 90, warmup=10, end=0.5) == pytest.approx(0.75 + math.sqrt(0.5) / 4)
    assert warmup_cosine(500, 90, warmup=10, end=0.01) == 0.01


def test_without_warmup_it_is_torchs_cosine():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.7)
    peer = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20, eta_min=0.07)
    for step in range(21):
        expected = peer.get_last_lr()[0]
        assert 0.7 * warmup_cosine(step, 20, end=0.1) == pytest.approx(expected)
        optimizer.step()
        peer.step()


def test_the_scheduler_scales_every_group_and_survives_a_checkpoint():
    def build():
        groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in (2.0, 0.5)]
        optimizer = torch.optim.SGD(groups)
        return optimizer, warmup_cosine_schedule(optimizer, 10, warmup=3, start=0.1, end=0.2)

    optimizer, scheduler = build()
    seen = []
    for step in range(10):
        factor = warmup_cosine(step, 10, warmup=3, start=0.1, end=0.2)
        assert [g["lr"] for g in optimizer.param_groups] == pytest.approx([2 * factor, factor / 2])
        if step == 5:
            saved = optimizer.state_dict(), scheduler.state_dict()
            optimizer, scheduler = build()
            optimizer.load_state_dict(saved[0])
            scheduler.load_state_dict(saved[1])
        optimizer.step()
        scheduler.step()
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen[-1] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("step", "steps", "options", "message"),
    [
        (0, 0, {}, "steps is 0"),
        (-1, 5, {}, "step is -1"),
        (0, 5, {"warmup": 6}, "warmup is 6: give a number of steps from 0 to the 5"),
        (0, 5, {"warmup": -1}, "warmup is -1"),
        (0, 5, {"start": 1.1}, "start is 1.1"),
        (0, 5, {"end": math.nan}, "end is nan"),
    ],
)
def test_bad_arguments(step, steps, options, message):
    with pytest.raises(ValueError, match=message):
        warmup_cosine(step, steps, **options)
    if step >= 0:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        with pytest.raises(ValueError, match=message):
            warmup_cosine_schedule(optimizer, steps, **options)


def test_scaled_learning_rates_of_the_papers():
    assert scaled_lr(0.3, 4096) == pytest.approx(4.8)  # SimCLR
    assert scaled_lr(0.2, 4096) == pytest.approx(3.2)  # BYOL
    assert scaled_lr(1.2, 512, rule="sqrt") == pytest.approx(0.075 * math.sqrt(512))
    assert scaled_lr(0.1, 64, reference=128) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0.0, 256), {}, "base is 0.0"),
        ((0.1, 0), {}, "batch_size is 0"),
        ((0.1, 256), {"rule": "cubic"}, "rule is 'cubic'"),
        ((0.1, 256), {"reference": 0}, "reference is 0"),
    ],
)
def test_bad_scaling(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        scaled_lr(*arguments, **options)
