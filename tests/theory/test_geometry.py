"""What paper 004 (geometry) says about InfoNCE, projectors and augmentations, and what holds.

Rows are samples: h is (N, d_enc), the projector W is (d_enc, d_proj) as in the paper, and W^T h_i
is row i of h @ W. Its Ker(W) is meant as the kernel of W^T, directions of the encoder's space.
"""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.linalg import expm, null_space
from scipy.ndimage import rotate
from torch import Tensor

from likewise import Graph
from likewise.information import effective_rank
from likewise.objectives import DecoupledContrastive, InfoNCE

BETAS = [0.5, 2.0, 10.0]


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


def close(left: Tensor | float, right: Tensor | float, tolerance: float = 1e-10) -> bool:
    return float(left) == pytest.approx(float(right), abs=tolerance)


def pair(first: Tensor, second: Tensor) -> tuple[Tensor, Graph]:
    """Both views of every sample in neighbouring rows, and the graph of two views."""
    return torch.stack([first, second], dim=1).flatten(0, 1), Graph.identity(len(first)).views(2)


def info_nce(first: Tensor, second: Tensor, beta: float, similarity: str = "cosine") -> float:
    """Eq. 1, by the library (cosine: the projector's outputs are normalised)."""
    return float(InfoNCE(beta, similarity=similarity)(*pair(first, second)))


def log_partition(first: Tensor, second: Tensor, beta: float) -> float:
    """The mean of log Z_i, by the library."""
    return float(InfoNCE(beta).terms(*pair(first, second))["repulsion"])


def invariance(first: Tensor, second: Tensor) -> float:
    """L_inv of eq. 4, by the library."""
    return float(InfoNCE(1.0).terms(*pair(first, second))["attraction"])


def negatives(first: Tensor, second: Tensor) -> Tensor:
    """The 2(N - 1) rows of B_-i for every i: (N, 2(N - 1), d)."""
    both = torch.stack([first, second], dim=1)
    others = [torch.cat([both[:i], both[i + 1 :]]).flatten(0, 1) for i in range(len(both))]
    return torch.stack(others)


def softmax_parts(first: Tensor, second: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """E_D[f] and H(D) for every i."""
    others = negatives(first, second)
    p = torch.softmax(beta * torch.einsum("id,ild->il", first, others), dim=1)
    return torch.einsum("il,ild->id", p, others), torch.special.entr(p).sum(1)


def upper_bound(first: Tensor, second: Tensor, nearest: Tensor, beta: float) -> float:
    """L_Upper of eq. 3 with the negatives h* given in the projector's space."""
    sim = torch.nn.functional.cosine_similarity
    parts = -sim(first, second) + sim(first, nearest)
    return float(beta * parts.mean() + math.log(2 * (len(first) - 1)))


def choose(first: Tensor, second: Tensor, scores: Tensor) -> Tensor:
    """For every i the negative with the largest score."""
    return negatives(first, second)[torch.arange(len(first)), scores.argmax(1)]


def most_similar(first: Tensor, second: Tensor) -> Tensor:
    """W^T h*: the argmax of Sim, as in proposition 3.1."""
    others = unit(negatives(first, second))
    return choose(first, second, torch.einsum("id,ild->il", unit(first), others))


def largest_product(first: Tensor, second: Tensor) -> Tensor:
    """W^T h* as table 1 prints it: the argmax of h1^T W W^T h."""
    return choose(first, second, torch.einsum("id,ild->il", first, negatives(first, second)))


def embedded(seed: int, n: int = 6, encoder: int = 8, projector: int = 3) -> tuple[Tensor, ...]:
    """h1, h2 and W."""
    first = normal(n, encoder, seed=seed)
    second = first + 0.5 * normal(n, encoder, seed=100 + seed)
    return first, second, normal(encoder, projector, seed=200 + seed)


# Section 3 and appendix C: InfoNCE


@pytest.mark.parametrize("beta", BETAS)
def test_geometry_proposition_c_1(beta: float) -> None:
    first, second = unit(normal(2, 6, 4, seed=0))
    expected, entropy = softmax_parts(first, second, beta)
    attraction = -beta * (first * second).sum(1)
    repulsion = beta * (first * expected).sum(1)
    value = info_nce(first, second, beta)
    assert close(value, (attraction + repulsion + entropy).mean())
    # As printed: the middle term with a minus.
    printed = float((attraction - repulsion + entropy).mean())
    assert close(value - printed, 2 * repulsion.mean()) and abs(value - printed) > 0.05


@pytest.mark.parametrize("beta", BETAS)
def test_geometry_eq_16_17(beta: float) -> None:
    first, second = unit(normal(2, 5, 4, seed=1))

    def slope(inverse_temperature: float) -> float:
        expected, _ = softmax_parts(first, second, inverse_temperature)
        return float((first * expected).sum(1).mean())

    step = 1e-5
    ends = [log_partition(first, second, beta + sign * step) for sign in (1, -1)]
    assert close((ends[0] - ends[1]) / (2 * step), slope(beta), 1e-7)
    integral, _ = quad(slope, 0, beta)
    assert close(log_partition(first, second, beta), integral + math.log(2 * 4), 1e-8)
    assert close(log_partition(first, second, 1e-12), math.log(2 * 4))


def mlp(h: Tensor) -> Tensor:
    weights = [normal(8, 16, seed=301), normal(16, 3, seed=302)]
    return torch.tanh(torch.relu(h @ weights[0] + 0.3)) @ weights[1]


@pytest.mark.parametrize("projector", ["linear", "mlp"])
@pytest.mark.parametrize("beta", [0.1, 2.0, 20.0, 500.0])
def test_geometry_proposition_3_1(beta: float, projector: str) -> None:
    for seed in range(10):
        first, second, weight = embedded(seed)
        if projector == "mlp":
            first, second = mlp(first), mlp(second)
        else:
            first, second = first @ weight, second @ weight
        bound = upper_bound(first, second, most_similar(first, second), beta)
        gap = bound - info_nce(first, second, beta)
        # An inequality, also in eq. 18, and never off by more than log 2(N - 1).
        assert 0 < gap < math.log(2 * 5) + 1e-9


def test_geometry_proposition_3_1_ends() -> None:
    first, second, weight = embedded(0)
    first, second = first @ weight, second @ weight
    nearest = most_similar(first, second)
    gap = upper_bound(first, second, nearest, 1e5) - info_nce(first, second, 1e5)
    assert close(gap, math.log(2 * 5), 1e-6)
    # Equal negatives: eq. 18's "=" is reached.
    same = torch.ones(6, 3, dtype=torch.float64)
    assert close(upper_bound(same, same, most_similar(same, same), 2.0), info_nce(same, same, 2.0))


def test_geometry_table_1() -> None:
    # A short negative nearby and a long one far off: the product prefers the long one.
    first = torch.tensor([[1.0, 0.0], [0.1, 0.01], [1.0, 5.0]], dtype=torch.float64)
    second = first.clone()
    assert torch.equal(largest_product(first, second)[0], first[2])
    assert torch.equal(most_similar(first, second)[0], first[1])
    excess = []
    for one, two in [(first, second), *map(long_and_short, range(20))]:
        value = info_nce(one, two, 10.0)
        assert value <= upper_bound(one, two, most_similar(one, two), 10.0)
        excess.append(value - upper_bound(one, two, largest_product(one, two), 10.0))
    assert excess[0] > 0.5 and sum(e > 0 for e in excess[1:]) >= 3


def long_and_short(seed: int) -> tuple[Tensor, Tensor]:
    first, second, weight = embedded(seed)
    lengths = (1.5 * normal(2, 6, 1, seed=400 + seed)).exp()
    return lengths[0] * (first @ weight), lengths[1] * (second @ weight)


def column_projection(weight: Tensor) -> Tensor:
    return weight @ torch.linalg.solve(weight.T @ weight, weight.T)


@pytest.mark.parametrize("orthonormal", [True, False])
def test_geometry_eq_8_9(orthonormal: bool) -> None:
    first, second, weight = embedded(3)
    if orthonormal:
        weight = torch.linalg.qr(weight).Q
    beta, constant = 2.0, math.log(2 * 5)

    def eq_8(first: Tensor, second: Tensor) -> float:
        scores = torch.einsum("id,ild->il", unit(first @ weight), unit_negatives(first, second))
        displacement = second - choose(first, second, scores)
        return float(-beta * (displacement * (first @ weight @ weight.T)).sum(1).mean()) + constant

    def unit_negatives(first: Tensor, second: Tensor) -> Tensor:
        return unit(negatives(first, second) @ weight)

    def eq_3(first: Tensor, second: Tensor) -> float:
        first, second = first @ weight, second @ weight
        return upper_bound(first, second, most_similar(first, second), beta)

    scaled = [h / (h @ weight).norm(dim=1, keepdim=True) for h in (first, second)]
    assert close(eq_8(*scaled), eq_3(*scaled))
    assert info_nce(scaled[0] @ weight, scaled[1] @ weight, beta) < eq_8(*scaled)
    # Without unit outputs they are two numbers, whatever W is.
    assert abs(eq_8(first, second) - eq_3(first, second)) > 0.1

    printed, onto = weight @ weight.T, column_projection(weight)
    assert torch.allclose(onto @ onto, onto) and torch.allclose(onto @ weight, weight)
    assert torch.allclose(printed @ printed, printed) == orthonormal
    assert torch.allclose(printed, onto) == orthonormal


def test_geometry_appendix_c() -> None:
    first, second = unit(normal(2, 6, 4, seed=0))
    nearest = most_similar(first, second)
    entropies = []
    for beta in (1.0, 10.0, 100.0, 1e4):
        expected, entropy = softmax_parts(first, second, beta)
        entropies.append(float(entropy.mean()))
        # H from the library's log Z (eq. 15).
        products = beta * (first * expected).sum(1).mean()
        assert close(log_partition(first, second, beta) - products, entropy.mean(), 1e-8)
    assert sorted(entropies, reverse=True) == entropies and entropies[-1] < 1e-8
    assert torch.allclose(expected, nearest, atol=1e-8)
    hardest = ((first * nearest).sum(1) - (first * second).sum(1)).mean()
    assert close(info_nce(first, second, 1e4) / 1e4, hardest, 1e-8)


def test_geometry_appendix_c_ties() -> None:
    """Two equal views of every sample: the nearest negative is there twice, H -> log 2."""
    first = unit(normal(6, 4, seed=0))
    _, entropy = softmax_parts(first, first, 1e4)
    assert torch.allclose(entropy, torch.full_like(entropy, math.log(2)))
    nearest = (first * most_similar(first, first)).sum(1).mean()
    assert close(log_partition(first, first, 1e4) - 1e4 * nearest, math.log(2), 1e-6)


def test_geometry_appendix_c_inverse_temperature() -> None:
    z, graph = pair(*normal(2, 6, 4, seed=0))
    for beta in BETAS:
        value = InfoNCE(beta, symmetric=True)(z, graph)
        assert close(value, DecoupledContrastive(temperature=1 / beta)(z, graph))


# Section 4: the invariance term


def in_kernel(weight: Tensor, n: int, seed: int) -> Tensor:
    """n random rows of Ker(W^T)."""
    basis = torch.from_numpy(null_space(weight.T.numpy()))
    return normal(n, basis.shape[1], seed=seed) @ basis.T


def parallel(first: Tensor, second: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(first, second).abs() > 1 - 1e-6


def test_geometry_proposition_4_1() -> None:
    first, _, weight = embedded(0)
    # The kernel of W itself lies in the projector's space and cannot hold v.
    assert null_space(weight.numpy()).shape[0] == 3 != first.shape[1]
    second = first + in_kernel(weight, 6, seed=1)
    assert not parallel(first, second).any()
    assert close(invariance(first @ weight, second @ weight), -1)
    # "Only if" fails: h2 = c h1 + kernel, c > 0, is as invariant, and v is not in the kernel.
    scales = normal(6, 1, seed=2).exp()
    second = scales * first + in_kernel(weight, 6, seed=3)
    assert not parallel(first, second).any()
    assert ((second - first) @ weight).norm(dim=1).min() > 1e-2
    assert close(invariance(first @ weight, second @ weight), -1)
    # c < 0 is the maximum; one sample that is off the line is enough to miss the minimum.
    opposite = -scales * first + in_kernel(weight, 6, seed=3)
    assert close(invariance(first @ weight, opposite @ weight), 1)
    second[0] += 0.1 * normal(8, seed=4)
    assert invariance(first @ weight, second @ weight) > -1 + 1e-5
    # W^T h1 = 0 has no direction: the library calls it similar to nothing.
    first, second = in_kernel(weight, 6, seed=5), in_kernel(weight, 6, seed=6)
    assert close(invariance(0 * (first @ weight), second @ weight), 0)


@pytest.mark.parametrize("projector", [1, 2, 5])
def test_geometry_proposition_4_1_if_and_only_if(projector: int) -> None:
    """1 - Sim^2 is the relative size of W^T (h2 - c h1) at its best c, and c has Sim's sign."""
    for seed in range(10):
        first, second, weight = embedded(seed, projector=projector)
        a, b = first @ weight, second @ weight
        c = (a * b).sum(1) / a.square().sum(1)
        rest = ((second - c[:, None] * first) @ weight).norm(dim=1) / b.norm(dim=1)
        for i in range(6):
            similarity = -invariance(a[i : i + 1], b[i : i + 1])
            assert close(1 - similarity**2, rest[i] ** 2, 1e-9)
            assert (c[i] > 0) == (similarity > 0)


@pytest.mark.parametrize(("rank", "left"), [(1, 8), (24, 8), (25, 7), (31, 1), (32, 0)])
def test_geometry_proposition_4_2(rank: int, left: int) -> None:
    """d_enc = 32, d_proj = 8: directions of rank up to d_enc - d_proj cost W nothing."""
    moves = normal(40, rank, seed=0) @ normal(rank, 32, seed=1)
    assert np.linalg.matrix_rank(moves) == rank
    basis = torch.from_numpy(null_space(moves.numpy(), rcond=1e-10))
    weight = basis @ normal(basis.shape[1], 8, seed=2)
    # The widest W with V in Ker(W^T): rank(W) <= d_enc - rank(V).
    assert np.linalg.matrix_rank(weight) == left == min(8, 32 - rank)
    first = normal(40, 32, seed=3)
    value = invariance(first @ weight, (first + moves) @ weight)
    assert close(value, -1 if left else 0)


def test_geometry_proposition_4_2_needs_4_1() -> None:
    """rank(V) = d_enc, and a projector of full rank is invariant all the same."""
    first, weight = normal(12, 8, seed=0), normal(8, 3, seed=1)
    scales = 2 * normal(12, 1, seed=2).exp()
    second = scales * first + in_kernel(weight, 12, seed=3)
    assert np.linalg.matrix_rank(second - first) == 8
    assert np.linalg.matrix_rank(weight) == 3
    assert close(invariance(first @ weight, second @ weight), -1)
    # The rank that counts is that of h2 - c h1.
    assert np.linalg.matrix_rank((second - scales * first).numpy(), tol=1e-8) == 8 - 3


def test_geometry_proposition_4_3() -> None:
    first, _, weight = embedded(0)
    generator = in_kernel(weight, 8, seed=1).T @ normal(8, 8, seed=2) / 8
    # The columns of G are in Ker(W^T); those of its powers follow.
    for power in range(1, 6):
        assert (weight.T @ torch.linalg.matrix_power(generator, power)).abs().max() < 1e-12
    for strength in (0.1, 1.0, 3.0):
        moved = first @ torch.from_numpy(expm(strength * generator.numpy())).T
        assert not parallel(first, moved).any()
        assert torch.allclose(moved @ weight, first @ weight, atol=1e-9)
        assert close(invariance(first @ weight, moved @ weight), -1)


def test_geometry_proposition_4_3_only_if() -> None:
    """A projector to one dimension and a rotation that keeps the sign: minimal, with W^T G != 0."""
    weight = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    generator = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    angles = torch.linspace(-1.0, 0.5, 7, dtype=torch.float64)
    first = torch.stack([angles.cos(), angles.sin()], dim=1)
    second = first @ torch.from_numpy(expm(0.8 * generator.numpy())).T
    assert not parallel(first, second).any()
    assert (weight.T @ generator).abs().max() == 1
    assert close(invariance(first @ weight, second @ weight), -1)
    # What is necessary: h2 - c h1 in Ker(W^T) for a c > 0.
    c = (second @ weight) / (first @ weight)
    assert c.min() > 0 and ((second - c * first) @ weight).abs().max() < 1e-12
    # Where the sign is not kept, it is not minimal.
    turned = first @ torch.from_numpy(expm(2.0 * generator.numpy())).T
    assert invariance(first @ weight, turned @ weight) > 0


def test_geometry_appendix_b_eq_12() -> None:
    generator = np.array([[0.0, -1.0], [1.0, 0.0]])
    for angle in (-2.0, 0.3, math.pi):
        c, s = math.cos(angle), math.sin(angle)
        assert np.allclose(expm(angle * generator), [[c, -s], [s, c]])
    rng = np.random.default_rng(0)
    generator, x = rng.normal(size=(5, 5)), rng.normal(size=5)
    steps = 0.01 * 0.5 ** np.arange(5)
    errors = [np.linalg.norm(expm(e * generator) @ x - (x + e * generator @ x)) for e in steps]
    # O(eps^2), with the second-order term in front.
    orders = np.diff(np.log(errors)) / np.diff(np.log(steps))
    assert np.allclose(orders, 2, atol=0.05)
    assert errors[-1] / steps[-1] ** 2 == pytest.approx(
        np.linalg.norm(generator @ generator @ x) / 2, rel=0.01
    )


# Section 5: projectors that are not linear


class Relu:
    """A ReLU MLP of the given widths, biased or not, and its linear map on the region of h."""

    def __init__(self, *widths: int, bias: float = 0.0, slope: float = 0.0, seed: int = 0) -> None:
        pairs = zip(widths, widths[1:], strict=False)
        self.weights = [normal(*shape, seed=seed + i) for i, shape in enumerate(pairs)]
        self.biases = [bias * normal(w.shape[1], seed=50 + seed) for w in self.weights]
        self.slope = slope

    def __call__(self, h: Tensor) -> Tensor:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = torch.nn.functional.leaky_relu(h @ weight + bias, self.slope)
        return h @ self.weights[-1] + self.biases[-1]

    def region(self, h: Tensor) -> tuple[Tensor, tuple[bool, ...]]:
        """W_omega of one h, and the pattern of active units that names omega."""
        product, signs = torch.eye(len(h), dtype=h.dtype), []
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            before = h @ weight + bias
            gate = torch.where(before > 0, 1.0, self.slope).to(h.dtype)
            product, h = product @ weight * gate, before * gate
            signs += (before > 0).tolist()
        return product @ self.weights[-1], tuple(signs)


@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_geometry_eq_11(slope: float) -> None:
    network = Relu(6, 10, 10, 3, slope=slope)
    regions = set()
    for h in normal(30, 6, seed=0):
        weight, region = network.region(h)
        regions.add(region)
        assert torch.allclose(network(h), h @ weight)
        assert torch.allclose(torch.autograd.functional.jacobian(network, h), weight.T)
        # A region is a cone.
        assert network.region(7.5 * h)[1] == region
        assert torch.allclose(network(7.5 * h), 7.5 * network(h))
    assert len(regions) > 20


def test_geometry_eq_11_bias() -> None:
    network = Relu(6, 10, 10, 3, bias=1.0)
    left_cone = 0
    for h in normal(10, 6, seed=0):
        weight, region = network.region(h)
        offset = network(h) - h @ weight
        assert offset.norm() > 0.1
        near = h + 1e-6 * normal(6, seed=1)
        assert network.region(near)[1] == region
        assert torch.allclose(network(near), near @ weight + offset)
        left_cone += network.region(0.01 * h)[1] != region
    assert left_cone > 5


def local_bounds(first: Tensor, second: Tensor, network: Relu, beta: float) -> tuple[float, float]:
    """Eq. 8 with W_omega of h1 as printed, and with the map of each of the three regions."""
    outputs = network(first), network(second)
    scores = torch.einsum("id,ild->il", outputs[0], negatives(*outputs))
    nearest = choose(first, second, scores)
    printed, corrected = [], []
    for a, b, c in zip(first, second, nearest, strict=True):
        own, of_second, of_nearest = (network.region(h)[0] for h in (a, b, c))
        printed.append(-beta * (b - c) @ own @ own.T @ a)
        corrected.append(-beta * (a @ own) @ (of_second.T @ b - of_nearest.T @ c))
    constant = math.log(2 * (len(first) - 1))
    return float(np.mean(printed)) + constant, float(np.mean(corrected)) + constant


def test_geometry_section_5_nonlinear() -> None:
    """Eq. 8 is of the unnormalised products, so the bound is on InfoNCE of dot products."""
    network, beta = Relu(5, 12, 3), 0.02
    first = normal(6, 5, seed=0)
    second = first + 0.5 * normal(6, 5, seed=1)
    assert len({network.region(h)[1] for h in torch.cat([first, second])}) > 6
    printed, corrected = local_bounds(first, second, network, beta)
    outputs = network(first), network(second)
    nearest = choose(*outputs, torch.einsum("id,ild->il", outputs[0], negatives(*outputs)))
    direct = -beta * (outputs[0] * (outputs[1] - nearest)).sum(1).mean() + math.log(10)
    assert close(corrected, direct)
    gap = corrected - info_nce(*outputs, beta, similarity="dot")
    assert 0 <= gap <= math.log(10)
    assert abs(printed - corrected) > 0.01
    # All in one region: the two forms are one.
    first = first[0] + 1e-4 * first
    second = first[0] + 1e-4 * second
    assert len({network.region(h)[1] for h in torch.cat([first, second])}) == 1
    printed, corrected = local_bounds(first, second, network, beta)
    assert close(printed, corrected)


# Rank, variance unexplained, rotations


def rank_tau(matrix: Tensor, tau: float) -> int:
    return int((torch.linalg.svdvals(matrix) >= tau).sum())


def rank_relative(matrix: Tensor, tau: float) -> int:
    values = torch.linalg.svdvals(matrix)
    return int((values >= tau * values[0]).sum())


def rank_by_variance(matrix: Tensor, share: float) -> int:
    squares = torch.linalg.svdvals(matrix).square().cumsum(0)
    return int((squares < share * squares[-1]).sum()) + 1


def with_singular_values(*values: float) -> Tensor:
    left, right = (torch.linalg.qr(normal(len(values), len(values), seed=s)).Q for s in (0, 1))
    return left * torch.tensor(values, dtype=torch.float64) @ right


def test_geometry_eq_2_rank_tau() -> None:
    matrix = with_singular_values(10, 1, 0.1, 0.01)
    assert [rank_tau(c * matrix, 0.5) for c in (0.01, 1.0, 100.0)] == [0, 2, 4]
    # Relative and cumulative thresholds do not see the scale.
    for c in (0.01, 1.0, 100.0):
        assert rank_relative(c * matrix, 0.05) == 2
        assert rank_by_variance(c * matrix, 0.95) == 1
        gram = c * matrix @ matrix.T
        assert close(effective_rank(gram), effective_rank(matrix @ matrix.T), 1e-8)
    # Not a share of variance: one tau counts all of one matrix and misses most of another.
    flat, tail = with_singular_values(1, 1, 1, 1), with_singular_values(1, *[0.49] * 15)
    assert rank_tau(flat, 0.5) == 4 == rank_by_variance(flat, 0.95)
    assert rank_tau(tail, 0.5) == 1
    missed = 1 - 1 / float(torch.linalg.svdvals(tail).square().sum())
    assert missed > 0.75 and rank_by_variance(tail, 0.95) > 13


def unexplained(moves: Tensor, weight: Tensor) -> float:
    """Eq. 10 as printed: the least-squares residual over the total."""
    fitted = weight @ torch.linalg.lstsq(weight, moves.T, driver="gelsd").solution
    return float((moves.T - fitted).square().sum() / moves.square().sum())


def test_geometry_eq_10_fvu() -> None:
    moves, weight = normal(20, 6, seed=0), normal(6, 3, seed=1)
    value = unexplained(moves, weight)
    rest = moves - moves @ column_projection(weight)
    assert close(value, rest.square().sum() / moves.square().sum()) and 0.1 < value < 0.9
    # The column space alone counts: other bases, also with columns to spare.
    assert close(value, unexplained(moves, weight @ normal(3, 3, seed=2)))
    assert close(value, unexplained(moves, weight @ normal(3, 5, seed=3)))
    assert abs(value - unexplained(moves, normal(6, 3, seed=4))) > 1e-2
    # 0 as soon as rank(W) = d_enc, or the moves lie in col(W).
    assert close(unexplained(moves, normal(6, 6, seed=5)), 0)
    assert close(unexplained(moves, normal(6, 9, seed=6)), 0)
    assert close(unexplained(normal(20, 3, seed=7) @ weight.T, weight), 0)
    # A second moment, not a variance: a common shift outside col(W) changes it.
    shift = 3 * rest[0]
    assert unexplained(moves + shift, weight) > value + 0.1
    centred = [unexplained(x - x.mean(0), weight) for x in (moves, moves + shift)]
    assert close(centred[0], centred[1])


def rotation_rank(pixel: tuple[int, int], degrees: float, seed: int, *, order: int = 1) -> int:
    """The rank of the covariance of 80 rotated copies of a one-hot 17 x 17 image."""
    image = np.zeros((17, 17))
    image[pixel] = 1.0
    angles = np.random.default_rng(seed).uniform(0, degrees, 80)
    rows = np.stack([rotate(image, a, reshape=False, order=order).ravel() for a in angles])
    rows -= rows.mean(0)
    return int((np.linalg.eigvalsh(rows @ rows.T / 80) > 1e-4).sum())


def mean_rank(degrees: float, *, order: int = 1) -> float:
    pixels = np.random.default_rng(0).integers(3, 14, (4, 2))
    return float(np.mean([rotation_rank((p, q), degrees, 1, order=order) for p, q in pixels]))


def test_geometry_figure_10() -> None:
    ranks = [mean_rank(degrees) for degrees in (2, 20, 90, 180)]
    assert all(small + 1 < large for small, large in zip(ranks, ranks[1:], strict=False))
    assert ranks[3] > 1.5 * ranks[2] > 3 * ranks[1]


def test_geometry_figure_10_depends_on() -> None:
    # The interpolation: nearest moves whole pixels, and 2 degrees may move none.
    assert mean_rank(2, order=0) < mean_rank(2) and mean_rank(180, order=0) < mean_rank(180)
    # The pixel's distance from the centre.
    by_radius = [rotation_rank((8, 8 + radius), 180, 1) for radius in (0, 2, 6)]
    assert by_radius[0] < by_radius[1] < by_radius[2]
    assert rotation_rank((8, 8), 180, 1, order=0) == 0
