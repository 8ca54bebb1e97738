"""The small matrices of the quadrature, against their eigenvalues."""

import pytest
import torch

from likewise.language.density import largest
from likewise.language.quadrature import estimate
from likewise.language.tridiagonal import logarithm, tridiagonal


def positive(k, spread, batch=5, seed=0):
    """Matrices with eigenvalues from exp(-spread) to 1."""
    generator = torch.Generator().manual_seed(seed)
    axes, _ = torch.linalg.qr(torch.randn(batch, k, k, generator=generator, dtype=torch.float64))
    values = (-spread * torch.rand(batch, 1, k, generator=generator, dtype=torch.float64)).exp()
    return (axes * values) @ axes.mT


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_reflections_leave_the_first_axis_and_the_spectrum(k):
    a = positive(k, 3.0)
    diagonal, off, turn = tridiagonal(a)
    T = torch.diag_embed(diagonal)
    if k > 1:
        T = T + torch.diag_embed(off, 1) + torch.diag_embed(off, -1)
    torch.testing.assert_close(turn @ T @ turn.mT, a)
    torch.testing.assert_close(turn[:, 0], torch.eye(k, dtype=a.dtype)[0].expand(5, -1))
    torch.testing.assert_close(turn @ turn.mT, torch.eye(k, dtype=a.dtype).expand(5, -1, -1))


@pytest.mark.parametrize("spread", [0.0, 5.0, 20.0])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_the_logarithm_is_that_of_the_eigenvalues(k, spread):
    a = positive(k, spread)
    values, axes = torch.linalg.eigh(a)
    log = (axes * values.log()[:, None]) @ axes.mT
    least = 1 / torch.linalg.inv(a)[:, 0, 0]
    found = logarithm(a, least, 5)
    torch.testing.assert_close(found.corner, log[:, 0, 0], rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(found.column, log[:, 0], rtol=1e-8, atol=1e-8)
    # The derivative along S, by differences of the value.
    S = positive(k, 1.0, seed=1)
    step = 1e-5 * values[:, 0]
    bent = a + step[:, None, None] * S, a - step[:, None, None] * S
    high, low = (logarithm(x, 1 / torch.linalg.inv(x)[:, 0, 0], 5).corner for x in bent)
    expected = (high - low) / (2 * step)
    traces = (found.derivative * S).sum((1, 2))
    torch.testing.assert_close(traces, expected, rtol=1e-4, atol=1e-4)


def test_the_value_lies_between_its_bounds():
    """A Krylov space that is cut short: Gauss below, and the rule of the inverse moment above."""
    a = positive(9, 6.0, batch=1)
    share = 0.5 / torch.linalg.inv(a)[:, 0, 0]  # any number that 1 / (A^-1)_11 is not below
    start = torch.zeros(9, dtype=torch.float64)
    start[0] = 1
    exact = -logarithm(a, share, 1).corner
    vectors = [start]
    bounds = []
    for _ in range(6):
        V = torch.stack(vectors, 1)
        residual = a[0] @ vectors[-1]
        residual = residual - V @ (V.T @ residual)
        rest = (V.T @ a[0] @ V)[None]
        rest[:, 0, 0] -= share
        gram = torch.eye(len(vectors), dtype=torch.float64)[None]
        found = estimate(gram, rest, residual.norm()[None], share.log())
        assert found.lower <= exact + 1e-9 and found.upper >= exact - 1e-9
        assert found.lower <= found.value <= found.upper
        bounds.append((found.upper - found.lower).item())
        vectors.append(residual / residual.norm())
    assert bounds == sorted(bounds, reverse=True) and bounds[-1] < 0.5 * bounds[0]


@pytest.mark.parametrize("m", [5, 40, 700, 5003])
def test_the_largest_entries_are_found(m):
    x = torch.randn(6, m, generator=torch.Generator().manual_seed(0))
    found = largest(x, 8).sort(1).values
    torch.testing.assert_close(found, x.topk(min(8, m)).indices.sort(1).values)
