"""Is the mean view of one image a fair stand-in for its class? Prototype representation bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import (
    chunks,
    labels_of,
    one_of,
    rows_of,
    unit_rows,
)
from likewise.graph.arrays import Array

DISTANCES_AT_ONCE = 2**22
"""How many distances or similarities are held at a time."""


@dataclass(frozen=True)
class World:
    """Views (n, V, d) of labelled samples, and their class codes from 0."""

    views: Tensor
    codes: Tensor
    counts: Tensor
    notes: tuple[str, ...]

    def view_means(self) -> tuple[Tensor, Tensor]:
        """Mean view of each sample (n, d) in float64, and the variance of its views (n,)."""
        means, spreads = [], []
        for _, chunk in chunks(self.views):
            wide = chunk.double()
            mean = wide.mean(dim=1)
            means.append(mean)
            ddof = max(wide.shape[1] - 1, 1)
            spreads.append((wide - mean[:, None]).square().sum(dim=(1, 2)) / ddof)
        return torch.cat(means), torch.cat(spreads)

    def class_means(self, of: Tensor) -> Tensor:
        """Mean of rows over each class, (K, d)."""
        sums = torch.zeros(len(self.counts), of.shape[1], dtype=of.dtype, device=of.device)
        return sums.index_add_(0, self.codes, of) / self.counts[:, None]


def world_of(z: Array, labels: Any, n_views: int, normalize: bool) -> World:
    """Rows, sample-major, as views of labelled samples; samples without a label are left out."""
    rows = rows_of(z, "z")
    if isinstance(n_views, bool) or not isinstance(n_views, int) or n_views < 1:
        raise ValueError(f"n_views is {n_views!r}: give how many rows each sample has")
    if len(rows) % n_views:
        raise ValueError(
            f"z has {len(rows)} rows, which {n_views} views a sample do not divide: view v of "
            "sample i is row i * n_views + v"
        )
    if normalize:
        rows = torch.cat([unit_rows(chunk) for _, chunk in chunks(rows)])
    views = rows.reshape(-1, n_views, rows.shape[1])
    indices = labels_of(labels, len(views), device=rows.device)
    known = indices >= 0
    notes: tuple[str, ...] = ()
    if not bool(known.any()):
        raise ValueError("labels hold no label (every one is -1): give some labels")
    if not bool(known.all()):
        notes = (f"{int((~known).sum())} samples without a label are left out",)
        views, indices = views[known], indices[known]
    codes, counts = torch.unique(indices, return_inverse=True, return_counts=True)[1:]
    return World(views, codes, counts.double(), notes)


@dataclass(frozen=True)
class PrototypeBias(Figures):
    """What :func:`prototype_bias` found.

    Attributes:
        squared: the unbiased estimate of E |mu_y - m_x|^2; may be slightly negative.
        bias: mean over samples of the root of the unbiased square (0 where negative): equation 16
            with the noise of finitely many views taken out.
        plug_in: equation 16 with sample means put in: too large by what views (and class mates)
            scatter.
        printed: equation 51 as the paper computes it, an upper bound of equation 16.
        samples: how many samples are averaged over.
        n_views: V.
    """

    squared: float
    bias: float
    plug_in: float
    printed: float
    samples: int
    n_views: int


@torch.no_grad()
def prototype_bias(
    z: Array,
    labels: Any,
    *,
    n_views: int,
    normalize: bool = True,
    over: Literal["dataset", "distribution"] = "dataset",
    mates: int | None = 1,
    seed: int = 0,
) -> PrototypeBias:
    r"""How far the mean view of an image is from the prototype of its class.

    .. math:: \mathrm{Bias} = E_{(X_0, Y_0)} \bigl| E_{T, X | Y_0} f(T(X)) - E_T f(T(X_0)) \bigr|

    Means over V views are noisy, and noise adds to a norm. With :math:`\hat m_x` the mean of the V
    views of x, :math:`s_x^2` their summed variance (with V - 1) and
    :math:`\hat\delta_x = \sum_j a_j \hat m_j`, :math:`a_j = 1/n_c - 1\{j = x\}` over the class:

    .. math:: E\bigl[|\hat\delta_x|^2 - \textstyle\sum_j a_j^2 s_j^2 / V\bigr] = |\delta_x|^2

    which is exact for any V >= 2. No estimate of the norm itself is unbiased; `bias` averages the
    roots of these squares. With ``over="distribution"`` the class is a sample of a larger one:
    mates other than x stand for it, and the variance of their mean is taken off as well.

    Paper: balanced, equation 16; A.3.2, equation 51. Errata: equation 51 puts the norm inside the
    expectations, |f(t_i(x_i')) - f(t_i(x_i))| for one x_i' of the class (x_i itself not excluded)
    and a shared t_i: by Jensen an upper bound only. Here t_i is shared where the caller drew view v
    of all samples with the same parameters; otherwise t is independent.

    Args:
        z: embeddings (n V, d); view v of sample i is row i V + v.
        labels: class indices (n,), -1 where unknown (left out).
        n_views: V; with one view the unbiased estimates are undefined.
        normalize: whether to take rows to length 1 (assumption 4.2).
        over: what the expectation over X is of: this data set, or what it is a sample of.
        mates: class mates x' drawn for each view of equation 51; None averages over all of them.
        seed: of that draw.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> found = prototype_bias(z, [0, 0], n_views=2, mates=None)
    >>> round(found.bias, 6), round(found.printed, 6)  # half a diagonal; half of the pairs differ
    (0.707107, 0.707107)
    """
    one_of("over", over, ("dataset", "distribution"))
    world = world_of(z, labels, n_views, normalize)
    notes = list(world.notes)
    means, spread = world.view_means()
    prototypes = world.class_means(means)
    sizes = world.counts[world.codes]
    if over == "dataset":
        used = torch.ones(len(means), dtype=torch.bool, device=means.device)
        plug = (prototypes[world.codes] - means).square().sum(dim=1)
        # sum_j a_j^2 s_j^2: every mate with 1/n_c^2, x itself with (1 - 1/n_c)^2.
        mean_spread = world.class_means(spread[:, None])[world.codes, 0]
        noise = (mean_spread / sizes + (1 - 2 / sizes) * spread) / n_views
    else:
        used = sizes > 2
        rest = (sizes - 1).clamp_min(1)
        others = (sizes[:, None] * prototypes[world.codes] - means) / rest[:, None]
        plug = (others - means).square().sum(dim=1)
        scatter = _scatter_of_others(world, means, prototypes, others)
        noise = scatter / rest + spread / n_views
        if left := int((~used).sum()):
            notes.append(f"{left} samples of classes with at most two samples are left out")
    alone = int((world.counts == 1).sum())
    if alone == len(world.counts):
        used = torch.zeros_like(used)
        notes.append("every class has one sample, which is its own prototype: bias undefined")
    elif alone and over == "dataset":
        notes.append(f"{alone} classes have one sample, its own prototype: it counts with bias 0")
    squared = bias = plug_in = UNDEFINED
    if bool(used.any()):
        plug_in = float(plug[used].sqrt().mean())
        if n_views < 2:
            notes.append("one view a sample: the noise of views is unknown, no unbiased estimate")
        else:
            unbiased = (plug - noise)[used]
            squared, bias = float(unbiased.mean()), float(unbiased.clamp_min(0).sqrt().mean())
    printed = _printed(world, mates, seed) if bool(used.any()) else UNDEFINED
    return PrototypeBias(
        tuple(notes), squared, bias, plug_in, printed, int(used.sum()), world.views.shape[1]
    )


def _scatter_of_others(world: World, means: Tensor, prototypes: Tensor, others: Tensor) -> Tensor:
    """Summed variance (with n_c - 2) of the mates' means around their own mean, for each x."""
    centre = prototypes[world.codes]
    apart = (means - centre).square().sum(dim=1)
    total = world.class_means(apart[:, None])[world.codes, 0] * world.counts[world.codes]
    sizes = world.counts[world.codes]
    # sum_{j != x} |m_j - mean|^2 = total - |m_x - mean|^2, about the class mean; shift to others'.
    around = total - apart - (sizes - 1) * (others - centre).square().sum(dim=1)
    return around.clamp_min(0) / (sizes - 2).clamp_min(1)


def _printed(world: World, mates: int | None, seed: int) -> float:
    """Equation 51: the mean distance to class mates in the same view."""
    n, n_views, _ = world.views.shape
    order = torch.argsort(world.codes, stable=True)
    starts = torch.cat([world.counts.new_zeros(1), world.counts.cumsum(0)[:-1]]).long()
    total = 0.0
    if mates is None:
        for group in order.split(world.counts.long().tolist()):
            members = world.views[group].double().transpose(0, 1)  # (V, n_c, d)
            step = max(DISTANCES_AT_ONCE // (len(group) * n_views), 1)
            sums = [
                torch.cdist(members[:, at : at + step], members).sum()
                for at in range(0, len(group), step)
            ]
            total += float(torch.stack(sums).sum()) / len(group)
        return total / (n * n_views)
    if isinstance(mates, bool) or not isinstance(mates, int) or mates < 1:
        raise ValueError(f"mates is {mates!r}: give how many to draw, at least 1, or None for all")
    generator = torch.Generator().manual_seed(seed)
    sizes = world.counts[world.codes]
    for _ in range(mates):
        chance = torch.rand(n, n_views, generator=generator, dtype=torch.float64)
        place = (chance.to(sizes.device) * sizes[:, None]).long()
        mate = order[starts[world.codes][:, None] + place]
        for at, chunk in chunks(world.views):
            picked = mate[at : at + len(chunk)]
            other = world.views[picked, torch.arange(n_views, device=picked.device)]
            total += float((other.double() - chunk.double()).norm(dim=2).sum())
    return total / (n * n_views * mates)
