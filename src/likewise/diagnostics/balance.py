"""What the balancing parameters of a contrastive loss do to its two forces."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import rows_of
from likewise.graph import Graph
from likewise.graph.arrays import Array
from likewise.objectives import BalancedContrastive


@dataclass(frozen=True)
class BalanceEffect(Figures):
    """What :func:`balance_effect` found, for one pair of balancing parameters.

    Attributes:
        alpha: inverse temperature.
        weight: lambda, of the repelling part.
        attraction: -mean s of positive pairs.
        repulsion: lambda (1/alpha) mean log-sum-exp over negatives.
        attraction_gradient: norm of the attracting part's gradient in z.
        repulsion_gradient: norm of the repelling part's.
        share: repulsion_gradient / (both), how much of the push is repulsion.
    """

    alpha: float
    weight: float
    attraction: float
    repulsion: float
    attraction_gradient: float
    repulsion_gradient: float
    share: float


def balance_effect(
    z: Array,
    *,
    n_views: int = 2,
    alphas: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0),
    weights: tuple[float, ...] = (0.5, 1.0, 2.0),
) -> list[BalanceEffect]:
    r"""What the balancing parameters alpha and lambda do to the two forces on given embeddings.

    .. math:: \ell = -s(z_i, z_i') + \tfrac{\lambda}{\alpha} \log \sum_j e^{\alpha s(z_i, z_j)}

    with j over both views of the other samples.

    Paper: balanced, section 6 (figure 5 trains with such a grid; this shows the forces at a given
    point). One entry for every alpha and every lambda, in that order.

    Args:
        z: a batch of embeddings (n V, d), sample-major.
        n_views: V, at least 2.
        alphas: inverse temperatures.
        weights: lambdas.

    >>> z = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    >>> found = balance_effect(z, alphas=(2.0,), weights=(1.0, 2.0))
    >>> found[0].attraction == found[1].attraction, found[0].share < found[1].share
    (True, True)
    """
    rows = rows_of(z, "z", at_least=2 * n_views).double()
    if n_views < 2 or len(rows) % n_views:
        raise ValueError(
            f"z has {len(rows)} rows and n_views is {n_views}: give at least 2 views of each sample"
        )
    graph = Graph.identity(len(rows) // n_views).views(n_views).to(rows.device)
    found = []
    for alpha in alphas:
        for weight in weights:
            at = rows.clone().requires_grad_(True)
            terms = BalancedContrastive(alpha, weight).terms(at, graph)
            pulls = {
                name: float(torch.autograd.grad(term, at, retain_graph=True)[0].norm())
                for name, term in terms.items()
            }
            pull, push = pulls["attraction"], pulls["repulsion"]
            still = pull + push == 0
            found.append(
                BalanceEffect(
                    ("no force acts: all rows are equal",) if still else (),
                    alpha,
                    weight,
                    terms["attraction"].item(),
                    terms["repulsion"].item(),
                    pull,
                    push,
                    UNDEFINED if still else push / (pull + push),
                )
            )
    return found
