"""Optimizers by name: groups, kinds, exact resume, bad input."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

from likewise.optimizers import LARS, OPTIMIZERS, build_optimizer


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    # No bias before the norm: its gradient is round-off, which AdamW scales up.
    convolution = nn.Conv2d(3, 4, 3, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))


def train(module: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    device = next(module.parameters()).device
    for step in steps:
        x = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(step)).to(device)
        optimizer.zero_grad()
        module(x).square().mean().backward()
        optimizer.step()


def check_resume(name: str, device: str) -> None:
    module = model().to(device)
    options = {"lr": 0.02, "weight_decay": 0.01}
    optimizer = build_optimizer(name, module, **options)
    train(module, optimizer, range(3))
    file = io.BytesIO()
    torch.save({"model": module.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    again = model(seed=1).to(device)
    resumed = build_optimizer(name, again, **options)
    saved = torch.load(file)
    again.load_state_dict(saved["model"])
    resumed.load_state_dict(saved["optimizer"])
    train(module, optimizer, range(3, 6))
    train(again, resumed, range(3, 6))
    for key, value in module.state_dict().items():
        assert torch.isfinite(value).all()
        assert torch.equal(again.state_dict()[key], value), key


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_resume_is_exact(name):
    check_resume(name, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_resume_is_exact_on_a_gpu(name):
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        check_resume(name, "cuda")
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_cuda_agrees_with_the_cpu(name):
    modules = [model().double(), model().double().cuda()]
    for module in modules:
        optimizer = build_optimizer(name, module, lr=0.1, weight_decay=0.01)
        assert name == "lars" or optimizer.defaults["fused"] is (module is modules[1] or None)
        for step in range(3):
            x = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(step)).double()
            optimizer.zero_grad()
            module(x.to(next(module.parameters()).device)).square().mean().backward()
            optimizer.step()
    for p, q in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
        torch.testing.assert_close(q.cpu(), p, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "kind"), [("sgd", torch.optim.SGD), ("lars", LARS), ("adamw", torch.optim.AdamW)]
)
def test_kinds_and_groups(name, kind):
    module = model()
    optimizer = build_optimizer(name, module, lr=0.1, weight_decay=0.01)
    assert type(optimizer) is kind
    decayed, free = optimizer.param_groups
    assert decayed["weight_decay"] == 0.01 and free["weight_decay"] == 0.0
    assert [p.ndim for p in decayed["params"]] == [4, 2]
    assert [p.ndim for p in free["params"]] == [1, 1, 1]
    if name == "lars":
        assert decayed["adapt"] and not free["adapt"]
    (everything,) = build_optimizer(
        name, module, lr=0.1, weight_decay=0.01, exclude_from_decay=False
    ).param_groups
    assert len(everything["params"]) == 5 and everything["weight_decay"] == 0.01


def test_a_bias_of_two_dimensions_does_not_decay():
    pairs = [("a.bias", nn.Parameter(torch.ones(2, 2))), ("w", nn.Parameter(torch.ones(2, 2)))]
    decayed, free = build_optimizer("sgd", pairs, lr=0.1, weight_decay=0.5).param_groups
    assert decayed["params"][0] is pairs[1][1] and free["params"][0] is pairs[0][1]


def test_several_modules_frozen_and_shared_parameters():
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    frozen = nn.Linear(2, 2).requires_grad_(False)
    optimizer = build_optimizer("adamw", [first, second, frozen, first], lr=0.1)
    (group,) = optimizer.param_groups
    assert [id(p) for p in group["params"]] == [id(first.weight), id(second.weight)]


def test_options_arrive():
    sgd = build_optimizer("sgd", model(), lr=0.1, momentum=0.8, nesterov=True)
    assert sgd.param_groups[0]["momentum"] == 0.8 and sgd.param_groups[1]["nesterov"]
    lars = build_optimizer("lars", model(), lr=0.1, trust_coefficient=0.02, eps=1e-6)
    assert lars.param_groups[0]["trust_coefficient"] == 0.02
    assert lars.param_groups[0]["eps"] == 1e-6
    adamw = build_optimizer("adamw", model(), lr=0.1, betas=(0.8, 0.95))
    assert adamw.param_groups[0]["betas"] == (0.8, 0.95)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("larss", {}, "optimizer is 'larss'.*did you mean 'lars'"),
        ("rmsprop", {}, "optimizer is 'rmsprop': give 'sgd', 'lars' or 'adamw'$"),
        ("sgd", {"lr": 0.0}, "lr is 0.0"),
        ("sgd", {"lr": "0.1"}, "lr is '0.1'"),
        ("sgd", {"weight_decay": -1.0}, "weight_decay is -1.0"),
        ("sgd", {"momentum": 1.5}, "momentum is 1.5"),
        ("sgd", {"momentum": 0.0, "nesterov": True}, "nesterov is True and momentum is 0"),
        ("adamw", {"betas": (0.9, 1.0)}, "betas is"),
        ("adamw", {"eps": -1.0}, "eps is -1.0"),
    ],
)
def test_bad_arguments(name, options, message):
    with pytest.raises(ValueError, match=message):
        build_optimizer(name, model(), **{"lr": 0.1, **options})


def test_bad_parameters():
    with pytest.raises(ValueError, match="none that learns"):
        build_optimizer("sgd", nn.Linear(2, 2).requires_grad_(False), lr=0.1)
    with pytest.raises(ValueError, match="parameters holds a Parameter: give modules, or pairs"):
        build_optimizer("sgd", nn.Linear(2, 2).parameters(), lr=0.1)
