import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import Graph
from likewise.diagnostics import (
    balance_effect,
    long_tail_sizes,
    long_tail_subset,
    prototype_bias,
    prototype_bounds,
    uniform_subset,
)
from likewise.objectives import BalancedContrastive
from tests.diagnostics import naive

SIZES = (4, 3, 6)


def world(seed=0, sizes=SIZES, n_views=3, dim=4, noise=0.5):
    """Sample means, rows (n V, d) around them, and labels."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    means = naive.normal(len(sizes), dim, seed=seed)[y] + naive.normal(len(y), dim, seed=seed + 1)
    views = means[:, None] + noise * naive.normal(len(y), n_views, dim, seed=seed + 2)
    return means, views.reshape(-1, dim), y


def exact_squares(means, y):
    """|mu_y - m_x|^2 for every x, the data set being the population."""
    prototypes = naive.class_means(means, y)
    return np.array([np.sum((prototypes[k] - m) ** 2) for m, k in zip(means, y, strict=True)])


@pytest.mark.parametrize("normalize", [True, False])
def test_plug_in_and_printed_against_loops(normalize):
    _, z, y = world()
    found = prototype_bias(z, y, n_views=3, normalize=normalize, mates=None)
    rows = (naive.unit(z) if normalize else z).reshape(13, 3, 4)
    squares = exact_squares(rows.mean(axis=1), y)
    assert found.plug_in == pytest.approx(np.mean(np.sqrt(squares)))
    per_row = [
        np.mean([np.linalg.norm(rows[j, v] - rows[i, v]) for j in range(13) if y[j] == y[i]])
        for i in range(13)
        for v in range(3)
    ]
    assert found.printed == pytest.approx(np.mean(per_row))
    # The unbiased square, from its definition: subtract what the views' own variance adds.
    spread = [np.sum(np.var(rows[i], axis=0, ddof=1)) for i in range(13)]
    unbiased = []
    for i in range(13):
        mates = [j for j in range(13) if y[j] == y[i]]
        noise = sum((1 / len(mates) - (j == i)) ** 2 * spread[j] / 3 for j in mates)
        unbiased.append(squares[i] - noise)
    assert found.squared == pytest.approx(np.mean(unbiased))
    assert found.bias == pytest.approx(np.mean(np.sqrt(np.clip(unbiased, 0, None))))


@pytest.mark.parametrize("n_views", [2, 5])
def test_planted_bias_is_found_without_bias(n_views):
    """Averaged over many draws of the views, the square is exact; the plug-in is too large."""
    means, _, y = world()
    truth = np.mean(exact_squares(means, y))
    draws, plugs = [], []
    for seed in range(400):
        noise = naive.normal(13, n_views, 4, seed=100 + seed)
        z = (means[:, None] + noise).reshape(-1, 4)
        found = prototype_bias(z, y, n_views=n_views, normalize=False)
        draws.append(found.squared)
        plugs.append(found.plug_in**2)
    error = np.std(draws) / 20
    assert abs(np.mean(draws) - truth) < 4 * error
    assert np.mean(plugs) > truth + 8 * error if n_views == 2 else True
    assert error < 0.05 * truth


def test_planted_bias_of_a_distribution():
    """Classes are samples of larger ones: the square is that to the true class centre."""
    truth = 4 * 1.0  # samples scatter around their centre with variance 1 in each of 4 dimensions
    y = np.repeat(np.arange(3), 5)
    centres = 3 * naive.normal(3, 4)
    draws, within = [], []
    for seed in range(400):
        means = centres[y] + naive.normal(15, 4, seed=1000 + seed)
        z = (means[:, None] + 0.7 * naive.normal(15, 2, 4, seed=5000 + seed)).reshape(-1, 4)
        draws.append(prototype_bias(z, y, n_views=2, normalize=False, over="distribution").squared)
        within.append(prototype_bias(z, y, n_views=2, normalize=False).squared)
    assert abs(np.mean(draws) - truth) < 4 * np.std(draws) / 20
    # To the mean of the five at hand, each is nearer.
    assert np.mean(within) == pytest.approx(truth * 4 / 5, rel=0.05)


def test_printed_is_an_upper_bound():
    """Views that scatter and share their class exactly: no bias, and equation 51 sees plenty."""
    y = np.repeat(np.arange(2), 50)
    z = np.eye(2, 4)[y][:, None] + 0.5 * naive.normal(100, 20, 4)
    found = prototype_bias(z.reshape(-1, 4), y, n_views=20, normalize=False, mates=None)
    assert found.squared == pytest.approx(0, abs=0.01) and found.bias < 0.15
    assert found.printed > 1
    drawn = prototype_bias(z.reshape(-1, 4), y, n_views=20, normalize=False, mates=5, seed=3)
    assert drawn.printed == pytest.approx(found.printed, rel=0.02)
    again = prototype_bias(z.reshape(-1, 4), y, n_views=20, normalize=False, mates=5, seed=3)
    assert again == drawn


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_bias_invariances(seed):
    _, z, y = world(seed)
    one = prototype_bias(z, y, n_views=3, mates=None)
    turn = naive.orthogonal(4, seed)
    two = prototype_bias(5 * z @ turn, y + 3, n_views=3, mates=None)
    for name in ("squared", "bias", "plug_in", "printed"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-8, abs=1e-10)
    shifted = prototype_bias(z + 9, y, n_views=3, normalize=False)
    plain = prototype_bias(z, y, n_views=3, normalize=False)
    assert shifted.squared == pytest.approx(plain.squared, abs=1e-9)
    assert one.printed >= one.bias - 1e-9


def test_undefined_bias_is_said():
    _, z, y = world(n_views=2)
    alone = prototype_bias(z, np.arange(13), n_views=2)
    assert math.isnan(alone.bias) and math.isnan(alone.squared) and math.isnan(alone.printed)
    assert any("its own prototype" in note for note in alone.notes)
    single = prototype_bias(z[::2], y, n_views=1)
    assert math.isnan(single.squared) and not math.isnan(single.plug_in)
    few = prototype_bias(z, np.array([0, 0] + [1] * 11), n_views=2, over="distribution")
    assert few.samples == 11 and any("2 samples" in note for note in few.notes)
    partial = prototype_bias(z, np.where(y == 2, -1, y), n_views=2)
    assert partial.samples == 7 and "6 samples without a label" in partial.notes[0]
    for arguments, message in [
        ({"n_views": 3}, "do not divide"),
        ({"n_views": 0}, "n_views is"),
        ({"n_views": 2, "over": "world"}, "over is"),
        ({"n_views": 2, "mates": 0}, "mates is"),
    ]:
        with pytest.raises(ValueError, match=message):
            prototype_bias(z, y, **arguments)
    with pytest.raises(ValueError, match="labels is None"):
        prototype_bias(z, None, n_views=2)


def naive_bounds(z, y, n_views, alpha):
    rows = naive.unit(z).reshape(-1, n_views, z.shape[1])
    rarest = min(np.bincount(y)) / len(y)
    found = []
    for i in range(len(rows)):
        for v in range(n_views):
            f, rest = rows[i, v], [u for u in range(n_views) if u != v]
            mean = np.mean([rows[i, u] for u in rest], axis=0)
            left = -f @ mean / np.linalg.norm(mean)
            prototypes = naive.class_means(rows[:, rest].mean(axis=1), y)
            others = [m for k, m in prototypes.items() if k != y[i]]
            nearest = max(f @ m / np.linalg.norm(m) for m in others)
            nu = min(np.linalg.norm(m) for m in others)
            logs = []
            for u in rest:
                mass = np.mean([math.exp(alpha * f @ rows[j, u]) for j in range(len(rows))])
                logs.append(math.log(mass / rarest) / alpha)
            soft = np.mean(logs)
            sides = (left, -f @ mean, nearest, max(soft, soft / nu), soft / nu, nu)
            found.append((*sides, f @ mean < 0, soft / nu < nearest))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("n_views", [2, 3])
def test_bounds_against_loops(alpha, n_views):
    _, z, y = world(n_views=n_views)
    found = prototype_bounds(z, y, n_views=n_views, alpha=alpha)
    left, right, nearest, bound, printed, nu, wrong, broken = naive_bounds(z, y, n_views, alpha)
    assert found.attracting == pytest.approx(left)
    assert found.attracting_bound == pytest.approx(right)
    assert found.attracting_gap == pytest.approx(right - left)
    assert found.wrong_side == pytest.approx(wrong)
    assert found.repelling == pytest.approx(nearest)
    assert found.repelling_bound == pytest.approx(bound)
    assert found.repelling_gap == pytest.approx(bound - nearest)
    assert found.printed_bound == pytest.approx(printed)
    assert found.printed_broken == pytest.approx(broken)
    assert found.nu == pytest.approx(nu)


def test_printed_bound_fails_and_the_corrected_one_holds():
    """Errata on theorem 4.6: in the second view everybody faces away from the first, and two
    images of a class nearly cancel. Anchors of the other two classes break the printed bound."""

    def direction(degrees):
        return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]

    away = [120, 120, 120, 120, 95, -95]
    z = np.array([direction(a) for angle in away for a in (0, angle)])
    y = np.array([0, 0, 1, 1, 2, 2])
    found = prototype_bounds(z, y, n_views=2, alpha=50.0)
    assert found.printed_broken == pytest.approx(4 / 12)
    assert found.wrong_side == 1  # assumption 4.3 fails, too
    assert found.repelling_gap > 0
    single = prototype_bounds(z[1::2], y, n_views=1, alpha=50.0)
    assert math.isnan(single.attracting_gap) and single.repelling_gap > 0
    assert any("one view" in note for note in single.notes)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 200))
def test_corrected_bound_always_holds(seed, alpha):
    _, z, y = world(seed, sizes=(2, 5, 3), n_views=2, noise=1.0)
    found = prototype_bounds(z, y, n_views=2, alpha=alpha, max_anchors=None)
    assert found.repelling_gap >= -1e-9
    assert found.wrong_side > 0 or found.attracting_gap >= -1e-12
    # Each anchor, not only their mean.
    for anchor in range(0, 20, 7):
        one = prototype_bounds(z, y, n_views=2, alpha=alpha, max_anchors=2, seed=anchor)
        assert one.repelling_gap >= -1e-9


def test_bounds_known_answers():
    # View-invariant: the attracting bound is tight.
    z = np.repeat(naive.normal(6, 3), 2, axis=0)
    found = prototype_bounds(z, np.arange(6) % 2, n_views=2)
    assert found.attracting == pytest.approx(-1) and found.attracting_gap == pytest.approx(0)
    # Balanced classes, no variance: the floor log(n) / (nu alpha) is the gap.
    same = prototype_bounds(np.ones((12, 3)), np.arange(6) % 3, n_views=2, alpha=5.0)
    assert same.repelling_gap == pytest.approx(math.log(3) / 5) == pytest.approx(same.floor)
    drawn = prototype_bounds(z, np.arange(6) % 2, n_views=2, max_anchors=4, seed=1)
    assert drawn.anchors == 4 and "4 of 12 rows" in drawn.notes[0]
    with pytest.raises(ValueError, match="one class only"):
        prototype_bounds(z, np.zeros(6, int), n_views=2)
    with pytest.raises(ValueError, match="alpha is"):
        prototype_bounds(z, np.arange(6) % 2, n_views=2, alpha=0.0)
    opposite = np.array([[1.0, 0], [1, 0], [0, 1], [0, -1]])
    with pytest.raises(ValueError, match="prototype of a class is zero"):
        prototype_bounds(opposite, np.array([0, 0, 1, 1]), n_views=1)


def test_balance_effect():
    z = naive.normal(10, 3)
    found = balance_effect(z, alphas=(1.0, 5.0), weights=(0.5, 2.0))
    assert [(f.alpha, f.weight) for f in found] == [(1, 0.5), (1, 2), (5, 0.5), (5, 2)]
    rows = naive.unit(z)
    for entry in found:
        attraction = -np.mean([rows[2 * i] @ rows[2 * i + 1] for i in range(5)])
        logs = [
            math.log(
                sum(
                    math.exp(entry.alpha * rows[i] @ rows[j]) for j in range(10) if j // 2 != i // 2
                )
            )
            for i in range(10)
        ]
        assert entry.attraction == pytest.approx(attraction)
        assert entry.repulsion == pytest.approx(entry.weight / entry.alpha * np.mean(logs))
        # Finite differences of the repelling part along its own gradient's direction.
        at = torch.from_numpy(z).requires_grad_(True)
        graph = Graph.identity(5).views(2)
        terms = BalancedContrastive(entry.alpha, entry.weight).terms(at, graph)
        slope = torch.autograd.grad(terms["repulsion"], at)[0]
        assert entry.repulsion_gradient == pytest.approx(float(slope.norm()))
    # The push is proportional to lambda; the pull does not change.
    assert found[1].repulsion_gradient == pytest.approx(4 * found[0].repulsion_gradient)
    assert found[1].attraction_gradient == pytest.approx(found[2].attraction_gradient)
    still = balance_effect(np.ones((4, 2)), alphas=(1.0,), weights=(1.0,))[0]
    assert math.isnan(still.share) or still.attraction_gradient < 1e-12
    with pytest.raises(ValueError, match="n_views is 3"):
        balance_effect(z, n_views=3)


def test_long_tail_sizes():
    sizes = long_tail_sizes(1000, 1280, 5)
    assert (sizes.max(), sizes.min(), sizes.sum()) == (1280, 5, 121_937)
    assert (np.diff(sizes) <= 0).all()
    assert long_tail_sizes(10, 7, 7).tolist() == [7] * 10
    for wrong in [(1, 10, 5), (4, 5, 10), (4, 10, 0)]:
        with pytest.raises(ValueError, match="at least two"):
            long_tail_sizes(*wrong)


def test_long_tail_subset():
    y = np.concatenate([np.repeat(np.arange(10), 60), np.full(50, -1)])
    y = y[np.random.default_rng(0).permutation(len(y))]
    rows = long_tail_subset(y, largest=50, smallest=3, seed=1)
    assert (np.diff(rows) > 0).all() and (y[rows] >= 0).all()
    counts = np.bincount(y[rows])
    assert sorted(counts, reverse=True) == long_tail_sizes(10, 50, 3).tolist()
    assert counts.tolist() != sorted(counts, reverse=True)  # which class is frequent is drawn
    other = long_tail_subset(y, largest=50, smallest=3, seed=2)
    assert np.bincount(y[other]).tolist() != counts.tolist()
    assert np.array_equal(rows, long_tail_subset(y, largest=50, smallest=3, seed=1))
    even = uniform_subset(y, len(rows), seed=1)
    assert len(even) == len(rows) == len(set(even.tolist())) and (y[even] >= 0).all()
    spread = np.bincount(y[even])
    assert spread.max() < 3 * spread.min()
    assert torch.is_tensor(long_tail_subset(torch.from_numpy(y)))
    with pytest.raises(ValueError, match="largest=60"):
        long_tail_subset(y, largest=100)
    with pytest.raises(ValueError, match="one class only"):
        long_tail_subset(np.zeros(9, int))
    with pytest.raises(ValueError, match="total is 700"):
        uniform_subset(y, 700)
