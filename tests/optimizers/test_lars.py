"""LARS beside a loop over numbers."""

from __future__ import annotations

import copy
import io
import math

import pytest
import torch

from likewise.optimizers import LARS

SHAPES = [(4, 3), (3,), (2, 3, 2, 2), (1,)]


def gradients(step: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(100 + step)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in SHAPES]


def weights(dtype: torch.dtype = torch.float64) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(g) for g in gradients(-1, dtype)]


def naive(w, g, v, *, lr, momentum, decay, trust, eps, nesterov, adapt):
    """One step of one layer, number by number."""
    w_norm = math.sqrt(sum(a * a for a in w))
    g_norm = math.sqrt(sum(a * a for a in g))
    ratio = 1.0
    if adapt and w_norm > 0 and g_norm > 0:
        ratio = trust * w_norm / (g_norm + decay * w_norm + eps)
    step = [ratio * (gi + decay * wi) for wi, gi in zip(w, g, strict=True)]
    v = [momentum * vi + si for vi, si in zip(v, step, strict=True)]
    move = [si + momentum * vi for si, vi in zip(step, v, strict=True)] if nesterov else v
    return [wi - lr * mi for wi, mi in zip(w, move, strict=True)], v


@pytest.mark.parametrize("adapt", [True, False])
@pytest.mark.parametrize(
    ("momentum", "nesterov", "decay"), [(0.9, False, 1e-2), (0.8, True, 0.1), (0.0, False, 0.0)]
)
def test_naive_loop(momentum, nesterov, decay, adapt):
    options = {"momentum": momentum, "nesterov": nesterov}
    parameters = weights()
    optimizer = LARS(
        parameters, 0.3, weight_decay=decay, trust_coefficient=0.02, adapt=adapt, **options
    )
    expected = [p.detach().flatten().tolist() for p in parameters]
    velocities = [[0.0] * len(w) for w in expected]
    for step in range(5):
        lr = 0.3 / (1 + step)
        optimizer.param_groups[0]["lr"] = lr
        for i, (p, g) in enumerate(zip(parameters, gradients(step), strict=True)):
            p.grad = g
            expected[i], velocities[i] = naive(
                *(expected[i], g.flatten().tolist(), velocities[i]),
                **{"lr": lr, "decay": decay, "trust": 0.02, "eps": 1e-8, "adapt": adapt},
                **options,
            )
        optimizer.step()
    for p, w in zip(parameters, expected, strict=True):
        torch.testing.assert_close(p.detach().flatten(), torch.tensor(w, dtype=p.dtype))


@pytest.mark.parametrize("nesterov", [False, True])
def test_without_adaptation_it_is_sgd(nesterov):
    first, second = weights(), weights()
    options = {"momentum": 0.9, "weight_decay": 0.01, "nesterov": nesterov}
    optimizers = [LARS(first, 0.1, adapt=False, **options), torch.optim.SGD(second, 0.1, **options)]
    for step in range(4):
        for p, q, g in zip(first, second, gradients(step), strict=True):
            p.grad, q.grad = g.clone(), g.clone()
        for optimizer in optimizers:
            optimizer.step()
    for p, q in zip(first, second, strict=True):
        torch.testing.assert_close(p, q)


def test_the_scale_of_a_gradient_does_not_matter():
    moved = []
    for scale in (1.0, 1e4):
        parameters = weights()
        optimizer = LARS(parameters, 0.3, eps=0.0)
        for p, g in zip(parameters, gradients(0), strict=True):
            p.grad = scale * g
        optimizer.step()
        moved.append(parameters)
    for p, q in zip(*moved, strict=True):
        torch.testing.assert_close(p, q)


@pytest.mark.parametrize("eps", [0.0, 1e-8])
def test_zero_weights_and_zero_gradients_are_safe(eps):
    zero = torch.nn.Parameter(torch.zeros(3))
    still = torch.nn.Parameter(torch.ones(3))
    both = torch.nn.Parameter(torch.zeros(2))
    without = torch.nn.Parameter(torch.ones(2))
    optimizer = LARS([zero, still, both, without], 0.5, eps=eps, weight_decay=0.0)
    zero.grad, still.grad, both.grad = torch.ones(3), torch.zeros(3), torch.zeros(2)
    optimizer.step()
    assert zero.tolist() == [-0.5] * 3
    assert still.tolist() == [1.0] * 3
    assert both.tolist() == [0.0] * 2
    assert without.tolist() == [1.0] * 2 and without not in optimizer.state


def test_gradients_are_not_changed():
    parameters = weights()
    optimizer = LARS(parameters, 0.3, weight_decay=0.1)
    for p, g in zip(parameters, gradients(0), strict=True):
        p.grad = g.clone()
    optimizer.step()
    for p, g in zip(parameters, gradients(0), strict=True):
        assert torch.equal(p.grad, g)


def test_types_may_be_mixed():
    parameters = [weights(torch.float32)[0], weights(torch.float64)[1]]
    optimizer = LARS(parameters, 0.1)
    before = [p.detach().clone() for p in parameters]
    for p in parameters:
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert all((p != b).all() for p, b in zip(parameters, before, strict=True))


def test_state_dict_round_trip_is_exact():
    def run(parameters, optimizer, steps):
        for step in steps:
            for p, g in zip(parameters, gradients(step, torch.float32), strict=True):
                p.grad = g
            optimizer.step()

    parameters = weights(torch.float32)
    optimizer = LARS(parameters, 0.3, weight_decay=1e-3, nesterov=True)
    run(parameters, optimizer, range(3))
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    copies = [torch.nn.Parameter(p.detach().clone()) for p in parameters]
    restored = LARS(copies, 9.9)
    restored.load_state_dict(torch.load(file))
    run(parameters, optimizer, range(3, 6))
    run(copies, restored, range(3, 6))
    assert all(torch.equal(p, q) for p, q in zip(parameters, copies, strict=True))


def test_closure_and_copy():
    w = torch.nn.Parameter(torch.tensor([2.0]))
    optimizer = copy.deepcopy(LARS([w], 0.1))
    (w,) = optimizer.param_groups[0]["params"]

    def closure():
        optimizer.zero_grad()
        loss = w.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    assert w.item() < 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -1.0}, "lr is -1.0"),
        ({"lr": math.nan}, "lr is nan"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"weight_decay": -1e-4}, "weight_decay is"),
        ({"trust_coefficient": 0.0}, "trust_coefficient is 0.0"),
        ({"eps": -1.0}, "eps is -1.0"),
        ({"nesterov": True, "momentum": 0.0}, "nesterov is True and momentum is 0"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        LARS(weights(), **{"lr": 0.1, **options})


def test_sparse_gradients_are_refused():
    w = torch.nn.Parameter(torch.ones(2, 2))
    w.grad = torch.eye(2).to_sparse()
    with pytest.raises(ValueError, match="a gradient is sparse"):
        LARS([w], 0.1).step()
