"""One loss under many names: the contrastive losses of papers 001 to 004 against each other."""

import math

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
)

M = 6
GRAPH = Graph.identity(M).views(2)
ALPHAS = [0.5, 2.0, 10.0]


def rows(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2 * M, 5, generator=generator, dtype=torch.float64)


def cosines(z: Tensor) -> Tensor:
    z = z / z.norm(dim=1, keepdim=True)
    return z @ z.T


def close(left: Tensor | float, right: Tensor | float) -> bool:
    return float(left) == pytest.approx(float(right), abs=1e-10)


def printed(z: Tensor, alpha: float, *, anchors: str, denominator: str) -> float:
    """mean of -log exp(alpha s(z, z+)) / sum exp(alpha s(z, z')), pair by pair."""
    s, total = alpha * cosines(z), []
    for i in range(0, 2 * M, 1 if anchors == "both" else 2):
        partner = i + 1 - 2 * (i % 2)
        others = [k for k in range(2 * M) if k // 2 != i // 2]
        candidates = {
            "m-1": [k for k in others if k % 2 != i % 2],
            "2(m-1)": others,
            "2m-1": [*others, partner],
            "2m": [*others, partner, i],
        }[denominator]
        total.append(math.log(sum(math.exp(s[i, k]) for k in candidates)) - float(s[i, partner]))
    return sum(total) / len(total)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cross_paper_contrastive_identities(alpha: float) -> None:
    z = rows(0)
    # 004 eq. 1, symmetrised = beta times 002 eq. 17 at alpha = beta, lambda = 1.
    symmetric = InfoNCE(alpha, symmetric=True)(z, GRAPH)
    assert close(symmetric, alpha * BalancedContrastive(alpha, 1.0)(z, GRAPH))
    assert close(symmetric, printed(z, alpha, anchors="both", denominator="2(m-1)"))
    first = InfoNCE(alpha)(z, GRAPH)
    assert close(first, printed(z, alpha, anchors="first", denominator="2(m-1)"))
    swapped = InfoNCE(alpha)(z.reshape(M, 2, -1).flip(1).flatten(0, 1), GRAPH)
    assert close(symmetric, (first + swapped) / 2)
    # 001 eq. 1 = 002 eq. 15 = 002 section 6 at lambda = 1, times alpha.
    simclr = NTXent(1 / alpha)(z, GRAPH)
    assert close(simclr, printed(z, alpha, anchors="both", denominator="2m-1"))
    assert close(simclr, alpha * GeneralizedNTXent(alpha, 1.0)(z, GRAPH))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cross_paper_pal_eq_3_is_balanced_eq_14(alpha: float) -> None:
    """003 eq. 3 sums -C_ii / tau + log sum_{j != i} exp(C_ij / tau) over the first views."""
    z = rows(1)
    c = cosines(z)[0::2, 1::2]
    off = c.masked_fill(torch.eye(M, dtype=torch.bool), -torch.inf)
    eq_3 = (-alpha * c.diagonal() + (alpha * off).logsumexp(1)).sum()
    loss = InfoNCE(alpha, denominator="other-view", reduction="sum")
    assert close(eq_3, loss(z, GRAPH))
    # Both views as anchors: 002 eq. 14 for every representation.
    both = DecoupledContrastive(1 / alpha, denominator="other-view")(z, GRAPH)
    assert close(both, printed(z, alpha, anchors="both", denominator="m-1"))
    flipped = loss(z.reshape(M, 2, -1).flip(1).flatten(0, 1), GRAPH)
    assert close(2 * M * both, eq_3 + flipped)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cross_paper_ntxent_is_decoupled_with_the_positive(alpha: float) -> None:
    """Anchor by anchor: NT-Xent = log(1 + exp(decoupled))."""
    z = rows(2)
    for image in range(M):
        # One image, its first view as the anchor, and the other images as negatives.
        own = z[2 * image : 2 * image + 2]
        rest = torch.cat([z[: 2 * image], z[2 * image + 2 :]])
        graph = Graph.identity(1).views(2)
        with_positive = InfoNCE(alpha, denominator="all")(own, graph, negatives=rest)
        without = InfoNCE(alpha)(own, graph, negatives=rest)
        assert close(with_positive, torch.nn.functional.softplus(without))


@pytest.mark.parametrize(
    ("denominator", "name", "count"),
    [
        ("other-view", "m-1", M - 1),
        ("negatives", "2(m-1)", 2 * (M - 1)),
        ("all", "2m-1", 2 * M - 1),
        ("all-and-self", "2m", 2 * M),
    ],
)
def test_cross_paper_four_denominators(denominator: str, name: str, count: int) -> None:
    # Equal rows: the loss is the logarithm of the number of terms.
    same = torch.ones(2 * M, 3, dtype=torch.float64)
    for temperature in (0.1, 1.0):
        assert close(NTXent(temperature, denominator=denominator)(same, GRAPH), math.log(count))
    for seed in range(3):
        value = NTXent(0.5, denominator=denominator)(rows(seed), GRAPH)
        assert close(value, printed(rows(seed), 2.0, anchors="both", denominator=name))


def test_cross_paper_four_denominators_are_four_losses() -> None:
    names = ("other-view", "negatives", "all", "all-and-self")
    values = [float(NTXent(0.5, denominator=name)(rows(3), GRAPH)) for name in names]
    steps = [large - small for small, large in zip(values, values[1:], strict=False)]
    assert min(steps) > 0.05
