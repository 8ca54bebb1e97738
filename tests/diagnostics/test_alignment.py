import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.diagnostics import alignment, uniformity, view_noise
from tests.diagnostics import naive


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.5])
def test_alignment_against_loops(alpha):
    z1, z2 = naive.normal(9, 4, seed=0), naive.normal(9, 4, seed=1)
    assert alignment(z1, z2, alpha=alpha) == pytest.approx(naive.alignment(z1, z2, alpha))


def test_alignment_of_close_views_keeps_its_digits():
    """2 - 2 cos would be off by 40 % here."""
    z1 = torch.from_numpy(naive.unit(naive.normal(50, 16))).float()
    z2 = z1 + 1e-3 * torch.from_numpy(naive.normal(50, 16, seed=1)).float()
    exact = naive.alignment(z1.numpy(), z2.numpy(), 2.0)
    assert alignment(z1, z2) == pytest.approx(exact, rel=1e-6)
    assert alignment(z1, z1) == 0


@pytest.mark.parametrize("t", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniformity_against_loops(t, dtype):
    z = naive.normal(17, 5).astype(dtype)
    found = uniformity(z, t=t)
    assert found.value == pytest.approx(naive.uniformity(z, t), rel=1e-5)
    assert found.error == 0 and found.rows == 17


def test_uniformity_known_answers():
    assert uniformity(torch.ones(5, 3)).value == pytest.approx(0, abs=1e-6)
    square = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    expected = math.log((2 * math.exp(-4) + math.exp(-8)) / 3)
    assert uniformity(square).value == pytest.approx(expected, rel=1e-6)
    # Uniform rows in many dimensions are 2 apart: -2t.
    many = torch.randn(300, 4000, generator=torch.Generator().manual_seed(0))
    assert uniformity(many).value == pytest.approx(-4, abs=0.01)


def test_uniformity_of_a_sample():
    """The error that is stated is the error that is made (on rows that are not uniform)."""
    z = torch.from_numpy(naive.normal(3000, 3) + [1.0, 0, 0])
    exact = uniformity(z, max_rows=None).value
    off, stated = [], []
    for seed in range(30):
        found = uniformity(z, max_rows=300, seed=seed)
        assert found.rows == 300 and "300 of 3000" in found.notes[0]
        off.append(found.value - exact)
        stated.append(found.error)
    assert np.std(off) == pytest.approx(np.mean(stated), rel=0.35)
    assert abs(np.mean(off)) < 3 * np.std(off) / math.sqrt(30) + 0.01
    assert uniformity(z, max_rows=300, seed=1) == uniformity(z, max_rows=300, seed=1)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-2, 1e2))
def test_invariances(seed, scale):
    z1, z2 = naive.normal(8, 3, seed=seed), naive.normal(8, 3, seed=seed + 1)
    turn = naive.orthogonal(3, seed)
    lengths = scale * np.random.default_rng(seed).uniform(0.5, 2, (8, 1))
    assert alignment(lengths * z1 @ turn, z2 @ turn) == pytest.approx(alignment(z1, z2))
    assert uniformity(lengths * z1 @ turn).value == pytest.approx(uniformity(z1).value)
    one, two = view_noise(z1, z2), view_noise(scale * z1 @ turn + 7, scale * z2 @ turn + 7)
    assert two.share == pytest.approx(one.share, rel=1e-6)
    assert view_noise(z2, z1).share == pytest.approx(one.share)


def test_view_noise_against_loops_and_planted():
    z1, z2 = naive.normal(30, 4, seed=0), naive.normal(30, 4, seed=1) + 0.5
    both = np.concatenate([z1, z2])
    mean = both.mean(axis=0)
    total = np.mean([np.sum((row - mean) ** 2) for row in both])
    within = np.mean([np.sum((a - b) ** 2) / 2 for a, b in zip(z1, z2, strict=True)])
    found = view_noise(z1, z2)
    assert found.total == pytest.approx(total) and found.within == pytest.approx(within)
    assert found.share == pytest.approx(within / total)
    # Signal of variance 3, noise of variance 1: a quarter is noise.
    signal = math.sqrt(3) * naive.normal(20000, 4, seed=2)
    views = [signal + naive.normal(20000, 4, seed=s) for s in (3, 4)]
    assert view_noise(*views).share == pytest.approx(0.25, abs=0.01)
    assert view_noise(*views, normalize=True).share < 0.35
    strangers = naive.normal(20000, 4, seed=5), naive.normal(20000, 4, seed=6)
    assert view_noise(*strangers).share == pytest.approx(1, abs=0.02)
    equal = view_noise(np.ones((4, 2)), np.ones((4, 2)))
    assert math.isnan(equal.share) and "nothing varies" in equal.notes[0]


def test_zero_rows_are_counted():
    z = torch.cat([torch.zeros(1, 3), torch.eye(3)])
    assert "1 of 4 rows are zero" in uniformity(z).notes[0]
    for wrong in ({"t": 0.0}, {"max_rows": 1}):
        with pytest.raises(ValueError, match="t is|max_rows is"):
            uniformity(z, **wrong)
    with pytest.raises(ValueError, match="alpha is"):
        alignment(z, z, alpha=-1)
