"""Alignment and uniformity on the sphere, and how far views differ beside how far data spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import (
    drawn,
    pair_of,
    positive,
    rows_of,
    unit_rows,
    wide_chunks,
)
from likewise.diagnostics.moments import moments
from likewise.graph.arrays import Array

PAIRS_AT_ONCE = 2**22
"""How many distances a tile holds."""


@torch.no_grad()
def alignment(z1: Array, z2: Array, *, alpha: float = 2.0) -> float:
    r"""How far apart the two views of a sample are: :math:`\frac1n \sum_i |z_i^1 - z_i^2|^\alpha`.

    Rows are taken to length 1 first. From differences, never from 2 - 2 cos, which would lose
    close views to round-off.

    Paper: Wang and Isola 2020, equation 2 (matrix-ssl, section 5).

    Args:
        z1: one view of every sample (n, d).
        z2: another view of the same samples.
        alpha: the power.

    Returns:
        0 for equal directions, 2^alpha for opposite ones.

    >>> alignment(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    2.0
    """
    first, second = pair_of(z1, z2, "z1", "z2")
    alpha = positive("alpha", alpha, "Wang and Isola use 2")
    total = 0.0
    pairs = zip(wide_chunks(first, unit=True), wide_chunks(second, unit=True), strict=True)
    for (_, one), (_, two) in pairs:
        squares = (one - two).square().sum(dim=1)
        total += float(squares.pow(alpha / 2).sum())
    return total / len(first)


@dataclass(frozen=True)
class Uniformity(Figures):
    """What :func:`uniformity` found.

    Attributes:
        value: the figure.
        error: its standard error over the draw of rows (0 where all rows were used).
        rows: how many rows were compared, each with each.
    """

    value: float
    error: float
    rows: int


@torch.no_grad()
def uniformity(
    z: Array, *, t: float = 2.0, max_rows: int | None = 16384, seed: int = 0
) -> Uniformity:
    r"""How evenly the rows cover the sphere: the logarithm of a mean Gaussian potential.

    .. math:: \log \frac{1}{n(n-1)} \sum_{i \ne j} \exp(-t |z_i - z_j|^2), \qquad |z_i| = 1

    0 where all rows are equal, the less the more even; uniform rows in many dimensions reach -2t.

    Paper: Wang and Isola 2020, equation 3. All pairs of n rows cost n^2 d: above `max_rows` a
    random sample is compared, whose mean potential is unbiased; the standard error is that of a
    U-statistic (first-order projection, of the logarithm by the delta method).

    Args:
        z: embeddings (n, d), at least two; taken to length 1.
        t: the sharpness.
        max_rows: how many rows to compare at most; None for all.
        seed: of the sample.

    >>> uniformity(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).value
    -8.0
    """
    rows = rows_of(z, "z", at_least=2)
    t = positive("t", t, "Wang and Isola use 2")
    index = drawn(len(rows), max_rows, seed, "max_rows")
    chosen = unit_rows(rows if index is None else rows[index.to(rows.device)])
    notes = []
    if zero := int((chosen == 0).all(dim=1).sum()):
        notes.append(f"{zero} of {len(chosen)} rows are zero and have no direction; they stay zero")
    potential = _row_potentials(chosen, t)  # log of the mean potential of every row
    m = len(chosen)
    value = float(torch.logsumexp(potential, dim=0)) - math.log(m)
    error = 0.0
    if index is not None:
        notes.append(f"{m} of {len(rows)} rows, drawn with seed {seed}, are compared")
        error = 2 * float((potential - value).exp().std()) / math.sqrt(m)
    return Uniformity(tuple(notes), value, error, m)


def _row_potentials(rows: Tensor, t: float) -> Tensor:
    """log of (1/(m-1)) sum_{j != i} exp(-t |z_i - z_j|^2) for every i, in float64."""
    m = len(rows)
    squares = rows.double().square().sum(dim=1).to(rows.dtype)
    found = []
    step = max(PAIRS_AT_ONCE // m, 1)
    for start in range(0, m, step):
        block = rows[start : start + step]
        distances = torch.addmm(squares, block, rows.T, alpha=-2)
        distances += squares[start : start + step, None]
        own = torch.arange(len(block), device=rows.device)
        logits = distances.clamp_min_(0).mul_(-t)
        logits[own, start + own] = -torch.inf
        found.append(torch.logsumexp(logits, dim=1).double())
    return torch.cat(found) - math.log(m - 1)


@dataclass(frozen=True)
class ViewNoise(Figures):
    """How much of the variance is between views of one sample.

    Attributes:
        share: (1/2) E|z1 - z2|^2 over the total variance of both views: 0 for invariant
            embeddings, 1 where two views of a sample are no more alike than strangers.
        within: (1/2) E|z1 - z2|^2, the variance among views.
        total: the variance of the rows of both views.
    """

    share: float
    within: float
    total: float


@torch.no_grad()
def view_noise(z1: Array, z2: Array, *, normalize: bool = False) -> ViewNoise:
    r"""How far two views of one sample differ, beside how far samples differ.

    .. math:: \rho = \frac{\frac{1}{2n} \sum_i |z_i^1 - z_i^2|^2}
        {\frac{1}{2n} \sum_{i,v} |z_i^v - \bar z|^2}

    It is the strength of the augmentation as the embedding sees it (geometry, section 4: the
    strength weighs invariance against repulsion), independent of scale and rotation, and can be
    compared between encoder and projector. One minus it is the intraclass correlation of views.

    Args:
        z1: one view of every sample (n, d), n >= 2.
        z2: another view of the same samples.
        normalize: whether to take rows of length 1 first.

    >>> z = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    >>> view_noise(z, z).share, view_noise(z, -z).share
    (0.0, 2.0)
    """
    first, second = pair_of(z1, z2, "z1", "z2", at_least=2)
    one, two = moments(first, unit=normalize), moments(second, unit=normalize)
    apart = (one.mean - two.mean).square().sum() / 4
    total = float((one.covariance.trace() + two.covariance.trace()) / 2 + apart)
    within = 0.0
    both = zip(wide_chunks(first, unit=normalize), wide_chunks(second, unit=normalize), strict=True)
    for (_, a), (_, b) in both:
        within += float((a - b).square().sum()) / 2
    within /= len(first)
    scale = float((one.second_moment.trace() + two.second_moment.trace()) / 2)
    if total <= 1e-12 * scale or total == 0:
        return ViewNoise(("all rows are equal: nothing varies",), UNDEFINED, within, total)
    return ViewNoise((), within / total, within, total)
