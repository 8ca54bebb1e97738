"""What paper 002 (balanced) says about contrastive losses, and what holds: sections 4 to 6 and A.

The paper's finite world is a tensor `world[x, t]` of unit representations f(t(x)) with a label for
every image x; T' is uniform over t, X' over x, and expectations are exact averages.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from likewise import Graph
from likewise.objectives import (
    BalancedContrastive,
    DecoupledContrastive,
    GeneralizedNTXent,
    InfoNCE,
    NTXent,
    PrototypeContrast,
)
from likewise.pairwise.reductions import row_logsumexp

SLACK = 1e-9


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


def direction(degrees: float) -> Tensor:
    angle = math.radians(degrees)
    return torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)


def two_views(m: int, dim: int = 5, *, seed: int) -> tuple[Tensor, Graph]:
    return unit(normal(2 * m, dim, seed=seed)), Graph.identity(m).views(2)


def close(left: Tensor | float, right: Tensor | float, tolerance: float = 1e-10) -> bool:
    return float(left) == pytest.approx(float(right), abs=tolerance)


# Section 4.1: the attracting component


def attractions(f: Tensor, views: Tensor) -> tuple[float, float]:
    """-s(f, E f(T)) and -E s(f, f(T)), T uniform over the views, by the library."""
    z, graph = torch.cat([f[None], views]), Graph.identity(1).views(1 + len(views))
    to_average = InfoNCE(1.0, positives="average").terms(z, graph)["attraction"]
    to_each = InfoNCE(1.0, positives="mean").terms(z, graph)["attraction"]
    return float(to_average), float(to_each)


def test_balanced_theorem_4_4() -> None:
    same_hemisphere = []
    for seed in range(60):
        f, *views = unit(normal(6, 3, seed=seed))
        mean = torch.stack(views).mean(0)
        left, right = attractions(f, torch.stack(views))
        assert close(left, -f @ mean / mean.norm())
        assert close(right, -f @ mean)
        same_hemisphere.append(bool(f @ mean >= 0))
        # Eq. 8 under assumption 4.3, and reversed whenever 4.3 fails.
        assert left < right if same_hemisphere[-1] else left > right
    assert 10 < sum(same_hemisphere) < 50


def test_balanced_theorem_4_4_equality() -> None:
    f = direction(0)
    invariant = direction(25).repeat(3, 1)
    left, right = attractions(f, invariant)
    assert close(left, right)
    # Not only view-invariance: f orthogonal to the mean of views that differ.
    left, right = attractions(f, torch.stack([direction(70), direction(110)]))
    assert close(left, 0) and close(right, 0)
    left, right = attractions(f, torch.stack([direction(60), direction(100)]))
    assert left < right - 1e-3


# Section 4.2: the repelling component


def prototypes(world: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([world[labels == y].mean((0, 1)) for y in range(int(labels.max()) + 1)])


def nearest_prototype(f: Tensor, world: Tensor, labels: Tensor) -> float:
    """max over y' != labels[0] of s(f, E[f(T'(X')) | y']), by the library.

    The anchor is the only row that is not 0, and a zero row is similar to nothing.
    """
    z = torch.zeros(len(labels), len(f), dtype=torch.float64)
    z[0] = f
    objective = PrototypeContrast(1.0, reduction="sum")
    terms = objective.terms(z, Graph.from_labels(labels), target=world.flatten(0, 1))
    return float(terms["repulsion"])


def soft_maximum(f: Tensor, world: Tensor, alpha: float, factor: float) -> float:
    """E_T' (1/alpha) log(factor E_X' exp(alpha s)), by the library's log-sum-exp."""
    logs = [row_logsumexp(f[None], world[:, t], scale=alpha) for t in range(world.shape[1])]
    return float(torch.stack(logs).mean() - math.log(len(world)) + math.log(factor)) / alpha


def smallest_norm(world: Tensor, labels: Tensor) -> float:
    """nu, over the labels that are not the anchor's."""
    norms = prototypes(world, labels).norm(dim=1)
    return float(norms[torch.arange(len(norms)) != labels[0]].min())


def scene(seed: int, sizes: tuple[int, ...] = (4, 4, 4)) -> tuple[Tensor, Tensor, Tensor]:
    """An anchor, a world of classes with unlike spreads, and labels; the anchor faces away from
    everybody in every second scene."""
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    centres = unit(normal(len(sizes), 4, seed=seed) + torch.tensor([1.5, 0, 0, 0]))
    spread = normal(len(sizes), seed=1000 + seed).abs()
    noise = normal(len(labels), 2, 4, seed=2000 + seed)
    world = unit(centres[labels][:, None] + 0.6 * spread[labels][:, None, None] * noise)
    f = unit(normal(4, seed=3000 + seed))
    if seed % 2:
        f = unit(-world.mean((0, 1)) + 0.2 * f)
    return f, world, labels


def facing_away() -> tuple[Tensor, Tensor, Tensor]:
    """Every similarity is negative: -0.5, and -0.087 for a class whose two images nearly cancel."""
    angles = [120, 120, 120, 120, 95, -95]
    world = torch.stack([direction(a) for a in angles])[:, None]
    return direction(0), world, torch.tensor([0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("alpha", [0.5, 2.0, 10.0, 100.0])
def test_balanced_theorem_4_6(alpha: float) -> None:
    signs = []
    for seed in range(24):
        f, world, labels = scene(seed)
        means, others = prototypes(world, labels), torch.arange(3) != labels[0]
        left = nearest_prototype(f, world, labels)
        assert close(left, (means @ f / means.norm(dim=1))[others].max())
        nu, bound = smallest_norm(world, labels), soft_maximum(f, world, alpha, 3)
        assert left <= max(bound, bound / nu) + SLACK
        # As printed it is valid where the bound is not negative...
        signs.append(bound >= 0)
        if bound >= 0:
            assert left <= bound / nu + SLACK
        # ... as it is wherever the anchor lies on the side of its own class.
        if means[labels[0]] @ f >= 0:
            assert bound >= -SLACK
    assert any(signs)
    assert not all(signs) or alpha < 10


@pytest.mark.parametrize("alpha", [50.0, 500.0])
def test_balanced_theorem_4_6_as_printed(alpha: float) -> None:
    f, world, labels = facing_away()
    left, nu = nearest_prototype(f, world, labels), smallest_norm(world, labels)
    bound = soft_maximum(f, world, alpha, 3)
    assert close(left, -0.5)
    assert left > bound / nu + 0.4
    assert left <= max(bound, bound / nu) == bound


def test_balanced_theorem_4_6_step_iv() -> None:
    cases = []
    for seed in range(30):
        f, world, labels = scene(seed)
        others = torch.arange(3) != labels[0]
        means = prototypes(world, labels)[others]
        left = nearest_prototype(f, world, labels)
        expected, nu = float((means @ f).max()), smallest_norm(world, labels)
        cases.append(left <= 0)
        # Case 1 without 1/nu (eq. 34-37), case 2 with it (eq. 39-41).
        assert left <= (expected if left <= 0 else expected / nu) + SLACK
        if expected < 0:
            assert expected / nu < expected  # the step reads <=
    assert any(cases) and not all(cases)
    f, world, labels = facing_away()
    expected = float((prototypes(world, labels)[1:] @ f).max())
    assert nearest_prototype(f, world, labels) > expected / smallest_norm(world, labels) + 0.4


def test_balanced_assumption_4_5() -> None:
    sizes, alpha = (7, 4, 1), 5.0
    smallest = min(sizes) / sum(sizes)
    for seed in range(24):
        f, world, labels = scene(seed, sizes)
        bound = soft_maximum(f, world, alpha, 1 / smallest)
        left, nu = nearest_prototype(f, world, labels), smallest_norm(world, labels)
        assert left <= max(bound, bound / nu) + SLACK


def test_balanced_assumption_4_5_constant() -> None:
    """A rare class at the anchor: log n is too small, log(1 / p_min) is exact up to exp(-2 a)."""
    labels = torch.tensor([0] * 9 + [1])
    world = torch.stack([direction(180)] * 9 + [direction(0)])[:, None]
    f, alpha = direction(0), 5.0
    left = nearest_prototype(f, world, labels)
    assert close(left, 1) and close(smallest_norm(world, labels), 1)
    printed, corrected = (soft_maximum(f, world, alpha, factor) for factor in (2, 10))
    assert printed < left - 0.3
    assert left <= corrected < left + 1e-3


def test_balanced_a_4_5() -> None:
    """No variance at all: every similarity is c. The gap is the floor log(n) / (nu alpha)."""
    c = 0.6
    around = unit(normal(4, 3, seed=0)) * math.sqrt(1 - c * c)
    pairs = torch.stack([around, -around], dim=1).flatten(0, 1)
    world = torch.cat([torch.full((8, 1), c, dtype=torch.float64), pairs], dim=1)[:, None]
    labels, f = torch.arange(4).repeat_interleave(2), torch.eye(4, dtype=torch.float64)[0]
    left, nu = nearest_prototype(f, world, labels), smallest_norm(world, labels)
    assert close(nu, c) and close(left, 1)
    gaps = {a: soft_maximum(f, world, a, 4) / nu - left for a in (1.0, 10.0, 1e6)}
    for alpha, gap in gaps.items():
        assert close(gap, math.log(4) / (nu * alpha))
    assert gaps[1.0] > 2 and gaps[1e6] < 1e-5


def test_balanced_a_4_5_large_alpha_alone() -> None:
    """With variance, Jensen's slack stays as alpha grows: the bound tends to the largest s."""
    world = torch.stack([direction(a) for a in (180, 180, 10, 80)])[:, None]
    labels, f = torch.tensor([0, 0, 1, 1]), direction(0)
    left, nu = nearest_prototype(f, world, labels), smallest_norm(world, labels)
    gap = soft_maximum(f, world, 1e6, 2) / nu - left
    assert gap == pytest.approx(math.cos(math.radians(10)) / nu - left, abs=1e-4)
    assert gap > 0.3


# Lemmas of A.1.2


def log_sum_exp(x: Tensor, alpha: float) -> Tensor:
    """(1/alpha) log sum exp(alpha x_i), by the library: similarities of 1 with the numbers x."""
    one = torch.ones(1, 1, dtype=x.dtype)
    return row_logsumexp(one, x[:, None], scale=alpha)[0] / alpha


@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0, 1e4])
def test_balanced_lemma_a_1(alpha: float) -> None:
    for seed in range(20):
        x = 3 * normal(7, seed=seed)
        value = float(log_sum_exp(x, alpha))
        assert x.max() - SLACK <= value <= x.max() + math.log(7) / alpha + SLACK
    # Both ends are reached: by one dominating number, and by equal ones.
    assert close(log_sum_exp(torch.tensor([1e5, 0, 0], dtype=torch.float64), alpha), 1e5)
    equal = torch.full((7,), 2.0, dtype=torch.float64)
    assert close(log_sum_exp(equal, alpha), 2 + math.log(7) / alpha)


def test_balanced_lemma_a_1_small_alpha() -> None:
    x = normal(7, seed=0)
    for alpha in (1e-3, 1e-6):
        value = float(log_sum_exp(x, alpha))
        assert value * alpha == pytest.approx(math.log(7), abs=2 * alpha)
        assert value - math.log(7) / alpha == pytest.approx(float(x.mean()), abs=2 * alpha + 1e-8)
    stable = x.mean() + torch.log1p(torch.expm1(1e-6 * (x - x.mean())).mean()) / 1e-6
    assert close(stable, x.mean(), 1e-5)


def test_balanced_eq_18() -> None:
    z, graph = two_views(6, seed=0)
    similarities = (z @ z.T).reshape(6, 2, 6, 2)
    blocked = torch.eye(6, dtype=torch.bool)[:, None, :, None]
    nearest = similarities.masked_fill(blocked, -torch.inf).amax((2, 3)).mean()
    gaps = []
    for alpha in (1.0, 10.0, 100.0, 1e5):
        repulsion = BalancedContrastive(alpha, 1.0).terms(z, graph)["repulsion"]
        gaps.append(float(repulsion - nearest))
        assert 0 <= gaps[-1] <= math.log(2 * 5) / alpha
    assert sorted(gaps, reverse=True) == gaps and gaps[-1] < 1e-4


@pytest.mark.parametrize("alpha", [0.3, 5.0])
def test_balanced_lemma_a_2(alpha: float) -> None:
    for seed in range(5):
        x, y = normal(2, 6, seed=seed)
        for share in (0.2, 0.5, 0.9):
            chord = share * log_sum_exp(x, alpha) + (1 - share) * log_sum_exp(y, alpha)
            assert log_sum_exp(share * x + (1 - share) * y, alpha) <= chord + SLACK
        hessian = torch.autograd.functional.hessian(lambda x: log_sum_exp(x, alpha), x)
        values = torch.linalg.eigvalsh(hessian)
        assert values[0] > -1e-10 and values[-1] > 1e-3
        # Flat along (1, ..., 1): there it is linear.
        assert (hessian @ torch.ones(6, dtype=torch.float64)).abs().max() < 1e-10


def test_balanced_lemma_a_3() -> None:
    for seed in range(50):
        first, second = normal(2, 5, seed=seed)
        first, second = first.abs(), second + (second.abs().max() if seed % 2 else 0)
        if second.max() >= 0:
            assert (first * second).max() <= first.max() * second.max()
    # Both conditions are needed.
    first, second = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -1.0])
    assert (first * second).max() > first.max() * second.max()
    first, second = torch.tensor([-2.0, -1.0]), torch.tensor([-2.0, 1.0])
    assert (first * second).max() > first.max() * second.max()


# Sections 4.3, 5 and 6: the losses


def eq_12(f: Tensor, positives: Tensor, candidates: Tensor, alpha: float, ratio: float) -> float:
    """positives[t'] = f(t'(x)), candidates[t', x'] = f(t'(x')), ratio = lambda / nu."""
    terms = [
        -f @ positive + ratio / alpha * (alpha * others @ f).exp().sum().log()
        for positive, others in zip(positives, candidates, strict=True)
    ]
    return float(sum(terms)) / len(terms)


def eq_13(f: Tensor, numerators: Tensor, candidates: Tensor, alpha: float, ratio: float) -> float:
    terms = [
        -torch.log((alpha * f @ top).exp() / (alpha * others @ f).exp().sum() ** ratio)
        for top, others in zip(numerators, candidates, strict=True)
    ]
    return float(sum(terms)) / (alpha * len(terms))


def other_views(z: Tensor, image: int, view: int) -> tuple[Tensor, Tensor, Tensor]:
    """f(t(x)), f(t'(x)) and f(t'(x')) over the other transforms t' and the other images x'."""
    rest = [v for v in range(z.shape[1]) if v != view]
    images = [i for i in range(len(z)) if i != image]
    return z[image, view], z[image, rest], z[images][:, rest].transpose(0, 1)


@pytest.mark.parametrize(("alpha", "ratio"), [(2.0, 1.0), (4.0, 2.0), (0.5, 0.7)])
def test_balanced_eq_12_equals_eq_13(alpha: float, ratio: float) -> None:
    z = unit(normal(5, 4, 3, seed=0))
    f, own, others = other_views(z, 0, 0)
    for candidates in (others, torch.cat([own[:, None], others], dim=1)):
        value = eq_12(f, own, candidates, alpha, ratio)
        assert close(value, eq_13(f, own, candidates, alpha, ratio))
        # As printed, x' of the numerator is bound by the denominator: no other image fits.
        for image in range(len(z) - 1):
            assert abs(value - eq_13(f, others[:, image], candidates, alpha, ratio)) > 1e-2


@pytest.mark.parametrize("views", [2, 3, 4])
def test_balanced_eq_12_several_transforms(views: int) -> None:
    z = unit(normal(5, views, 3, seed=1))
    anchors = [other_views(z, i, v) for i in range(5) for v in range(views)]
    loss = BalancedContrastive(4.0, 2.0, denominator="other-view", positives="mean")
    value = loss(z.flatten(0, 1), Graph.identity(5).views(views))
    assert close(value, np.mean([eq_12(*anchor, 4.0, 2.0) for anchor in anchors]))
    assert close(value, np.mean([eq_13(*anchor, 4.0, 2.0) for anchor in anchors]))


def test_balanced_section_5_1() -> None:
    """Eq. 14 leaves the own image out; (43)-(50) and eq. 11-13 keep it, and differ by more than
    a constant."""
    m, alpha = 6, 3.0
    differences = []
    for seed in range(3):
        z, graph = two_views(m, seed=seed)
        pairs = z.reshape(m, 2, -1)
        excluded, included = [], []
        for i in range(m):
            for view in range(2):
                exponents = alpha * pairs[:, 1 - view] @ pairs[i, view]
                others = exponents[torch.arange(m) != i]
                excluded.append(float(-exponents[i] + others.exp().sum().log()))
                included.append(float(-exponents[i] + exponents.exp().sum().log()))
                # What eq. 42 leaves to trim: log(n - 1), not log n.
                trimmed = float(-exponents[i] + others.exp().mean().log())
                assert close(excluded[-1], trimmed + math.log(m - 1))
        loss = DecoupledContrastive(1 / alpha, denominator="other-view")
        assert close(loss(z, graph), np.mean(excluded))
        differences.append(np.mean(included) - np.mean(excluded))
    assert min(differences) > 0.01
    assert np.ptp(differences) > 0.01


@pytest.mark.parametrize("alpha", [1.0, 5.0, 50.0])
def test_balanced_section_5_1_stop_at_eq_42(alpha: float) -> None:
    """With labels: the bound over y' != y with log(n - 1) holds, and is tighter than (50)."""
    classes, size = 4, 3
    labels = torch.arange(classes).repeat_interleave(size)
    z = unit(normal(classes, 5, seed=0)[labels] + 0.5 * normal(12, 5, seed=1))
    graph = Graph.from_labels(labels)

    def repulsion(denominator: str) -> float:
        loss = BalancedContrastive(alpha, 1.0, positives="mean", denominator=denominator)
        # A sum over images is `size` times the sum over labels of expectations.
        return float(loss.terms(z, graph)["repulsion"]) - math.log(size) / alpha

    expected = z @ prototypes(z[:, None], labels).T
    expected = expected.masked_fill(labels[:, None] == torch.arange(classes), -torch.inf)
    eq_42 = float((alpha * expected).logsumexp(1).mean()) / alpha
    without_own, with_own = repulsion("negatives"), repulsion("all-and-self")
    assert float(expected.max(1).values.mean()) <= eq_42 <= without_own
    assert without_own < with_own - 1e-2
    mask = labels[:, None] != labels
    mean = torch.where(mask, (alpha * z @ z.T).exp(), 0.0).sum(1) / ((classes - 1) * size)
    assert close(without_own, mean.log().mean() / alpha + math.log(classes - 1) / alpha)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 8.0])
def test_balanced_section_6_generalized_ntxent(alpha: float) -> None:
    z, graph = two_views(7, seed=0)
    z.requires_grad_(True)
    value, generalized = NTXent(1 / alpha)(z, graph), GeneralizedNTXent(alpha, 1.0)(z, graph)
    # SimCLR's own form: a cross-entropy over the 2m - 1 other rows.
    logits = (alpha * z @ z.T).masked_fill(torch.eye(14, dtype=torch.bool), -torch.inf)
    partner = torch.arange(14).reshape(7, 2).flip(1).flatten()
    simclr = torch.nn.functional.cross_entropy(logits, partner)
    assert close(value.detach(), simclr.detach())
    assert close(value.detach(), alpha * generalized.detach())
    # The factor is in the gradient too: an effective learning rate.
    slope, scaled = (torch.autograd.grad(loss, z)[0] for loss in (value, generalized))
    assert torch.allclose(slope, alpha * scaled, atol=1e-12)
    assert torch.allclose(slope, scaled) == (alpha == 1)
    # Only for lambda = 1: otherwise the directions differ as well.
    other = torch.autograd.grad(GeneralizedNTXent(alpha, 2.0)(z, graph), z)[0]
    assert torch.cosine_similarity(slope.flatten(), other.flatten(), dim=0) < 0.999


def test_balanced_section_6_simclr() -> None:
    z, graph = two_views(7, seed=1)
    value = GeneralizedNTXent(2.0, 1.0)(z, graph)
    assert close(NTXent(0.5)(z, graph), 2 * value)
    assert abs(NTXent(0.5)(z, graph) - value) > 0.5


# Section 5.2: prototype representation bias


def eq_16(world: Tensor, labels: Tensor) -> float:
    """The mean distance of class prototype and surrogate prototype, by the library's graphs."""
    z = world.flatten(0, 1)
    views = world.shape[1]
    means = []
    for samples in (Graph.from_labels(labels), Graph.identity(len(labels))):
        graph = samples.views(views)
        means.append((graph @ z) / graph.degrees()[:, None])
    return float((means[0] - means[1]).norm(dim=1).mean())


def eq_51(world: Tensor, labels: Tensor) -> float:
    """Its expectation: over x_i, over t_i (shared) and over x'_i of the same class."""
    images = []
    for x in range(len(labels)):
        mates = world[labels == labels[x]]
        images.append(float((mates - world[x]).norm(dim=2).mean()))
    return float(np.mean(images))


def test_balanced_eq_16_versus_eq_51() -> None:
    for seed in range(20):
        _, world, labels = scene(seed)
        bias = eq_16(world, labels)
        direct = prototypes(world, labels)[labels] - world.mean(1)
        assert close(bias, direct.norm(dim=1).mean())
        assert eq_51(world, labels) > bias + 1e-3
    # Views that average to the class prototype for every image: no bias, and eq. 51 is 1.
    world = torch.stack([direction(a) for a in (0, 180, 180, 0)]).reshape(2, 2, 2)
    labels = torch.tensor([0, 0])
    assert close(eq_16(world, labels), 0)
    assert close(eq_51(world, labels), 1)


# Section 5.3, footnote 3


@pytest.mark.parametrize("alpha", [1.0, 4.0])
def test_balanced_footnote_3(alpha: float) -> None:
    z, graph = two_views(6, seed=0)
    squared = NTXent(1 / alpha, similarity="squared-distance")(z, graph)
    assert close(squared, NTXent(1 / (2 * alpha))(z, graph))
    assert abs(squared - NTXent(1 / alpha)(z, graph)) > 1e-2
    # The balanced loss keeps -2 + 2 a.b in its value: a factor and a constant.
    squared = BalancedContrastive(alpha, 3.0, similarity="squared-distance")(z, graph)
    assert close(squared, 2 * BalancedContrastive(2 * alpha, 3.0)(z, graph) + 2 - 2 * 3.0)


def test_balanced_footnote_3_plain_distance() -> None:
    """The plain distance ranks rows as the cosine does, but no temperature makes them one."""
    z, graph = two_views(6, seed=0)
    cosines, distances = (z[0] @ z[1:].T), -torch.cdist(z[:1], z[1:])[0]
    assert torch.equal(cosines.argsort(), distances.argsort())

    def slope(loss: torch.nn.Module) -> Tensor:
        rows = z.clone().requires_grad_(True)
        gradient = torch.autograd.grad(loss(rows, graph), rows)[0]
        return (gradient - (gradient * z).sum(1, keepdim=True) * z).flatten()  # on the sphere

    plain = slope(NTXent(0.5, similarity="distance"))
    squared = slope(NTXent(0.5, similarity="squared-distance"))
    alikeness = {"plain": 0.0, "squared": 0.0}
    for alpha in np.geomspace(0.1, 50, 40):
        cosine = slope(NTXent(1 / alpha))
        for name, other in (("plain", plain), ("squared", squared)):
            value = float(torch.cosine_similarity(cosine, other, dim=0))
            alikeness[name] = max(alikeness[name], value)
    assert alikeness["plain"] < 0.99
    assert alikeness["squared"] > 0.999


# A.3.4: ImageNet-LT


def test_balanced_a_3_4_long_tail() -> None:
    """1000 classes of 5 to 1280 images, 115,846 in all, cannot be Pareto-I with minimum 5."""
    upper_tail = 1 - np.arange(1000) / 1000
    pareto = 5 * upper_tail ** (-1 / 6)
    assert np.round(pareto).max() == 16 and np.round(pareto).sum() == 5945
    draws = 5 * (1 + np.random.default_rng(0).pareto(6, (1000, 1000)))
    assert draws.min() >= 5 and draws.max() < 200 and draws.sum(1).max() < 7000

    def rescaled(lomax: np.ndarray) -> np.ndarray:
        low, high = lomax.min(-1, keepdims=True), lomax.max(-1, keepdims=True)
        return 5 + 1275 * (lomax - low) / (high - low)

    sizes = np.round(rescaled(upper_tail ** (-1 / 6) - 1))
    assert (sizes.min(), sizes.max(), sizes.sum()) == (5, 1280, 121_937)
    # The quantiles are within 6% of the paper's total, which is a typical draw.
    assert abs(sizes.sum() / 115_846 - 1) < 0.06
    totals = rescaled(np.random.default_rng(1).pareto(6, (1000, 1000))).sum(1)
    quarter, three_quarters = np.quantile(totals, [0.25, 0.75])
    assert quarter < 115_846 < three_quarters
