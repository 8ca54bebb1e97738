"""Matrix entropy and von Neumann entropy against a loop over eigenvalues."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from likewise.information import matrix_entropy, von_neumann_entropy
from tests.information import naive

MATRICES = {
    "generic": naive.positive_definite(5, seed=0),
    "uniform": torch.eye(5, dtype=torch.float64) / 5,
    "repeated": naive.repeated([0.2, 0.2, 1.0, 3.0], seed=1),
}


def symmetric(a: torch.Tensor) -> torch.Tensor:
    return (a + a.T) / 2


@pytest.mark.parametrize("name", MATRICES)
def test_values_and_gradients(name: str) -> None:
    a = MATRICES[name]
    assert matrix_entropy(a).item() == pytest.approx(naive.entropy(a), abs=1e-12)
    trace = float(a.trace())
    assert von_neumann_entropy(a).item() == pytest.approx(naive.entropy(a / trace) - 1, abs=1e-12)
    leaf = a.clone().requires_grad_()
    assert gradcheck(lambda a: matrix_entropy(symmetric(a)), leaf)
    assert gradcheck(lambda a: von_neumann_entropy(symmetric(a)), leaf)


def test_gradient_of_the_matrix_entropy_is_minus_log() -> None:
    a = naive.positive_definite(6, seed=3).requires_grad_()
    (gradient,) = torch.autograd.grad(matrix_entropy(a), a)
    np.testing.assert_allclose(gradient, -naive.log(a), atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.integers(0, 1000))
def test_entropy_depends_on_eigenvalues_only(values: list[float], seed: int) -> None:
    expected = sum(-v * math.log(v) + v if v > 0 else 0.0 for v in values)
    turned = matrix_entropy(symmetric(naive.repeated(values, seed)))
    assert turned.item() == pytest.approx(expected, abs=1e-9)


def test_fewer_rows_than_dimensions() -> None:
    rows = naive.unit_rows(4, 9, seed=0).requires_grad_()
    gram = rows.detach() @ rows.detach().T / 4  # same non-zero eigenvalues, full rank
    assert matrix_entropy(rows.T @ rows / 4).item() == pytest.approx(naive.entropy(gram))
    assert gradcheck(lambda z: matrix_entropy(z.T @ z / 4), rows)
    assert gradcheck(lambda z: von_neumann_entropy(z.T @ z), rows)


@pytest.mark.parametrize("n", [3, 30, 200])
def test_float32_is_finite_and_close_when_rank_is_missing(n: int) -> None:
    rows = naive.unit_rows(n, 128, seed=n)
    single = rows.float().requires_grad_()
    value = matrix_entropy(single.T @ single / n)
    (gradient,) = torch.autograd.grad(value, single)
    double = rows.clone().requires_grad_()
    gram = double @ double.T / n if n < 128 else double.T @ double / n
    exact = torch.special.entr(torch.linalg.eigvalsh(gram)).sum() + gram.trace()
    (expected,) = torch.autograd.grad(exact, double)
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)
    assert gradient.isfinite().all()
    torch.testing.assert_close(gradient.double(), expected, atol=1e-4, rtol=1e-3)


def test_gradient_on_the_kernel_is_finite_and_points_inwards() -> None:
    a = torch.diag(torch.tensor([1.0, 0.0])).requires_grad_()
    (gradient,) = torch.autograd.grad(matrix_entropy(a), a)
    floor = 8 * torch.finfo(torch.float32).eps
    assert gradient[1, 1].item() == pytest.approx(-math.log(floor))
    assert gradient[0, 0].item() == pytest.approx(0)
    zero = torch.zeros(3, 3, requires_grad=True)
    value = matrix_entropy(zero)
    (gradient,) = torch.autograd.grad(value, zero)
    assert value.item() == 0 and bool(gradient.isfinite().all())


def test_von_neumann_entropy_does_not_see_scale() -> None:
    a = naive.positive_definite(5, seed=1)
    expected = math.log(naive.exponential_entropy(np.linalg.eigvalsh(a)))
    for scale in (1e-6, 1.0, 1e6):
        assert von_neumann_entropy(scale * a).item() == pytest.approx(expected)


def test_batch_half_and_autocast() -> None:
    batch = torch.stack([naive.positive_definite(4, seed=s, dtype=torch.float32) for s in range(3)])
    expected = [naive.entropy(a) for a in batch]
    np.testing.assert_allclose(matrix_entropy(batch), expected, rtol=1e-5)
    np.testing.assert_allclose(matrix_entropy(batch.bfloat16()), expected, atol=0.05)
    leaf = batch.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = matrix_entropy(leaf)
        value.sum().backward()
    assert value.dtype == torch.float32
    np.testing.assert_allclose(value.detach(), expected, rtol=1e-5)
    np.testing.assert_allclose(leaf.grad[0], -naive.log(batch[0]), atol=1e-4)


def test_errors() -> None:
    for entropy in (matrix_entropy, von_neumann_entropy):
        with pytest.raises(ValueError, match="a must be positive semi-definite.*-0.1"):
            entropy(torch.diag(torch.tensor([1.0, -0.1])))
        with pytest.raises(ValueError, match="a must be symmetric.*symmetric part"):
            entropy(torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
        with pytest.raises(ValueError, match="a must be a square matrix"):
            entropy(torch.ones(2, 3))
        with pytest.raises(ValueError, match="a must be finite"):
            entropy(torch.full((2, 2), float("inf")))
    with pytest.raises(ValueError, match="a must have a positive trace"):
        von_neumann_entropy(torch.zeros(2, 2))
