"""The matrix logarithm against scipy's, and its gradient where eigenvalues coincide."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from likewise.information import coding_rate, matrix_entropy, matrix_kl, matrix_log, rank_me
from likewise.information.logarithm import has_principal_log
from tests.information import naive

SPECTRA = {
    "generic": naive.positive_definite(5, seed=0),
    "uniform": torch.eye(5, dtype=torch.float64) / 5,
    "one value twice": naive.repeated([0.2, 0.2, 1.0, 3.0], seed=1),
    "almost equal": naive.repeated([0.3, 0.3 + 1e-9, 0.3 + 1e-5, 2.0], seed=2),
    "far apart": naive.repeated([1e-6, 1e-3, 1.0, 1e3], seed=3),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_exact_log_is_that_of_scipy(name: str) -> None:
    a = SPECTRA[name]
    np.testing.assert_allclose(matrix_log(a), naive.log(a), atol=1e-9)


@pytest.mark.parametrize("name", [name for name in SPECTRA if name != "far apart"])
def test_exact_log_has_the_right_gradient(name: str) -> None:
    a = SPECTRA[name].clone().requires_grad_()
    assert gradcheck(lambda a: matrix_log(a, symmetrize=True), a)


@pytest.mark.parametrize("name", SPECTRA)
def test_gradient_is_the_frechet_derivative_of_scipys_log(name: str) -> None:
    # The upper right block of log [[A, E], [0, A]] is the derivative of log at A along E.
    a = SPECTRA[name].clone().requires_grad_()
    size = a.shape[0]
    direction = naive.positive_definite(size, seed=7) - torch.eye(size, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((matrix_log(a) * direction).sum(), a)
    block = torch.cat([torch.cat([a, direction], 1), torch.cat([torch.zeros_like(a), a], 1)], 0)
    expected = naive.log(block)[:size, size:]
    # scipy itself is only good to about 1e-7 of the largest entry where values lie far apart
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_gradient_at_the_uniform_matrix_is_finite_in_float32() -> None:
    # Through eigh's own backward it is NaN: the eigenvalues are all the same.
    a = (torch.eye(64) / 64).requires_grad_()
    weight = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad((matrix_log(a) * weight).sum(), a)
    torch.testing.assert_close(gradient, 64 * (weight + weight.T) / 2)

    b = (torch.eye(64) / 64).requires_grad_()
    values, vectors = torch.linalg.eigh(b)
    (broken,) = torch.autograd.grad((vectors @ values.log().diag() @ vectors.T * weight).sum(), b)
    assert not bool(broken.isfinite().all())


def test_float32_is_close_to_float64() -> None:
    a = naive.positive_definite(40, seed=4)
    np.testing.assert_allclose(matrix_log(a.float()), naive.log(a), atol=2e-4)
    assert matrix_log(a.float()).dtype == torch.float32


def test_a_batch_is_one_matrix_after_another() -> None:
    batch = torch.stack([naive.positive_definite(4, seed=s) for s in range(6)]).reshape(2, 3, 4, 4)
    logs = matrix_log(batch)
    assert logs.shape == batch.shape
    np.testing.assert_allclose(logs[1, 2], naive.log(batch[1, 2]), atol=1e-10)


def test_log_turns_with_the_matrix() -> None:
    a, turn = naive.positive_definite(5, seed=5), naive.rotation(5, seed=6)
    expected = naive.array(turn) @ naive.log(a) @ naive.array(turn).T
    np.testing.assert_allclose(matrix_log(turn @ a @ turn.T, symmetrize=True), expected, atol=1e-10)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 7])
def test_taylor_polynomials(order: int) -> None:
    a = naive.unit_rows(6, 6, seed=1)  # not symmetric
    eye = np.eye(6)
    about_one = naive.taylor(naive.array(a) - eye, order)
    shifted = naive.taylor(naive.array(a), order)
    np.testing.assert_allclose(matrix_log(a, method="taylor", order=order), about_one, atol=1e-12)
    np.testing.assert_allclose(
        matrix_log(a, method="taylor-shifted", order=order), shifted, atol=1e-12
    )
    np.testing.assert_allclose(
        matrix_log(a, method="taylor", order=order, ridge=0.3),
        naive.taylor(naive.array(a) - 0.7 * eye, order),
        atol=1e-12,
    )


def test_taylor_converges_to_the_log() -> None:
    a = naive.repeated([0.1, 0.2, 0.3, 0.4], seed=1)
    shifted = matrix_log(a, method="taylor-shifted", order=60)
    np.testing.assert_allclose(shifted, naive.log(a + torch.eye(4)), atol=1e-10)
    assert gradcheck(lambda a: matrix_log(a, method="taylor", order=3), a.clone().requires_grad_())


def test_ridge_is_added_first() -> None:
    rows = naive.unit_rows(3, 6, seed=0)
    a = rows.T @ rows / 3  # rank 3 of 6
    expected = naive.log(a + 0.01 * torch.eye(6))
    np.testing.assert_allclose(matrix_log(a, ridge=0.01), expected, atol=1e-9)
    assert gradcheck(
        lambda a: matrix_log(a, ridge=0.01, symmetrize=True), a.clone().requires_grad_()
    )


def test_ridge_may_lift_a_negative_eigenvalue() -> None:
    a = naive.repeated([-0.2, 0.5, 1.0], seed=0)
    expected = naive.log(a + 0.5 * torch.eye(3))
    np.testing.assert_allclose(matrix_log(a, ridge=0.5), expected, atol=1e-10)
    with pytest.raises(ValueError, match=r"a must be positive semi-definite.*-0.2.*ridge above"):
        matrix_log(a, ridge=0.1)


def test_half_precision_and_autocast() -> None:
    a = naive.repeated([0.5, 0.5, 1.0, 2.0], seed=3).float()
    half = matrix_log(a.bfloat16(), symmetrize=True)
    assert half.dtype == torch.float32
    np.testing.assert_allclose(half, naive.log(a), atol=0.05)
    leaf = a.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        log = matrix_log(leaf)
        log[0, 1].backward()
    assert log.dtype == torch.float32
    np.testing.assert_allclose(log.detach(), naive.log(a), atol=1e-5)
    expected = naive.numerical_gradient(lambda b: naive.log(b)[0, 1], a.double())
    np.testing.assert_allclose(leaf.grad, expected, atol=1e-4)


def test_a_second_derivative_is_refused_rather_than_wrong() -> None:
    functions = (matrix_log, matrix_entropy, rank_me, coding_rate, lambda a: matrix_kl(a, a))
    for function in functions:
        a = naive.positive_definite(3, seed=0).requires_grad_()
        (gradient,) = torch.autograd.grad(function(a).sum(), a, create_graph=True)
        with pytest.raises(RuntimeError, match="a second derivative was asked for"):
            torch.autograd.grad(gradient.square().sum() + a.sum(), a)
    a = (0.1 * naive.positive_definite(3, seed=0)).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda a: matrix_log(a, method="taylor"), a)


def test_bad_input_is_named_with_a_remedy() -> None:
    good = torch.eye(3)
    skewed = torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"a must be symmetric.* 0.5 .*symmetrize=True"):
        matrix_log(skewed)
    with pytest.raises(ValueError, match=r"a must not be singular.*ridge="):
        matrix_log(torch.diag(torch.tensor([1.0, 0.0])))
    with pytest.raises(ValueError, match=r"a must not be singular.*ridge="):
        matrix_log(torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"positive semi-definite.*eigenvalue -1"):
        matrix_log(torch.diag(torch.tensor([1.0, -1.0])))
    with pytest.raises(ValueError, match=r"square.*\(3, 2\)"):
        matrix_log(torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"square.*\(3,\)"):
        matrix_log(torch.ones(3))
    with pytest.raises(ValueError, match=r"a must be finite.*1 of 9"):
        matrix_log(good.index_put((torch.tensor(0), torch.tensor(0)), torch.tensor(torch.nan)))
    with pytest.raises(ValueError, match=r"empty.*\(0, 0\)"):
        matrix_log(torch.empty(0, 0))
    with pytest.raises(ValueError, match=r"torch.int64.*float\(\)"):
        matrix_log(torch.eye(3, dtype=torch.int64))
    with pytest.raises(TypeError, match="torch tensor, got ndarray"):
        matrix_log(np.eye(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'exact', 'taylor', 'taylor-shifted', got 'pade'"):
        matrix_log(good, method="pade")  # type: ignore[arg-type]
    for order in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="order must be an integer of at least 1"):
            matrix_log(good, method="taylor", order=order)
    for ridge in (-1e-3, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="ridge must be finite and not negative"):
            matrix_log(good, ridge=ridge)


def test_round_off_in_a_gram_matrix_is_singular_not_negative() -> None:
    rows = naive.unit_rows(20, 64, seed=0, dtype=torch.float32)
    gram = rows.T @ rows / 20
    assert float(torch.linalg.eigvalsh(gram).min()) < 0  # what a naive log would meet
    with pytest.raises(ValueError, match="singular"):
        matrix_log(gram)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_has_no_principal_logarithm_to_ask_for(bad):
    matrix = torch.eye(6, dtype=torch.float64)
    matrix[1, 2] = bad
    with pytest.raises(ValueError, match="a holds NaN or infinity"):
        has_principal_log(matrix)
