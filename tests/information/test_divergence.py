"""Matrix KL and cross-entropy against scipy's logarithm."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from likewise.information import (
    matrix_cross_entropy,
    matrix_kl,
    matrix_log,
    uniform_cross_entropy,
)
from tests.information import naive

UNIFORM = torch.eye(5, dtype=torch.float64) / 5
PAIRS = {
    "generic": (naive.positive_definite(5, seed=0), naive.positive_definite(5, seed=1)),
    "both uniform": (UNIFORM, UNIFORM),
    "equal": (naive.positive_definite(5, seed=2), naive.positive_definite(5, seed=2)),
    "repeated in q": (
        naive.positive_definite(4, seed=3),
        naive.repeated([0.2, 0.2, 1.0, 3.0], seed=1),
    ),
    "repeated in both": (
        naive.repeated([0.5, 0.5, 0.1, 0.1], seed=2),
        naive.repeated([0.2, 0.2, 1.0, 1.0], seed=1),
    ),
}
BOTH = pytest.mark.parametrize(
    ("function", "reference"),
    [(matrix_cross_entropy, naive.cross_entropy), (matrix_kl, naive.kl)],
    ids=["cross-entropy", "kl"],
)
Divergence = Callable[..., Tensor]
Reference = Callable[[Tensor, Tensor], float]


def symmetric(a: Tensor) -> Tensor:
    return (a + a.mT) / 2


@BOTH
@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients(name: str, function: Divergence, reference: Reference) -> None:
    p, q = PAIRS[name]
    assert function(p, q).item() == pytest.approx(reference(p, q), abs=1e-10)
    inputs = p.clone().requires_grad_(), q.clone().requires_grad_()
    assert gradcheck(lambda p, q: function(symmetric(p), symmetric(q)), inputs)


@BOTH
def test_gradients_are_those_of_scipys_log(function: Divergence, reference: Reference) -> None:
    p, q = (x.clone().requires_grad_() for x in PAIRS["repeated in q"])
    in_p, in_q = torch.autograd.grad(function(p, q), (p, q))
    still_p, still_q = p.detach(), q.detach()
    expected_p = naive.numerical_gradient(lambda x: reference(x, still_q), still_p)
    expected_q = naive.numerical_gradient(lambda x: reference(still_p, x), still_q)
    np.testing.assert_allclose(in_p, expected_p, atol=1e-6)
    np.testing.assert_allclose(in_q, expected_q, atol=1e-6)


@pytest.mark.parametrize("size", [5, 64, 512])
def test_float32_at_the_uniform_matrix(size: int) -> None:
    p = (torch.eye(size) / size).requires_grad_()
    q = (torch.eye(size) / size).requires_grad_()
    in_p, in_q = torch.autograd.grad(matrix_cross_entropy(p, q), (p, q))
    torch.testing.assert_close(in_q, torch.zeros(size, size), atol=1e-5, rtol=0)
    torch.testing.assert_close(in_p, np.log(size) * torch.eye(size), atol=1e-5, rtol=1e-5)
    value = matrix_kl(p, q)
    in_p, in_q = torch.autograd.grad(value, (p, q))
    assert value.item() == 0
    torch.testing.assert_close(in_p, torch.zeros(size, size), atol=1e-5, rtol=0)
    torch.testing.assert_close(in_q, torch.zeros(size, size), atol=1e-5, rtol=0)


@BOTH
def test_float32_is_close_to_float64(function: Divergence, reference: Reference) -> None:
    p, q = naive.positive_definite(40, seed=4), naive.positive_definite(40, seed=5)
    leaves = p.float().requires_grad_(), q.float().requires_grad_()
    value = function(*leaves)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(reference(p, q), rel=1e-4)
    in_p, in_q = torch.autograd.grad(value, leaves)
    own = -naive.log(q) + (naive.log(p) if function is matrix_kl else 0)
    np.testing.assert_allclose(in_p, own, atol=1e-3)
    # along the direction q itself: d/dt at t = 1 of f(p, t q) = tr q - tr p
    slope = float((in_q * leaves[1].detach()).sum())
    assert slope == pytest.approx(float(q.trace() - p.trace()), abs=1e-3)


def test_kl_of_nearby_matrices_does_not_cancel_in_float32() -> None:
    p = naive.positive_definite(32, seed=6)
    q = symmetric(p + 1e-3 * (naive.positive_definite(32, seed=7) - p))
    exact = naive.kl(p, q)  # about 1e-5, where tr(P log P) is about 10
    assert matrix_kl(p.float(), q.float()).item() == pytest.approx(exact, rel=0.02)
    assert matrix_kl(p.float(), p.float()).item() < 1e-9
    # a small scale adds log p = -14 to every logarithm, and nothing to the divergence
    small = matrix_kl(1e-6 * p.float(), 1e-6 * q.float()).item()
    assert small == pytest.approx(1e-6 * exact, rel=0.02)


@BOTH
def test_ridge_goes_to_both(function: Divergence, reference: Reference) -> None:
    rows = naive.unit_rows(3, 6, seed=0)
    q = rows.T @ rows / 3
    p = torch.eye(6, dtype=torch.float64) / 6
    lift = 0.05 * torch.eye(6, dtype=torch.float64)
    value = function(p, q, ridge=0.05)
    assert value.item() == pytest.approx(reference(p + lift, q + lift), abs=1e-9)
    inputs = p.clone().requires_grad_(), q.clone().requires_grad_()
    assert gradcheck(lambda p, q: function(symmetric(p), symmetric(q), ridge=0.05), inputs)
    assert matrix_kl(p, p, ridge=0.3).item() == pytest.approx(0, abs=1e-14)


def test_a_ridge_below_round_off_is_kept() -> None:
    q = torch.diag(torch.tensor([1e6, 1.0, 0.0]))
    p = torch.diag(torch.tensor([0.0, 0.0, 1.0]))
    # float32 cannot hold 1e6 + 1e-3, but the eigenvalue 0 becomes 1e-3
    expected = -np.log(1e-3) - 1e-3 * (np.log(1e6) + np.log(1e-3)) + 1e6 + 1
    value = matrix_cross_entropy(p, q, ridge=1e-3)
    assert value.item() == pytest.approx(expected, abs=0.1)
    log = matrix_log(q, ridge=1e-3).diagonal()
    np.testing.assert_allclose(log, np.log([1e6, 1.001, 1e-3]), atol=1e-4)


@BOTH
def test_ridge_may_lift_negative_eigenvalues(function: Divergence, reference: Reference) -> None:
    p, q = naive.repeated([-0.1, 0.5, 1.0], seed=0), naive.repeated([-0.2, 0.4, 2.0], seed=1)
    lift = 0.5 * torch.eye(3, dtype=torch.float64)
    value = function(p, q, ridge=0.5)
    assert value.item() == pytest.approx(reference(p + lift, q + lift), abs=1e-9)
    with pytest.raises(ValueError, match="p must be positive semi-definite.*ridge=0.05 is too"):
        function(p, torch.eye(3), ridge=0.05)


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_infinite_when_p_leaves_the_range_of_q(
    dtype: torch.dtype, function: Divergence, reference: Reference
) -> None:
    rows = naive.unit_rows(3, 6, seed=0, dtype=dtype)
    q = (rows.T @ rows / 3).requires_grad_()
    p = (torch.eye(6, dtype=dtype) / 6).requires_grad_()
    value = function(p, q)
    assert value.item() == float("inf")
    in_p, in_q = torch.autograd.grad(value, (p, q))
    assert in_p.isfinite().all() and in_q.isfinite().all()
    # descent moves P out of the kernel and raises Q on it
    hidden = naive.array(torch.linalg.svd(rows.double()).Vh[-1])
    assert hidden @ naive.array(in_p) @ hidden > 5
    assert hidden @ naive.array(in_q) @ hidden < -1e3
    other = naive.unit_rows(3, 6, seed=1, dtype=dtype)
    assert function(other.T @ other, q.detach()).item() == float("inf")
    assert function(p.detach(), torch.zeros(6, 6, dtype=dtype)).item() == float("inf")


@BOTH
@pytest.mark.parametrize(("n", "dims"), [(3, 6), (20, 64)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_on_the_range_when_p_stays_inside(
    dtype: torch.dtype, n: int, dims: int, function: Divergence, reference: Reference
) -> None:
    basis = naive.rotation(dims, seed=n)[:, :n]
    p, q = naive.positive_definite(n, seed=8), naive.positive_definite(n, seed=9)
    value = function(*(symmetric(basis @ x @ basis.T).to(dtype) for x in (p, q)))
    tolerance = 1e-3 if dtype == torch.float32 else 1e-9
    assert value.item() == pytest.approx(reference(p, q), rel=tolerance)


@BOTH
def test_gradient_on_the_range(function: Divergence, reference: Reference) -> None:
    # Both matrices move, but stay in the span of three rows of a six-dimensional space.
    basis = naive.rotation(6, seed=0)[:, :3]
    p, q = (naive.positive_definite(3, seed=s).requires_grad_() for s in (8, 9))
    assert gradcheck(
        lambda p, q: function(*(symmetric(basis @ x @ basis.T) for x in (p, q))), (p, q)
    )
    wide_q = symmetric(basis @ q.detach() @ basis.T).float().requires_grad_()
    wide_p = symmetric(basis @ p.detach() @ basis.T).float()
    (gradient,) = torch.autograd.grad(function(wide_p, wide_q), wide_q)
    kernel = naive.rotation(6, seed=0)[:, 3:].float()
    torch.testing.assert_close(kernel.T @ gradient @ kernel, torch.eye(3), atol=1e-3, rtol=0)


def test_kl_is_zero_at_equal_singular_matrices() -> None:
    rows = naive.unit_rows(10, 32, seed=0, dtype=torch.float32)
    covariance = rows.T @ rows / 10
    assert matrix_kl(covariance, covariance).item() == pytest.approx(0, abs=1e-6)
    zero = torch.zeros(3, 3)
    assert matrix_kl(zero, zero).item() == 0 and matrix_cross_entropy(zero, zero).item() == 0
    assert matrix_kl(zero, torch.eye(3)).item() == 3


@BOTH
def test_rotation_leaves_them_alone(function: Divergence, reference: Reference) -> None:
    p, q = PAIRS["generic"]
    turn = naive.rotation(5, seed=3)
    turned = function(*(symmetric(turn @ x @ turn.T) for x in (p, q)))
    assert turned.item() == pytest.approx(reference(p, q), abs=1e-10)


def test_taylor_methods() -> None:
    p, q = naive.array(PAIRS["generic"][0]), naive.unit_rows(5, 5, seed=2)  # q is not symmetric
    eye = np.eye(5)
    given = torch.from_numpy(p)
    for order in (1, 3, 4):
        log_q = naive.taylor(naive.array(q) - eye, order)
        expected = np.trace(-p @ log_q + naive.array(q))
        value = matrix_cross_entropy(given, q, method="taylor", order=order)
        assert value.item() == pytest.approx(expected)
        kl = np.trace(p @ naive.taylor(p - eye, order) - p @ log_q - p + naive.array(q))
        assert matrix_kl(given, q, method="taylor", order=order).item() == pytest.approx(kl)
        shifted = np.trace(-(p + eye) @ naive.taylor(naive.array(q), order) + naive.array(q) + eye)
        value = matrix_cross_entropy(given, q, method="taylor-shifted", order=order)
        assert value.item() == pytest.approx(shifted)
        value = matrix_cross_entropy(given, q, method="taylor", order=order, ridge=1.0)
        assert value.item() == pytest.approx(shifted)
    inputs = given.clone().requires_grad_(), q.clone().requires_grad_()
    assert gradcheck(
        lambda p, q: matrix_kl(symmetric(p), q, method="taylor-shifted", order=3), inputs
    )


def test_shifted_taylor_tends_to_ridge_one() -> None:
    p, q = (naive.repeated([0.1, 0.2, 0.3, 0.4], seed=s) for s in (0, 1))
    eye = torch.eye(4, dtype=torch.float64)
    value = matrix_cross_entropy(p, q, method="taylor-shifted", order=40)
    assert value.item() == pytest.approx(naive.cross_entropy(p + eye, q + eye), abs=1e-9)
    value = matrix_kl(p, q, method="taylor-shifted", order=40)
    assert value.item() == pytest.approx(naive.kl(p + eye, q + eye), abs=1e-9)


@BOTH
def test_symmetrize_takes_the_symmetric_part_of_q(
    function: Divergence, reference: Reference
) -> None:
    p, q = PAIRS["generic"]
    skewed = q + torch.triu(torch.full((5, 5), 0.1), 1) - torch.tril(torch.full((5, 5), 0.1), -1)
    with pytest.raises(ValueError, match="q must be symmetric.*symmetrize=True"):
        function(p, skewed)
    assert function(p, skewed, symmetrize=True).item() == pytest.approx(reference(p, q))


@BOTH
def test_batches_broadcast(function: Divergence, reference: Reference) -> None:
    batch = torch.stack([naive.positive_definite(4, seed=s) for s in range(3)]).requires_grad_()
    p = naive.positive_definite(4, seed=9).requires_grad_()
    values = function(p, batch)
    np.testing.assert_allclose(values.detach(), [reference(p, q) for q in batch], atol=1e-10)
    values.sum().backward()
    assert p.grad is not None and p.grad.shape == p.shape and batch.grad.shape == batch.shape


@BOTH
def test_bf16_autocast(function: Divergence, reference: Reference) -> None:
    p, q = (x.float().requires_grad_() for x in PAIRS["generic"])
    with torch.autocast("cpu", torch.bfloat16):
        value = function(p, q)
        value.backward()
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(reference(p, q), rel=1e-5)
    half = function(*(x.detach().bfloat16() for x in (p, q)))
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(reference(p, q), abs=0.3)


@pytest.mark.parametrize("weight", [None, 0.7])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("name", ["generic", "both uniform"])
def test_uniform_cross_entropy(name: str, ridge: float, weight: float | None) -> None:
    q = PAIRS[name][1]
    share = 1 / 5 if weight is None else weight
    eye = torch.eye(5, dtype=torch.float64)
    value = uniform_cross_entropy(q, weight=weight, ridge=ridge)
    expected = naive.cross_entropy((share + ridge) * eye, q + ridge * eye)
    assert value.item() == pytest.approx(expected, abs=1e-10)
    leaf = q.clone().requires_grad_()
    assert gradcheck(
        lambda q: uniform_cross_entropy(symmetric(q), weight=weight, ridge=ridge), leaf
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform_cross_entropy_close_to_singular(dtype: torch.dtype) -> None:
    # Cholesky cannot be trusted here; with eigenvalues the two functions agree on what is singular.
    for n, seed in [(8, 0), (63, 1), (63, 2), (63, 3), (63, 4), (63, 5)]:
        rows = naive.unit_rows(n, 64, seed, dtype=dtype)
        q = (rows.T @ rows / n).requires_grad_()
        value = uniform_cross_entropy(q)
        assert value.item() == float("inf")
        assert torch.autograd.grad(value, q)[0].isfinite().all()
    steep = naive.repeated([1e-4, 1.0, 1.0, 1.0], seed=0).to(dtype)
    expected = naive.cross_entropy(torch.eye(4) / 4, steep)
    assert uniform_cross_entropy(steep).item() == pytest.approx(expected, rel=1e-3)
    faint = symmetric(naive.repeated([2e-5, 1.0, 1.0, 1e3], seed=0))
    expected = naive.cross_entropy(
        torch.eye(4) / 4 + 0.01 * torch.eye(4), faint + 0.01 * torch.eye(4)
    )
    assert uniform_cross_entropy(faint.to(dtype), ridge=0.01).item() == pytest.approx(
        expected, rel=1e-3
    )


def test_uniform_cross_entropy_of_zeros() -> None:
    zero = torch.zeros(2, 3, 3, requires_grad=True)
    value = uniform_cross_entropy(zero)
    assert value.tolist() == [float("inf")] * 2
    assert torch.autograd.grad(value.sum(), zero)[0].isfinite().all()
    assert uniform_cross_entropy(zero.detach(), ridge=0.5)[0].item() == pytest.approx(
        naive.cross_entropy((1 / 3 + 0.5) * torch.eye(3), 0.5 * torch.eye(3))
    )


def test_uniform_cross_entropy_does_not_underflow() -> None:
    q = (torch.eye(512) / 512).requires_grad_()
    assert torch.linalg.det(q).item() == 0
    value = uniform_cross_entropy(q)
    assert value.item() == pytest.approx(np.log(512) + 1, rel=1e-5)
    (gradient,) = torch.autograd.grad(value, q)
    torch.testing.assert_close(gradient, torch.zeros(512, 512), atol=1e-5, rtol=0)


@BOTH
def test_errors(function: Divergence, reference: Reference) -> None:
    good, bad = torch.eye(3), torch.diag(torch.tensor([1.0, 1.0, -0.5]))
    with pytest.raises(ValueError, match="p must be positive semi-definite.*-0.5"):
        function(bad, good)
    with pytest.raises(ValueError, match="q must be positive semi-definite.*-0.5"):
        function(good, bad)
    with pytest.raises(ValueError, match=r"same size.*\(3, 3\) and \(2, 2\)"):
        function(good, torch.eye(2))
    with pytest.raises(ValueError, match="p must be symmetric"):
        function(torch.ones(3, 3).triu(), good)
    with pytest.raises(ValueError, match="q must be finite"):
        function(good, torch.full((3, 3), torch.nan))
    with pytest.raises(ValueError, match="ridge must be finite and not negative, got -1"):
        function(good, good, ridge=-1)
    with pytest.raises(ValueError, match="order must be"):
        function(good, good, method="taylor", order=0)
    with pytest.raises(ValueError, match="method must be one of"):
        function(good, good, method="series")


def test_errors_of_the_uniform_cross_entropy() -> None:
    with pytest.raises(ValueError, match="q must be positive semi-definite"):
        uniform_cross_entropy(torch.diag(torch.tensor([1.0, -0.5])))
    with pytest.raises(ValueError, match="q must be symmetric.*symmetrize=True"):
        uniform_cross_entropy(torch.ones(2, 2).triu())
    with pytest.raises(ValueError, match="weight must be finite and positive, got 0"):
        uniform_cross_entropy(torch.eye(2), weight=0)
