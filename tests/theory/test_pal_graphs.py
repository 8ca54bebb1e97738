"""What paper 003 (pal) says about similarity graphs, and what holds: how they are made from labels,
views, losses, targets and neighbours, what can be read from them, and what it takes to ask for one.
"""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg
import torch
from scipy import optimize
from torch import Tensor
from torch.nn.functional import one_hot

from likewise import Graph
from likewise.objectives.spectral import VIC2

LABELS = torch.tensor([0, 2, 1, 1, 0, 0, 2, 0])
CLASSES = 3


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def matrix(graph: Graph) -> Tensor:
    """G in float64, which its blocks and its products agree on."""
    product = graph @ torch.eye(graph.n, dtype=torch.float64)
    assert close(product, graph.block(torch.arange(graph.n), dtype=torch.float64), 1e-7)
    return product


def codes(labels: Tensor = LABELS) -> Tensor:
    """Y, the one-hot rows."""
    return one_hot(labels).double()


def close(left: Tensor | float, right: Tensor | float, tolerance: float = 1e-9) -> bool:
    left, right = (torch.as_tensor(x, dtype=torch.float64).detach() for x in (left, right))
    return bool((left - right).abs().max() < tolerance)


def vic2(z: Tensor, graph: Graph) -> Tensor:
    """|Z Z^T - G|^2, by the library."""
    return VIC2(reduction="sum")(z, graph)


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


def symmetric_root(positive: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(positive)
    assert values[0] > -1e-9
    return vectors * values.clamp_min(0).sqrt() @ vectors.T


# Section 3.1: graphs from labels and views


def test_pal_eq_6() -> None:
    y, graph = codes(), matrix(Graph.from_labels(LABELS))
    alike = (LABELS[:, None] == LABELS).double()
    assert torch.equal(graph, y @ y.T)
    assert torch.equal(graph, alike)


def test_pal_eq_6_as_printed() -> None:
    """1{y_i != y_j} is the complement: wrong in every entry, and no Y Y^T for any Y."""
    printed = (LABELS[:, None] != LABELS).double()
    graph = matrix(Graph.from_labels(LABELS))
    assert torch.equal(printed, 1 - graph)
    assert not bool((printed == codes() @ codes().T).any())
    assert torch.linalg.eigvalsh(printed)[0] < -1
    assert torch.linalg.eigvalsh(graph)[0] > -1e-9


@pytest.mark.parametrize("augmentations", [1, 2, 3])
def test_pal_eq_7(augmentations: int) -> None:
    y = torch.kron(codes(), torch.ones(augmentations, 1, dtype=torch.float64))
    graph = Graph.from_labels(LABELS).views(augmentations)
    assert graph.shape == (8 * augmentations, 8 * augmentations)
    assert torch.equal(matrix(graph), y @ y.T)
    repeated = Graph.from_labels(LABELS.repeat_interleave(augmentations))
    assert torch.equal(matrix(graph), matrix(repeated))
    # As printed: the class counts, C x C.
    assert torch.equal(y.T @ y, augmentations * torch.diag(LABELS.bincount().double()))


SSL_GRAPH = """
G = torch.zeros(N * V, N * V)
i = torch.arange(0, N * V).repeat_interleave(V - 1)
j = (i + torch.arange(1, V).repeat(N * V) * N).remainder(p * V)
G[i,j] = 1
"""


def ssl_graph(n: int, views: int, **modulus: int) -> Tensor:
    """The listing of C.1, word for word."""
    names = {"torch": torch, "N": n, "V": views, **modulus}
    exec(SSL_GRAPH, names)
    return names["G"].double()


def eq_8(n: int, views: int, epochs: int = 1) -> Tensor:
    sample = torch.arange(n * views * epochs) // (views * epochs)
    return (sample[:, None] == sample).double()


@pytest.mark.parametrize("views", [2, 3, 4])
def test_pal_eq_8_c_1_graph_listing(views: int) -> None:
    n = 5
    graph = Graph.identity(n).views(views)
    assert torch.equal(matrix(graph), eq_8(n, views))
    assert torch.equal(matrix(graph.views(2)), eq_8(n, views, epochs=2))
    # With the modulus N V: view-major and without the diagonal.
    listing = ssl_graph(n, views, p=n)
    view_major = torch.arange(views * n).reshape(views, n).T.flatten()
    reordered = listing[view_major][:, view_major]
    assert torch.equal(reordered, matrix(graph.without_diagonal()))
    assert torch.equal(reordered + torch.eye(n * views), matrix(graph))
    assert not torch.equal(listing, matrix(graph.without_diagonal()))


def test_pal_eq_8_c_1_graph_listing_as_printed() -> None:
    with pytest.raises(NameError, match="'p'"):
        ssl_graph(5, 3)
    with pytest.raises(IndexError):
        ssl_graph(5, 3, p=6)
    assert not torch.equal(ssl_graph(5, 3, p=4), ssl_graph(5, 3, p=5))


# B.1.1: the Laplacian

SIGNED = Graph.from_edges(
    torch.tensor([0, 0, 1, 3, 5, 6]),
    torch.tensor([1, 2, 4, 5, 7, 6]),
    torch.tensor([1.0, -1.0, 0.5, 1.0, -0.3, 2.0]),
)
GRAPHS = {
    "labels": Graph.from_labels(LABELS),
    "views": Graph.identity(4).views(2),
    "signed": SIGNED,
    "mixed": 0.9 * Graph.identity(8) + 0.1 * Graph.from_labels(LABELS) + SIGNED,
    "targets": Graph.from_targets(normal(8, 2, seed=1)),
    "absolute": Graph.from_loss(normal(8, seed=2), "absolute", form="raw"),
}


def energy(z: Tensor, weights: Tensor) -> float:
    """sum_ij W_ij |z_i - z_j|^2."""
    n = len(z)
    return sum(
        float(weights[i, j] * (z[i] - z[j]) @ (z[i] - z[j])) for i in range(n) for j in range(n)
    )


def nearest(z: Tensor) -> Tensor:
    """W_ij = 1 where j is the nearest of i among the others."""
    distances = torch.cdist(z, z).fill_diagonal_(torch.inf)
    return one_hot(distances.argmin(dim=1), len(z)).double()


@pytest.mark.parametrize("name", list(GRAPHS))
def test_pal_b_1_1_laplacian(name: str) -> None:
    z, graph = normal(8, 3, seed=0), GRAPHS[name]
    degrees = graph @ torch.ones(8, dtype=torch.float64)
    laplacian = 2 * (z * (degrees[:, None] * z - graph @ z)).sum()
    assert close(laplacian, energy(z, matrix(graph)))
    assert close(laplacian, graph.pairs(self_pairs=True).energy(z, z))


def test_pal_b_1_1_laplacian_directed() -> None:
    """The graph of nearest neighbours is not symmetric, and takes both of its degrees."""
    z = normal(8, 3, seed=3)
    w = nearest(z)
    assert not torch.equal(w, w.T)
    outgoing, incoming = torch.diag(w.sum(1)), torch.diag(w.sum(0))
    assert abs(2 * torch.trace(z.T @ (outgoing - w) @ z) - energy(z, w)) > 0.1
    assert close(torch.trace(z.T @ (outgoing + incoming - w - w.T) @ z), energy(z, w))
    # The library's way: W + W^T is a graph, of twice the energy.
    i, j = torch.triu(w + w.T).nonzero(as_tuple=True)
    both = Graph.from_edges(i, j, (w + w.T)[i, j], n=8)
    assert close(both.pairs().energy(z, z) / 2, energy(z, w))


# B.2.1: labels from the graph


def test_pal_lemma_1() -> None:
    graph, y = Graph.from_labels(LABELS), codes()
    values, vectors = torch.linalg.eigh(matrix(graph))
    assert close(values[:-CLASSES], 0.0)
    factor = vectors[:, -CLASSES:] * values[-CLASSES:].sqrt()  # P sqrt(D)
    templates = torch.tensor([4, 2, 1])  # one sample of every class, in order
    rotation = torch.linalg.inv(factor[templates])
    assert close(rotation @ rotation.T, torch.eye(CLASSES))
    assert close(factor @ rotation, y)
    # Another template per class gives the same rotation.
    assert close(torch.linalg.inv(factor[torch.tensor([7, 3, 6])]), rotation)


def test_pal_lemma_1_without_an_inverse() -> None:
    """Y = Z Z[templates]^T for any Z with Z Z^T = G, of whatever width."""
    graph, y, templates = Graph.from_labels(LABELS), codes(), torch.tensor([4, 2, 1])
    values, vectors = torch.linalg.eigh(matrix(graph))
    factor = vectors[:, -CLASSES:] * values[-CLASSES:].sqrt()
    with pytest.raises(RuntimeError, match="square"):
        torch.linalg.inv(factor)  # (P sqrt(D))^-1 of the proof: 8 x 3
    wide = y @ torch.linalg.qr(normal(6, 6, seed=0)).Q[:CLASSES]
    found = minimize(lambda z: vic2(z, graph), normal(8, 5, seed=1))
    for z, tolerance in ((factor, 1e-9), (wide, 1e-9), (found, 1e-4)):
        assert close(z @ z[templates].T, y, tolerance)
    assert torch.equal(graph.block(torch.arange(8), templates).double(), y)


# Eq. 12: a loss between labels

RANKINGS = torch.tensor(list(itertools.permutations(range(3))))
VALUES = {
    "zero-one": torch.arange(4),
    "squared": normal(4, 2, seed=5),
    "absolute": torch.tensor([0.0, 1.0, 2.5, 4.0], dtype=torch.float64),
    "kendall": RANKINGS,
}


def loss_between(name: str, a: Tensor, b: Tensor) -> float:
    if name == "zero-one":
        return float(a != b)
    if name == "kendall":
        pairs = list(itertools.combinations(range(len(a)), 2))
        return sum((a[p] < a[q]) != (b[p] < b[q]) for p, q in pairs).item() / len(pairs)
    return float((a - b).square().sum() if name == "squared" else (a - b).abs())


def loss_graph(name: str, form: str) -> tuple[Tensor, Tensor, Graph]:
    """Y, the losses l between the classes, and the library's graph over 9 samples."""
    values = VALUES[name]
    members = torch.cat([torch.arange(len(values)), torch.tensor([0, 2, 2, 1, 0])])[:9]
    losses = torch.tensor(
        [[loss_between(name, a, b) for b in values] for a in values], dtype=torch.float64
    )
    return codes(members), losses, Graph.from_loss(values[members], name, form=form)


@pytest.mark.parametrize("name", list(VALUES))
def test_pal_eq_12_loss_graph(name: str) -> None:
    y, losses, graph = loss_graph(name, "raw")
    printed = matrix(graph)
    assert close(printed, y @ -losses @ y.T) and printed.shape == (9, 9)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        y @ -losses @ y
    # No trace, and so never positive semi-definite: L^1/2 and sqrt(D) are complex.
    for no_root in (-losses, printed):
        assert abs(torch.trace(no_root)) < 1e-12
        assert torch.linalg.eigvalsh(no_root)[0] < -0.4
        assert np.abs(scipy.linalg.sqrtm(no_root.numpy()).imag).max() > 0.1


@pytest.mark.parametrize("name", list(VALUES))
def test_pal_eq_12_loss_graph_centered(name: str) -> None:
    """H(-l)H is positive semi-definite for the losses here, which are of negative type."""
    y, losses, graph = loss_graph(name, "centered")
    centring = torch.eye(9) - torch.full((9, 9), 1 / 9, dtype=torch.float64)
    assert close(matrix(graph), centring @ y @ -losses @ y.T @ centring)
    values = torch.linalg.eigvalsh(matrix(graph))
    assert values[0] > -1e-9 and values[-1] > 0.5
    # The fourth power of the distance is not of negative type: centring does not help there.
    line = torch.arange(4.0, dtype=torch.float64)
    fourth = -(line[:, None] - line).pow(4)
    centring = torch.eye(4) - torch.full((4, 4), 0.25, dtype=torch.float64)
    assert torch.linalg.eigvalsh(centring @ fourth @ centring)[0] < -1


@pytest.mark.parametrize("name", ["zero-one", "absolute", "kendall"])
def test_pal_eq_12_loss_graph_shifted(name: str) -> None:
    """Y L'^1/2 = P sqrt(D) R, and where L' has an inverse, Y = P sqrt(D) R L'^-1/2."""
    y, losses, graph = loss_graph(name, "shifted")
    shifted = {"zero-one": 1 - losses, "absolute": losses.max() - losses, "kendall": 1 - 2 * losses}
    middle = shifted[name]
    assert close(matrix(graph), y @ middle @ y.T)
    root, classes = symmetric_root(middle), len(middle)
    values, vectors = torch.linalg.eigh(matrix(graph))
    factor = vectors[:, -classes:] * values[-classes:].clamp_min(0).sqrt()
    left, _, right = torch.linalg.svd(factor.T @ y @ root)
    rotation = left @ right
    assert close(factor @ rotation, y @ root, 1e-6)
    if name == "kendall":
        # Of rank 3 for 6 classes, L' has no inverse: read the classes off the rows of L'^1/2.
        assert torch.linalg.matrix_rank(middle) == 3
        nearest_template = torch.cdist(factor @ rotation, root).argmin(dim=1)
        assert torch.equal(nearest_template, y.argmax(dim=1))
    else:
        assert close(factor @ rotation @ torch.linalg.inv(root), y, 1e-6)
    if name != "zero-one":  # there L' = I, and the printed L^1/2 makes no difference
        assert not close(factor @ rotation @ root, y, 0.1)


@pytest.mark.parametrize("items", [2, 3, 4])
def test_pal_eq_12_loss_graph_kendall_rank(items: int) -> None:
    rankings = torch.tensor(list(itertools.permutations(range(items))))
    graph = Graph.from_loss(rankings, "kendall", form="shifted")
    values = torch.linalg.eigvalsh(matrix(graph))
    assert values[0] > -1e-5
    assert int((values > 1e-4).sum()) == items * (items - 1) // 2


def test_pal_eq_12_loss_graph_shift_is_not_enough() -> None:
    """No constant makes minus the squared loss positive semi-definite (unless all targets are
    equally far from their mean): centre it."""
    *_, graph = loss_graph("squared", "shifted")
    ones = torch.ones(9, 9, dtype=torch.float64)
    for extra in (0.0, 1e2, 1e4):
        assert torch.linalg.eigvalsh(matrix(graph) + extra * ones)[0] < -1e-4


def test_pal_footnote_1() -> None:
    """-l = (1 - l) - 11^T: one positive eigenvalue less, and so is the rank of the optimum."""
    raw, shifted, centered = (
        Graph.from_loss(LABELS, "zero-one", form=form) for form in ("raw", "shifted", "centered")
    )
    assert torch.equal(matrix(shifted), matrix(Graph.from_labels(LABELS)))
    assert torch.equal(matrix(raw), matrix(shifted) - 1)
    values = torch.linalg.eigvalsh(matrix(raw))
    assert values[0] < -1 and int((values > 1e-9).sum()) == CLASSES - 1
    for graph, rank in ((raw, CLASSES - 1), (shifted, CLASSES)):
        z = minimize(lambda z, graph=graph: vic2(z, graph), normal(8, 4, seed=0))
        assert close(z @ z.T, positive_part(matrix(graph), 4), 1e-4)
        assert torch.linalg.matrix_rank(z, atol=0.05) == rank
    # After double centring they are the same.
    for graph in (raw, shifted):
        assert close(matrix(graph.centered()), matrix(centered))


def test_pal_b_2_1_regression() -> None:
    y = normal(8, 2, seed=7)
    graph = Graph.from_targets(y)
    assert close(matrix(graph), y @ y.T)
    z = minimize(lambda z: vic2(z, graph), normal(8, 3, seed=8))
    assert close(z @ z.T, y @ y.T, 1e-4)
    # -l of the squared loss is the same graph, after centring and a factor 2.
    squared = Graph.from_loss(y, "squared", form="centered")
    assert close(matrix(squared), 2 * matrix(Graph.from_targets(y, centered=True)))
    assert close(matrix(Graph.from_targets(y, centered=True)), matrix(graph.centered()))


def test_pal_b_2_1_regression_as_printed() -> None:
    """G = -y_i . y_j: every Z costs |Z^T Z|^2 + 2 |Y^T Z|^2 more than Z = 0."""
    y = normal(8, 2, seed=7)
    graph = -Graph.from_targets(y)
    at_zero = vic2(torch.zeros(8, 3, dtype=torch.float64), graph)
    for seed in range(5):
        z = normal(8, 3, seed=seed) / (seed + 1)
        more = (z.T @ z).square().sum() + 2 * (y.T @ z).square().sum()
        assert close(vic2(z, graph), at_zero + more)
    collapsed = minimize(lambda z: vic2(z, graph), normal(8, 3, seed=8))
    assert collapsed.abs().max() < 0.02


# Section 5: kernels


def kernel_problem() -> tuple[Tensor, Graph, float, int]:
    x = normal(8, 2, seed=11)
    kernel = torch.exp(-torch.cdist(x, x).square() / 2) + 0.1 * torch.eye(8)
    return kernel, Graph.from_labels(LABELS), 0.6, 3


def test_pal_section_5_kernel() -> None:
    kernel, graph, strength, dim = kernel_problem()
    inverse = torch.linalg.inv(kernel)

    def loss(z: Tensor, strength: float = strength) -> Tensor:
        return vic2(z, graph) + strength * torch.trace(z.T @ inverse @ z)

    z = minimize(loss, normal(8, dim, seed=0))
    halved = matrix(graph) - strength / 2 * inverse
    assert close(z @ z.T, positive_part(halved, dim), 1e-4)
    # As printed, G - lambda K^-1 solves the problem with twice the penalty.
    printed = positive_part(matrix(graph) - strength * inverse, dim)
    assert not close(z @ z.T, printed, 0.05)
    twice = minimize(lambda z: loss(z, 2 * strength), normal(8, dim, seed=0))
    assert close(twice @ twice.T, printed, 1e-4)


def test_pal_section_5_kernel_positive_part() -> None:
    """Fewer positive eigenvalues than dimensions: the other columns are 0, not the next best."""
    kernel, graph, _, dim = kernel_problem()
    inverse, strength = torch.linalg.inv(kernel), 4.0
    target = matrix(graph) - strength / 2 * inverse
    assert int((torch.linalg.eigvalsh(target) > 0).sum()) == 1 < dim
    z = minimize(
        lambda z: vic2(z, graph) + strength * torch.trace(z.T @ inverse @ z), normal(8, dim, seed=0)
    )
    assert close(z @ z.T, positive_part(target, 1), 1e-4)


def test_pal_section_5_kernel_singular() -> None:
    """K of rank 4: weights theta on 4 features, and the spectrum within the range of K."""
    features = normal(8, 4, seed=12)
    graph, strength, dim = Graph.from_labels(LABELS), 0.6, 2
    theta = minimize(
        lambda w: vic2(features @ w, graph) + strength * w.square().sum(), normal(4, dim, seed=0)
    )
    z = features @ theta
    values, vectors = torch.linalg.eigh(features @ features.T)
    assert int((values > 1e-9).sum()) == 4
    values, basis = values[-4:], vectors[:, -4:]
    within = basis.T @ matrix(graph) @ basis - strength / 2 * torch.diag(1 / values)
    assert close(z @ z.T, basis @ positive_part(within, dim) @ basis.T, 1e-4)


# Section 4.3 and appendix A: oracles

Choose = Callable[[list[int], int], int]


def algorithm_3(labels: Tensor, templates: list[int], choose: Choose) -> tuple[int, Tensor]:
    """How many questions "is i alike to the template of class j?" are asked, and the labels that
    follow: by a yes, or by a no to all classes but one."""
    truth, classes = Graph.from_labels(labels), len(templates)
    found = torch.full_like(labels, -1)
    found[templates] = torch.arange(classes)
    refused: dict[int, set[int]] = {i: set() for i in range(len(labels))}
    queries = 0
    while bool((found < 0).any()):
        unknown = (found < 0).nonzero()[:, 0].tolist()
        for j in found[found >= 0].bincount(minlength=classes).argsort(stable=True).tolist():
            candidates = [i for i in unknown if j not in refused[i]]
            if candidates:
                break
        i = choose(candidates, j)
        queries += 1
        if truth.entries(torch.tensor([i]), torch.tensor([templates[j]])) == 1:
            found[i] = j
            continue
        refused[i].add(j)
        if len(refused[i]) == classes - 1:
            found[i] = next(k for k in range(classes) if k not in refused[i])
    return queries, found


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_pal_algorithm_3(classes: int) -> None:
    n, counts = 30, set()
    for seed in range(8):
        random = np.random.default_rng(seed)
        labels = np.concatenate([np.arange(classes), random.integers(classes, size=n - classes)])
        truth = Graph.from_labels(torch.tensor(labels))
        queries, found = algorithm_3(
            torch.tensor(labels), list(range(classes)), lambda who, _, r=random: int(r.choice(who))
        )
        assert torch.equal(matrix(Graph.from_labels(found)), matrix(truth))
        assert n - classes <= queries <= (n - classes) * (classes - 1) < n * classes
        counts.add(queries)
    assert (counts == {n - 2}) == (classes == 2)


def test_pal_algorithm_3_bounds_are_reached() -> None:
    n, classes = 20, 4
    # At best every answer is yes.
    labels = torch.arange(n) % classes

    def lucky(candidates: list[int], j: int) -> int:
        return next(i for i in candidates if labels[i] == j)

    queries, found = algorithm_3(labels, list(range(classes)), lucky)
    assert queries == n - classes < n
    assert torch.equal(found, labels)
    # At worst everybody belongs to the class that is asked last, and is deduced.
    labels = torch.cat([torch.arange(classes), torch.full((n - classes,), classes - 1)])
    queries, found = algorithm_3(labels, list(range(classes)), lambda who, _: who[0])
    assert queries == (n - classes) * (classes - 1) < n * classes
    assert torch.equal(found, labels)


def without_templates(
    labels: Tensor, order: list[int], *, lucky: bool
) -> tuple[list[tuple[int, int]], Graph]:
    """Every sample is asked against the templates found so far; nobody like it makes it one."""
    truth, templates, asked = Graph.from_labels(labels), [], []
    for i in order:
        ranked = sorted(templates, key=lambda t, i=i: lucky and bool(labels[t] != labels[i]))
        for t in ranked:
            asked.append((i, t))
            if labels[t] == labels[i]:
                break
        else:
            templates.append(i)
    i, j = torch.tensor(asked).T
    return asked, Graph.from_edges(i, j, 2 * truth.entries(i, j) - 1, n=len(labels))


@pytest.mark.parametrize("lucky", [True, False])
def test_pal_algorithm_3_without_templates(lucky: bool) -> None:
    """N - C yes in any case, and at least C (C - 1) / 2 no, one for every pair of classes."""
    n, classes, refusals = 20, 4, set()
    for seed in range(6):
        random = np.random.default_rng(seed)
        labels = torch.tensor(random.permutation(np.arange(n) % classes))
        order = random.permutation(n).tolist()
        asked, answers = without_templates(labels, order, lucky=lucky)
        i, j = torch.tensor(asked).T
        values = answers.entries(i, j)
        assert int((values == 1).sum()) == n - classes
        refusals.add(int((values == -1).sum()))
        assert len(asked) < n * classes
    least = classes * (classes - 1) // 2
    assert refusals == {least} if lucky else min(refusals) > least


def test_pal_algorithm_3_without_templates_is_least() -> None:
    """One of the 52 partitions of 5 samples fits the answers, several if any answer is missing."""
    labels = torch.tensor([0, 1, 2, 1, 0])
    partitions = [
        p
        for p in itertools.product(range(5), repeat=5)
        if all(label <= max(p[:i], default=-1) + 1 for i, label in enumerate(p))
    ]
    assert len(partitions) == 52
    asked, answers = without_templates(labels, list(range(5)), lucky=True)
    assert len(asked) == (5 - 3) + 3

    def consistent(pairs: list[tuple[int, int]]) -> int:
        i, j = torch.tensor(pairs).T
        said = answers.entries(i, j) == 1
        fits = [
            torch.equal(Graph.from_labels(torch.tensor(p)).entries(i, j) == 1, said)
            for p in partitions
        ]
        return sum(fits)

    assert consistent(asked) == 1
    for missing in asked:
        assert consistent([pair for pair in asked if pair != missing]) > 1


def test_pal_algorithm_4() -> None:
    z = normal(9, 2, seed=4)
    w = nearest(z)
    graph = Graph.from_neighbors(z, k=1)
    assert not torch.equal(w, w.T)
    assert torch.equal(matrix(graph), torch.maximum(w, w.T))
    assert torch.equal(graph.diagonal(), torch.zeros(9))
    # Symmetrised, it has a Laplacian and a real spectrum.
    degrees = torch.diag(graph.degrees().double())
    laplacian = 2 * torch.trace(z.T @ (degrees - matrix(graph)) @ z)
    assert close(laplacian, energy(z, matrix(graph)))
    assert torch.linalg.eigvalsh(degrees - matrix(graph))[0] > -1e-9
    directed = 2 * torch.trace(z.T @ (torch.diag(w.sum(1)) - w) @ z)
    assert abs(directed - energy(z, w)) > 0.1


def test_pal_algorithm_4_as_printed() -> None:
    """With k = i the smallest distance is 0, and everybody is alike only to themselves."""
    z = normal(9, 2, seed=4)
    distances = (z[:, None] - z).norm(dim=2)
    printed = (distances == distances.min(dim=1, keepdim=True).values).double()
    assert torch.equal(printed, matrix(Graph.identity(9)))
    # Without it, "i is the nearest of j" (left) and "j is the nearest of i" (right) still differ.
    distances.fill_diagonal_(torch.inf)
    right = (distances == distances.min(dim=1, keepdim=True).values).double()
    left = (distances == distances.min(dim=0, keepdim=True).values).double()
    assert torch.equal(left, right.T) and not torch.equal(left, right)
