"""Where views move in the encoder's space, and what of it the projector keeps or kills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import (
    pair_of,
    rows_of,
    same_samples,
    weight_of,
    wide_chunks,
)
from likewise.diagnostics.moments import moments
from likewise.diagnostics.negatives import gathered, nearest_rows
from likewise.diagnostics.spectrum import rank_tau, spectrum
from likewise.graph.arrays import Array, as_tensor, in_kind, is_numpy
from likewise.information.precision import rounding


@torch.no_grad()
def displacements(h1: Array, h2: Array, z1: Array, z2: Array) -> Any:
    r"""Displacement vectors :math:`\delta h_i = h_i^{(2)} - \tilde h_i^\star`, (n, d_enc).

    The nearest negative is found in the projector's space and taken in the encoder's.

    Paper: geometry, equation 8 and table 1 (errata: nearest by the cosine).

    Args:
        h1, h2: encoder outputs of two views (n, d_enc).
        z1, z2: projector outputs of the same (n, d_proj).

    >>> h = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> displacements(h, h, h, h)[0]
    tensor([ 0.1000, -0.1000])
    """
    one, two = pair_of(h1, h2, "h1", "h2", at_least=2)
    first, second = pair_of(z1, z2, "z1", "z2")
    same_samples(one, first, "h1", "z1")
    return in_kind(two - gathered(one, two, nearest_rows(first, second)), is_numpy(h1))


def kernel_of(weight: Array, dim: int, device: torch.device, tau: float = 0.0) -> Tensor:
    """An orthonormal basis (d_in, r) of what a weight (d_out, d_in) maps to 0.

    Singular values up to round-off of the weight's own type, and below `tau` of the largest,
    count as 0.

    >>> kernel_of(torch.tensor([[2.0, 0.0]]), 2, torch.device("cpu")).abs().tolist()
    [[0.0], [1.0]]
    """
    matrix = weight_of(weight).to(device)
    if matrix.shape[1] != dim:
        raise ValueError(
            f"weight has shape {tuple(matrix.shape)} for rows of {dim} numbers: give (d_out, "
            f"{dim}), as nn.Linear holds it (the paper's W is its transpose)"
        )
    _, values, right = torch.linalg.svd(matrix)
    given = as_tensor(weight).dtype
    share = rounding(given if given.is_floating_point else torch.float64)
    floor = max(share * float(torch.linalg.vector_norm(values)), tau * float(values[0]))
    return right[int((values > floor).sum()) :].T


@torch.no_grad()
def fraction_unexplained(
    moves: Array, weight: Array, *, centered: bool = False, tau: float = 0.0
) -> float:
    r"""Share of the displacements that lies outside of what the projector can see.

    .. math:: \mathrm{FVU} = \sum_i \min_t |\delta h_i - W t|^2 \Big/ \sum_i |\delta h_i|^2

    with W = weight^T, so that col(W) is the row space of `weight`. 0 as soon as rank(W) = d_enc.

    Paper: geometry, equation 10 (figure 7). Errata: it depends on col(W) only, and is a share of
    the second moment, not of the variance; `centered` gives the latter.

    Args:
        moves: displacement vectors (n, d_enc), see :func:`displacements`; or any directions.
        weight: (d_proj, d_enc) as nn.Linear holds it.
        centered: whether to subtract the mean displacement first.
        tau: directions that W weighs with less than this share of its largest singular value
            count as not seen; 0 takes col(W) as it is, as the paper does.

    Returns:
        A share in [0, 1]; NaN where all displacements are zero.

    >>> fraction_unexplained(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]]))
    0.64
    """
    rows = rows_of(moves, "moves")
    kernel = kernel_of(weight, rows.shape[1], rows.device, tau)
    of = moments(rows)
    return killed_share(of.covariance if centered else of.second_moment, kernel)


def killed_share(second_moment: Tensor, kernel: Tensor) -> float:
    """Share of the trace that lies in the kernel."""
    total = float(second_moment.trace())
    if total <= 0:
        return UNDEFINED
    return float(((second_moment @ kernel) * kernel).sum()) / total


@dataclass(frozen=True)
class AugmentationDirections(Figures):
    """What :func:`augmentation_directions` found.

    Attributes:
        singular_values: of the directions v_i = h2_i - h1_i.
        effective_rank: of their second moment.
        rank: how many singular values count (relative threshold).
        killed: share of sum |v_i|^2 in the projector's kernel.
        killed_data: share of the variance of h1 in the projector's kernel: what it drops anyway.
        killed_scaled: share of sum |h2_i - c_i h1_i|^2 in the kernel, c_i the best positive scale
            in the projector's space: 1 exactly where the invariance loss is minimal.
        room: rank left to a projector that kills all directions, min(d_proj, d_enc - rank).
        projector_rank: rank of the projector's weight.
    """

    singular_values: Any
    effective_rank: float
    rank: int
    killed: float
    killed_data: float
    killed_scaled: float
    room: int
    projector_rank: int


@torch.no_grad()
def augmentation_directions(
    h1: Array, h2: Array, weight: Array | None = None, *, tau: float = 1e-2
) -> AugmentationDirections:
    r"""The rank of the directions that augmentation moves along, and how the projector treats them.

    .. math:: v_i = h_i^{(2)} - h_i^{(1)}, \qquad
        \mathrm{killed} = \frac{\sum_i |(I - P) v_i|^2}{\sum_i |v_i|^2},
        \quad P \text{ the projection on } \mathrm{col}(W)

    Paper: geometry, propositions 4.1 and 4.2. Errata: v_i in Ker(W^T) is sufficient for invariance
    and not necessary; necessary is W^T (h2_i - c_i h1_i) = 0 for some c_i > 0, which
    `killed_scaled` measures; rank(W) <= d_enc - rank(V) binds only above d_enc - d_proj.

    Args:
        h1, h2: encoder outputs of two views (n, d_enc).
        weight: (d_proj, d_enc) of a linear projector; without it what is killed is undefined.
        tau: threshold of `rank`, relative to the largest singular value.

    >>> h = torch.tensor([[1.0, 0.0, 0.0], [2.0, 0.0, 1.0]])
    >>> moved = h + torch.tensor([[0.0, 1.0, 0.0]])
    >>> found = augmentation_directions(h, moved, torch.tensor([[1.0, 0.0, 0.0]]))
    >>> found.rank, found.killed, found.room
    (1, 1.0, 1)
    """
    one, two = pair_of(h1, h2, "h1", "h2")
    moves = two - one
    found = spectrum(moves)
    rank, notes = rank_tau(found.singular_values, tau), []
    dim = one.shape[1]
    still = found.mean_square == 0
    if still:
        notes.append("both views are equal everywhere: there is no direction")
    killed = data = scaled = UNDEFINED
    room = projector_rank = 0
    if weight is None:
        notes.append("no weight is given: what the projector kills is undefined")
    else:
        kernel = kernel_of(weight, dim, one.device)
        projector_rank = dim - kernel.shape[1]
        room = min(len(as_tensor(weight)), dim - rank)
        data = killed_share(moments(one).covariance, kernel)
        if not still:
            killed = killed_share(moments(moves).second_moment, kernel)
            scaled = _killed_scaled(one, two, weight_of(weight).to(one.device), kernel, notes)
    return AugmentationDirections(
        tuple(notes),
        in_kind(as_tensor(found.singular_values), is_numpy(h1)),
        found.effective_rank,
        rank,
        killed,
        data,
        scaled,
        room,
        projector_rank,
    )


def _killed_scaled(
    one: Tensor, two: Tensor, matrix: Tensor, kernel: Tensor, notes: list[str]
) -> float:
    smallest = torch.finfo(torch.float64).tiny
    inside = total = 0.0
    without = 0
    for (_, h1), (_, h2) in zip(wide_chunks(one), wide_chunks(two), strict=True):
        a, b = h1 @ matrix.T, h2 @ matrix.T
        scale = (a * b).sum(dim=1) / a.square().sum(dim=1).clamp_min(smallest)
        without += int((scale <= 0).sum())
        rest = h2 - scale.clamp_min(0)[:, None] * h1
        inside += float((rest @ kernel).square().sum())
        total += float(rest.square().sum())
    if without:
        notes.append(f"{without} samples have no positive scale between their projected views")
    return inside / total if total > 0 else UNDEFINED
