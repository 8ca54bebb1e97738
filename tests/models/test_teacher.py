"""The momentum teacher beside a loop over its parameters."""

from __future__ import annotations

import io
import math

import pytest
import torch
from torch import nn

from likewise.models import MLP, MomentumTeacher, build_encoder, momentum_schedule


def student(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return MLP([4, 6, 3]).double()


def disturb(module: nn.Module) -> None:
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p))


def test_update_is_the_moving_average():
    model = student()
    teacher = MomentumTeacher(model)
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    for momentum in (0.9, 0.5, 0.996):
        disturb(model)
        teacher.update(model, momentum)
        for name, p in model.named_parameters():
            expected[name] = momentum * expected[name] + (1 - momentum) * p.detach()
    for name, p in teacher.module.named_parameters():
        torch.testing.assert_close(p, expected[name])
        assert not p.requires_grad


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_the_ends_are_exact(momentum):
    model = student()
    teacher = MomentumTeacher(model)
    before = {name: p.clone() for name, p in teacher.module.named_parameters()}
    disturb(model)
    teacher.update(model, momentum)
    expected = before if momentum == 1.0 else dict(model.named_parameters())
    for name, p in teacher.module.named_parameters():
        assert torch.equal(p, expected[name])


def test_no_gradient_flows_and_the_student_is_not_shared():
    model = student()
    model(torch.ones(2, 4).double()).sum().backward()
    teacher = MomentumTeacher(model)
    assert not teacher(torch.ones(2, 4, requires_grad=True).double()).requires_grad
    assert all(p.grad is None for p in teacher.parameters())
    assert all(p.requires_grad and p.grad is not None for p in model.parameters())
    shared = {p.data_ptr() for p in model.parameters()} & {
        p.data_ptr() for p in teacher.parameters()
    }
    assert not shared


def test_own_buffers_come_from_the_teachers_own_rows():
    model, x = student(), torch.randn(8, 4, dtype=torch.float64)
    teacher = MomentumTeacher(model)
    model(5 + x)
    teacher.update(model, 0.5)
    norm = teacher.module.layers[1]
    assert norm.num_batches_tracked == 0 and (norm.running_mean == 0).all()
    teacher(x)
    mean = (x @ teacher.module.layers[0].weight.T).mean(0)
    torch.testing.assert_close(norm.running_mean, 0.1 * mean)


def test_copied_buffers_are_the_students():
    model = student()
    teacher = MomentumTeacher(model, buffers="copy")
    model(torch.randn(8, 4, dtype=torch.float64))
    teacher.update(model, 0.9)
    for name, value in model.named_buffers():
        assert torch.equal(dict(teacher.module.named_buffers())[name], value)


def test_it_survives_a_checkpoint():
    model = student()
    teacher = MomentumTeacher(model)
    disturb(model)
    teacher.update(model, 0.7)
    teacher(torch.randn(8, 4).double())
    file = io.BytesIO()
    torch.save(teacher.state_dict(), file)
    file.seek(0)
    restored = MomentumTeacher(student(seed=1))
    restored.load_state_dict(torch.load(file))
    for teacher_now in (teacher, restored):
        teacher_now.update(model, 0.7)
    for name, value in teacher.state_dict().items():
        assert torch.equal(restored.state_dict()[name], value)


def test_an_encoder_can_be_a_teacher():
    encoder = build_encoder("tiny", seed=0)
    teacher = MomentumTeacher(nn.Sequential(encoder, MLP([128, 16])))
    assert teacher(torch.zeros(2, 3, 16, 16)).shape == (2, 16)


@pytest.mark.parametrize("momentum", [-0.1, 1.1, math.nan])
def test_bad_momentum(momentum):
    with pytest.raises(ValueError, match="momentum is"):
        MomentumTeacher(student()).update(student(), momentum)


def test_bad_students():
    teacher = MomentumTeacher(student())
    with pytest.raises(ValueError, match="names are in one of them only.*copied from"):
        teacher.update(MLP([4, 6, 6, 3]), 0.9)
    with pytest.raises(ValueError, match="inside the wrapper"):
        teacher.update(nn.ModuleDict({"module": student()}), 0.9)
    with pytest.raises(ValueError, match=r"has shape \(7, 4\), the teacher's \(6, 4\)"):
        teacher.update(MLP([4, 7, 3]), 0.9)
    with pytest.raises(ValueError, match="buffers is 'ema'"):
        MomentumTeacher(student(), buffers="ema")


def test_schedule_of_byol():
    values = [momentum_schedule(k, 1000) for k in range(1001)]
    assert values[0] == pytest.approx(0.996) and values[-1] == 1.0
    assert all(a <= b for a, b in zip(values, values[1:], strict=False))
    # BYOL's own form: 1 - (1 - base) (cos(pi k / K) + 1) / 2.
    for k in (1, 137, 900):
        own = 1 - (1 - 0.996) * (math.cos(math.pi * k / 1000) + 1) / 2
        assert values[k] == pytest.approx(own, rel=1e-14)
    assert momentum_schedule(5000, 1000) == 1.0
    assert momentum_schedule(3, 10, 0.99, 0.99) == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0, 0), "steps is 0"), ((-1, 5), "step is -1"), ((0, 5, 1.5), "start is 1.5")],
)
def test_bad_schedule(arguments, message):
    with pytest.raises(ValueError, match=message):
        momentum_schedule(*arguments)
