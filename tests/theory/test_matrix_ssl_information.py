"""What paper 001 (matrix-ssl) says about matrices, and what holds: sections 3.3 to 6, C, D, E, F.

The paper writes samples in columns, Z of d x B; here they are rows, so Z Z^T / B is z.T @ z / n.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from likewise.information import (
    coding_rate,
    effective_rank,
    matrix_cross_entropy,
    matrix_entropy,
    matrix_kl,
    matrix_log,
    simplex_etf,
    uniform_cross_entropy,
    von_neumann_entropy,
)
from tests.information import naive

PAIR = naive.positive_definite(5, seed=0), naive.positive_definite(5, seed=1)


def eye(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)


def second_moment(z: Tensor) -> Tensor:
    return z.T @ z / len(z)


def covariance(z: Tensor) -> Tensor:
    return second_moment(z - z.mean(0))


def log_with_zero_for_zero(a: Tensor) -> Tensor:
    """The paper's convention log(0) := 0."""
    values, vectors = torch.linalg.eigh(a)
    logs = torch.where(values > 1e-12, values.clamp_min(1e-12).log(), 0.0)
    return vectors @ logs.diag() @ vectors.T


def close(left: Tensor | float, right: Tensor | float, tolerance: float = 1e-9) -> bool:
    return float(left) == pytest.approx(float(right), abs=tolerance)


# Section 3: definitions


def test_matrix_ssl_eq_11() -> None:
    p, q = PAIR
    value = matrix_cross_entropy(p, q)
    assert close(value, matrix_kl(p, q) + matrix_entropy(p))
    assert close(value, np.trace(-p.numpy() @ naive.log(q) + q.numpy()))


def test_matrix_ssl_section_3_3_qkl_sign() -> None:
    a, b = (x / x.trace() for x in PAIR)
    bracket = float(torch.trace(a @ torch.from_numpy(naive.log(a) - naive.log(b))))
    assert -bracket < 0  # as printed, a divergence below zero
    assert close(matrix_kl(a, b), bracket)  # with the sign +, and unit traces


def test_matrix_ssl_lemma_3_4() -> None:
    for seed, (rows, columns) in enumerate([(3, 7), (7, 3), (5, 5)]):
        a = naive.unit_rows(rows, columns, seed)
        assert float(torch.linalg.eigvalsh(a @ a.T).min()) > -1e-12


def test_matrix_ssl_proposition_3_6() -> None:
    d = 6
    for n in (4, 30):
        a = second_moment(naive.unit_rows(n, d, seed=n))
        assert close(a.trace(), 1)
        entropy, to_uniform = matrix_entropy(a), matrix_kl(a, eye(d) / d)
        assert close(entropy, -to_uniform + math.log(d) + 1)
        rank = naive.exponential_entropy(np.linalg.eigvalsh(a).clip(0))
        assert close(rank, math.exp(entropy - 1)) and close(rank, effective_rank(a))
        assert close(rank, math.exp(von_neumann_entropy(a)))


def test_matrix_ssl_proposition_3_6_any_trace() -> None:
    d = 6
    a = covariance(naive.unit_rows(30, d, seed=0))  # the covariance of section 5
    t = float(a.trace())
    entropy, to_uniform = float(matrix_entropy(a)), float(matrix_kl(a, eye(d) / d))
    rank = naive.exponential_entropy(np.linalg.eigvalsh(a))
    assert t < 1
    assert not close(entropy, -to_uniform + math.log(d) + 1, 1e-3)
    assert not close(rank, math.exp(entropy - 1), 1e-3)
    for scale in (1.0, 0.1, 7.0):
        t = float((scale * a).trace())
        entropy = float(matrix_entropy(scale * a))
        to_uniform = float(matrix_kl(scale * a, eye(d) / d))
        assert close(entropy, -to_uniform + t * math.log(d) + 1)
        assert close(rank, math.exp((entropy - t) / t + math.log(t)))


# Section 4: minimisation


def descend(loss, start: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
    """Minimise loss(W W^T) over W with L-BFGS."""
    root = torch.linalg.cholesky(start).contiguous().requires_grad_()
    optimizer = torch.optim.LBFGS([root], max_iter=300, tolerance_grad=1e-12, tolerance_change=0)

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(root @ root.T)
        value.backward()
        return value

    optimizer.step(closure)
    return (root @ root.T).detach()


def test_matrix_ssl_proposition_4_1() -> None:
    p, start = PAIR
    torch.testing.assert_close(descend(lambda q: matrix_kl(p, q), start), p, atol=1e-5, rtol=0)
    for seed in range(20):
        assert float(matrix_kl(p, naive.positive_definite(5, seed=100 + seed))) > 0
    assert close(matrix_kl(p, p), 0)
    # with the paper's log(0) := 0 a singular Q is better than P itself
    identity, zero = eye(5), torch.zeros(5, 5, dtype=torch.float64)
    logs = log_with_zero_for_zero(identity) - log_with_zero_for_zero(zero)
    assert close(torch.trace(identity @ logs - identity + zero), -5)
    assert float(matrix_kl(identity, zero)) == math.inf
    # the range decides
    line = torch.diag(torch.tensor([1.0, 0, 0, 0, 0], dtype=torch.float64))
    assert float(matrix_kl(p, line)) == math.inf
    assert close(matrix_kl(2 * line, line), 2 * math.log(2) - 2 + 1)


def test_matrix_ssl_proposition_4_2() -> None:
    p, start = PAIR
    best = descend(lambda q: matrix_cross_entropy(p, q), start)
    torch.testing.assert_close(best, p, atol=1e-5, rtol=0)
    for seed in range(20):
        other = naive.positive_definite(5, seed=100 + seed)
        assert float(matrix_cross_entropy(p, other)) > float(matrix_cross_entropy(p, p))
    # the ridge goes to both, so that it does not move the minimiser
    lifted = descend(lambda q: matrix_cross_entropy(p, q, ridge=0.5), start)
    torch.testing.assert_close(lifted, p, atol=1e-5, rtol=0)
    # log(0) := 0 again: Q = 0 scores 0, less than P
    printed = torch.trace(-p @ log_with_zero_for_zero(0 * p))
    assert float(printed) == 0 < float(matrix_cross_entropy(p, p))
    assert float(matrix_cross_entropy(p, 0 * p)) == math.inf


def test_matrix_ssl_proof_4_1_gradient() -> None:
    p, q = PAIR
    leaf = q.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(matrix_cross_entropy(p, leaf), leaf)
    measured = naive.numerical_gradient(lambda x: naive.cross_entropy(p, x), q)
    np.testing.assert_allclose(gradient, measured, atol=1e-7)
    # Daleckii-Krein, entry by entry
    values, vectors = np.linalg.eigh(q.numpy())
    inner = vectors.T @ p.numpy() @ vectors
    for i in range(5):
        for j in range(5):
            gap = values[i] - values[j]
            slope = (math.log(values[i]) - math.log(values[j])) / gap if i != j else 1 / values[i]
            inner[i, j] *= slope
    np.testing.assert_allclose(gradient, np.eye(5) - vectors @ inner @ vectors.T, atol=1e-10)
    # as printed: wrong, also after taking the symmetric part
    printed = eye(5) - p @ torch.linalg.inv(q)
    assert float((gradient - printed).abs().max()) > 0.1
    assert float((gradient - (printed + printed.T) / 2).abs().max()) > 0.1
    # right where P and Q commute, in particular at the stationary point
    commuting = p @ p
    leaf = commuting.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(matrix_cross_entropy(p, leaf), leaf)
    torch.testing.assert_close(gradient, eye(5) - p @ torch.linalg.inv(commuting))
    leaf = p.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(matrix_cross_entropy(p, leaf), leaf)
    torch.testing.assert_close(gradient, torch.zeros_like(p))


def test_matrix_ssl_joint_convexity() -> None:
    matrices = [naive.positive_definite(4, seed=s) for s in range(12)]
    for k in range(3):
        p1, q1, p2, q2 = matrices[4 * k : 4 * k + 4]
        for t in (0.1, 0.5, 0.8):
            mixed = matrix_kl(t * p1 + (1 - t) * p2, t * q1 + (1 - t) * q2)
            assert float(mixed) <= float(t * matrix_kl(p1, q1) + (1 - t) * matrix_kl(p2, q2))


def test_matrix_ssl_proposition_4_6() -> None:
    d, n = 4, 40
    z = naive.unit_rows(n, d, seed=0)

    def error(scale: float) -> float:
        """Exact loss -R less equation 18, at epsilon = 1."""
        gram = scale**2 * z.T @ z
        linear = -d / (2 * n) * gram.trace()
        quadratic = d**2 / (4 * n**2) * (gram @ gram).trace()
        return float(-coding_rate(scale * z, epsilon=1.0) - linear - quadratic)

    # the coefficients are right: what is left is of third order in Z Z^T, sixth in Z
    assert error(0.05) / error(0.1) == pytest.approx(1 / 64, rel=0.05)

    def remainder(z: Tensor, epsilon: float, order: int) -> float:
        scaled = z.shape[1] / (len(z) * epsilon**2) * z.T @ z
        series = matrix_log(scaled, method="taylor-shifted", order=order).trace() / 2
        return abs(float(coding_rate(z, epsilon=epsilon) - series))

    # unit rows force the norm to 1 / epsilon^2 at least: epsilon > 1 is needed
    for epsilon in (0.5, 1.0, 2.0):
        norm = float(torch.linalg.matrix_norm(d / (n * epsilon**2) * z.T @ z, ord=2))
        assert norm >= 1 / epsilon**2
    assert remainder(z, 2.0, 2) > remainder(z, 2.0, 4) > remainder(z, 2.0, 8)
    assert remainder(z, 2.0, 60) < 1e-9
    best = naive.rotation(d, seed=0)  # even the best batch diverges at the usual 0.5
    for batch in (z, best):
        errors = [remainder(batch, 0.5, order) for order in (1, 2, 3, 4, 5, 8)]
        assert errors == sorted(errors) and errors[0] > 1
    # and epsilon > 1 is not enough for a collapsed batch, whose norm is d / epsilon^2
    collapsed = z[:1].expand(n, d)
    assert remainder(collapsed, 1.5, 40) > remainder(collapsed, 1.5, 20) > 1


def test_matrix_ssl_display_after_eq_18() -> None:
    z1, z2 = naive.unit_rows(9, 4, seed=0), naive.unit_rows(9, 4, seed=1)
    c = z1.T @ z2
    squares, products = 0.0, 0.0
    for i in range(4):
        for j in range(4):
            squares += float(c[i, j]) ** 2
            products += float(c[i, j] * c[j, i])
    assert abs(float((c @ c).trace()) - squares) > 0.1  # as printed
    assert close((c @ c.T).trace(), squares)
    assert close((c @ c).trace(), products)
    symmetric = z1.T @ z1
    assert close((symmetric @ symmetric).trace(), (symmetric**2).sum())


# Section 5: covariance


def test_matrix_ssl_theorem_5_1() -> None:
    d = 3
    cross = torch.cat([eye(d), -eye(d)])  # maximal effective rank, trace 1
    assert close(effective_rank(covariance(cross)), d) and close(covariance(cross).trace(), 1)
    torch.testing.assert_close(covariance(cross), eye(d) / d)
    # the proof that works: tr C = 1 - |E x|^2, so that a trace of 1 forces a zero mean
    for seed in range(5):
        z = naive.unit_rows(7, 4, seed)
        assert close(covariance(z).trace(), 1 - z.mean(0).square().sum())
    # the rank alone does not: the pole as often as the equator has covariance I / 4, mean 1 / 2
    pole = eye(3)[:1].expand(4, 3)
    equator = torch.cat([eye(3)[1:], -eye(3)[1:]])
    tilted = torch.cat([pole, equator])
    torch.testing.assert_close(covariance(tilted), eye(3) / 4)
    assert close(effective_rank(covariance(tilted)), 3) and close(tilted.mean(0).norm(), 0.5)
    assert not close(second_moment(tilted)[0, 0], 1 / 3, 0.1)
    # with 1 / (B - 1) a trace of at least 1 is not enough either; B / (B - 1) is
    line = torch.tensor([[1.0], [1.0], [-1.0]], dtype=torch.float64)
    assert float(covariance(line).trace()) * 3 / 2 > 1 and not close(line.mean(), 0)
    assert close(covariance(cross).trace() * 6 / 5, 6 / 5)


def test_matrix_ssl_lemma_5_2() -> None:
    p, q = naive.unit_rows(4, 6, seed=0), naive.unit_rows(4, 6, seed=1)
    difference = sum(float(x) ** 2 for x in (p - q).flatten())
    assert close(difference, p.square().sum() + q.square().sum() - 2 * (p.T @ q).trace())


def test_matrix_ssl_lemma_c_1() -> None:
    d, n = 6, 200_000
    z = naive.unit_rows(n, d, seed=0)
    assert float(z.mean(0).abs().max()) < 5 / math.sqrt(n)
    assert float((second_moment(z) - eye(d) / d).abs().max()) < 5 / math.sqrt(n)
    assert float(matrix_kl(second_moment(z), eye(d) / d)) < 1e-3
    # a simplex has the same two moments exactly
    frame = simplex_etf(d + 1, d, dtype=torch.float64)
    assert float(frame.mean(0).abs().max()) < 1e-12
    torch.testing.assert_close(second_moment(frame), eye(d) / d)


def test_matrix_ssl_lemma_c_2() -> None:
    z1, z2 = naive.unit_rows(9, 4, seed=0), naive.unit_rows(9, 3, seed=1)
    centring = eye(9) - torch.ones(9, 9, dtype=torch.float64) / 9
    both = np.cov(z1.T.numpy(), z2.T.numpy())  # 1 / (B - 1), the mean taken off
    np.testing.assert_allclose(z1.T @ centring @ z2 / 8, both[:4, 4:], atol=1e-12)


# Section 6: entropy and rank


def test_matrix_ssl_section_6_1() -> None:
    d = 5
    top = float(matrix_entropy(eye(d) / d))
    assert close(top, math.log(d) + 1)
    for seed in range(20):
        a = naive.positive_definite(d, seed)
        assert float(matrix_entropy(a / a.trace())) < top  # with unit trace
        assert float(matrix_entropy(a)) < float(matrix_entropy(eye(d)))  # without
    assert close(matrix_entropy(eye(d)), d) and d > top
    leaf = eye(d).requires_grad_()
    (gradient,) = torch.autograd.grad(matrix_entropy(leaf), leaf)
    assert float(gradient.abs().max()) < 1e-12
    # the unit diagonal belongs to the B x B Gram matrix
    z = naive.unit_rows(8, d, seed=0)
    torch.testing.assert_close((z @ z.T).diagonal(), torch.ones(8, dtype=torch.float64))
    assert not torch.allclose(second_moment(z).diagonal(), torch.ones(d, dtype=torch.float64))
    assert close(second_moment(z).trace(), 1)


# Section F.1: the Taylor order


def test_matrix_ssl_section_f_1_taylor_order() -> None:
    # how far the order-4 logarithm about I is off at the optimum I / d
    for d, printed in ((5, 0.22), (128, 2.80), (2048, 5.54)):
        point = torch.full((1, 1), 1 / d, dtype=torch.float64)  # I / d is d copies of 1 x 1
        error = abs(float(matrix_log(point, method="taylor", order=4)) - math.log(1 / d))
        assert error == pytest.approx(printed, abs=0.005)
        shifted = float(matrix_log(point, method="taylor-shifted", order=4))
        assert abs(shifted - math.log(1 + 1 / d)) < 2e-3
    # for d >= m the order-m cross-entropy to I / d falls all the way to collapse, l = 0
    grid = torch.linspace(0.01, 1, 100, dtype=torch.float64)
    for d, order in ((4, 4), (5, 4), (8, 3), (8, 5)):
        scaled = grid[:, None, None] * eye(d)
        series = matrix_cross_entropy(eye(d) / d, scaled, method="taylor", order=order)
        assert bool((series.diff() > 0).all())
        exact = matrix_cross_entropy(eye(d) / d, scaled)
        assert abs(float(grid[exact.argmin()]) - 1 / d) <= 0.01
    # for d < m it does not
    scaled = grid[:, None, None] * eye(2)
    series = matrix_cross_entropy(eye(2) / 2, scaled, method="taylor", order=4)
    assert not bool((series.diff() > 0).all())
    # expanding log(I + C) keeps the minimum in place
    for d in (4, 5, 8):
        scaled = grid[:, None, None] * eye(d)
        shifted = matrix_cross_entropy(eye(d) / d, scaled, method="taylor-shifted", order=4)
        assert abs(float(grid[shifted.argmin()]) - 1 / d) <= 0.01


# Sections D and E: simplex frames and the ranks of classes


def gram_is_simplex(z: Tensor, tolerance: float = 1e-9) -> bool:
    """Gram = K / (K - 1) (I - 1 1^T / K), definition D.1."""
    k = len(z)
    target = k / (k - 1) * (eye(k) - torch.ones(k, k, dtype=torch.float64) / k)
    return bool(((z @ z.T - target).abs() < tolerance).all())


def test_matrix_ssl_theorem_e_3() -> None:
    # definition D.1 has effective rank K - 1, in K - 1 dimensions already
    for k, d in ((3, 2), (5, 4), (5, 5), (6, 11)):
        frame = simplex_etf(k, d, torch.Generator().manual_seed(k), dtype=torch.float64)
        assert gram_is_simplex(frame) and close(effective_rank(frame @ frame.T), k - 1)
    # zero mean, unit rows: rank K - 1 is the most, and only a simplex itself reaches it
    k, d = 5, 4
    free = naive.unit_rows(k, d, seed=0).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [free],
        max_iter=500,
        tolerance_grad=1e-13,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        z = torch.nn.functional.normalize(free, dim=1)
        loss = 10 * z.mean(0).square().sum() - effective_rank(z @ z.T)
        loss.backward()
        return loss

    optimizer.step(closure)
    z = torch.nn.functional.normalize(free.detach(), dim=1)
    assert close(z.mean(0).norm(), 0, 1e-4) and close(effective_rank(z @ z.T), k - 1, 1e-6)
    assert gram_is_simplex(z, 1e-3)
    # zero mean without equal angles: two pairs of opposite vectors
    a, b = naive.unit_rows(2, 3, seed=1)
    rhombus = torch.stack([a, -a, b, -b])
    assert float(effective_rank(rhombus @ rhombus.T)) < 3 - 0.5 and not gram_is_simplex(rhombus)
    # the converse is false for frames that are not simplices: orthonormal, and icosahedral
    assert close(effective_rank(eye(6) @ eye(6).T), 6)
    golden = (1 + math.sqrt(5)) / 2
    lines = torch.tensor(
        [
            [0, 1, golden],
            [0, 1, -golden],
            [1, golden, 0],
            [1, -golden, 0],
            [golden, 0, 1],
            [-golden, 0, 1],
        ],
        dtype=torch.float64,
    )
    lines = torch.nn.functional.normalize(lines, dim=1)
    cosines = (lines @ lines.T)[~torch.eye(6, dtype=torch.bool)].abs()
    assert close(cosines.min(), cosines.max()) and close(cosines.max(), 1 / math.sqrt(5))
    torch.testing.assert_close(lines.T @ lines, 2 * eye(3))  # equiangular and tight
    assert close(effective_rank(lines @ lines.T), 3)  # not 5


def test_matrix_ssl_theorem_e_4() -> None:
    d = 64
    z = naive.unit_rows(8192, d, seed=0)
    full = float(effective_rank(second_moment(z)))
    assert 63 < full <= 64

    def mean_over_batches(size: int) -> float:
        ranks = [
            float(effective_rank(second_moment(z[i * size : (i + 1) * size]))) for i in range(4)
        ]
        assert max(ranks) <= min(size, d)
        return sum(ranks) / len(ranks)

    means = [mean_over_batches(size) for size in (8, 32, 64, 256, 1024)]
    assert means == sorted(means) and means[-1] < full  # biased downwards at every size
    assert means[1] == pytest.approx(25.2, abs=1.0)
    assert means[-1] > 0.95 * full  # B >> d
    # the Gram matrix of samples has the same rank as the second moment of features
    assert close(effective_rank(z[:50] @ z[:50].T), effective_rank(second_moment(z[:50])), 1e-8)


def class_means(z: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([z[labels == c].mean(0) for c in labels.unique()])


def test_matrix_ssl_theorem_e_5() -> None:
    z = naive.unit_rows(12, 5, seed=0)
    balanced = torch.arange(12) % 3
    centred = z - z.mean(0)

    def ranks(z: Tensor, labels: Tensor) -> tuple[float, float]:
        means = class_means(z, labels)
        apart = means - z.mean(0)
        return float(effective_rank(apart.T @ apart / 3)), float(effective_rank(means @ means.T))

    assert close(*ranks(centred, balanced))
    assert not close(*ranks(z + 0.5, balanced), 1e-2)  # the mean is not zero
    imbalanced = torch.tensor([0] * 8 + [1] * 2 + [2] * 2)
    # the global mean is 0, but not the mean of the means: no error here, as mu_G is subtracted ...
    assert close(*ranks(centred, imbalanced))
    # ... unless the covariance of the class means is centred at their own mean
    means = class_means(centred, imbalanced)
    own = effective_rank(covariance(means))
    assert not close(own, effective_rank(means @ means.T), 1e-2)
    assert close(
        effective_rank(covariance(class_means(centred, balanced))), ranks(centred, balanced)[1]
    )


def test_matrix_ssl_definition_e_1_e_2() -> None:
    z = naive.unit_rows(12, 4, seed=0)

    def parts(labels: Tensor, weights: list[float]) -> Tensor:
        """Within plus between, with the given weight per class."""
        total = torch.zeros(4, 4, dtype=torch.float64)
        for c, weight in enumerate(weights):
            own = z[labels == c]
            offset = own.mean(0) - z.mean(0)
            total += weight * (covariance(own) + torch.outer(offset, offset))
        return total

    balanced = torch.arange(12) % 3
    imbalanced = torch.tensor([0] * 8 + [1] * 3 + [2])
    torch.testing.assert_close(parts(balanced, [1 / 3] * 3), covariance(z))
    torch.testing.assert_close(parts(imbalanced, [8 / 12, 3 / 12, 1 / 12]), covariance(z))
    assert float((parts(imbalanced, [1 / 3] * 3) - covariance(z)).abs().max()) > 0.01
    # a class with one member has no scatter: its effective rank is 0 by convention, not NaN
    ranks = [float(effective_rank(covariance(z[imbalanced == c]))) for c in range(3)]
    assert ranks[2] == 0 and ranks[1] <= 2 and 2 < ranks[0] <= 4
    # equation 26, balanced: the between-class rank is that of the second term above
    offsets = class_means(z, balanced) - z.mean(0)
    assert float(effective_rank(offsets.T @ offsets / 3)) <= 2


# Section B: language models


def token_matrix(weights: Tensor, tokens: Tensor) -> Tensor:
    """sum_i w_i e_i e_i^T."""
    return (tokens.T * weights) @ tokens


def test_matrix_ssl_eq_23() -> None:
    for vocabulary, d in ((6, 4), (3, 5)):  # fewer tokens than dimensions: Q is singular
        tokens = naive.unit_rows(vocabulary, d, seed=d)
        for seed in range(10):
            logits = torch.randn(
                vocabulary, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
            )
            q = torch.softmax(2 * logits, 0)
            right = token_matrix(q, tokens)
            assert close(right.trace(), 1)
            for target in range(vocabulary):
                left = token_matrix(eye(vocabulary)[target], tokens)
                value = float(matrix_cross_entropy(left, right))
                cross_entropy = -math.log(float(q[target]))
                assert 1 - 1e-9 <= value <= 1 + cross_entropy + 1e-9
                # softmax is positive, so that the range of P lies in that of Q: log on the range
                on_range = torch.trace(-left @ log_with_zero_for_zero(right) + right)
                assert close(value, on_range)
    # all mass on a wrong token: log(0) := 0 gives the best value there is, in truth it is +inf
    tokens = eye(3)
    left, wrong = (token_matrix(eye(3)[i], tokens) for i in (0, 1))
    assert close(torch.trace(-left @ log_with_zero_for_zero(wrong) + wrong), 1)
    assert float(matrix_cross_entropy(left, wrong)) == math.inf
    # a ridge orders them again
    right = token_matrix(eye(3)[0], tokens)
    lifted = [float(matrix_cross_entropy(left, q, ridge=1e-3)) for q in (right, wrong)]
    assert lifted[0] < lifted[1] < math.inf
    # equal tokens are synonyms: no price for the other one
    synonyms = torch.stack([tokens[0], tokens[0], tokens[2]])
    left = token_matrix(eye(3)[0], synonyms)
    assert close(matrix_cross_entropy(left, token_matrix(eye(3)[1], synonyms)), 1)


def test_matrix_ssl_eq_20_needs_only_a_determinant() -> None:
    q = PAIR[1]
    _, log_det = np.linalg.slogdet(q)
    assert close(-log_det, 5 * (uniform_cross_entropy(q) - q.trace()))
    assert close(uniform_cross_entropy(q), matrix_kl(eye(5) / 5, q) + matrix_entropy(eye(5) / 5))
