import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, null_space

from likewise.diagnostics import (
    augmentation_directions,
    displacements,
    fraction_unexplained,
    lie_generator,
)
from tests.diagnostics import naive


def test_displacements_against_loops():
    h1, h2 = naive.normal(8, 5, seed=0), naive.normal(8, 5, seed=1)
    weight = naive.normal(3, 5, seed=2)
    z1, z2 = h1 @ weight.T, h2 @ weight.T
    found = displacements(h1, h2, z1, z2)
    for i in range(8):
        j, k = naive.nearest(z1, z2, i)
        assert np.allclose(found[i], h2[i] - (h1, h2)[k][j])


@pytest.mark.parametrize("shape", [(3, 6), (6, 6), (9, 6), (1, 6)])
def test_fraction_unexplained_against_least_squares(shape):
    moves, weight = naive.normal(20, 6, seed=0) + 0.4, naive.normal(*shape, seed=1)
    assert fraction_unexplained(moves, weight) == pytest.approx(
        naive.fraction_unexplained(moves, weight), abs=1e-12
    )
    around = fraction_unexplained(moves, weight, centered=True)
    assert around == pytest.approx(
        naive.fraction_unexplained(naive.centred(moves), weight), abs=1e-12
    )


def test_fraction_unexplained_known_answers():
    weight = naive.normal(3, 6, seed=1)
    seen = naive.normal(20, 3, seed=2) @ weight
    blind = naive.normal(20, 3, seed=3) @ null_space(weight).T
    assert fraction_unexplained(seen, weight) == pytest.approx(0, abs=1e-12)
    assert fraction_unexplained(blind, weight) == pytest.approx(1)
    # A planted quarter, by Pythagoras.
    scale = math.sqrt(np.sum(seen**2) / np.sum(blind**2) / 3)
    assert fraction_unexplained(seen + scale * blind, weight) == pytest.approx(0.25, abs=0.05)
    exact = fraction_unexplained(np.concatenate([seen, scale * blind]), weight)
    assert exact == pytest.approx(0.25)
    # Rank 2 in float32: what its rounding adds is not seen.
    low = (naive.normal(5, 2, seed=4) @ naive.normal(2, 6, seed=5)).astype(np.float32)
    moves = naive.normal(50, 6, seed=6)
    exact = naive.fraction_unexplained(moves, np.linalg.svd(low)[2][:2])
    assert fraction_unexplained(moves, low) == pytest.approx(exact, abs=1e-5)
    # A direction of a thousandth of the weight counts, unless tau says otherwise.
    faint = np.diag([1.0, 1e-3])
    assert fraction_unexplained(np.eye(2), faint) == 0
    assert fraction_unexplained(np.eye(2), faint, tau=0.01) == pytest.approx(0.5)
    assert math.isnan(fraction_unexplained(np.zeros((4, 6)), weight))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 100))
def test_fraction_unexplained_depends_on_the_span_alone(seed, scale):
    moves, weight = naive.normal(12, 6, seed=seed), naive.normal(3, 6, seed=seed + 1)
    value = fraction_unexplained(moves, weight)
    assert 0 <= value <= 1
    mixed = naive.normal(5, 3, seed=seed + 2) @ weight
    turn = naive.orthogonal(6, seed)
    assert fraction_unexplained(scale * moves, mixed) == pytest.approx(value, abs=1e-8)
    assert fraction_unexplained(moves @ turn, weight @ turn) == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(("rank", "room"), [(1, 8), (24, 8), (25, 7), (32, 0)])
def test_augmentation_directions_planted_rank(rank, room):
    """Geometry, proposition 4.2: d_enc = 32 and d_proj = 8."""
    h = naive.normal(100, 32, seed=0)
    moves = np.linalg.qr(naive.normal(100, rank, seed=1))[0] @ naive.orthogonal(32)[:, :rank].T
    weight = naive.normal(8, 32, seed=2)
    found = augmentation_directions(h, h + moves, weight)
    assert found.rank == rank and found.room == room and found.projector_rank == 8
    assert found.effective_rank == pytest.approx(rank)
    assert np.allclose(found.singular_values[:rank], 1)


def test_augmentation_directions_against_loops():
    h1, h2 = naive.normal(30, 6, seed=0), naive.normal(30, 6, seed=1)
    weight = naive.normal(3, 6, seed=2)
    found = augmentation_directions(h1, h2, weight)
    onto = naive.column_projection(weight)
    rest = np.eye(6) - onto
    moves = h2 - h1
    killed = sum(np.sum((rest @ v) ** 2) for v in moves) / np.sum(moves**2)
    assert found.killed == pytest.approx(killed)
    data = naive.centred(h1)
    assert found.killed_data == pytest.approx(np.sum((data @ rest) ** 2) / np.sum(data**2))
    scaled = []
    for a, b in zip(h1, h2, strict=True):
        c = max((weight @ a) @ (weight @ b) / np.sum((weight @ a) ** 2), 0)
        scaled.append(b - c * a)
    scaled = np.array(scaled)
    assert found.killed_scaled == pytest.approx(np.sum((scaled @ rest) ** 2) / np.sum(scaled**2))
    assert any("no positive scale" in note for note in found.notes)


def test_augmentation_directions_known_answers():
    h, weight = naive.normal(30, 6, seed=0), naive.normal(3, 6, seed=1)
    kernel = null_space(weight)
    moved = h + naive.normal(30, 3, seed=2) @ kernel.T
    found = augmentation_directions(h, moved, weight)
    assert found.killed == pytest.approx(1) and found.killed_scaled == pytest.approx(1)
    assert found.killed_data < 0.9
    # Proposition 4.1, "only if": scaled by c > 0 the loss is as small, and v is not in the kernel.
    scaled = augmentation_directions(h, 3 * moved, weight)
    assert scaled.killed < 0.9 and scaled.killed_scaled == pytest.approx(1)
    bare = augmentation_directions(h, moved)
    assert math.isnan(bare.killed) and "no weight" in bare.notes[0]
    still = augmentation_directions(h, h, weight)
    assert still.rank == 0 and math.isnan(still.killed) and math.isnan(still.effective_rank)
    assert "no direction" in still.notes[0]


def planted_generator(dim=6, seed=0, skew=True):
    g = naive.normal(dim, dim, seed=seed)
    return (g - g.T) / 2 if skew else 0.3 * g


@pytest.mark.parametrize("skew", [True, False])
@pytest.mark.parametrize("method", ["midpoint", "forward"])
def test_planted_generator(skew, method):
    generator = planted_generator(skew=skew)
    h = naive.normal(200, 6, seed=1)
    errors = []
    for size in (0.02, 0.01):
        strength = size * np.random.default_rng(2).uniform(0.5, 1.5, 200)
        moved = np.stack([expm(e * generator) @ row for e, row in zip(strength, h, strict=True)])
        found = lie_generator(h, moved, strength, method=method)
        errors.append(np.abs(found.generator - generator).max())
        assert found.explained > 0.99
    # Half of the strength: a half of the error forward, a quarter at the midpoint.
    order = math.log2(errors[0] / errors[1])
    assert order == pytest.approx(2 if method == "midpoint" else 1, abs=0.15)
    assert errors[1] < (2e-4 if method == "midpoint" else 0.1)


def test_generator_against_least_squares():
    """Any pairs, not of a group: the least-squares solution, one row of G at a time."""
    h1, h2 = naive.normal(40, 4, seed=0), naive.normal(40, 4, seed=1)
    strength = np.random.default_rng(2).normal(size=40)
    found = lie_generator(h1, h2, strength, method="forward")
    design = strength[:, None] * h1
    rows = [np.linalg.lstsq(design, (h2 - h1)[:, k], rcond=None)[0] for k in range(4)]
    assert np.allclose(found.generator, rows)
    rest = (h2 - h1) - design @ np.stack(rows).T
    assert found.explained == pytest.approx(1 - np.sum(rest**2) / np.sum((h2 - h1) ** 2))
    squares = np.linalg.svd(np.stack(rows), compute_uv=False) ** 2
    assert found.effective_rank == pytest.approx(naive.exp_entropy(squares))


def test_killed_generator():
    """Proposition 4.3: columns of G in Ker(W^T) and the projector does not see the group."""
    weight = naive.normal(2, 6, seed=0)
    kernel = null_space(weight)
    generator = kernel @ naive.normal(4, 6, seed=1) / 3
    h = naive.normal(100, 6, seed=2)
    moved = h @ expm(0.01 * generator).T
    found = lie_generator(h, moved, 0.01, weight=weight)
    assert found.killed == pytest.approx(1, abs=1e-6)
    assert found.killed_on_data == pytest.approx(1, abs=1e-6)
    assert found.chance == pytest.approx(4 / 6)
    assert np.allclose(moved @ weight.T, h @ weight.T, atol=1e-10)
    seen = lie_generator(h, h @ expm(0.01 * planted_generator()).T, 0.01, weight=weight)
    onto = naive.column_projection(weight)
    share = 1 - np.sum((onto @ seen.generator) ** 2) / np.sum(seen.generator**2)
    assert seen.killed == pytest.approx(share) and 0.1 < seen.killed < 0.95


def test_generator_notes_and_errors():
    h = naive.normal(4, 6)
    found = lie_generator(h, h + 0.1)
    assert any("no strength" in n for n in found.notes)
    assert any("4 samples in 6 dimensions" in n for n in found.notes)
    assert math.isnan(found.killed)
    with pytest.raises(ValueError, match="nothing moves"):
        lie_generator(h, h)
    with pytest.raises(ValueError, match="strength is 0"):
        lie_generator(h, h + 1, 0.0)
    with pytest.raises(ValueError, match="strength has shape"):
        lie_generator(h, h + 1, np.ones(3))
    with pytest.raises(ValueError, match="weight has shape"):
        lie_generator(h, h + 1, weight=np.ones((6, 2)))
    with pytest.raises(ValueError, match="method is"):
        lie_generator(h, h + 1, method="backward")
