"""Regression on labels and on the graph, side by side; which directions still learn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import drawn, positive, rows_of
from likewise.diagnostics.neighbors import nearest_of_many
from likewise.graph import Graph
from likewise.graph.arrays import Array, in_kind, is_numpy
from likewise.information.precision import rounding
from likewise.objectives import AbsoluteRegression, RelativeRegression


@dataclass(frozen=True)
class RegressionLosses(Figures):
    """What :func:`regression_losses` found.

    Attributes:
        absolute: the least squared error of a linear head on the targets (equation 1).
        relative: the same from the graph alone (equation 2 with its constant).
        difference: absolute - relative, 0 up to round-off (theorem 1).
        chance: Tr(HGH) / N, the loss of a constant prediction; the largest value there is.
        explained: 1 - relative / chance.
    """

    absolute: float
    relative: float
    difference: float
    chance: float
    explained: float


@torch.no_grad()
def regression_losses(z: Array, graph: Graph, *, regularization: float = 0.01) -> RegressionLosses:
    r"""The loss of the best linear head with labels (absolute) and from the graph (relative).

    .. math:: \min_{W, b} \tfrac1N |ZW^\top + 1b^\top - Y|_F^2 + \lambda |W|_F^2
        \;=\; \lambda\, \mathrm{Tr}\bigl(HGH (HZZ^\top H + \lambda N I)^{-1}\bigr),
        \qquad G = YY^\top

    Paper: supervised-theory, theorem 1, equations 1 and 2. Errata: the SVD is of the centred rows
    (here none is taken), and the constant Tr(HGH) / N is kept.

    Args:
        z: embeddings (N, d), one row per node of the graph.
        graph: labels, views or answers; without targets behind it (edges, negative weights) the
            absolute loss is undefined.
        regularization: lambda.

    >>> z = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64)
    >>> found = regression_losses(z, Graph.from_labels(torch.tensor([0, 0, 1, 1])))
    >>> round(found.absolute, 6), round(found.relative, 6), round(found.chance, 6)
    (0.00495, 0.00495, 0.5)
    """
    rows = rows_of(z, "z").double()
    _same_nodes(len(rows), graph)
    graph = graph.to(rows.device)
    notes = []
    relative = float(RelativeRegression(regularization)(rows, graph))
    try:
        absolute = float(AbsoluteRegression(regularization)(rows, graph))
    except ValueError as error:
        notes.append(f"the absolute loss is undefined: {error}")
        absolute = UNDEFINED
    degrees = graph._degrees(False, torch.float64)
    chance = (graph.trace() - float(degrees.sum()) / len(rows)) / len(rows)
    explained = UNDEFINED
    if chance > 1e-12 * max(graph.trace() / len(rows), 1e-300):
        explained = 1 - relative / chance
    else:
        notes.append("the graph is constant after centring (one class?): nothing to explain")
    return RegressionLosses(
        tuple(notes), absolute, relative, absolute - relative, chance, explained
    )


def _same_nodes(n: int, graph: Graph) -> None:
    if n != graph.n:
        raise ValueError(
            f"z has {n} rows, but the graph has {graph.n} nodes: give one row per node "
            "(graph.views(v) for v views of every sample)"
        )


@dataclass(frozen=True)
class DirectionGradients(Figures):
    """What :func:`direction_gradients` found, for every singular direction k of the centred rows.

    Attributes:
        singular_values: sigma_k, largest first.
        alignment: (V^T G V)_kk, how much of the graph the direction carries.
        gradient: d loss / d sigma_k.
        gain: how much of the loss the direction has taken off, D_kk (V^T G V)_kk / N.
        peak: sqrt(lambda N / 3), the singular value at which the gradient is largest.
        stalled: share of the graph's alignment in directions with less than a tenth of the
            gradient that they would have at the peak.
    """

    singular_values: Any
    alignment: Any
    gradient: Any
    gain: Any
    peak: float
    stalled: float


@torch.no_grad()
def direction_gradients(
    z: Array, graph: Graph, *, regularization: float = 0.01
) -> DirectionGradients:
    r"""How strongly the loss still pulls at each singular direction of the embeddings.

    With the SVD of the centred rows HZ = V diag(sigma) U^T:

    .. math:: \frac{\partial \mathcal L}{\partial \sigma_k} = -(V^\top G V)_{kk}\,
        \frac{2 \lambda \sigma_k}{(\sigma_k^2 + \lambda N)^2}

    Paper: supervised-theory, theorem 2 (figure 1). Errata: the gradient vanishes for large
    sigma_k and also at 0, with its peak at sqrt(lambda N / 3): a collapsed direction gets none.
    (V^T G V)_kk can be negative where HGH is not positive semi-definite.

    Args:
        z: embeddings (N, d).
        graph: who is alike, over the same N nodes.
        regularization: lambda > 0.

    >>> z = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64)
    >>> found = direction_gradients(z, Graph.from_labels(torch.tensor([0, 0, 1, 1])))
    >>> found.singular_values.tolist(), found.alignment.tolist()
    ([2.0], [2.0])
    """
    rows = rows_of(z, "z", at_least=2).double()
    _same_nodes(len(rows), graph)
    weight = positive("regularization", regularization, "0.01")
    n = len(rows)
    left, values, _ = torch.linalg.svd(rows - rows.mean(dim=0), full_matrices=False)
    values = torch.where(values > rounding(torch.float64) * rows.norm(), values, 0.0)
    product = torch.as_tensor(graph.to(rows.device) @ left)
    aligned = torch.where(values > 0, (left * product).sum(dim=0), 0.0)
    ridge = weight * n
    gradient = -aligned * 2 * weight * values / (values.square() + ridge).square()
    gain = aligned * values.square() / (values.square() + ridge) / n
    peak = math.sqrt(ridge / 3)
    notes, stalled = [], UNDEFINED
    strongest = 2 * weight * peak / (peak**2 + ridge) ** 2 * aligned.clamp_min(0)
    mass = float(aligned.clamp_min(0).sum())
    if mass > 0:
        slow = -gradient < 0.1 * strongest
        stalled = float(aligned.clamp_min(0)[slow].sum()) / mass
    else:
        notes.append("no direction carries any of the graph: what is stalled is undefined")
    if dead := int((values == 0).sum()):
        notes.append(f"{dead} directions are collapsed (singular value 0) and get no gradient")
    numpy = is_numpy(z)
    return DirectionGradients(
        tuple(notes),
        in_kind(values, numpy),
        in_kind(aligned, numpy),
        in_kind(gradient, numpy),
        in_kind(gain, numpy),
        peak,
        stalled,
    )


@dataclass(frozen=True)
class ConfusionRate(Figures):
    """What :func:`confusion_rate` found.

    Attributes:
        rate: the average confusion rate, in [0, 1].
        chance: that of embeddings that know nothing: the share of other samples' views.
        views: how many views were asked about.
    """

    rate: float
    chance: float
    views: int


@torch.no_grad()
def confusion_rate(
    z: Array, *, n_views: int, k: int = 1, max_queries: int | None = 4096, seed: int = 0
) -> ConfusionRate:
    r"""How often the nearest other view of a view comes from another sample.

    .. math:: \mathrm{ACR} = \frac{1}{nV} \sum_{i, v} \frac1k
        \#\{(j, u) \in N_k(i, v) : j \ne i\}

    with N_k the k nearest of all other views by the cosine. 0: augmentation never makes two
    samples meet (too weak to connect them, or perfectly undone); near 1: views of a sample are
    lost among those of others (too strong).

    Paper: supervised-theory, appendix B.1, which names the average confusion rate of Wang et al.
    2022 without its formula; this is that paper's ratio for the k nearest neighbours.

    Args:
        z: embeddings (n V, d); view v of sample i is row i V + v.
        n_views: V, at least 2.
        k: how many neighbours, at most V - 1, so that 0 can be reached.
        max_queries: how many views to ask about at most; None for all.
        seed: of that draw.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> confusion_rate(z, n_views=2).rate
    0.0
    """
    rows = rows_of(z, "z")
    if isinstance(n_views, bool) or not isinstance(n_views, int) or n_views < 2:
        raise ValueError(f"n_views is {n_views!r}: give at least 2 views of each sample")
    n = len(rows) // n_views
    if len(rows) % n_views or n < 2:
        raise ValueError(
            f"z has {len(rows)} rows for {n_views} views a sample: give all views of at least two "
            "samples, sample by sample"
        )
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < n_views:
        raise ValueError(f"k is {k!r}: give 1 to n_views - 1 = {n_views - 1} neighbours")
    index = drawn(len(rows), max_queries, seed, "max_queries")
    notes = []
    if index is None:
        index = torch.arange(len(rows))
    else:
        notes.append(f"{len(index)} of {len(rows)} views, drawn with seed {seed}, are asked about")
    index = index.to(rows.device)
    near = nearest_of_many(rows, rows[index], k + 1)[1]
    itself = near == index[:, None]
    # The view itself is among the k + 1 unless as many others are equal to it: drop one of them.
    itself[:, -1] |= ~itself.any(dim=1)
    others = near[~itself].reshape(len(index), k)
    wrong = others // n_views != (index // n_views)[:, None]
    chance = (len(rows) - n_views) / (len(rows) - 1)
    return ConfusionRate(tuple(notes), float(wrong.double().mean()), chance, len(index))
