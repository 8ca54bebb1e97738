"""The room on a GPU, whose factorisations have other round-off: the same numbers, in float32."""

import math

import pytest
import torch

from likewise.information import (
    coding_rate,
    effective_rank,
    matrix_cross_entropy,
    matrix_entropy,
    matrix_kl,
    matrix_log,
    rank_me,
    simplex_etf,
    uniform_cross_entropy,
)
from tests.information import naive

pytestmark = pytest.mark.gpu


def test_values_on_the_gpu() -> None:
    p, q = naive.positive_definite(32, seed=0), naive.positive_definite(32, seed=1)
    z = naive.unit_rows(40, 32, seed=2)
    left, right, rows = (x.float().cuda() for x in (p, q, z))
    with torch.autocast("cuda", torch.bfloat16):
        assert float(matrix_kl(left, right)) == pytest.approx(naive.kl(p, q), rel=1e-4)
        value = float(matrix_cross_entropy(left, right))
        assert value == pytest.approx(naive.cross_entropy(p, q), rel=1e-4)
        assert float(matrix_entropy(left)) == pytest.approx(naive.entropy(p), rel=1e-4)
        rate = naive.log_det(z, 4 * 32 / 40) / 2
        assert float(coding_rate(rows)) == pytest.approx(rate, rel=1e-4)
        log = matrix_log(left).cpu().double()
    assert float((log - torch.from_numpy(naive.log(p))).abs().max()) < 1e-3


@pytest.mark.parametrize("size", [5, 128, 1024])
def test_the_uniform_matrix_on_the_gpu(size: int) -> None:
    q = (torch.eye(size, device="cuda") / size).requires_grad_()
    p = (torch.eye(size, device="cuda") / size).requires_grad_()
    for value in (matrix_cross_entropy(p.detach(), q), uniform_cross_entropy(q)):
        assert value.item() == pytest.approx(math.log(size) + 1, rel=1e-5)
        (gradient,) = torch.autograd.grad(value, q)
        assert float(gradient.abs().max()) < 1e-4
    assert float(matrix_kl(p, q)) == pytest.approx(0, abs=1e-6)
    assert float(effective_rank(q)) == pytest.approx(size, rel=1e-6)


@pytest.mark.parametrize(("n", "dims"), [(4, 9), (100, 512), (500, 512), (64, 1024)])
def test_missing_rank_is_seen_on_the_gpu(n: int, dims: int) -> None:
    z = naive.unit_rows(n, dims, seed=n, dtype=torch.float32).cuda()
    q = z.T @ z / n
    assert float(matrix_cross_entropy(torch.eye(dims, device="cuda") / dims, q)) == math.inf
    assert float(uniform_cross_entropy(q)) == math.inf
    assert float(matrix_kl(q, q)) == pytest.approx(0, abs=1e-5)
    assert float(effective_rank(q)) <= n
    line = torch.outer(z[:, 0], z[0])
    assert float(rank_me(line)) == 1 and float(effective_rank(line.T @ line)) == 1


def test_frame_on_the_device_of_the_generator() -> None:
    frame = simplex_etf(4, 3, torch.Generator("cuda").manual_seed(0))
    assert frame.is_cuda
    assert float((frame @ frame.T)[0, 1]) == pytest.approx(-1 / 3, abs=1e-6)
