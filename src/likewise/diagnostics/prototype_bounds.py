"""The two bounds that turn a supervised loss into a contrastive one, and how tight they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import drawn, positive
from likewise.diagnostics.prototype import DISTANCES_AT_ONCE, World, world_of
from likewise.graph.arrays import Array


@dataclass(frozen=True)
class BoundGaps(Figures):
    """What :func:`prototype_bounds` found; each a mean over anchors.

    Attributes:
        attracting: -s(f, E_T f(T)), the left of equation 8.
        attracting_bound: -E_T s(f, f(T)), the right.
        attracting_gap: right less left; not negative for anchors that satisfy assumption 4.3.
        wrong_side: share of anchors with f . E_T f(T) < 0, for which equation 8 is reversed.
        repelling: max over other classes of s(f, prototype), the left of equation 10.
        repelling_bound: its right in the corrected form max(B, B / nu).
        repelling_gap: right less left, never negative.
        printed_bound: the right as printed, B / nu.
        printed_broken: share of anchors for which the printed bound fails (B < 0).
        nu: the mean over anchors of nu, the least norm of another class's prototype.
        floor: mean of log(1 / p_min) / (nu alpha), what remains however alike all are.
        alpha: the inverse temperature.
        anchors: how many rows were anchors.
    """

    attracting: float
    attracting_bound: float
    attracting_gap: float
    wrong_side: float
    repelling: float
    repelling_bound: float
    repelling_gap: float
    printed_bound: float
    printed_broken: float
    nu: float
    floor: float
    alpha: float
    anchors: int


@torch.no_grad()
def prototype_bounds(
    z: Array,
    labels: Any,
    *,
    n_views: int,
    alpha: float = 2.0,
    max_anchors: int | None = 1024,
    seed: int = 0,
) -> BoundGaps:
    r"""The two bounds that lead from supervised to contrastive learning, and how tight they are.

    For an anchor f, a view of x in class y, with unit rows:

    .. math::
        -s(f, E_T f(T(x))) &\le -E_T\, s(f, f(T(x))) \\
        \max_{y' \ne y} s(f, \mu_{y'}) &\le \max(B, B/\nu), \qquad
        B = E_{T'} \tfrac1\alpha \log\bigl(\tfrac{1}{p_{\min}} E_{X'} e^{\alpha s(f, f(T'(X')))}
        \bigr), \quad \nu = \min_{y' \ne y} |\mu_{y'}|

    E_T, E_T' and the prototypes are over the other views than the anchor's own, E_X' over all
    samples.

    Paper: balanced, theorems 4.4 and 4.6, figure 6 (its anchors' gaps). Errata: the printed bound
    B / nu fails where B < 0; classes need not be balanced with log(1 / p_min) instead of log n;
    the first bound is reversed where assumption 4.3 fails.

    Args:
        z: embeddings (n V, d); view v of sample i is row i V + v. Taken to length 1.
        labels: class indices (n,), -1 where unknown (left out).
        n_views: V; with one view the attracting bound is undefined.
        alpha: the inverse temperature.
        max_anchors: how many rows to average over at most; None for all.
        seed: of the draw of anchors.

    >>> z = torch.tensor([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4)
    >>> found = prototype_bounds(z, [0, 0, 1, 1], n_views=2, alpha=1e6)
    >>> found.attracting_gap, round(found.repelling, 6), round(found.repelling_gap, 4)
    (0.0, 0.0, 1.0)
    """
    alpha = positive("alpha", alpha, "balanced uses 2 to 10")
    world = world_of(z, labels, n_views, True)
    if len(world.counts) < 2:
        raise ValueError("labels hold one class only: a class to be repelled from is missing")
    notes = list(world.notes)
    n = len(world.views)
    index = drawn(n * n_views, max_anchors, seed, "max_anchors")
    if index is None:
        index = torch.arange(n * n_views)
    else:
        notes.append(f"{len(index)} of {n * n_views} rows, drawn with seed {seed}, are anchors")
    if n_views < 2:
        notes.append("one view a sample: the attracting bound is undefined, and T' is that view")
    parts = []
    for view in range(n_views):
        sample = (index[index % n_views == view] // n_views).to(world.views.device)
        if len(sample):
            parts.append(_per_anchor(world, sample, view, alpha))
    columns = torch.cat(parts).T
    attracting, attracting_bound, wrong, nearest, soft, nu = columns
    floor = math.log(n / float(world.counts.min())) / (nu * alpha)
    bound, printed = torch.maximum(soft, soft / nu), soft / nu
    return BoundGaps(
        notes=tuple(notes),
        attracting=float(attracting.mean()),
        attracting_bound=float(attracting_bound.mean()),
        attracting_gap=float((attracting_bound - attracting).mean()),
        wrong_side=float(wrong.mean()),
        repelling=float(nearest.mean()),
        repelling_bound=float(bound.mean()),
        repelling_gap=float((bound - nearest).mean()),
        printed_bound=float(printed.mean()),
        printed_broken=float((printed < nearest - 1e-12).double().mean()),
        nu=float(nu.mean()),
        floor=float(floor.mean()),
        alpha=alpha,
        anchors=len(index),
    )


def _per_anchor(world: World, sample: Tensor, view: int, alpha: float) -> Tensor:
    """For anchors of one view: both sides of equation 8, whether 4.3 fails, max s, B and nu."""
    n, n_views, _ = world.views.shape
    # T and T' are drawn apart from the anchor's own t: the other views stand for them.
    rest = [v for v in range(n_views) if v != view] or [view]
    anchors = world.views[sample, view].double()
    means = torch.zeros_like(world.views[:, 0], dtype=torch.float64)
    for other in rest:
        means += world.views[:, other].double() / len(rest)
    prototypes = world.class_means(means)
    norms = prototypes.norm(dim=1)
    own = world.codes[sample]
    foreign = torch.arange(len(norms), device=own.device) != own[:, None]
    nu = norms.expand(len(own), -1).masked_fill(~foreign, torch.inf).amin(dim=1)
    if bool((nu <= 1e-12).any()):
        raise ValueError("the prototype of a class is zero: the repelling bound is undefined (nu)")
    nearest = (anchors @ prototypes.T / norms).masked_fill(~foreign, -torch.inf).amax(dim=1)
    rarity = math.log(n / float(world.counts.min()))
    soft = _soft_maximum(anchors, world.views, rest, alpha) + rarity / alpha
    if n_views < 2:
        nothing = torch.full_like(nearest, UNDEFINED)
        return torch.stack([nothing, nothing, nothing, nearest, soft, nu], dim=1)
    products = (anchors * means[sample]).sum(dim=1)
    lengths = means[sample].norm(dim=1).clamp_min(torch.finfo(torch.float64).tiny)
    wrong = (products < 0).double()
    return torch.stack([-products / lengths, -products, wrong, nearest, soft, nu], dim=1)


def _soft_maximum(anchors: Tensor, views: Tensor, rest: list[int], alpha: float) -> Tensor:
    """E_T' (1/alpha) log E_X' exp(alpha s), for each anchor, T' over the views `rest`."""
    total = torch.zeros(len(anchors), dtype=torch.float64, device=anchors.device)
    step = max(DISTANCES_AT_ONCE // len(anchors), 1)
    for view in rest:
        logs = [
            torch.logsumexp(alpha * anchors @ part.double().T, dim=1)
            for part in views[:, view].split(step)
        ]
        total += torch.stack(logs).logsumexp(dim=0) - math.log(len(views))
    return total / (len(rest) * alpha)
