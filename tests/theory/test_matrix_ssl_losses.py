"""What paper 001 (matrix-ssl) says about losses, and what holds: equations 2 to 9, 15 to 21.

The paper writes samples in columns, Z of d x B; here they are rows, so that Z1 Z2^T is z1.T @ z2.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor
from torch.nn.functional import normalize

from likewise import Graph
from likewise.information import (
    coding_rate,
    matrix_cross_entropy,
    matrix_entropy,
    matrix_kl,
)
from likewise.objectives.coding_rate import EMPSSL, TotalCodingRate
from likewise.objectives.contrastive import NTXent
from likewise.objectives.covariance import BarlowTwins, VICReg
from likewise.objectives.entropy_coding import CorInfoMax, MaximumEntropyCoding
from likewise.objectives.matrix_information import MatrixAlignment, MatrixSSL, MatrixUniformity
from likewise.objectives.similarity import BYOLRegression, NegativeCosine
from likewise.objectives.uniformity import UniformityMCE, UniformityMKL
from tests.information.naive import rotation, unit_rows

B = 8
GRAPH = Graph.identity(B).views(2)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Matrices of 8 rows are done before a second thread has woken up."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def eye(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)


def randn(n: int, d: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def both(z1: Tensor, z2: Tensor) -> Tensor:
    """Two views, sample-major."""
    return torch.stack([z1, z2], dim=1).flatten(0, 1)


def near(z: Tensor, seed: int, amount: float = 0.3) -> Tensor:
    """A second view: unit rows close to z."""
    return normalize(z + amount * randn(*z.shape, seed), dim=1)


def close(left: Tensor | float, right: Tensor | float, tolerance: float = 1e-9) -> bool:
    left, right = (x.detach() if isinstance(x, Tensor) else x for x in (left, right))
    return float(left) == pytest.approx(float(right), abs=tolerance)


def second_moment(z: Tensor) -> Tensor:
    return z.T @ z / len(z)


def covariance(z: Tensor, ddof: int = 0) -> Tensor:
    z = z - z.mean(dim=0)
    return z.T @ z / (len(z) - ddof)


def log_det(a: Tensor) -> float:
    sign, value = np.linalg.slogdet(a.numpy())
    assert sign > 0
    return float(value)


def principal(a: Tensor) -> complex:
    """The trace of the principal logarithm, of a matrix that need not be symmetric."""
    return complex(np.trace(scipy.linalg.logm(a.numpy().astype(complex))))


def cross_polytope(d: int) -> Tensor:
    """2 d unit rows of mean 0 whose second moment is I / d."""
    return torch.cat([eye(d), -eye(d)])


def descend(loss: Callable[[Tensor], Tensor], start: Tensor, steps: int = 200) -> Tensor:
    free = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [free],
        max_iter=steps,
        tolerance_grad=1e-12,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(free)
        value.backward()
        return value

    optimizer.step(closure)
    return free.detach()


# Equations 2 to 4: SimSiam, BYOL, Barlow Twins


def test_matrix_ssl_eq_2_3() -> None:
    for seed in range(3):
        z1, z2 = unit_rows(B, 5, seed), unit_rows(B, 5, seed + 10)
        z = both(z1, z2)
        simsiam = -sum(float(z1[i] @ z2[i]) for i in range(B))
        byol = sum(float((z1[i] - z2[i]).square().sum()) for i in range(B))
        assert close(simsiam, -(z1 @ z2.T).trace()) and close(simsiam, -(z1.T @ z2).trace())
        assert close(byol, 2 * B + 2 * simsiam)
        # printed as sums over the batch; a graph has both orders of a pair, and the default is
        # the mean
        assert close(NegativeCosine(reduction="sum")(z, GRAPH), 2 * simsiam)
        assert close(BYOLRegression(reduction="sum")(z, GRAPH), 2 * byol)
        assert close(NegativeCosine()(z, GRAPH), simsiam / B)
        assert close(BYOLRegression()(z, GRAPH), byol / B)
        # rows of another norm: the losses go by directions, the traces do not
        scales = torch.linspace(0.5, 3, B, dtype=torch.float64)[:, None]
        longer = both(scales * z1, scales * z2)
        assert close(NegativeCosine()(longer, GRAPH), simsiam / B)
        assert close(BYOLRegression()(longer, GRAPH), byol / B)
        trace = (scales * z1 * scales * z2).sum()
        distance = (scales * (z1 - z2)).square().sum()
        assert abs(float(trace) + simsiam) > 0.1
        assert abs(float(distance) - float(2 * B - 2 * trace)) > 0.1
    # no stopped branch in the formula: it halves the gradient and leaves the value
    z = z.requires_grad_()
    for objective in (NegativeCosine(), BYOLRegression()):
        free, stopped = objective(z, GRAPH), objective(z, GRAPH, target=z.detach())
        assert close(free, stopped)
        whole, half = (torch.autograd.grad(value, z)[0] for value in (free, stopped))
        assert float(whole.abs().max()) > 1e-3
        torch.testing.assert_close(whole, 2 * half)
    # and nothing in it against collapse: equal rows are a minimum
    collapsed = unit_rows(1, 5, seed=0).expand(2 * B, 5)
    assert close(NegativeCosine()(collapsed, GRAPH), -1)
    assert close(BYOLRegression()(collapsed, GRAPH), 0)


def barlow_twins(c: Tensor, weight: float) -> float:
    """Equation 4, entry by entry of a d x d matrix."""
    total = 0.0
    for i in range(len(c)):
        for j in range(len(c)):
            total += float((1 - c[i, j]) ** 2 if i == j else weight * c[i, j] ** 2)
    return total


def correlation(z1: Tensor, z2: Tensor) -> Tensor:
    d = z1.shape[1]
    return torch.from_numpy(np.corrcoef(z1.T.numpy(), z2.T.numpy())[:d, d:])


def test_matrix_ssl_eq_4() -> None:
    weight = 0.005
    objective = BarlowTwins(weight, epsilon=0.0)
    for seed in range(3):
        z1, z2 = unit_rows(B, 3, seed), unit_rows(B, 3, seed + 10)
        value = barlow_twins(correlation(z1, z2), weight)
        assert close(objective(both(z1, z2), GRAPH), value)
        assert abs(value - barlow_twins(z1.T @ z2, weight)) > 0.1  # the raw product, as printed
        # scale and mean of a column do not matter to a correlation
        moved = 7 * z2 * torch.tensor([1.0, 2.0, 0.1], dtype=torch.float64) + 3
        assert close(objective(both(z1, moved), GRAPH), value)
    # samples of norm 1: the diagonal sums to B for equal views, and to at most B
    for rows, d in ((8, 3), (4, 9)):
        z1, z2 = unit_rows(rows, d, seed=0), unit_rows(rows, d, seed=1)
        assert close((z1.T @ z1).trace(), rows) and float((z1.T @ z2).trace()) < rows
        if rows < d:  # out of reach of d ones
            for other in (z1, z2, near(z1, seed=2)):
                diagonal = (z1.T @ other).diagonal()
                assert float((1 - diagonal).square().sum()) >= (d - rows) ** 2 / d
    # B > d: views that agree and fill the space cost d (1 - B / d)^2; a turn of 75 degrees mends it
    z = cross_polytope(2).repeat(2, 1)
    assert close(barlow_twins(z.T @ z, weight), 2 * (1 - B / 2) ** 2)
    angle = math.acos(0.25)
    turn = torch.tensor(
        [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]],
        dtype=torch.float64,
    )
    assert barlow_twins(z.T @ (z @ turn), weight) < 0.2
    # with correlations it is as it should be
    assert close(objective(both(z, z), GRAPH), 0)
    assert float(objective(both(z, z @ turn), GRAPH)) > 1


# Equations 5 to 9


def eq_5(z: Tensor, graph: Graph, alpha: float, beta: float, gamma: float) -> float:
    cov = np.cov(z.T.numpy())
    variance, off_diagonal, invariance = 0.0, 0.0, 0.0
    for k in range(len(cov)):
        variance += max(0.0, 1 - math.sqrt(cov[k, k]))
        off_diagonal += sum(cov[k, j] ** 2 for j in range(len(cov)) if j != k)
    weights = graph.block(torch.arange(graph.n), dtype=torch.float64)
    for i in range(len(z)):
        for j in range(len(z)):
            invariance += float(weights[i, j] * (z[i] - z[j]).square().sum())
    return alpha * variance + beta * off_diagonal + gamma / len(z) * invariance


def test_matrix_ssl_eq_5() -> None:
    options = {"views": "stacked", "epsilon": 0.0}
    labels = Graph.from_labels(torch.tensor([0, 1, 0, 2, 2, 0, 1, 0] * 2))
    for graph in (GRAPH, Graph.identity(4).views(4), labels):
        zero_diagonal = graph.without_diagonal()
        assert float(zero_diagonal.diagonal().abs().max()) == 0
        pairs = float(zero_diagonal.degrees().sum())
        for seed, scale in ((0, 0.7), (1, 2.0)):  # with the hinge and without
            z = scale * randn(2 * B, 3, seed)
            value = eq_5(z, zero_diagonal, 2.0, 0.3, 5.0)
            # the library divides by the weight of the pairs, the equation by N
            objective = VICReg(5.0 * pairs / len(z), 2.0, 0.3, **options)
            assert close(objective(z, graph), value)
            assert close(objective(z, zero_diagonal), value)  # who is alike to themselves
            assert close(value, eq_5(z, graph, 2.0, 0.3, 5.0))
            terms = objective.terms(z, graph)
            assert (float(terms["variance"]) > 0) == (scale < 1)
    # for two views there are N pairs: the same weight
    assert close(VICReg(5.0, 2.0, 0.3, **options)(z, GRAPH), eq_5(z, GRAPH, 2.0, 0.3, 5.0))


def test_matrix_ssl_eq_6() -> None:
    for rows, d in ((8, 3), (4, 9), (5, 5)):
        z, graph = unit_rows(rows, d, seed=rows), Graph.identity(rows)
        for epsilon in (0.3, 0.5, 2.0):
            scale = d / (rows * epsilon**2)
            value = -log_det(eye(d) + scale * z.T @ z) / 2
            assert close(value, -log_det(eye(rows) + scale * z @ z.T) / 2)  # Sylvester
            assert close(TotalCodingRate(epsilon)(z, graph), value)
            assert value < 0


def test_matrix_ssl_proof_4_4_sign() -> None:
    d, graph = 4, Graph.identity(8)
    uniform, collapsed = cross_polytope(d), unit_rows(1, d, seed=0).expand(8, d)
    objective = TotalCodingRate()
    # equation 6 wants the space filled; with the sign of the proof it would want collapse
    assert float(objective(uniform, graph)) < float(objective(collapsed, graph))
    plus = [log_det(eye(d) + d / (8 * 0.25) * z.T @ z) / 2 for z in (uniform, collapsed)]
    assert plus[0] > plus[1]
    # theorem 4.4 needs the minus: its second step is tr(-log(.)) = 2 L_TCR
    lam = 0.25 / d
    trace = -log_det(eye(d) + second_moment(uniform) / lam)
    assert close(trace, 2 * objective(uniform, graph)) and not close(trace, 2 * plus[0], 1)


def eq_7(z1: Tensor, z2: Tensor, epsilon: float, sign: float) -> float:
    rows, d = z1.shape
    spread = sum(log_det(covariance(z) + epsilon * eye(d)) for z in (z1, z2))
    return -spread + sign * 2 / (epsilon * rows) * float((z1 - z2).square().sum())


def test_matrix_ssl_eq_7() -> None:
    epsilon, d = 0.1, 3
    objective = CorInfoMax(epsilon)
    for seed in range(3):
        z1 = unit_rows(B, d, seed)
        z2 = near(z1, seed + 10)
        assert close(objective(both(z1, z2), GRAPH), eq_7(z1, z2, epsilon, 1))
        # as printed, opposite views are better than equal ones
        assert eq_7(z1, -z1, epsilon, -1) < eq_7(z1, z1, epsilon, -1) - 1
        assert float(objective(both(z1, -z1), GRAPH)) > float(objective(both(z1, z1), GRAPH)) + 1
    # without unit rows it has no lower bound: a shift leaves the covariances alone
    free = CorInfoMax(epsilon, normalize=False)
    values = []
    for t in (0.0, 1.0, 10.0, 100.0):
        z2 = z1 + t
        assert close(free(both(z1, z2), GRAPH), eq_7(z1, z2, epsilon, 1), 1e-6)
        values.append((eq_7(z1, z2, epsilon, -1), float(free(both(z1, z2), GRAPH))))
    assert values[-1][0] < -1e5
    assert values == sorted(values, key=lambda pair: -pair[0])
    assert [right for _, right in values] == sorted(right for _, right in values)


def test_matrix_ssl_eq_8_19() -> None:
    d, mu = 3, 2.5
    for epsilon in (0.5, 1.5):
        c = d / (B * epsilon**2)
        for seed in range(3):
            z1 = unit_rows(B, d, seed)
            z2 = near(z1, seed + 10)
            matrix = eye(d) + c * z1.T @ z2
            assert float((matrix - matrix.T).abs().max()) > 1e-3  # not symmetric
            value = -mu * log_det(matrix)
            # log det = tr log, and equation 19 with MCE(I, Q) = tr(-log Q + Q)
            trace = principal(matrix)
            assert close(trace.imag, 0) and close(-mu * trace.real, value)
            cross_entropy = -trace.real + float(matrix.trace())
            assert close(mu * (cross_entropy - d - c * float((z1 * z2).sum())), value)
            exact = MaximumEntropyCoding(epsilon, mu, logarithm="exact")
            assert close(exact(both(z1, z2), GRAPH), value)
            # the variants of it: the symmetric part, and both branches by themselves
            part = eye(d) + c * (z1.T @ z2 + z2.T @ z1) / 2
            symmetric = MaximumEntropyCoding(epsilon, mu, "symmetric", "exact")
            assert close(symmetric(both(z1, z2), GRAPH), -mu * log_det(part))
            series = MaximumEntropyCoding(epsilon, mu, "symmetric", order=2)
            linear, square = (part - eye(d)).trace(), (part - eye(d)).square().sum()
            assert close(series(both(z1, z2), GRAPH), -mu * (linear - square / 2))
            auto = MaximumEntropyCoding(epsilon, mu, "auto", "exact")
            each = [log_det(eye(d) + c * x.T @ x) for x in (z1, z2)]
            assert close(auto(both(z1, z2), GRAPH), -mu * sum(each) / 2)
            # equal branches: the coding rate, 2 mu times, and a symmetric matrix
            equal = exact(both(z1, z1), GRAPH)
            assert close(equal, 2 * mu * TotalCodingRate(epsilon)(z1, Graph.identity(B)))
            cross_entropy = float(matrix_cross_entropy(eye(d), eye(d) + c * z1.T @ z1))
            assert close(equal, mu * (cross_entropy - d - c * B))


def test_matrix_ssl_eq_8_19_opposite_views() -> None:
    """Eigenvalues on the negative axis: no principal logarithm, whatever the determinant says."""
    mu, epsilon = 1.0, 0.5
    for d in (3, 4):
        z = cross_polytope(d)
        graph = Graph.identity(2 * d).views(2)
        matrix = eye(d) - d / (2 * d * epsilon**2) * z.T @ z
        torch.testing.assert_close(matrix, -3 * eye(d))  # 1 - 1 / epsilon^2
        assert (np.linalg.det(matrix.numpy()) < 0) == (d % 2 == 1)
        assert abs(principal(matrix).imag) > 1
        opposite = both(z, -z)
        if d % 2 == 1:
            with pytest.raises(ValueError, match="not positive"):
                MaximumEntropyCoding(epsilon, mu, logarithm="exact")(opposite, graph)
        with pytest.raises(ValueError, match="not positive definite"):
            MaximumEntropyCoding(epsilon, mu, "symmetric", "exact")(opposite, graph)
        # defined all the same: a polynomial, and the covariances of the branches
        auto = MaximumEntropyCoding(epsilon, mu, "auto", "exact")
        assert close(auto(opposite, graph), auto(both(z, z), graph))
        assert close(auto(opposite, graph), -mu * d * math.log(5))
        for order in (1, 2, 3, 4):
            series = sum((-1) ** (k + 1) * (-4) ** k / k for k in range(1, order + 1))
            value = MaximumEntropyCoding(epsilon, mu, order=order)(opposite, graph)
            assert close(value, -mu * d * series)
        # a larger epsilon brings the eigenvalues above 0 again
        lifted = MaximumEntropyCoding(2.0, mu, logarithm="exact")(opposite, graph)
        assert close(lifted, -mu * d * math.log(0.75))


def test_matrix_ssl_eq_9() -> None:
    views, d, epsilon, mu = 3, 4, 0.7, 0.5
    z = unit_rows(B * views, d, seed=0)
    graph = Graph.identity(B).views(views)
    side_by_side = z.reshape(B, views * d)
    product = side_by_side.T @ side_by_side
    with pytest.raises(RuntimeError, match="must match the size"):  # d x d plus nd x nd
        eye(d) + d / (B * epsilon**2) * product
    concatenated = -mu * log_det(eye(views * d) + views * d / (B * epsilon**2) * product)
    each = [z[v::views] for v in range(views)]
    mean = -mu * sum(log_det(eye(d) + d / (B * epsilon**2) * x.T @ x) for x in each) / views
    rates = {
        kind: EMPSSL(epsilon, 0.0, kind).terms(z, graph)["rate"]
        for kind in ("mean", "concatenated")
    }
    assert close(rates["concatenated"], concatenated) and close(rates["mean"], mean)
    assert abs(concatenated - mean) > 1  # different numbers
    assert close(mean, TotalCodingRate(epsilon, "separate")(z, graph))
    # nor is it a factor and a constant: views that fill the space each on its own, paired by sample
    # or at random, are the same to the mean, but not side by side
    space = cross_polytope(d)
    other = space[torch.randperm(2 * d, generator=torch.Generator().manual_seed(0))]
    paired = torch.stack([space, space, space], dim=1).flatten(0, 1)
    mixed = torch.stack([space, other, other], dim=1).flatten(0, 1)
    values = {
        kind: [float(EMPSSL(epsilon, 0.0, kind)(rows, graph)) for rows in (paired, mixed)]
        for kind in ("mean", "concatenated")
    }
    assert close(*values["mean"])
    assert abs(values["concatenated"][0] - values["concatenated"][1]) > 0.1


# Section 4


def estimated(z: Tensor, temperature: float) -> Tensor:
    """The estimated relation matrix of the proof of proposition 4.3."""
    z = normalize(z, dim=1)
    scores = (z @ z.T / temperature).exp()
    return scores / (scores.sum(dim=1, keepdim=True) - scores.diagonal()[:, None])


def test_matrix_ssl_proposition_4_3_eq_15() -> None:
    relation = GRAPH.without_diagonal().block(torch.arange(2 * B), dtype=torch.float64)
    for seed, temperature in ((0, 0.5), (1, 0.2)):
        z = randn(2 * B, 4, seed)
        guess = estimated(z, temperature)
        # SimCLR is the cross-entropy of the entries ...
        value = -(relation * guess.log()).sum()
        assert close(NTXent(temperature, reduction="sum")(z, GRAPH), value) and float(value) > 1
        # ... whose diagonal, equation 15, is 0 for every z
        assert float((relation.diagonal() * guess.diagonal().log()).abs().sum()) == 0
        # Ghat_ii is no probability: the others sum to 1 without it, and it exceeds 1
        torch.testing.assert_close(
            guess.sum(dim=1) - guess.diagonal(), torch.ones(2 * B, dtype=torch.float64)
        )
        if temperature < 0.3:
            assert float(guess.diagonal().max()) > 1
    # diagonal P and Q: the cross-entropy of the entries lacks tr Q
    p = torch.tensor([0.2, 0.5, 1.3], dtype=torch.float64)
    for scale in (0.5, 1.0, 4.0):
        q = scale * torch.tensor([0.7, 0.1, 0.4], dtype=torch.float64)
        entries = -(p * q.log()).sum()
        assert close(matrix_cross_entropy(p.diag(), q.diag()) - q.sum(), entries)
    # which is not constant: with it P is the minimiser, without it nothing is
    logs = torch.zeros(3, dtype=torch.float64)
    best = descend(lambda x: matrix_cross_entropy(p.diag(), x.exp().diag()), logs)
    torch.testing.assert_close(best.exp(), p, atol=1e-6, rtol=0)
    at = [-float((p * (t * p).log()).sum()) for t in (1.0, 10.0, 100.0)]
    assert at == sorted(at, reverse=True)


def test_matrix_ssl_theorem_4_4() -> None:
    for rows, d in ((8, 3), (4, 9), (7, 1)):
        z, graph = unit_rows(rows, d, seed=rows), Graph.identity(rows)
        for lam in (0.01, 0.3):
            rate = float(TotalCodingRate(math.sqrt(lam * d))(z, graph))
            mce = float(UniformityMCE(lam)(z, graph))
            mkl = float(UniformityMKL(lam)(z, graph))
            # the definitions, equations 16 and 17
            left, right = (1 / d + lam) * eye(d), second_moment(z) + lam * eye(d)
            assert close(mce, matrix_cross_entropy(left, right), 1e-8)
            assert close(mkl, matrix_kl(left, right), 1e-8)
            total = 1 + d * lam
            constant = total * (1 - math.log(lam)), total * math.log(total / (lam * d))
            printed = (constant[0] + 2 * total * rate, constant[1] + 2 * total * rate)
            assert close(mce, constant[0] + 2 / d * total * rate, 1e-8)
            assert close(mkl, constant[1] + 2 / d * total * rate, 1e-8)
            # as printed: for one dimension only
            for value, claim in ((mce, printed[0]), (mkl, printed[1])):
                assert (abs(value - claim) < 1e-8) == (d == 1)
            # rows of any norm: the trace is not 1
            longer = z * torch.linspace(0.5, 2, rows, dtype=torch.float64)[:, None]
            right = second_moment(longer) + lam * eye(d)
            rate = -float(coding_rate(longer, math.sqrt(lam * d)))
            value = -total * math.log(lam) + 2 * total / d * rate
            value += float(second_moment(longer).trace()) + d * lam
            assert close(matrix_cross_entropy(left, right), value, 1e-8)


def test_matrix_ssl_theorem_4_5() -> None:
    for rows, d in ((12, 4), (5, 4), (4, 4)):
        objective, graph = TotalCodingRate(0.5), Graph.identity(rows)
        grams = []
        for seed in range(2):
            best = descend(lambda z: objective(z, graph), randn(rows, d, seed))  # noqa: B023
            z = normalize(best, dim=1)
            torch.testing.assert_close(second_moment(z), eye(d) / d, atol=1e-5, rtol=0)
            assert close(objective(z, graph), -d / 2 * math.log(5), 1e-9)
            grams.append(z @ z.T)
        # unique in Z Z^T (d x d), not in Z: angles between samples are free where B is above d
        if rows != d + 1:
            assert (float((grams[0] - grams[1]).abs().max()) > 1e-2) == (rows > d)
    # no batch is better
    for seed in range(20):
        assert float(objective(unit_rows(rows, d, seed), graph)) > -d / 2 * math.log(5)
    # two axes taken twice, or both ways: the same second moment and value
    graph = Graph.identity(4)
    cross, twice = cross_polytope(2), eye(2).repeat(2, 1)
    for z in (cross, twice):
        torch.testing.assert_close(second_moment(z), eye(2) / 2)
    assert close(objective(cross, graph), objective(twice, graph))
    assert not torch.allclose(cross @ cross.T, twice @ twice.T)


def test_matrix_ssl_theorem_4_5_fewer_rows_than_dimensions() -> None:
    rows, d = 3, 5
    objective, graph = TotalCodingRate(0.5), Graph.identity(rows)
    best = descend(lambda z: objective(z, graph), randn(rows, d, seed=0))
    z = normalize(best, dim=1)
    # I / d is out of reach of rank B; the minimiser is an orthonormal batch
    assert float((second_moment(z) - eye(d) / d).abs().max()) > 0.05
    torch.testing.assert_close(z @ z.T, eye(rows), atol=1e-5, rtol=0)
    values = torch.linalg.eigvalsh(second_moment(z)).flip(0)
    wanted = torch.tensor([1 / rows] * rows + [0.0] * (d - rows), dtype=torch.float64)
    torch.testing.assert_close(values, wanted, atol=1e-5, rtol=0)
    least = float(objective(eye(d)[:rows], graph))
    assert close(objective(z, graph), least) and close(least, -rows / 2 * math.log1p(4 * d / rows))
    assert least > -d / 2 * math.log(5)
    for seed in range(20):
        assert float(objective(unit_rows(rows, d, seed), graph)) > least


def test_matrix_ssl_after_eq_16() -> None:
    d = 5

    def zero_for_zero(q: Tensor) -> float:
        """MCE(I / d, Q), lambda = 0, with the paper's log(0) := 0."""
        values = torch.linalg.eigvalsh(q)
        logs = torch.where(values > 1e-12, values.clamp_min(1e-12).log(), 0.0)
        return float(values.sum() - logs.sum() / d)

    uniform, collapsed = cross_polytope(d), eye(d)[:1].expand(2 * d, d)
    assert close(zero_for_zero(second_moment(uniform)), math.log(d) + 1)  # 2.61
    assert close(zero_for_zero(second_moment(collapsed)), 1)  # lower, and collapsed
    # without the convention: +inf for collapse, and for every batch with B < d
    target = eye(d) / d
    for z in (collapsed, unit_rows(d - 1, d, seed=0), unit_rows(2, d, seed=1)):
        assert float(matrix_cross_entropy(target, second_moment(z))) == math.inf
    # lambda = 0 is possible with B >= d and the logarithm as it is
    for seed in range(5):
        value = matrix_cross_entropy(target, second_moment(unit_rows(9, d, seed)))
        assert math.log(d) + 1 < float(value) < math.inf
    # the library asks for lambda > 0, with which the order is right and B < d is no problem
    with pytest.raises(ValueError, match="regularization is 0"):
        UniformityMCE(0.0)
    with pytest.raises(ValueError, match="regularization is 0"):
        UniformityMKL(0.0)
    graph = Graph.identity(2 * d)
    for lam in (1e-6, 0.01, 1.0):
        for objective in (UniformityMCE(lam), UniformityMKL(lam)):
            assert float(objective(uniform, graph)) < float(objective(collapsed, graph))
            assert math.isfinite(float(objective(unit_rows(2, d, seed=0), Graph.identity(2))))


# Section 5


EXACT = {"logarithm": "exact", "ridge": 0.0}


def cross_covariance(z1: Tensor, z2: Tensor) -> Tensor:
    return (z1 - z1.mean(dim=0)).T @ (z2 - z2.mean(dim=0)) / (len(z1) - 1)


def test_matrix_ssl_eq_20() -> None:
    d, rows = 3, 12
    graph = Graph.identity(rows).views(2)
    for seed in range(3):
        z1 = unit_rows(rows, d, seed)
        z2 = near(z1, seed + 10, 0.1)
        matrix = cross_covariance(z1, z2)
        trace = principal(matrix)
        assert close(trace.imag, 0)
        value = -trace.real / d + float(matrix.trace())
        assert close(MatrixUniformity(**EXACT)(both(z1, z2), graph), value)
        # MKL(I/d || C) + ME(I/d), term by term
        entropy = float(matrix_entropy(eye(d) / d))
        kl = -math.log(d) - trace.real / d - 1 + float(matrix.trace())
        assert close(value, kl + entropy) and close(entropy, math.log(d) + 1)
        # equal views: the matrix is a covariance, and everything is as in section 3
        same = MatrixUniformity(**EXACT)(both(z1, z1), graph)
        own = covariance(z1, ddof=1)
        assert close(same, matrix_cross_entropy(eye(d) / d, own))
        assert close(same, matrix_kl(eye(d) / d, own) + entropy)
    # the least value is at views that are the same and fill the sphere
    z = cross_polytope(d)
    best = MatrixUniformity(**EXACT, ddof=0)(both(z, z), Graph.identity(2 * d).views(2))
    assert close(best, math.log(d) + 1)


def test_matrix_ssl_eq_20_unrelated_views() -> None:
    d, rows, draws = 5, 32, 400
    z1, z2 = (unit_rows(rows * draws, d, seed).reshape(draws, rows, d) for seed in (0, 1))
    z1, z2 = z1 - z1.mean(dim=1, keepdim=True), z2 - z2.mean(dim=1, keepdim=True)
    matrices = z1.mT @ z2 / (rows - 1)
    values = torch.linalg.eigvals(matrices)
    on_axis = ((values.imag.abs() < 1e-12) & (values.real <= 0)).any(dim=1)
    negative = torch.linalg.det(matrices) < 0
    # most have no principal logarithm; by symmetry every other has a negative determinant
    assert 0.7 < float(on_axis.double().mean()) < 0.95
    assert 0.4 < float(negative.double().mean()) < 0.6
    assert bool((on_axis | ~negative).all())
    assert not torch.allclose(matrices, matrices.mT)


def test_matrix_ssl_eq_20_variants() -> None:
    d, rows = 5, 32
    graph = Graph.identity(rows).views(2)
    z1 = unit_rows(rows, d, seed=0)
    flipped = z1 * torch.tensor([-1.0, 1, 1, 1, 1], dtype=torch.float64)
    z = both(z1, flipped)
    matrix = cross_covariance(z1, flipped)
    assert float(torch.linalg.det(matrix)) < 0
    with pytest.raises(ValueError, match="not positive"):
        MatrixUniformity(**EXACT)(z, graph)
    with pytest.raises(ValueError, match="not positive definite"):
        MatrixUniformity("symmetric", **EXACT)(z, graph)
    target = eye(d) / d
    # symmetric part and a ridge, on both matrices
    part, ridge = (matrix + matrix.T) / 2, 1.0
    lifted = MatrixUniformity("symmetric", logarithm="exact", ridge=ridge)
    assert close(
        lifted(z, graph), matrix_cross_entropy(target + ridge * eye(d), part + ridge * eye(d))
    )
    # the covariances of the branches themselves
    z2 = unit_rows(rows, d, seed=1)
    for other in (flipped, z2):
        each = [matrix_cross_entropy(target, covariance(x, ddof=1)) for x in (z1, other)]
        assert close(MatrixUniformity("auto", **EXACT)(both(z1, other), graph), sum(each) / 2)
    # the polynomial of log(I + C)
    log = sum((-1) ** (k + 1) / k * torch.linalg.matrix_power(matrix, k) for k in range(1, 5))
    series = ((matrix + eye(d)) - (target + eye(d)) @ log).trace()
    assert close(MatrixUniformity()(z, graph), series)


def test_matrix_ssl_after_eq_20() -> None:
    d, epsilon = 3, 0.1
    traces: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(4):
        z1, z2 = unit_rows(B, d, seed), unit_rows(B, d, seed + 10)
        for is_centered in (False, True):
            moment = covariance if is_centered else second_moment
            matrices = [moment(x) + epsilon * eye(d) for x in (z1, z2)]
            terms = CorInfoMax(epsilon, centered=is_centered).terms(both(z1, z2), GRAPH)
            first_two = float(terms["covariance"])
            cross_entropies = [float(matrix_cross_entropy(eye(d) / d, q)) for q in matrices]
            trace = [float(q.trace()) for q in matrices]
            # -log det Q = d (MCE(I/d, Q) - tr Q)
            assert close(first_two, -sum(log_det(q) for q in matrices))
            assert close(first_two, d * (sum(cross_entropies) - sum(trace)))
            assert abs(first_two - sum(cross_entropies)) > 0.1  # as the text has it
            traces[is_centered] += trace
    # uncentred unit rows have a constant trace, and then it is a factor and a constant ...
    assert max(abs(t - 1 - d * epsilon) for t in traces[False]) < 1e-12
    # ... but the covariance of equation 7 is centred, where it is none; nor is it without norms
    assert max(traces[True]) - min(traces[True]) > 0.05
    free = CorInfoMax(epsilon, centered=False, normalize=False)
    cross_entropies = []
    for scale in (1.0, 2.0):
        q = second_moment(scale * z1) + epsilon * eye(d)
        value = free.terms(both(scale * z1, scale * z1), GRAPH)["covariance"]
        assert close(value, 2 * d * (matrix_cross_entropy(eye(d) / d, q) - q.trace()))
        cross_entropies.append((float(value), float(matrix_cross_entropy(eye(d) / d, q))))
    assert cross_entropies[1][0] < cross_entropies[0][0]  # larger is better for the one,
    assert cross_entropies[1][1] > cross_entropies[0][1]  # worse for the other


def test_matrix_ssl_eq_21() -> None:
    d, rows = 3, 12
    graph = Graph.identity(rows).views(2)
    objective = MatrixAlignment(**EXACT)
    for seed in range(3):
        z1, z2 = unit_rows(rows, d, seed), unit_rows(rows, d, seed + 10)
        c1, c2 = covariance(z1, ddof=1), covariance(z2, ddof=1)
        value = objective(both(z1, z2), graph)
        assert float(value) > 1e-3 and close(value, matrix_kl(c1, c2))
        assert close(value, matrix_cross_entropy(c1, c2) - matrix_entropy(c1))
        # with the first branch stopped the entropy is a constant: the same gradient in the second
        z = both(z1, z2).requires_grad_()
        (kl,) = torch.autograd.grad(objective(z, graph), z)
        stopped = MatrixAlignment("cross-entropy", **EXACT)(z, graph)
        assert close(stopped, matrix_cross_entropy(c1, c2))
        (cross,) = torch.autograd.grad(stopped, z)
        torch.testing.assert_close(cross[1::2], kl[1::2])
        assert float(cross[0::2].abs().max()) == 0 and float(kl[0::2].abs().max()) > 1e-4
    # solutions: every Z2 with the covariance of Z1, so that the pairing does not matter
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(0))
    shuffled = both(z1, z1[order])
    assert float(NegativeCosine()(shuffled, graph)) > -0.9
    assert close(objective(both(z1, z1), graph), 0) and close(objective(shuffled, graph), 0)
    assert close(objective(both(z1, z2[order]), graph), objective(both(z1, z2), graph))
    # also rotations among the samples that keep the mean
    inner = torch.linalg.qr(torch.cat([torch.ones(rows, 1).double(), randn(rows, 11, 0)], 1))[0]
    turn = eye(rows)
    turn[1:, 1:] = rotation(rows - 1, seed=1)
    turned = inner @ turn @ inner.T @ z1
    assert float((turned - z1).abs().max()) > 0.1
    assert close(MatrixAlignment(**EXACT, normalize=False)(both(z1, turned), graph), 0, 1e-8)
    # and descent ends in equal covariances, wherever the rows are
    plain = MatrixAlignment(**EXACT, normalize=False)
    best = descend(lambda x: plain(both(z1, x), graph), z2)
    torch.testing.assert_close(covariance(best), covariance(z1), atol=1e-5, rtol=0)
    assert float((best - z1).abs().max()) > 0.1
    # what ties pairs is the cross-covariance of the other term
    together = MatrixSSL(logarithm="exact", ridge=1.0)
    values = [together.terms(z, graph) for z in (both(z1, z1), shuffled)]
    assert close(values[0]["alignment"], 0) and close(values[1]["alignment"], 0)
    assert float(values[1]["uniformity"]) > float(values[0]["uniformity"]) + 0.01
    loose = MatrixSSL(covariance="auto", logarithm="exact", ridge=1.0)
    assert close(loose(both(z1, z1), graph), loose(shuffled, graph))


def test_matrix_ssl_section_5_1() -> None:
    d, epsilon, mu = 4, 0.3, 1.5
    norms = []
    for seed in range(3):
        z1 = unit_rows(B, d, seed)
        z2 = near(z1, seed + 10)
        z = both(z1, z2)
        distance = float((z1 - z2).square().sum())
        # what is constant is |Z|_F^2 = B, not |Z Z^T|_F
        assert close(z1.square().sum(), B)
        norms.append(float((z1.T @ z1).norm()))
        assert close(distance, 2 * B - 2 * (z1.T @ z2).trace())
        # every method has + |Z1 - Z2|^2 in what it minimises (a graph has each pair twice)
        assert close(NegativeCosine(reduction="sum")(z, GRAPH), distance - 2 * B)
        assert close(BYOLRegression(reduction="sum")(z, GRAPH), 2 * distance)
        vicreg = VICReg(1.0, reduction="sum").terms(z, GRAPH)["invariance"]
        assert close(vicreg, 2 * distance)
        alignment = CorInfoMax(epsilon).terms(z, GRAPH)["invariance"]
        assert close(alignment, 2 / (epsilon * B) * distance)
        linear = MaximumEntropyCoding(epsilon, mu, order=1)(z, GRAPH)  # the last term of eq. 19
        c = d / (B * epsilon**2)
        assert close(linear, mu * c * (distance / 2 - B))
    assert max(norms) - min(norms) > 0.1
    collapsed = z1[:1].expand(B, d)
    assert close((collapsed.T @ collapsed).norm(), B)
    assert close((cross_polytope(d).T @ cross_polytope(d)).norm(), B / math.sqrt(d))
    # minimising ends in Z1 = Z2; with the printed sign in Z1 = -Z2
    start = unit_rows(B, d, seed=20)
    for objective in (NegativeCosine(), BYOLRegression()):
        together = descend(lambda x: objective(both(z1, x), GRAPH), start)  # noqa: B023
        torch.testing.assert_close(normalize(together, dim=1), z1, atol=1e-4, rtol=0)
        apart = descend(lambda x: -objective(both(z1, x), GRAPH), start)  # noqa: B023
        torch.testing.assert_close(normalize(apart, dim=1), -z1, atol=1e-4, rtol=0)


def test_matrix_ssl_eq_20_prefers_a_turned_plane() -> None:
    """With branches in one plane, turned by 90 degrees, C has the eigenvalues +-i / 2: tr C^2, to
    which the loss reduces near 0, is then -1/2, while C = I / d gives 1 / d."""
    d = 16
    angles = torch.arange(4 * d, dtype=torch.float64) * (2 * math.pi / (4 * d))
    plane = torch.zeros(4 * d, d, dtype=torch.float64)
    plane[:, 0], plane[:, 1] = angles.cos(), angles.sin()
    turned = torch.zeros_like(plane)
    turned[:, 0], turned[:, 1] = -angles.sin(), angles.cos()
    full = torch.cat([eye(d), -eye(d), eye(d), -eye(d)])
    graph = Graph.identity(4 * d).views(2)

    def value(z1: Tensor, z2: Tensor, covariance: str) -> float:
        objective = MatrixUniformity(covariance, ddof=0)  # type: ignore[arg-type]
        return float(objective(both(z1, z2), graph))

    assert value(plane, turned, "cross") < value(full, full, "cross") - 0.1
    assert value(plane, turned, "symmetric") > value(full, full, "symmetric") + 0.01
    assert value(plane, plane, "symmetric") > value(full, full, "symmetric") + 0.01


def partly_aligned(share: float, r: int, d: int) -> tuple[Tensor, Tensor]:
    """Unit rows of two views that agree on r of d dimensions, which hold `share` of their energy,
    and are independent of one another on the others: all combinations, each once."""
    same = torch.cat([eye(r), -eye(r)]) * share**0.5
    noise = torch.cat([eye(d - r), -eye(d - r)]) * (1 - share) ** 0.5
    i, a, b = torch.meshgrid(
        torch.arange(len(same)), torch.arange(len(noise)), torch.arange(len(noise)), indexing="ij"
    )
    first, second = ([same[i.flatten()], noise[j.flatten()]] for j in (a, b))
    return torch.cat(first, 1), torch.cat(second, 1)


def test_matrix_ssl_eq_22_wants_noise_where_few_dimensions_can_agree() -> None:
    """The cross-covariance has its least loss at I / d. Where views can agree on r < d dimensions
    only, rows of length 1 have to put 1 - r / d of their energy where views differ."""
    r, d = 2, 8
    shares = torch.linspace(0.05, 1.0, 20).tolist()

    def best(objective: MatrixSSL | MaximumEntropyCoding) -> float:
        values = []
        for share in shares:
            z1, z2 = partly_aligned(share, r, d)
            values.append(float(objective(both(z1, z2), Graph.identity(len(z1)).views(2))))
        return shares[int(np.argmin(values))]

    assert best(MatrixSSL(ddof=0)) == pytest.approx(r / d)
    assert best(MatrixSSL(covariance="symmetric", ddof=0)) == pytest.approx(r / d)
    # MEC's series has its greatest value where an eigenvalue is 1: at a share of 0.06 r.
    assert best(MaximumEntropyCoding(covariance="symmetric")) == pytest.approx(0.06 * r, abs=0.04)
    # The logarithm itself has no such limit, nor has the series with a larger epsilon.
    assert best(MaximumEntropyCoding(covariance="symmetric", logarithm="exact")) == 1.0
    coarse = MaximumEntropyCoding(distortion=1 / r, covariance="symmetric")
    assert best(coarse) == 1.0
