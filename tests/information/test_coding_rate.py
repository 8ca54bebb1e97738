"""Log-determinants in either form, and the coding rate."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from likewise.information import coding_rate, log_det_identity_plus
from tests.information import naive

SHAPES = pytest.mark.parametrize(("n", "dims"), [(3, 7), (7, 3), (5, 5), (1, 4), (4, 1)])


def by_slogdet(z: Tensor, scale: float, form: str) -> Tensor:
    gram = z.mT @ z if form == "dims" else z @ z.mT
    eye = torch.eye(gram.shape[-1], dtype=z.dtype)
    return torch.linalg.slogdet(eye + scale * gram).logabsdet


@SHAPES
@pytest.mark.parametrize("form", ["dims", "rows"])
def test_equal_to_both_forms(form: str, n: int, dims: int) -> None:
    z = naive.unit_rows(n, dims, seed=0).requires_grad_()
    value, reference = log_det_identity_plus(z, 2.5), by_slogdet(z, 2.5, form)
    torch.testing.assert_close(value, reference)
    gradients = (torch.autograd.grad(x, z)[0] for x in (value, reference))
    torch.testing.assert_close(*gradients)
    assert value.item() == pytest.approx(naive.log_det(z, 2.5))


@SHAPES
def test_gradients(n: int, dims: int) -> None:
    z = naive.unit_rows(n, dims, seed=1).requires_grad_()
    scale = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    assert gradcheck(log_det_identity_plus, (z, scale))
    assert gradcheck(coding_rate, z)
    large = torch.tensor(1e15, dtype=torch.float64)  # singular values
    if n != dims:
        assert gradcheck(lambda z: log_det_identity_plus(z, large), z)


def test_a_batch_is_one_matrix_after_another() -> None:
    batch = torch.stack([naive.unit_rows(4, 6, seed=s) for s in range(6)]).reshape(2, 3, 4, 6)
    values = log_det_identity_plus(batch, 3.0)
    assert values.shape == (2, 3)
    assert values[1, 2].item() == pytest.approx(naive.log_det(batch[1, 2], 3.0))
    assert coding_rate(batch).shape == (2, 3)


@SHAPES
def test_coding_rate_formula(n: int, dims: int) -> None:
    z = naive.unit_rows(n, dims, seed=2)
    for epsilon in (0.2, 0.5, 2.0):
        expected = naive.log_det(z, dims / (n * epsilon**2)) / 2
        assert coding_rate(z, epsilon=epsilon).item() == pytest.approx(expected)
    assert coding_rate(z).item() == pytest.approx(naive.log_det(z, 4 * dims / n) / 2)
    assert coding_rate(z).item() > 0


def test_no_underflow_at_512_dimensions() -> None:
    z = 1e-3 * torch.randn(600, 512, generator=torch.Generator().manual_seed(0))
    wide = 30 * torch.randn(600, 512, generator=torch.Generator().manual_seed(0))
    for rows in (z, wide):
        value = log_det_identity_plus(rows, 1.0)
        assert value.item() == pytest.approx(naive.log_det(rows, 1.0), rel=1e-5, abs=1e-4)
    assert torch.linalg.det(torch.eye(512) + wide.T @ wide).isinf()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("rank", [2, 16])
def test_float32_is_close_to_float64_at_every_scale(rank: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(rank)
    z = torch.randn(64, rank, generator=generator) @ torch.randn(rank, 32, generator=generator)
    leaf = z.clone().requires_grad_()
    value = log_det_identity_plus(leaf, scale)
    assert value.dtype == torch.float32
    exact = naive.log_det(z, scale)
    # the rank is 2 or 16 only up to the rounding of z, which a scale of 1e9 makes visible
    assert value.item() == pytest.approx(exact, rel=2e-5, abs=1e-5)
    value.backward()
    assert leaf.grad is not None and leaf.grad.isfinite().all()


def test_missing_rank_at_a_scale_beyond_float64() -> None:
    z = torch.outer(torch.arange(1.0, 7), torch.arange(1.0, 5)).double()
    z[:, 0] += 1  # rank 2, in whole numbers
    values = np.linalg.svd(z.numpy(), compute_uv=False)[:2]
    leaf = z.clone().requires_grad_()
    value = log_det_identity_plus(leaf, 1e18)
    assert value.item() == pytest.approx(np.log1p(1e18 * values**2).sum())
    value.backward()
    # doubling z adds log 4 for each of the two: sum of z times the gradient is 2 for each
    assert float((z * leaf.grad).sum()) == pytest.approx(4)


def test_the_smaller_form_is_used() -> None:
    z = naive.unit_rows(3, 50_000, seed=0, dtype=torch.float32)  # 50,000 squared would not fit
    assert coding_rate(z).item() == pytest.approx(naive.log_det(z.T, 4 * 50_000 / 3) / 2, rel=1e-5)
    assert coding_rate(z.T).item() == pytest.approx(
        naive.log_det(z.T, 4 * 3 / 50_000) / 2, abs=1e-6
    )


def test_rotation_of_rows_and_of_dimensions() -> None:
    z = naive.unit_rows(5, 8, seed=3)
    turned = naive.rotation(5, seed=0) @ z @ naive.rotation(8, seed=1)
    assert coding_rate(turned).item() == pytest.approx(naive.log_det(z, 4 * 8 / 5) / 2)


def test_half_and_autocast() -> None:
    z = naive.unit_rows(10, 16, seed=4, dtype=torch.float32)
    leaf = z.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = coding_rate(leaf)
        value.backward()
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(naive.log_det(z, 4 * 16 / 10) / 2, rel=1e-5)
    double = z.double().requires_grad_()
    (expected,) = torch.autograd.grad(by_slogdet(double, 4 * 16 / 10, "dims") / 2, double)
    np.testing.assert_allclose(leaf.grad, expected, atol=1e-5)
    rounded = z.bfloat16()
    assert coding_rate(rounded).dtype == torch.float32
    assert coding_rate(rounded).item() == pytest.approx(naive.log_det(rounded, 6.4) / 2, rel=1e-5)


def test_orthonormal_rows_and_zeros() -> None:
    assert coding_rate(torch.eye(4)).item() == pytest.approx(2 * math.log(5))
    assert coding_rate(torch.zeros(3, 4)).item() == 0
    assert log_det_identity_plus(torch.ones(3, 4), 0.0).item() == 0


def test_errors() -> None:
    z = torch.ones(3, 2)
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="scale must be finite and not negative"):
            log_det_identity_plus(z, scale)
    with pytest.raises(ValueError, match=r"scale must have one element.*\(2,\)"):
        log_det_identity_plus(z, torch.ones(2))
    for epsilon in (0.0, -0.5, math.nan):
        with pytest.raises(ValueError, match="epsilon must be finite and positive"):
            coding_rate(z, epsilon)
    for function in (coding_rate, lambda z: log_det_identity_plus(z, 1.0)):
        with pytest.raises(ValueError, match=r"z must have shape \(..., n, d\).*\(3,\)"):
            function(torch.ones(3))
        with pytest.raises(ValueError, match="z must be finite"):
            function(torch.full((2, 2), torch.nan))
        with pytest.raises(ValueError, match="z must not be empty"):
            function(torch.empty(0, 4))
