import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.diagnostics import cross_entropy_by_batches, rank_tau, spectrum, weight_spectrum
from likewise.diagnostics import given as checks
from likewise.information import effective_rank, matrix_entropy, matrix_kl, rank_me
from tests.diagnostics import naive


def planted(n, dim, values, seed=0):
    """Rows with the given singular values and no others."""
    left = np.linalg.qr(naive.normal(n, len(values), seed=seed))[0]
    right = naive.orthogonal(dim, seed + 1)[:, : len(values)]
    return left * np.asarray(values, float) @ right.T


@pytest.mark.parametrize("shape", [(40, 6), (5, 9), (7, 7)])
@pytest.mark.parametrize("normalize", [False, True])
def test_against_loops(shape, normalize):
    z = naive.normal(*shape, seed=3) + 0.7
    found = spectrum(z, normalize=normalize)
    rows = naive.unit(z) if normalize else z
    around = naive.centred(rows)
    assert found.effective_rank == pytest.approx(naive.effective_rank(rows), rel=1e-9)
    assert found.centered_effective_rank == pytest.approx(naive.effective_rank(around), rel=1e-9)
    singular = np.linalg.svd(rows, compute_uv=False)
    assert np.allclose(found.singular_values[: len(singular)], singular)
    inner = np.linalg.svd(around, compute_uv=False)
    assert np.allclose(found.centered_singular_values[: len(inner)], inner, atol=1e-6)
    assert found.rank_me == pytest.approx(naive.exp_entropy(singular))
    assert found.centered_rank_me == pytest.approx(naive.exp_entropy(inner[inner > 1e-9]), rel=1e-5)
    assert found.mean_square == pytest.approx(np.mean(np.sum(rows**2, axis=1)))
    assert found.variance == pytest.approx(np.mean(np.sum(around**2, axis=1)))
    a = naive.second_moment(rows)
    a /= np.trace(a)
    values = np.linalg.eigvalsh(a)
    entropy = -sum(v * math.log(v) for v in values if v > 1e-14) + 1
    assert found.matrix_entropy == pytest.approx(entropy)
    assert found.matrix_kl == pytest.approx(math.log(shape[1]) - entropy + 1)


def test_agrees_with_the_room_below():
    z = torch.from_numpy(naive.normal(50, 8))
    found = spectrum(z, normalize=True)
    unit = z / z.norm(dim=1, keepdim=True)
    a = unit.T @ unit / 50
    assert found.effective_rank == pytest.approx(float(effective_rank(a)))
    assert found.rank_me == pytest.approx(float(rank_me(unit)))
    assert found.matrix_entropy == pytest.approx(float(matrix_entropy(a)))
    uniform = torch.eye(8, dtype=torch.float64) / 8
    assert found.matrix_kl == pytest.approx(float(matrix_kl(a, uniform)))


@pytest.mark.parametrize("rank", [1, 3, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planted_rank(rank, dtype):
    """Equal singular values: every rank is the planted one, whatever the floating-point type."""
    z = planted(200, 16, [5.0] * rank).astype(dtype)
    found = spectrum(z)
    for figure in (found.effective_rank, found.rank_me):
        assert figure == pytest.approx(rank, rel=1e-3)
    for kind, tau in (("relative", 1e-3), ("absolute", 1e-2), ("variance", 0.999)):
        assert rank_tau(found.singular_values, tau, kind=kind) == rank


def test_a_mean_hides_the_rank_unless_centred():
    z = planted(300, 12, [1.0] * 4) + 1000
    found = spectrum(z)
    assert found.effective_rank < 1.01
    assert found.centered_effective_rank == pytest.approx(4, abs=0.1)


def test_chunks_do_not_matter(monkeypatch):
    z = torch.from_numpy(naive.normal(100, 5))
    whole = spectrum(z)
    monkeypatch.setattr(checks.chunks, "__defaults__", (7,))
    parts = spectrum(z)
    assert torch.allclose(whole.singular_values, parts.singular_values)
    assert whole.centered_effective_rank == pytest.approx(parts.centered_effective_rank)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-3, 1e3), st.integers(3, 12), st.integers(2, 6))
def test_invariances(seed, scale, n, dim):
    """Rotation, scale and the order of rows change no rank; a shift changes no centred one."""
    z = naive.normal(n, dim, seed=seed) + 0.3
    moved = scale * z[np.random.default_rng(seed).permutation(n)] @ naive.orthogonal(dim, seed)
    one, two = spectrum(z), spectrum(moved)
    assert two.effective_rank == pytest.approx(one.effective_rank, rel=1e-6)
    assert two.rank_me == pytest.approx(one.rank_me, rel=1e-5)
    assert two.centered_effective_rank == pytest.approx(one.centered_effective_rank, rel=1e-6)
    assert np.allclose(two.singular_values, scale * one.singular_values, rtol=1e-6, atol=1e-6)
    shifted = spectrum(z + 5)
    assert shifted.centered_effective_rank == pytest.approx(one.centered_effective_rank, rel=1e-6)
    assert 1 - 1e-9 <= one.effective_rank <= min(n, dim) + 1e-9


def test_undefined_is_said():
    zero, equal = spectrum(torch.zeros(4, 3)), spectrum(torch.ones(4, 3))
    assert math.isnan(zero.effective_rank) and math.isnan(zero.rank_me)
    assert math.isnan(zero.matrix_entropy) and "every row is zero" in zero.notes[0]
    assert equal.effective_rank == pytest.approx(1)
    assert math.isnan(equal.centered_effective_rank) and "all rows are equal" in equal.notes[0]
    assert zero.to_dict()["effective_rank"] is None
    assert "no rank can be above 2" in spectrum(torch.randn(2, 5)).notes[0]


def test_weight_spectrum_planted():
    weight = planted(6, 10, [3.0, 2.0]).astype(np.float32)
    values = weight_spectrum(weight)
    assert np.allclose(values[:2], [3, 2], rtol=1e-6) and (values[2:] == 0).all()
    assert rank_tau(values, 1e-9) == 2  # round-off of float32 never counts
    with pytest.raises(ValueError, match="weight has shape"):
        weight_spectrum(np.ones(3))


def test_rank_tau_three_kinds():
    values = np.array([10.0, 1.0, 0.1, 0.01])
    assert [rank_tau(c * values, 0.5, kind="absolute") for c in (0.01, 1, 100)] == [0, 2, 4]
    for c in (0.01, 1, 100):
        assert rank_tau(c * values, 0.05) == 2
        assert rank_tau(c * values, 0.95, kind="variance") == 1
    assert rank_tau(np.ones(4), 1.0, kind="variance") == 4
    assert rank_tau(np.ones(4), 0.5, kind="variance") == 2
    assert rank_tau(np.zeros(3)) == 0
    for wrong in ({"tau": 0.0}, {"tau": math.nan}, {"kind": "other"}):
        with pytest.raises(ValueError, match="tau is|kind is"):
            rank_tau(values, **wrong)
    with pytest.raises(ValueError, match="at most 1"):
        rank_tau(values, 2.0, kind="variance")
    with pytest.raises(ValueError, match="singular_values"):
        rank_tau(-values)


def test_cross_entropy_by_batches():
    z1, z2 = naive.normal(20, 3, seed=1), naive.normal(20, 3, seed=2)
    found = cross_entropy_by_batches(z1, z2, batch_size=20, ridge=1e-3)
    p, q = (naive.second_moment(naive.unit(z)) + 1e-3 * np.eye(3) for z in (z1, z2))

    def log(a):
        values, vectors = np.linalg.eigh(a)
        return vectors * np.log(values) @ vectors.T

    assert found.cross_entropy == pytest.approx(np.trace(-p @ log(q) + q))
    assert found.divergence == pytest.approx(np.trace(p @ (log(p) - log(q)) - p + q))
    # The mean over batches, of which the last that is not full is left out.
    several = cross_entropy_by_batches(z1, z2, batch_size=6, seed=4)
    assert several.batches == 3 and "2 rows" in several.notes[0]
    order = torch.randperm(20, generator=torch.Generator().manual_seed(4)).numpy()
    each = [
        cross_entropy_by_batches(z1[b], z2[b], batch_size=6).cross_entropy
        for b in (order[:6], order[6:12], order[12:18])
    ]
    assert several.cross_entropy == pytest.approx(np.mean(each))
    with pytest.raises(ValueError, match="ridge is"):
        cross_entropy_by_batches(z1, z2, ridge=0.0)
    with pytest.raises(ValueError, match="batch_size is"):
        cross_entropy_by_batches(z1, z2, batch_size=0)


def test_merged_moments_keep_their_digits(monkeypatch):
    """A mean of a million beside a deviation of 1, in sorted chunks of 7 rows."""
    monkeypatch.setattr(checks.chunks, "__defaults__", (7,))
    z = np.sort(naive.normal(60, 3), axis=0)
    one, two = spectrum(z), spectrum(z + 1e6)
    assert two.centered_effective_rank == pytest.approx(one.centered_effective_rank, rel=1e-6)
    assert two.variance == pytest.approx(one.variance, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unit_rows_of_all_lengths(dtype):
    base = torch.tensor([[3.0, 4.0]], dtype=dtype)
    largest = torch.finfo(dtype).max / 8
    for scale in (1.0, largest, 1 / largest, 0.0):
        rows = torch.cat([base, scale * base])
        expected = torch.tensor([0.6, 0.8], dtype=dtype) * (scale > 0)
        assert torch.allclose(checks.unit_rows(rows)[1], expected)
        assert torch.allclose(checks.unit_rows(rows)[0], checks.unit_rows(base)[0])
