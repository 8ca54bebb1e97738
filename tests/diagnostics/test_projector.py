import math

import numpy as np
import pytest
import torch
from torch import nn

from likewise.diagnostics import (
    fraction_unexplained,
    local_affine_maps,
    local_fraction_unexplained,
    span_difference,
)
from likewise.models import MLP
from tests.diagnostics import naive


def mlp(seed=0, **options):
    torch.manual_seed(seed)
    projector = MLP([6, 16, 16, 3], **options)
    for layer in projector.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
    return projector


def projectors():
    torch.manual_seed(0)
    leaky = nn.Sequential(nn.Linear(6, 9), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(9, 3))
    return {
        "norm": mlp(),
        "plain": mlp(norm=False),
        "last norm": mlp(last_norm=True, bias=True),
        "leaky": leaky,
        "linear": nn.Linear(6, 3),
    }


@pytest.mark.parametrize("kind", list(projectors()))
def test_maps_are_the_jacobian(kind):
    projector = projectors()[kind]
    h = torch.from_numpy(naive.normal(12, 6))
    found = local_affine_maps(projector, h)
    frozen = projector.double().eval()
    for i, row in enumerate(h):
        jacobian = torch.autograd.functional.jacobian(lambda x: frozen(x[None])[0], row)
        assert torch.allclose(found.weights[i], jacobian)
        assert torch.allclose(found.weights[i] @ row + found.offsets[i], frozen(row[None])[0])


def test_a_projector_in_training_is_left_alone():
    projector = mlp()
    before = {name: value.clone() for name, value in projector.state_dict().items()}
    local_affine_maps(projector, torch.randn(5, 6))
    assert projector.training
    for name, value in projector.state_dict().items():
        assert torch.equal(value, before[name]) and value.dtype == before[name].dtype


def test_regions():
    """Without biases a region is a cone: h and 7 h share it, h and -h do not."""
    torch.manual_seed(0)
    projector = nn.Sequential(nn.Linear(6, 32, bias=False), nn.ReLU(), nn.Linear(32, 3, bias=False))
    h = torch.randn(10, 6)
    found = local_affine_maps(projector, torch.cat([h, 7 * h, -h]))
    assert torch.equal(found.region[:10], found.region[10:20])
    assert not set(found.region[:10].tolist()) & set(found.region[20:].tolist())
    assert found.offsets.abs().max() < 1e-5
    assert found.regions == len(set(found.region.tolist())) > 10
    assert found.region[0] == 0  # numbered as they appear
    assert local_affine_maps(nn.Linear(6, 3), h).regions == 1


def test_spans_against_loops():
    maps = naive.normal(7, 2, 5)
    found = span_difference(maps)
    onto = [np.linalg.pinv(m) @ m for m in maps]
    apart = [1 - np.trace(onto[i] @ onto[j]) / 2 for i in range(7) for j in range(7) if i != j]
    assert found.distance == pytest.approx(np.mean(apart))
    values = np.linalg.eigvalsh(sum(onto) / 7).clip(0)
    assert found.union_effective_rank == pytest.approx(naive.exp_entropy(values))
    assert found.ranks == 2 and found.dim == 5


def test_spans_known_answers():
    same = np.stack([naive.normal(2, 2, seed=s) @ np.eye(2, 6) for s in range(5)])
    found = span_difference(same)
    assert found.distance == pytest.approx(0, abs=1e-12)
    assert found.union_effective_rank == pytest.approx(2)
    apart = np.stack([np.eye(6)[[2 * k, 2 * k + 1]] for k in range(3)])
    found = span_difference(apart)
    assert found.distance == pytest.approx(1) and found.union_effective_rank == pytest.approx(6)
    one = span_difference(apart[:1])
    assert math.isnan(one.distance) and "one local map" in one.notes[0]
    dead = span_difference(np.zeros((3, 2, 4)))
    assert math.isnan(dead.distance) and "3 of 3 local maps are zero" in dead.notes[0]
    # A linear projector has one span, a deep one many.
    h = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))
    linear = span_difference(local_affine_maps(nn.Linear(6, 3), h).weights).distance
    deep = span_difference(local_affine_maps(mlp(norm=False), h).weights).distance
    assert linear == pytest.approx(0, abs=1e-12) and deep > 0.1


def test_local_fraction():
    moves, maps = naive.normal(8, 5), naive.normal(8, 2, 5, seed=1)
    rest = [
        np.linalg.norm(m - np.linalg.pinv(w) @ w @ m) ** 2 for m, w in zip(moves, maps, strict=True)
    ]
    assert local_fraction_unexplained(moves, maps) == pytest.approx(sum(rest) / np.sum(moves**2))
    shared = np.repeat(maps[:1], 8, axis=0)
    assert local_fraction_unexplained(moves, shared) == pytest.approx(
        fraction_unexplained(moves, maps[0])
    )
    with pytest.raises(ValueError, match="moves has 8 rows"):
        local_fraction_unexplained(moves, maps[:3])


def test_errors():
    h = torch.randn(4, 6)
    with pytest.raises(ValueError, match="GELU"):
        local_affine_maps(MLP([6, 4, 3], activation="gelu"), h)
    with pytest.raises(ValueError, match="takes 7"):
        local_affine_maps(nn.Linear(7, 3), h)
    with pytest.raises(ValueError, match="running statistics"):
        local_affine_maps(
            nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3, track_running_stats=False)), h
        )
    with pytest.raises(ValueError, match="at most"):
        local_affine_maps(nn.Linear(2048, 8192), torch.zeros(100, 2048))

    class Twice(nn.Sequential):
        def forward(self, x):
            return 2 * super().forward(x)

    with pytest.raises(ValueError, match="one after another"):
        local_affine_maps(Twice(nn.Linear(6, 3)), h)
    with pytest.raises(ValueError, match="weights have shape"):
        span_difference(np.ones((2, 3)))
