"""Effective rank and RankMe against a loop over eigenvalues and singular values."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from likewise.information import effective_rank, rank_me
from tests.information import naive


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=6), st.integers(0, 2), st.integers(0, 99))
def test_effective_rank_of_known_eigenvalues(values: list[float], zeros: int, seed: int) -> None:
    a = naive.repeated(values + [0.0] * zeros, seed)
    expected = naive.exponential_entropy(np.array(values))
    assert effective_rank((a + a.T) / 2).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "dims"), [(4, 9), (9, 4), (6, 6)])
def test_rank_me_formula_and_gradient(n: int, dims: int) -> None:
    z = naive.unit_rows(n, dims, seed=0)
    expected = naive.exponential_entropy(np.linalg.svd(z.numpy(), compute_uv=False))
    assert rank_me(z).item() == pytest.approx(expected)
    assert gradcheck(rank_me, z.clone().requires_grad_())
    assert gradcheck(lambda z: effective_rank(z.T @ z), z.clone().requires_grad_())


def test_gradient_of_the_effective_rank_at_repeated_eigenvalues() -> None:
    for a in (torch.eye(4, dtype=torch.float64) / 4, naive.repeated([0.2, 0.2, 1.0, 3.0], seed=1)):
        leaf = a.clone().requires_grad_()
        assert gradcheck(lambda a: effective_rank((a + a.T) / 2), leaf)


@pytest.mark.parametrize(("n", "dims"), [(10, 4), (64, 512), (1000, 64), (200, 200)])
def test_rank_one_reads_exactly_one(n: int, dims: int) -> None:
    generator = torch.Generator().manual_seed(n)
    z = torch.randn(n, 1, generator=generator) @ torch.randn(1, dims, generator=generator)
    assert rank_me(z).item() == 1
    assert effective_rank(z.T @ z).item() == 1


@pytest.mark.parametrize("size", [1, 7, 100, 256])
def test_identity_reads_exactly_its_size(size: int) -> None:
    assert rank_me(torch.eye(size)).item() == size
    assert rank_me(0.1 * torch.eye(size)).item() == size
    assert effective_rank(torch.eye(size) / size).item() == size


def test_all_zeros_read_zero_and_have_a_finite_gradient() -> None:
    for function in (effective_rank, rank_me):
        zero = torch.zeros(3, 3, requires_grad=True)
        value = function(zero)
        value.backward()
        assert value.item() == 0
        assert zero.grad is not None and zero.grad.isfinite().all()


def test_float32_is_close_to_float64_and_bounded_by_the_rank() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(300, 5, generator=generator) @ torch.randn(5, 100, generator=generator)
    expected = naive.exponential_entropy(np.linalg.svd(z.double().numpy(), compute_uv=False)[:5])
    assert rank_me(z).item() == pytest.approx(expected, rel=1e-5)
    assert 1 <= effective_rank(z.T @ z / 300).item() <= 5
    squares = np.linalg.svd(z.double().numpy(), compute_uv=False)[:5] ** 2
    assert effective_rank(z.T @ z / 300).item() == pytest.approx(
        naive.exponential_entropy(squares), rel=1e-5
    )


def test_invariances() -> None:
    z = naive.unit_rows(12, 5, seed=1)
    turned = naive.rotation(12, seed=0) @ z @ naive.rotation(5, seed=1)
    expected = naive.exponential_entropy(np.linalg.svd(z.numpy(), compute_uv=False))
    assert rank_me(1e-5 * turned).item() == pytest.approx(expected)
    assert effective_rank(1e-9 * z.T @ z).item() == pytest.approx(
        naive.exponential_entropy(np.linalg.eigvalsh((z.T @ z).numpy()))
    )


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_float32_at_extreme_scales(scale: float) -> None:
    # the squares of these entries are not float32 numbers
    z = naive.unit_rows(6, 12, seed=2, dtype=torch.float32)
    values = np.linalg.svd(z.double().numpy(), compute_uv=False)
    assert rank_me(scale * z).item() == pytest.approx(naive.exponential_entropy(values), rel=1e-5)
    rank = effective_rank(scale * (z.T @ z)).item()
    assert rank == pytest.approx(naive.exponential_entropy(values**2), rel=1e-5)


def test_batch_half_and_autocast() -> None:
    z = torch.stack([naive.unit_rows(8, 4, seed=s, dtype=torch.float32) for s in range(3)])
    expected = [
        naive.exponential_entropy(np.linalg.svd(x.double().numpy(), compute_uv=False)) for x in z
    ]
    np.testing.assert_allclose(rank_me(z), expected, rtol=1e-5)
    half = rank_me(z.bfloat16())
    assert half.dtype == torch.float32
    np.testing.assert_allclose(half, expected, rtol=0.01)
    leaf = z.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = rank_me(leaf)
        gram = effective_rank(torch.eye(4))
        value.sum().backward()
    assert value.dtype == gram.dtype == torch.float32
    np.testing.assert_allclose(value.detach(), expected, rtol=1e-5)


def test_errors() -> None:
    with pytest.raises(ValueError, match="a must be symmetric.*rank_me"):
        effective_rank(torch.ones(3, 3).triu())
    with pytest.raises(ValueError, match="a must be positive semi-definite"):
        effective_rank(-torch.eye(3))
    with pytest.raises(ValueError, match="a must be a square"):
        effective_rank(torch.ones(3, 2))
    with pytest.raises(ValueError, match="z must have shape"):
        rank_me(torch.ones(3))
    with pytest.raises(ValueError, match="z must be finite"):
        rank_me(torch.full((3, 3), torch.nan))
    with pytest.raises(ValueError, match="z must not be empty"):
        rank_me(torch.ones(0, 3))
