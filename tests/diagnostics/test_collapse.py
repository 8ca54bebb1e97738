import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.diagnostics import class_ranks, etf_distance, neural_collapse
from likewise.information import simplex_etf
from tests.diagnostics import naive

SIZES = (5, 3, 7, 4)


def labelled(seed=0, sizes=SIZES, dim=6, spread=0.5):
    y = np.repeat(np.arange(len(sizes)) * 2 + 1, sizes)  # class indices need not be 0, 1, 2, ...
    centres = naive.normal(len(sizes), dim, seed=seed)
    z = centres[(y - 1) // 2] + spread * naive.normal(len(y), dim, seed=seed + 1)
    order = np.random.default_rng(seed).permutation(len(y))
    return z[order], y[order]


def test_against_loops():
    z, y = labelled()
    weight, bias = naive.normal(4, 6, seed=5), naive.normal(4, seed=6)
    found = neural_collapse(z, y, weight=weight, bias=bias)
    within, between, apart = naive.scatters(z, y)
    assert found.nc1 == pytest.approx(np.trace(within @ np.linalg.pinv(between)) / 4)
    norms = [np.linalg.norm(m) for m in apart]
    assert found.nc2_norms == pytest.approx(np.std(norms) / np.mean(norms))
    cosines = [
        apart[a] @ apart[b] / (norms[a] * norms[b]) for a in range(4) for b in range(4) if a != b
    ]
    assert found.nc2_angles == pytest.approx(np.mean([abs(c + 1 / 3) for c in cosines]))
    gram = apart @ apart.T
    frame = (np.eye(4) - 1 / 4) / math.sqrt(3)
    assert found.nc2 == pytest.approx(np.linalg.norm(gram / np.linalg.norm(gram) - frame))
    dual = weight / np.linalg.norm(weight) - apart / np.linalg.norm(apart)
    assert found.nc3 == pytest.approx(np.sum(dual**2))
    means = list(naive.class_means(z, y).values())
    nearest = [int(np.argmin([np.linalg.norm(r - m) for m in means])) for r in z]
    said = [int(np.argmax(weight @ r + bias)) for r in z]
    assert found.nc4 == pytest.approx(np.mean([a != b for a, b in zip(nearest, said, strict=True)]))
    right = [n == (k - 1) // 2 for n, k in zip(nearest, y, strict=True)]
    assert found.nearest_mean_accuracy == pytest.approx(np.mean(right))
    assert found.class_sizes.tolist() == list(SIZES) and found.classes == 4


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_planted_neural_collapse(classes):
    """A turned, scaled and shifted simplex with a classifier on it: all four are 0."""
    frame = simplex_etf(classes, classes + 3, torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.arange(classes).repeat(4)
    found = neural_collapse(3 * frame[y] + 2, y, weight=0.1 * frame, bias=torch.zeros(classes))
    shift = 0.1 * frame @ torch.full((classes + 3,), -2.0, dtype=torch.float64)
    biased = neural_collapse(3 * frame[y] + 2, y, weight=0.1 * frame, bias=shift)
    for figure in (found.nc1, found.nc2, found.nc2_norms, found.nc2_angles, found.nc3, biased.nc4):
        assert figure == pytest.approx(0, abs=1e-10)
    assert found.nearest_mean_accuracy == 1
    # Noise within classes is NC1's alone to see: linear in its variance.
    noise = torch.randn(4 * classes, classes + 3, generator=torch.Generator().manual_seed(1))
    small, large = (neural_collapse(3 * frame[y] + s * noise, y).nc1 for s in (0.01, 0.02))
    assert small > 1e-7 and large == pytest.approx(4 * small, rel=0.05)


def test_etf_distance():
    frame = simplex_etf(5, dtype=torch.float64)
    assert etf_distance(frame) == pytest.approx(0, abs=1e-12)
    assert etf_distance(simplex_etf(5, 4, dtype=torch.float64)) == pytest.approx(0, abs=1e-12)
    # All means on one line: the Gram matrix has rank 1 in K - 1 dimensions.
    line = torch.tensor([[1.0], [-1.0], [0.0]], dtype=torch.float64)
    expected = math.sqrt(2 - 2 / math.sqrt(2))
    assert etf_distance(line) == pytest.approx(expected)
    with pytest.raises(ValueError, match="all equal"):
        etf_distance(torch.ones(3, 2))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-2, 1e2))
def test_invariances(seed, scale):
    z, y = labelled(seed)
    order = np.random.default_rng(seed).permutation(len(z))
    moved = scale * z[order] @ naive.orthogonal(6, seed) + 3
    one, two = neural_collapse(z, y), neural_collapse(moved, y[order])
    for name in ("nc1", "nc2", "nc2_norms", "nc2_angles", "nearest_mean_accuracy"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-6, abs=1e-9)
    ranks, others = class_ranks(z, y), class_ranks(moved, y[order])
    assert others.intra == pytest.approx(ranks.intra, rel=1e-6)
    assert others.inter == pytest.approx(ranks.inter, rel=1e-6)
    # Names of classes do not matter.
    assert neural_collapse(z, (7 * y + 1) % 100).nc1 == pytest.approx(one.nc1)


@pytest.mark.parametrize("dim", [6, 2])
def test_class_ranks_against_loops(dim):
    z, y = labelled(dim=dim)
    found = class_ranks(z, y)
    _, between, _ = naive.scatters(z, y)
    each = [naive.effective_rank(naive.centred(z[y == c])) for c in sorted(set(y.tolist()))]
    assert found.intra == pytest.approx(np.mean(each), rel=1e-6)
    assert found.per_class.tolist() == pytest.approx(each, rel=1e-6)
    assert found.inter == pytest.approx(naive.exp_entropy(np.linalg.eigvalsh(between).clip(0)))


def test_class_ranks_planted():
    """Each class spans two directions of its own; four means of a simplex span three."""
    y = np.repeat(np.arange(4), 40)
    frame = np.hstack([simplex_etf(4, 4, dtype=torch.float64).numpy(), np.zeros((4, 8))])
    z = frame[y].copy()
    for c in range(4):
        circle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        z[y == c, 4 + 2 * c] += np.cos(circle)
        z[y == c, 5 + 2 * c] += np.sin(circle)
    found = class_ranks(z, y)
    assert found.intra == pytest.approx(2) and found.inter == pytest.approx(3)


def test_undefined_is_said():
    z = naive.normal(6, 3)
    one = neural_collapse(z, np.zeros(6, int))
    assert math.isnan(one.nc1) and math.isnan(one.nc2) and math.isnan(one.nearest_mean_accuracy)
    assert any("one class only" in note for note in one.notes)
    assert math.isnan(class_ranks(z, np.zeros(6, int)).inter)
    alone = neural_collapse(z, np.arange(6))
    assert math.isnan(alone.nc1) and any("one row" in note for note in alone.notes)
    assert not math.isnan(alone.nc2)
    ranks = class_ranks(z, np.arange(6))
    assert math.isnan(ranks.intra) and "6 classes have one row" in ranks.notes[0]
    mixed = class_ranks(z, np.array([0, 0, 0, 0, 0, 1]))
    assert math.isnan(mixed.per_class[1]) and mixed.intra == pytest.approx(mixed.per_class[0])
    equal = neural_collapse(np.ones((6, 3)), np.arange(6) % 2)
    assert math.isnan(equal.nc1) and any("all class means are equal" in n for n in equal.notes)
    no_head = neural_collapse(z, np.arange(6) % 2)
    assert math.isnan(no_head.nc3) and math.isnan(no_head.nc4)
    partial = neural_collapse(z, np.array([0, 0, 1, 1, -1, -1]))
    assert partial.class_sizes.tolist() == [2, 2] and "2 rows without a label" in partial.notes[0]


def test_errors():
    z, y = labelled()
    for arguments, message in [
        ({"labels": None}, "labels is None"),
        ({"labels": np.full(len(z), -1)}, "hold no label"),
        ({"labels": y[:-1]}, "labels has shape"),
        ({"labels": y + 0.5}, "class indices"),
        ({"labels": y, "weight": np.ones((3, 6))}, "weight has shape"),
        ({"labels": y, "weight": np.ones((4, 6)), "bias": np.ones(3)}, "bias has shape"),
        ({"labels": y, "bias": np.ones(4)}, "without weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            neural_collapse(z, **arguments)
