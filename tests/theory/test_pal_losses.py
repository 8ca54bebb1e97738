"""What paper 003 (pal) says about losses on a graph and their minimisers, and what holds: sections
3 and 4.2, B.1, B.2.2 to B.2.4, B.3 and the listings of C.1.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import optimize
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from likewise import Graph
from likewise.objectives import DecoupledContrastive, InfoNCE, NTXent
from likewise.objectives.covariance import BarlowTwins, VICReg
from likewise.objectives.pairwise_vic2 import PairwiseVIC2
from likewise.objectives.spectral import VIC2, SpectralContrastive

LABELS = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2])
SIZES = torch.tensor([4.0, 3.0, 2.0], dtype=torch.float64)
BALANCED = torch.arange(3).repeat_interleave(3)
SIGNED = Graph.from_edges(
    torch.tensor([0, 0, 1, 2, 3, 5, 6]),
    torch.tensor([1, 2, 4, 5, 7, 8, 6]),
    torch.tensor([1.0, -1.0, 0.5, 1.0, -1.0, 1.0, 0.7]),
)
GRAPHS = {
    "labels": Graph.from_labels(LABELS),
    "signed": SIGNED,
    "mixed": 0.75 * Graph.identity(9) + 0.25 * Graph.from_labels(LABELS) + SIGNED,
}


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def rotation(dim: int, *, seed: int) -> Tensor:
    return torch.linalg.qr(normal(dim, dim, seed=seed)).Q


def eye(dim: int) -> Tensor:
    return torch.eye(dim, dtype=torch.float64)


def matrix(graph: Graph) -> Tensor:
    """G in float64."""
    return graph @ eye(graph.n)


def off_diagonal(graph: Graph) -> Tensor:
    """G without its diagonal."""
    return matrix(graph).fill_diagonal_(0)


def unit_rows(z: Tensor) -> Tensor:
    return z / z.norm(dim=1, keepdim=True)


def unit_columns(z: Tensor) -> Tensor:
    return z / z.norm(dim=0)


def close(left: Tensor | float, right: Tensor | float, tolerance: float = 1e-9) -> bool:
    left, right = (torch.as_tensor(x, dtype=torch.float64).detach() for x in (left, right))
    return bool((left - right).abs().max() < tolerance)


def constant(values: list[Tensor | float], tolerance: float = 1e-9) -> bool:
    return float(np.ptp([float(value) for value in values])) < tolerance


def vic2(z: Tensor, graph: Graph) -> Tensor:
    """|Z Z^T - G|^2, by the library."""
    return VIC2(reduction="sum")(z, graph)


def covariance_term(z: Tensor) -> Tensor:
    """|Z^T Z / N - I_K|^2, by the library."""
    loss = VICReg(0.0, 1.0, 1.0, variance="squared", views="stacked", ddof=0, centered=False)
    return loss(z, Graph.identity(len(z)))


def energy(z: Tensor, graph: Graph) -> Tensor:
    """sum_ij G_ij |z_i - z_j|^2."""
    return (matrix(graph) * (z[:, None] - z).square().sum(dim=2)).sum()


def minimize(loss: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
    """The minimiser that L-BFGS finds."""

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        z = torch.tensor(x).reshape(start.shape).requires_grad_()
        value = loss(z)
        slope = torch.autograd.grad(value, z)[0]
        return value.item(), slope.flatten().numpy()

    options = {"maxiter": 200, "ftol": 1e-15, "gtol": 1e-8}
    found = optimize.minimize(
        value_and_slope, start.flatten().numpy(), jac=True, method="L-BFGS-B", options=options
    )
    return torch.tensor(found.x).reshape(start.shape)


def positive_part(symmetric: Tensor, rank: int) -> Tensor:
    """The nearest positive semi-definite matrix of at most this rank."""
    values, vectors = torch.linalg.eigh(symmetric)
    values, vectors = values[-rank:].clamp_min(0), vectors[:, -rank:]
    return vectors * values @ vectors.T


def run(listing: str, **names: Any) -> dict[str, Any]:
    """A listing of C.1, word for word; what its names stand for at the end."""
    names = {"torch": torch, **names}
    exec(listing, names)
    return names


# Theorem 1, VICReg: B.1.1


@pytest.mark.parametrize("name", list(GRAPHS))
def test_pal_theorem_1_vic2(name: str) -> None:
    """With I_K the constant is N^2 K - |G|^2, for any graph."""
    graph, n, dim = GRAPHS[name], 9, 4
    for seed in range(3):
        z = normal(n, dim, seed=seed)
        spread = (z.T @ z - n * eye(dim)).square().sum()
        assert close(spread, n**2 * covariance_term(z))
        left = spread + 2 * torch.trace(z.T @ (n * eye(n) - matrix(graph)) @ z)
        assert close(left, vic2(z, graph) + n**2 * dim - matrix(graph).square().sum())
        # As printed: N^3 - |G|^2, and an I_N that does not fit Z^T Z.
        assert abs(left - vic2(z, graph) - n**3 + matrix(graph).square().sum()) > 100
        with pytest.raises(RuntimeError, match="must match"):
            z.T @ z - n * eye(n)


@pytest.mark.parametrize(
    ("graph", "degree"),
    [
        (Graph.identity(5).views(2), 2),
        (Graph.identity(4).views(3), 3),
        (Graph.from_labels(BALANCED), 3),
        (Graph.from_labels(BALANCED).views(2), 6),
    ],
)
def test_pal_theorem_1_vic2_equal_degrees(graph: Graph, degree: int) -> None:
    """Where all degrees are A, VICReg with the covariance target A is VIC2: no N is needed."""
    n, dim = graph.n, 4
    options = {"variance": "squared", "views": "stacked", "ddof": 0, "centered": False}
    vicreg = VICReg(1.0, n**2, n**2, covariance_target="degree", **options, reduction="sum")
    replaced = VICReg(1.0, n**2, n**2, **options, reduction="sum")
    gaps, others = [], []
    for seed in range(3):
        z = normal(n, dim, seed=seed)
        left = (z.T @ z - degree * eye(dim)).square().sum() + energy(z, graph)
        assert close(left, vicreg(z, graph))
        gaps.append(left - vic2(z, graph))
        others.append(replaced(z, graph) - vic2(z, graph))
    assert constant(gaps)
    assert close(gaps[0], degree**2 * dim - matrix(graph).square().sum())
    assert not constant(others, 1.0)


def test_pal_theorem_1_vic2_unequal_degrees() -> None:
    """Without equal degrees there is no such target: the difference depends on Z."""
    graph = Graph.from_labels(LABELS)
    for target in (2.0, 29 / 9, 4.0):
        gaps = []
        for seed in range(3):
            z = normal(9, 4, seed=seed)
            left = (z.T @ z - target * eye(4)).square().sum() + energy(z, graph)
            gaps.append(left - vic2(z, graph))
        assert not constant(gaps, 1.0)


def r(a: Tensor, b: Tensor) -> Tensor:
    return (a @ b) ** 2 - a @ a - b @ b


def total(pairwise: Callable[[Tensor, Tensor], Tensor], z: Tensor) -> Tensor:
    return sum((pairwise(a, b) for a in z for b in z), torch.zeros((), dtype=torch.float64))


def test_pal_b_1_1_last_display() -> None:
    n, dim = 7, 3
    gaps: dict[str, list[Tensor]] = {"scale": [], "1/N": [], "transpose": []}
    for seed in range(3):
        z = normal(n, dim, seed=seed)
        exact = total(r, z)
        assert close(n**2 * covariance_term(z), exact + n**2 * dim)
        # Printed: without N^2, without 1/N, and with (a^T b)^T in place of (a^T b)^2.
        gaps["scale"].append(covariance_term(z) - exact)
        gaps["1/N"].append((z.T @ z - eye(dim)).square().sum() - exact)
        misprint = total(lambda a, b: (a @ b) - a @ a - b @ b, z)
        gaps["transpose"].append(n**2 * covariance_term(z) - misprint)
        with pytest.raises(RuntimeError, match="must match"):
            z @ z.T / n - sum(torch.outer(row, row) for row in z)
    for values in gaps.values():
        assert not constant(values, 1.0)


# Eq. 9-10: VIC2 over pairs


def eq_9_10(z: Tensor, graph: Graph) -> Tensor:
    """As printed, with I = J = [N]^2."""
    products, norms = z @ z.T, z.square().sum(dim=1)
    return energy(z, graph) + (products.square() - norms[:, None] - norms).sum()


def with_diagonal(graph: Graph) -> Graph:
    """G + N I - D."""
    nodes = torch.arange(graph.n)
    degrees = graph @ torch.ones(graph.n, dtype=torch.float64)
    return graph + Graph.from_edges(nodes, nodes, graph.n - degrees)


@pytest.mark.parametrize("name", list(GRAPHS))
def test_pal_eq_9_10(name: str) -> None:
    graph = GRAPHS[name]
    degrees = graph @ torch.ones(9, dtype=torch.float64)

    def pairwise(z: Tensor) -> Tensor:
        """R(i, j) = (z_i . z_j)^2 - (d_i |z_i|^2 + d_j |z_j|^2) / N."""
        own = degrees * z.square().sum(dim=1)
        return energy(z, graph) + ((z @ z.T).square() - (own[:, None] + own) / 9).sum()

    gaps = []
    for seed in range(3):
        z = normal(9, 4, seed=seed)
        exact = vic2(z, graph) - matrix(graph).square().sum()
        assert close(pairwise(z), exact)
        assert close(PairwiseVIC2(reduction="sum")(z, graph), exact)
        # As printed, it is VIC2 of the graph G + N I - D.
        other = with_diagonal(graph)
        assert close(eq_9_10(z, graph), vic2(z, other) - matrix(other).square().sum())
        gaps.append(eq_9_10(z, graph) - exact)
        laplacian = 2 * torch.trace(z.T @ (torch.diag(degrees) - 9 * eye(9)) @ z)
        assert close(gaps[-1], laplacian)
    assert not constant(gaps, 1.0)


def test_pal_eq_9_10_minimiser_as_printed() -> None:
    """Columns of norm sqrt(N), and beyond C dimensions noise within the classes."""
    graph, y = Graph.from_labels(LABELS), one_hot(LABELS).double()
    z = minimize(lambda z: eq_9_10(z, graph), normal(9, 3, seed=0))
    assert close(z.T @ z, 9 * eye(3), 1e-4)
    assert close(z @ z.T, y @ torch.diag(9 / SIZES) @ y.T, 1e-4)
    wide = minimize(lambda z: eq_9_10(z, graph), normal(9, 4, seed=0))
    # The fourth dimension is an eigenvector within the smallest class, of eigenvalue N - n_c.
    assert close(torch.linalg.eigvalsh(wide @ wide.T)[-4:], torch.tensor([7, 9, 9, 9]), 1e-4)
    assert (wide[7] - wide[8]).norm() > 1
    # The corrected form is least, at -|G|^2, where classes have one place each.
    exact = PairwiseVIC2(reduction="sum")
    best = y @ rotation(4, seed=0)[:3]
    assert close(exact(best, graph), -matrix(graph).square().sum())
    assert exact(wide, graph) > exact(best, graph) + 1


# Section 4.2: estimates from some of the pairs


def test_pal_section_4_2_unbiased() -> None:
    """One pair at a time: unbiased, up to the factor N^2."""
    graph, z, n = Graph.from_labels(torch.tensor([0, 0, 1, 1, 1])), normal(5, 3, seed=0), 5
    pairs = [(torch.tensor([i]), torch.tensor([j])) for i in range(n) for j in range(n)]
    # The paper's own R: the claim is about sums, whatever is summed.
    printed = [
        graph.entries(i, j, dtype=torch.float64) * (z[i] - z[j]).square().sum()
        + r(z[i[0]], z[j[0]])
        for i, j in pairs
    ]
    assert close(n**2 * sum(printed) / len(pairs), eq_9_10(z, graph))
    exact = vic2(z, graph) - matrix(graph).square().sum()
    for degrees in ("graph", "known_pairs"):
        loss = PairwiseVIC2(degrees=degrees, reduction="sum")
        values = [loss(z, graph, known_pairs=p, covariance_pairs=p) for p in pairs]
        assert close(sum(values) / len(pairs), exact)


def test_pal_section_4_2_unbiased_sizes() -> None:
    """Two pairs in I and one in J: plain sums weigh the parts 2 : 1, N^2/|I| and N^2/|J| do not."""
    nodes = torch.arange(2)
    graph = Graph.identity(2) + Graph.from_edges(nodes[:1], nodes[1:], torch.tensor([0.5]))
    z, n, loss = normal(2, 2, seed=1), 2, PairwiseVIC2(reduction="sum")
    pairs = list(itertools.product(range(n), repeat=2))
    draws = [
        (torch.tensor([one, two]).T, torch.tensor([three]).T)
        for one, two, three in itertools.product(pairs, repeat=3)
    ]
    plain, scaled = [], []
    for first, second in draws:
        (i, j), (k, m) = first, second
        attraction = (graph.entries(i, j) * (z[i] - z[j]).square().sum(dim=1)).sum()
        plain.append(attraction + r(z[k[0]], z[m[0]]))
        scaled.append(loss(z, graph, known_pairs=(i, j), covariance_pairs=(k, m)))
    attraction = energy(z, graph)
    assert close(n**2 * sum(plain) / len(draws), 2 * attraction + total(r, z))
    assert abs(n**2 * sum(plain) / len(draws) - eq_9_10(z, graph)) > 0.3
    assert close(sum(scaled) / len(draws), vic2(z, graph) - matrix(graph).square().sum())


@pytest.mark.parametrize("size", [2, 3, 5])
def test_pal_section_4_2_unbiased_minibatches(size: int) -> None:
    """b x b pairs of a batch without replacement meet the diagonal too often."""
    n, graph, z = 6, Graph.from_labels(torch.tensor([0, 0, 1, 1, 1, 2])), normal(6, 3, seed=2)
    products = z @ z.T
    terms = products.square() - 2 * matrix(graph) * products
    same, other = n / size, n * (n - 1) / (size * (size - 1))
    weights = other + (same - other) * eye(size)
    plain, corrected = [], []
    for batch in itertools.combinations(range(n), size):
        rows = torch.tensor(batch)
        block = terms[rows][:, rows]
        plain.append((n / size) ** 2 * block.sum())
        loss = PairwiseVIC2(n, reduction="sum")(z[rows], graph.subset(rows))
        assert close(loss, (weights * block).sum())
        corrected.append(loss)
    exact = vic2(z, graph) - matrix(graph).square().sum()
    assert close(sum(corrected) / len(corrected), exact)
    assert abs(sum(plain) / len(plain) - exact) > 0.3


@pytest.mark.parametrize("name", list(GRAPHS))
def test_pal_section_4_2_strong_convexity(name: str) -> None:
    """L(Z) = L(-Z) = L(ZQ), with more than L between them: not convex in Z, but in M = Z Z^T."""
    graph = GRAPHS[name]
    assert torch.linalg.eigvalsh(matrix(graph))[-1] > 0
    values, vectors = torch.linalg.eigh(matrix(graph))
    z = vectors[:, -3:] * values[-3:].clamp_min(0).sqrt()
    at_optimum = vic2(z, graph)
    assert close(vic2(-z, graph), at_optimum)
    assert close(vic2(z @ rotation(3, seed=0), graph), at_optimum)
    assert vic2(torch.zeros_like(z), graph) > at_optimum + 0.5  # (Z + (-Z)) / 2
    # At 0 it curves down, and at a minimum it is flat along every rotation.
    for point, smallest in ((torch.zeros_like(z), -4 * float(values[-1])), (z, 0.0)):
        hessian = torch.autograd.functional.hessian(lambda z: vic2(z, graph), point)
        assert close(torch.linalg.eigvalsh(hessian.reshape(27, 27))[0], smallest, 1e-6)
    for seed in range(3):
        first, second = normal(2, 9, 9, seed=seed)
        one, two = first @ first.T, second @ second.T
        middle = torch.linalg.cholesky((one + two) / 2)
        chord = (vic2(first, graph) + vic2(second, graph)) / 2
        assert close(vic2(middle, graph), chord - (one - two).square().sum() / 4, 1e-7)


# Eq. 5: the spectral contrastive loss


def eq_5(first: Tensor, second: Tensor) -> Tensor:
    products = first @ second.T
    others = products.square().sum() - products.diagonal().square().sum()
    return -2 * (first * second).sum() + others / len(first)


def test_pal_eq_5() -> None:
    n, graph = 6, Graph.identity(6).views(2)
    for seed in range(3):
        z = normal(2 * n, 4, seed=seed)
        first, second = z[0::2], z[1::2]
        assert close(eq_5(first, second), n * SpectralContrastive()(z, graph))
        # HaoChen et al. average over the n (n - 1) pairs of different samples.
        terms = SpectralContrastive(unbiased=True).terms(z, graph)
        assert close(terms["alignment"], -2 * (first * second).sum(dim=1).mean())
        haochen = n * (terms["alignment"] + (n - 1) / n * terms["repulsion"])
        assert close(eq_5(first, second), haochen)
        assert abs(eq_5(first, second) - n * sum(terms.values())) > 0.1


def test_pal_eq_5_graph_form() -> None:
    """VIC2 of the two-view graph adds pairs in the same view, and of a sample with itself."""
    n, graph = 6, Graph.identity(6).views(2)
    gaps = []
    for seed in range(3):
        z = normal(2 * n, 4, seed=seed)
        first, second = z[0::2], z[1::2]
        alignment = -2 * (first * second).sum()
        form = 2 * (alignment + n * (eq_5(first, second) - alignment))
        assert close(form, SpectralContrastive(reduction="sum")(z, graph))
        same_view = sum(
            (view @ view.T).square().sum() - view.square().sum(dim=1).square().sum()
            for view in (first, second)
        )
        assert close(
            form + same_view, SpectralContrastive(same_view=True, reduction="sum")(z, graph)
        )
        norms = z.square().sum(dim=1)
        own = (norms.square() - 2 * norms).sum() + 2 * (first * second).sum(1).square().sum()
        assert close(form + same_view + own, vic2(z, graph) - graph.norm_squared())
        gaps.append(same_view + own)
    assert not constant(gaps, 1.0)


# Theorem 1, SimCLR


def l_sim(z: Tensor, weights: Tensor, temperature: float = 1.0, *, with_self: bool) -> Tensor:
    """-sum_ij W_ij log(exp(cos_ij / tau) / sum_k exp(cos_ik / tau))."""
    logits = unit_rows(z) @ unit_rows(z).T / temperature
    candidates = logits if with_self else logits.masked_fill(eye(len(z)).bool(), -torch.inf)
    return (weights * (candidates.logsumexp(dim=1, keepdim=True) - logits)).sum()


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_pal_theorem_1_simclr(temperature: float) -> None:
    """Zero diagonal, k != i and tau: NT-Xent."""
    n, graph = 6, Graph.identity(6).views(2)
    off = off_diagonal(graph)
    partner = torch.arange(2 * n).reshape(n, 2).flip(1).flatten()
    for seed in range(3):
        z = normal(2 * n, 4, seed=seed)
        logits = unit_rows(z) @ unit_rows(z).T / temperature
        simclr = cross_entropy(logits.masked_fill(eye(2 * n).bool(), -torch.inf), partner)
        assert close(simclr, l_sim(z, off, temperature, with_self=False) / (2 * n))
        assert close(simclr, NTXent(temperature)(z, graph))


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_pal_theorem_1_simclr_as_printed(temperature: float) -> None:
    """Eq. 3 leaves out the positive and the same view: it is decoupled. Theorem 1 leaves out
    nothing, not even the row itself, and forgets tau."""
    n, graph = 6, Graph.identity(6).views(2)
    off = off_diagonal(graph)
    gaps: dict[str, list[Tensor]] = {"theorem 1": [], "with self": [], "NT-Xent": []}
    for seed in range(3):
        z = normal(2 * n, 4, seed=seed)
        cosines = (unit_rows(z) @ unit_rows(z).T)[0::2, 1::2] / temperature
        others = cosines.masked_fill(eye(n).bool(), -torch.inf)
        eq_3 = (-cosines.diagonal() + others.logsumexp(dim=1)).sum()
        options = {"denominator": "other-view", "reduction": "sum"}
        assert close(eq_3, InfoNCE(1 / temperature, **options)(z, graph))
        mirrored = z.reshape(n, 2, -1).flip(1).flatten(0, 1)
        both = DecoupledContrastive(temperature, **options)(z, graph)  # 002 eq. 14
        assert close(both, eq_3 + InfoNCE(1 / temperature, **options)(mirrored, graph))
        printed = l_sim(z, matrix(graph), with_self=True)
        with_self = NTXent(temperature, denominator="all-and-self", reduction="sum")(z, graph)
        gaps["theorem 1"].append(printed - both)
        gaps["with self"].append(with_self - both)
        gaps["NT-Xent"].append(NTXent(temperature, reduction="sum")(z, graph) - both)
        # What stands in theorem 1 for a temperature of 1, less its diagonal.
        assert close(with_self, l_sim(z, off, temperature, with_self=True))
        if temperature != 1:
            assert abs(with_self - l_sim(z, off, with_self=True)) > 1
    for values in gaps.values():
        assert not constant(values, 0.1)


SIMCLR = """
Z_renorm = torch.nn.functional.normalize(Z, dim=1)
cosim = Z_renorm @ Z_renorm.t() / tau
mask = 1 - torch.eye(N, N, device=Z.device, dtype=Z.dtype)
loss = (G * (torch.logsumexp(cosim*mask, dim=1, keepdim=True) - cosim)).mean()
"""


@pytest.mark.parametrize("samples", ["views", "labels"])
def test_pal_c_1_simclr_listing(samples: str) -> None:
    """Multiplying by the mask leaves exp(0) = 1 in every denominator."""
    graph = Graph.identity(6).views(2) if samples == "views" else Graph.from_labels(LABELS)
    n, off = graph.n, off_diagonal(graph)
    for tau in (0.2, 1.0):
        z = normal(n, 4, seed=0)
        listing = run(SIMCLR, Z=z, G=off, N=n, tau=tau)
        cosines = listing["cosim"]
        hidden = cosines.exp().sum(dim=1) - cosines.diagonal().exp()
        spurious = (off * ((1 + hidden).log()[:, None] - cosines)).sum()
        assert close(n**2 * listing["loss"], spurious)
        # -inf for the mask, and a mean over the positives.
        masked = cosines.masked_fill(eye(n).bool(), -torch.inf)
        exact = (off * (masked.logsumexp(dim=1, keepdim=True) - cosines)).sum()
        assert close(exact, NTXent(tau, reduction="sum")(z, graph))
        assert spurious > exact + 0.1
        assert listing["loss"] < 0.5 * exact / off.sum()
    if samples == "views":  # one positive a row: the mean over positives is the mean over rows
        assert close(exact / off.sum(), NTXent(tau)(z, graph))
    else:
        # SupCon's mean is the one over the positives of each row.
        each = off / off.sum(dim=1, keepdim=True)
        mean = (each * (masked.logsumexp(dim=1, keepdim=True) - cosines)).sum() / n
        assert close(mean, NTXent(tau, positives="mean")(z, graph))


# C.1: VICReg and SCL

VICREG = """
C = torch.cov(Z.t())
reg_loss = torch.nn.functional.mse_loss(C, torch.eye(K))
reg_loss *= out_dim ** 2
i,j = G.nonzero(as_tuple=True)
inv_loss = torch.nn.functional.mse_loss(Z[i], Z[j])
inv_loss *= out_dim
loss = beta * inv_loss + reg_loss
"""


def vicreg_listing(z: Tensor, weights: Tensor) -> dict[str, Any]:
    dim = z.shape[1]
    return run(VICREG, Z=z, G=weights, K=dim, out_dim=dim, beta=1.0)


def test_pal_c_1_vicreg_listing() -> None:
    """The listing sees where an edge is, not its weight: a mixed graph forgets alpha."""
    z = normal(6, 4, seed=0).repeat_interleave(2, dim=0) + 0.2 * normal(12, 4, seed=1)
    labels = torch.tensor([0, 0, 1, 1, 2, -1])
    loss, printed, exact = VICReg(1.0, 0.0, 0.0), [], []
    for alpha in (1e-3, 0.5, 0.9):
        graph = ((1 - alpha) * Graph.identity(6) + alpha * Graph.from_labels(labels)).views(2)
        off = off_diagonal(graph)
        printed.append(vicreg_listing(z, off)["inv_loss"])
        weighted = (off * (z[:, None] - z).square().sum(dim=2)).sum() / off.abs().sum()
        exact.append(loss.terms(z, graph)["invariance"])
        assert close(exact[-1], weighted)
    assert constant(printed)
    assert exact[0] + 1 < exact[1] < exact[2] - 0.3
    # Weights of 1: the same, once nobody is compared with themselves.
    plain = Graph.from_labels(labels).views(2)
    off = off_diagonal(plain)
    assert close(vicreg_listing(z, off)["inv_loss"], loss(z, plain))
    assert vicreg_listing(z, matrix(plain))["inv_loss"] < loss(z, plain) - 0.1


def test_pal_c_1_vicreg_listing_signs() -> None:
    """An edge of -1 attracts in the listing; it is to repel (up to a margin: -|.|^2 has none)."""
    graph = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([-1.0]), n=3)

    def slope(loss: Callable[[Tensor], Tensor]) -> float:
        """The derivative in the distance of the two rows."""
        z = torch.tensor([[0.0, 0.0], [0.6, 0.0], [5.0, 1.0]]).double().requires_grad_()
        return float(torch.autograd.grad(loss(z), z)[0][1, 0])

    weights, invariance = matrix(graph), VICReg(1.0, 0.0, 0.0, margin=1.0)
    assert slope(lambda z: vicreg_listing(z, weights)["inv_loss"]) == pytest.approx(1.2)
    assert slope(lambda z: energy(z, graph) / weights.abs().sum()) == pytest.approx(-1.2)
    assert slope(lambda z: invariance(z, graph)) == pytest.approx(-2 * (1 - 0.6))
    attracts = slope(lambda z: invariance(z, -graph))
    assert attracts == pytest.approx(1.2)


def test_pal_c_1_vicreg_listing_covariance() -> None:
    """torch.cov centres and divides by N - 1; the theory does neither."""
    z = normal(12, 4, seed=1) + 1
    graph = Graph.identity(12)
    printed = vicreg_listing(z, eye(12))["reg_loss"]
    listing = VICReg(0.0, 1.0, 1.0, variance="squared", views="stacked", ddof=1, centered=True)
    assert close(printed, listing(z, graph), 1e-6)
    assert abs(printed - covariance_term(z)) > 1
    no_mean = VICReg(0.0, 1.0, 1.0, variance="squared", views="stacked", ddof=0, centered=True)
    assert abs(printed - no_mean(z, graph)) > 0.05
    assert close(covariance_term(z), (z.T @ z / 12 - eye(4)).square().sum())


SCL = """
Z = torch.nn.functional.normalize(Z, dim=1)
loss = torch.nn.functional.mse_loss(G, Z@Z.T)
"""


@pytest.mark.parametrize("name", list(GRAPHS))
def test_pal_c_1_scl_listing(name: str) -> None:
    z, graph = normal(9, 4, seed=0), GRAPHS[name]
    listing = run(SCL, Z=z, G=matrix(graph))["loss"]
    assert close(listing, VIC2(normalize=True)(z, graph))
    assert close(81 * listing, vic2(unit_rows(z), graph))
    assert abs(listing - VIC2()(z, graph)) > 0.1
    # Theorem 1 sees the lengths of rows, the listing does not.
    assert close(run(SCL, Z=3 * z, G=matrix(graph))["loss"], listing)
    assert vic2(3 * z, graph) > 2 * vic2(z, graph)


def test_pal_c_1_scl_listing_minimisers() -> None:
    """Rows of other classes want a cosine of 0: orthogonal anchors, as many as classes."""
    graph = Graph.from_labels(LABELS)
    z = minimize(lambda z: 81 * VIC2(normalize=True)(z, graph), normal(9, 3, seed=0))
    assert close(unit_rows(z) @ unit_rows(z).T, matrix(graph), 1e-4)
    # In fewer dimensions more is lost than by the top of the spectrum, which frees the lengths.
    narrow = minimize(lambda z: 81 * VIC2(normalize=True)(z, graph), normal(9, 2, seed=0))
    assert 81 * VIC2(normalize=True)(narrow, graph) > 4 + 0.5
    sizes = one_hot(LABELS).double()
    sizes[:, 2] = 0  # the smallest class is dropped
    assert close(vic2(sizes, graph), 4)
    # Entries of 1/2 on the diagonal: theorem 1 reaches 0, unit rows pay 1/4 for each of them.
    half, free = 0.5 * graph, 0.5**0.5 * one_hot(LABELS).double()
    assert close(vic2(free, half), 0)
    assert 81 * VIC2(normalize=True)(free, half) > 9 * 0.25
    assert 81 * VIC2(normalize=True)(normal(9, 3, seed=1), half) > 9 * 0.25


# Theorem 1, Barlow Twins


def l_bt(z: Tensor, weights: Tensor) -> Tensor:
    """|Z~^T W Z~ - I|^2."""
    return (unit_columns(z).T @ weights @ unit_columns(z) - eye(z.shape[1])).square().sum()


def eq_4(first: Tensor, second: Tensor, *, symmetric: bool = False) -> Tensor:
    """With lambda = 1."""
    c = unit_columns(first).T @ unit_columns(second)
    c = (c + c.T) / 2 if symmetric else c
    return (c - eye(len(c))).square().sum()


def barlow(views: str, *, centered: bool = False) -> BarlowTwins:
    return BarlowTwins(1.0, views=views, centered=centered, epsilon=0.0)


def stack(*views: Tensor) -> Tensor:
    """Sample-major rows."""
    return torch.stack(views, dim=1).flatten(0, 1)


@pytest.mark.parametrize("views", [2, 3, 5])
def test_pal_theorem_1_barlow_twins(views: int) -> None:
    """A perfect solution: equal views, uncorrelated columns."""
    n, dim = 7, 4
    graph = Graph.identity(n).views(views)
    perfect = stack(*[torch.linalg.qr(normal(n, dim, seed=0)).Q] * views)
    assert close(l_bt(perfect, matrix(graph)), dim * (views - 1) ** 2)
    # Without the diagonal it costs nothing for two views, with degrees for any number.
    off = off_diagonal(graph)
    assert close(l_bt(perfect, off), dim * (views - 2) ** 2)
    degrees = off.sum(dim=1)
    assert close(l_bt(perfect, off / (degrees[:, None] * degrees).sqrt()), 0)
    assert close(barlow("stacked")(perfect, graph), 0)
    # By eq. 4 it is perfect.
    assert close(barlow("separate")(perfect, graph), 0)
    rows = normal(n * views, dim, seed=1)
    normalized = graph.without_diagonal().normalized()
    assert close(barlow("stacked")(rows, graph), l_bt(rows, matrix(normalized)))


def test_pal_theorem_1_barlow_twins_eq_4() -> None:
    """Two views of equal column norms: eq. 4 with (C + C^T) / 2; of others, neither."""
    n, graph = 7, Graph.identity(7).views(2)
    off = off_diagonal(graph)
    for seed in range(3):
        first, second = normal(2, n, 4, seed=seed)
        assert close(eq_4(first, second), barlow("separate")(stack(first, second), graph))
        equal = stack(unit_columns(first), unit_columns(second)) * normal(4, seed=seed)
        assert close(l_bt(equal, off), eq_4(first, second, symmetric=True))
        assert close(l_bt(equal, off), barlow("stacked")(equal, graph))
        assert l_bt(equal, off) < eq_4(first, second) - 0.05
        unequal = stack(first, 3 * second)
        assert close(eq_4(first, 3 * second), eq_4(first, second))
        assert abs(l_bt(unequal, off) - eq_4(first, second, symmetric=True)) > 0.05
        # Barlow Twins centres its columns, eq. 4 does not.
        shifted = first + 1
        assert abs(eq_4(shifted, second) - eq_4(first, second)) > 0.05
        by_library = barlow("separate", centered=True)(stack(shifted, second), graph)
        assert close(by_library, eq_4(first - first.mean(0), second - second.mean(0)))


def test_pal_theorem_1_barlow_twins_notation() -> None:
    """B.1.3: column norms are (Z o Z)^T 1, and the last display needs its second tilde."""
    z, weights = normal(7, 4, seed=0), matrix(Graph.identity(7))
    norms = (z * z).T @ torch.ones(7, dtype=torch.float64)
    assert close(z @ torch.diag(norms.rsqrt()), unit_columns(z))
    with pytest.raises(RuntimeError, match="size mismatch"):
        (z * z) @ torch.ones(7, dtype=torch.float64)

    def last_display(z: Tensor) -> Tensor:
        return (unit_columns(z).T @ weights @ z - eye(4)).square().sum()

    assert close(l_bt(2 * z, weights), l_bt(z, weights))
    assert abs(last_display(2 * z) - last_display(z)) > 1


# Theorem 2


@pytest.mark.parametrize("dim", [3, 4, 6])
def test_pal_theorem_2_vic2(dim: int) -> None:
    graph, y = Graph.from_labels(LABELS), one_hot(LABELS).double()
    assert close(vic2(y @ rotation(dim, seed=0)[:3], graph), 0)
    assert vic2(y @ normal(3, dim, seed=0), graph) > 1
    z = minimize(lambda z: vic2(z, graph), normal(9, dim, seed=1))
    found = torch.linalg.lstsq(y, z).solution
    assert close(z, y @ found, 1e-2 if dim > 3 else 1e-4)
    assert close(found @ found.T, eye(3), 1e-3 if dim > 3 else 1e-4)


@pytest.mark.parametrize("dim", [1, 2])
def test_pal_theorem_2_vic2_fewer_dimensions(dim: int) -> None:
    """K < C: the top of the spectrum (the class sizes), at the cost of what is dropped."""
    graph = Graph.from_labels(LABELS)
    for seed in range(2):
        z = minimize(lambda z: vic2(z, graph), normal(9, dim, seed=seed))
        assert close(vic2(z, graph), SIZES[dim:].square().sum(), 1e-6)
        assert close(z @ z.T, positive_part(matrix(graph), dim), 1e-4)


@pytest.mark.parametrize("dim", [2, 4, 6])
def test_pal_theorem_2_vic2_indefinite(dim: int) -> None:
    """-1 edges: only positive eigenvalues are used, however many dimensions there are."""
    values = torch.linalg.eigvalsh(matrix(SIGNED))
    positive = int((values > 0).sum())
    assert values[0] < -0.5 and 2 < positive < 6
    for seed in range(2):
        z = minimize(lambda z: vic2(z, SIGNED), normal(9, dim, seed=seed))
        used = min(dim, positive)
        assert close(vic2(z, SIGNED), values[: 9 - used].square().sum(), 1e-5)
        assert close(z @ z.T, positive_part(matrix(SIGNED), dim), 5e-3)


def balanced_columns(labels: Tensor) -> Tensor:
    """Y (Y^T Y)^-1/2."""
    return unit_columns(one_hot(labels).double())


def test_pal_theorem_2_barlow_twins() -> None:
    """Degree-normalised, K = C: {Y (Y^T Y)^-1/2 R D}."""
    graph, loss = Graph.from_labels(LABELS), barlow("stacked")
    scale = torch.tensor([0.3, 2.0, 5.0], dtype=torch.float64)
    for seed in range(3):
        z = balanced_columns(LABELS) @ rotation(3, seed=seed) * scale
        assert close(loss(z, graph), 0)
        assert close(l_bt(z, matrix(graph.normalized())), 0)
        # {Y R D} only for classes of equal size.
        printed = one_hot(LABELS).double() @ rotation(3, seed=seed) * scale
        assert loss(printed, graph) > 0.01
        printed = one_hot(BALANCED).double() @ rotation(3, seed=seed) * scale
        assert close(loss(printed, Graph.from_labels(BALANCED)), 0)
    z = unit_columns(minimize(lambda z: loss(z, graph), normal(9, 3, seed=0)))
    p = balanced_columns(LABELS)
    assert close(p @ p.T @ z, z, 5e-3)
    assert close(z.T @ z, eye(3), 1e-3)


def test_pal_theorem_2_barlow_twins_as_printed() -> None:
    """Raw G: P S^-1/2 is no candidate, Y R D is poor, and the best columns are mostly noise."""
    weights, p = matrix(Graph.from_labels(LABELS)), balanced_columns(LABELS)
    assert close(weights @ p, p * SIZES)  # P and S of the proof
    infeasible = p * SIZES.rsqrt()
    assert close(infeasible.T @ weights @ infeasible, eye(3))
    assert close(infeasible.norm(dim=0), SIZES.rsqrt())
    assert close(l_bt(one_hot(LABELS).double(), weights), (SIZES - 1).square().sum())
    # Class signal 1 / n_c, and the rest of the norm where no class can see it.
    hidden = normal(9, 3, seed=0)
    hidden = unit_columns(hidden - p @ p.T @ hidden)
    best = p * (1 / SIZES).sqrt() + hidden * (1 - 1 / SIZES).sqrt()
    assert close(best.norm(dim=0), 1.0) and close(l_bt(best, weights), 0)
    z = unit_columns(minimize(lambda z: l_bt(z, weights), normal(9, 3, seed=1)))
    assert close(l_bt(z, weights), 0)
    assert ((p.T @ z).square().sum(dim=0) < 1 / SIZES.min() + 1e-4).all()


@pytest.mark.parametrize("dim", [4, 5])
def test_pal_theorem_2_barlow_twins_more_dimensions(dim: int) -> None:
    """K > C: at least K - C, with extra columns that no class can see."""
    graph, p = Graph.from_labels(LABELS), balanced_columns(LABELS)
    normalized = matrix(graph.normalized())
    assert close(normalized, p @ p.T)
    for seed in range(2):
        noise = normal(9, dim - 3, seed=seed)
        z = torch.cat([p @ rotation(3, seed=seed), noise - p @ p.T @ noise], dim=1)
        assert close(l_bt(z, normalized), dim - 3)
        z[:, 3:] = p[:, :1]  # a class twice is not free
        assert l_bt(z, normalized) > dim - 3 + 0.5
        for loss in (lambda z: l_bt(z, normalized), lambda z: barlow("stacked")(z, graph)):
            found = minimize(loss, normal(9, dim, seed=seed))
            assert close(loss(found), dim - 3, 1e-6)
    dead = torch.cat([p, torch.zeros(9, dim - 3, dtype=torch.float64)], dim=1)
    assert close(barlow("stacked")(dead, graph), dim - 3)


@pytest.mark.parametrize("denominator", ["all", "all-and-self"])
@pytest.mark.parametrize(("classes", "dim"), [(3, 2), (4, 3), (4, 5)])
def test_pal_theorem_2_simclr(classes: int, dim: int, denominator: str) -> None:
    """Classes of equal size: anchors at a centred simplex, which takes C - 1 dimensions."""
    labels = torch.arange(classes).repeat_interleave(3)
    graph, loss = Graph.from_labels(labels), NTXent(1.0, denominator=denominator)
    z = unit_rows(minimize(lambda z: loss(z, graph), normal(3 * classes, dim, seed=0)))
    simplex = torch.where(labels[:, None] == labels, 1.0, -1 / (classes - 1))
    assert close(z @ z.T, simplex, 1e-6)
    # The anchors sum to 0: no M has c_i M = e_i, but the nearest template tells the class.
    anchors = z[::3]
    assert close(anchors.sum(dim=0), 0, 1e-6)
    assert torch.linalg.matrix_rank(anchors, atol=1e-5) == classes - 1
    mapped = torch.linalg.pinv(anchors, atol=1e-5)
    assert (anchors @ mapped - eye(classes)).norm() > 0.9
    assert torch.equal((z @ anchors.T).argmax(dim=1), labels)
    # D Y R M^-1 with the anchors for M^-1.
    lengths = normal(3 * classes, 1, seed=1).abs() + 0.1
    assert close(loss(lengths * z @ rotation(dim, seed=2), graph), loss(z, graph))


def test_pal_theorem_2_simclr_too_few_dimensions() -> None:
    labels = torch.arange(4).repeat_interleave(3)
    graph = Graph.from_labels(labels)
    found = minimize(lambda z: NTXent(1.0)(z, graph), normal(12, 2, seed=0))
    three = minimize(lambda z: NTXent(1.0)(z, graph), normal(12, 3, seed=0))
    assert NTXent(1.0)(found, graph) > NTXent(1.0)(three, graph) + 0.01


# B.2.3: classes of unequal size


def eq_14(anchors: Tensor, sizes: Tensor, power: int) -> Tensor:
    """sum_j N_j^power log sum_i N_i exp(c_i . c_j); printed: power 1."""
    c = unit_rows(anchors)
    return (sizes**power * ((c @ c.T).exp() @ sizes).log()).sum()


def test_pal_eq_14() -> None:
    """Rows of G = Y Y^T have N_j ones: weights N_j^2; rows of D^-1 G sum to 1: weights N_j."""
    graph, weights = Graph.from_labels(LABELS), matrix(Graph.from_labels(LABELS))
    options = {"denominator": "all-and-self", "reduction": "sum"}
    gaps = []
    for seed in range(3):
        anchors = unit_rows(normal(3, 3, seed=seed))
        z = anchors[LABELS]
        raw = l_sim(z, weights, with_self=True)
        squared = eq_14(anchors, SIZES, 2) - SIZES.square().sum()
        assert close(raw, squared)
        each = l_sim(z, weights / weights.sum(dim=1, keepdim=True), with_self=True)
        assert close(each, eq_14(anchors, SIZES, 1) - SIZES.sum())
        # The library pairs nobody with themselves: N_j (N_j - 1), and N_j where it averages.
        assert close(NTXent(1.0, **options)(z, graph), squared - each)
        assert close(NTXent(1.0, positives="mean", **options)(z, graph), each)
        gaps.append(raw - eq_14(anchors, SIZES, 1))
    assert not constant(gaps, 0.5)


def test_pal_eq_14_minimisers_differ() -> None:
    sizes = torch.tensor([8.0, 4.0, 2.0], dtype=torch.float64)
    cosines = []
    for power in (1, 2):
        c = minimize(
            lambda c, p=power: eq_14(c, sizes, p) / sizes.pow(p).sum(), normal(3, 3, seed=0)
        )
        cosines.append(unit_rows(c) @ unit_rows(c).T)
    assert (cosines[0] - cosines[1]).abs().max() > 0.05
    # Both have larger angles between larger classes, as the text says.
    for found in cosines:
        assert found[0, 1] < found[0, 2] - 0.05 < found[1, 2] - 0.1


def test_pal_b_2_3_minority_collapse() -> None:
    """N = 500, 500, 5, 5: the two large classes oppose each other, and the small ones merge."""
    counts = torch.tensor([500, 500, 5, 5])
    sizes, labels = counts.double(), torch.arange(4).repeat_interleave(counts)
    printed = eye(4)[[0, 0, 1, 2]] * torch.tensor([1, -1, 1, 1])[:, None]
    graph = Graph.from_labels(labels)
    for power, positives in ((1, "mean"), (2, "sum")):
        found = unit_rows(
            minimize(
                lambda c, p=power: eq_14(c, sizes, p) / sizes.pow(p).sum(), normal(4, 4, seed=0)
            )
        )
        cosines = found @ found.T
        assert cosines[0, 1] < -0.99
        assert cosines[:2, 2:].abs().max() < 0.05
        assert cosines[2, 3] > 0.98
        # Lower than at the printed anchors, by the library's loss over all 1010 rows.
        loss = NTXent(1.0, denominator="all-and-self", positives=positives)
        at_printed, at_found = (float(loss(c[labels], graph)) for c in (printed, found))
        assert at_found < at_printed - 1e-4
    # With equal sizes they keep apart.
    equal = minimize(lambda c: eq_14(c, torch.ones(4).double(), 1), normal(4, 4, seed=0))
    assert close((unit_rows(equal) @ unit_rows(equal).T)[2, 3], -1 / 3, 1e-5)


# B.3: no context


def test_pal_proposition_1() -> None:
    """(a) One z for all: |z|^2 = sum p_c^2 for VIC2, and |z| = 1 for eq. 9-10 as printed."""
    graph, shares = Graph.from_labels(LABELS), SIZES / 9

    def same(z: Tensor) -> Tensor:
        return z.expand(9, 3)

    for seed in range(2):
        z = minimize(lambda z: vic2(same(z), graph), normal(1, 3, seed=seed))
        assert close(z.square().sum(), shares.square().sum(), 1e-6)
        assert vic2(same(z / z.norm()), graph) > vic2(same(z), graph) + 1
        printed = minimize(lambda z: eq_9_10(same(z), graph), normal(1, 3, seed=seed))
        assert close(printed.norm(), 1.0, 1e-6)
        # Any direction will do.
        assert close(vic2(same(z @ rotation(3, seed=seed)), graph), vic2(same(z), graph))


def test_pal_proposition_1_free() -> None:
    """(b) {Y R}: the N p_c are eigenvalues of G, and the printed C x K matrix is no Z."""
    graph, y = Graph.from_labels(LABELS), one_hot(LABELS).double()
    values = torch.linalg.eigvalsh(matrix(graph))
    assert close(values[-3:], SIZES.flip(0))
    printed = 9**0.5 * torch.diag((SIZES / 9).sqrt()) @ rotation(4, seed=0)[:3]
    assert close(printed @ printed.T, torch.diag(SIZES))
    with pytest.raises(ValueError, match="9 nodes"):
        vic2(printed, graph)
    assert close(vic2(y @ rotation(4, seed=0)[:3], graph), 0)
    # Its rows, given to the samples of the class, are too long by sqrt(n_c).
    assert vic2(printed[LABELS], graph) > 1
    z = minimize(lambda z: vic2(z, graph), normal(9, 3, seed=1))
    assert close(z @ z.T, y @ y.T, 1e-4)
