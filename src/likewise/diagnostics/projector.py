"""A ReLU projector is linear in pieces: the map of each piece, and how the pieces differ."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import rows_of, same_samples
from likewise.diagnostics.moments import eigenvalues, exp_entropy
from likewise.graph.arrays import Array, in_kind, is_numpy

MAPS_AT_MOST = 2**27
"""Numbers in all local maps together: 1 GiB of float64."""


@dataclass(frozen=True)
class LocalMaps(Figures):
    """What :func:`local_affine_maps` found.

    Attributes:
        weights: W_omega^T of each row's region, (n, d_out, d_in): the Jacobian of the projector.
        offsets: b_omega, (n, d_out), so that g(h_i) = weights_i h_i + offsets_i.
        region: the number of each row's region, from 0 in the order of first appearance.
        regions: how many regions the rows lie in.
    """

    weights: Any
    offsets: Any
    region: Any
    regions: int


@torch.no_grad()
def local_affine_maps(projector: nn.Module, h: Array) -> LocalMaps:
    r"""The affine map that an MLP projector is on the region of each row.

    .. math:: g(h) = \sum_\omega 1\{h \in \omega\} (W_\omega^\top h + b_\omega)

    A region is a pattern of active units. Linear, (leaky) ReLU, batch norm (by its running
    statistics, as in evaluation), identity and dropout (off) are known; anything else raises.

    Paper: geometry, equation 11. Errata: with biases (or batch norm) the map is affine, and a
    region is a cone only without them.

    Args:
        projector: nn.Linear, nn.Sequential of the above, or likewise.models.MLP.
        h: encoder outputs (n, d_in).

    >>> projector = nn.Sequential(nn.Linear(1, 2, bias=False), nn.ReLU(), nn.Linear(2, 1))
    >>> _ = projector[0].weight.data.copy_(torch.tensor([[1.0], [-1.0]]))
    >>> _ = projector[2].weight.data.copy_(torch.tensor([[1.0, 3.0]]))
    >>> _ = projector[2].bias.data.zero_()
    >>> found = local_affine_maps(projector, torch.tensor([[2.0], [-2.0], [5.0]]))
    >>> found.weights.flatten().tolist(), found.region.tolist()
    ([1.0, -3.0, 1.0], [0, 1, 0])
    """
    rows = rows_of(h, "h")
    layers = list(_layers(projector))
    device = next((p.device for p in projector.parameters()), rows.device)
    x = rows.to(device, torch.float64)
    n, dim = x.shape
    _check_width(layers, dim)
    widest = max([dim] + [layer.out_features for layer in layers if isinstance(layer, nn.Linear)])
    if n * dim * widest > MAPS_AT_MOST:
        raise ValueError(
            f"h has {n} rows, and a map of {widest} x {dim} numbers each is too much to hold: give "
            f"at most {MAPS_AT_MOST // (dim * widest)} rows (a random sample of them)"
        )
    slopes = torch.eye(dim, dtype=torch.float64, device=device).expand(n, dim, dim)
    patterns = []
    for layer in layers:
        if isinstance(layer, nn.Linear):
            weight = layer.weight.double()
            x = x @ weight.T + (0.0 if layer.bias is None else layer.bias.double())
            slopes = weight @ slopes
        elif isinstance(layer, nn.BatchNorm1d):
            scale, shift = _running(layer)
            x, slopes = x * scale + shift, slopes * scale[:, None]
        else:
            negative = getattr(layer, "negative_slope", 0.0)
            gate = torch.where(x > 0, 1.0, negative).double()
            patterns.append(x > 0)
            x, slopes = x * gate, slopes * gate[:, :, None]
    _check_outputs(projector, rows.to(device), x)
    offsets = x - (slopes @ rows.to(device, torch.float64)[:, :, None])[:, :, 0]
    region = _numbered(patterns, n, device)
    numpy = is_numpy(h)
    return LocalMaps(
        (),
        in_kind(slopes, numpy),
        in_kind(offsets, numpy),
        in_kind(region, numpy),
        int(region.max()) + 1,
    )


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    known = (nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.LeakyReLU)
    if isinstance(module, known):
        yield module
    elif isinstance(module, nn.Identity | nn.Dropout):
        return
    elif isinstance(module, nn.Sequential) or list(dict(module.named_children())) == ["layers"]:
        for child in module.children():
            yield from _layers(child)
    else:
        raise ValueError(
            f"projector has a layer {type(module).__name__}, which is not known to be linear in "
            "pieces: give nn.Linear, nn.BatchNorm1d, nn.ReLU and nn.LeakyReLU in nn.Sequential"
        )


def _check_width(layers: list[nn.Module], dim: int) -> None:
    for layer in layers:
        if isinstance(layer, nn.Linear):
            if layer.in_features != dim:
                raise ValueError(
                    f"h has {dim} columns and the projector takes {layer.in_features}: give the "
                    "encoder's outputs that it was trained on"
                )
            return


def _running(layer: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    if layer.running_mean is None or layer.running_var is None:
        raise ValueError(
            "projector has a batch norm without running statistics, which depends on the batch: "
            "give one with track_running_stats=True"
        )
    scale = (layer.running_var.double() + layer.eps).rsqrt()
    if layer.affine:
        scale = scale * layer.weight.double()
    shift = -layer.running_mean.double() * scale
    return scale, shift + layer.bias.double() if layer.affine else shift


def _check_outputs(projector: nn.Module, rows: Tensor, computed: Tensor) -> None:
    """Raise where the module does something else than its layers one after another."""
    said = copy.deepcopy(projector).double().eval()(rows.double())
    if not torch.allclose(said, computed, rtol=1e-6, atol=1e-8 * float(said.abs().max())):
        raise ValueError(
            "projector does not give what its layers give one after another: write it as "
            "nn.Sequential"
        )


def _numbered(patterns: list[Tensor], n: int, device: torch.device) -> Tensor:
    if not patterns:
        return torch.zeros(n, dtype=torch.int64, device=device)
    bits = torch.cat(patterns, dim=1).to(torch.uint8)
    _, region = torch.unique(bits, dim=0, return_inverse=True)
    first = torch.full((int(region.max()) + 1,), n, dtype=torch.int64, device=device)
    first.scatter_reduce_(0, region, torch.arange(n, device=device), "amin")
    return torch.argsort(torch.argsort(first))[region]


@dataclass(frozen=True)
class SpanDifference(Figures):
    """What :func:`span_difference` found.

    Attributes:
        distance: mean over pairs of rows of 1 - mean squared cosine of the principal angles
            between their spans; 0 for equal spans, 1 for orthogonal ones.
        ranks: mean rank of a local map.
        union_effective_rank: effective rank of the mean projection on the spans: how many
            directions of the encoder the pieces see together; equal to the rank of one piece
            where all see the same.
        dim: d_enc.
    """

    distance: float
    ranks: float
    union_effective_rank: float
    dim: int


@torch.no_grad()
def span_difference(weights: Array) -> SpanDifference:
    r"""How much the directions that local maps see differ from piece to piece.

    With P_i the projection on the row space of the i-th map (the paper's col(W_omega)) of rank r_i:

    .. math:: \mathrm{distance} = \frac{1}{n(n-1)} \sum_{i \ne j}
        \Bigl(1 - \frac{\mathrm{Tr}(P_i P_j)}{\min(r_i, r_j)}\Bigr)

    Paper: geometry, section 5 and figure 8: a linear projector has one span, a deep one has many.

    Args:
        weights: local maps (n, d_out, d_in), see :func:`local_affine_maps`.

    >>> maps = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> found = span_difference(maps)
    >>> found.distance, round(found.union_effective_rank, 6)
    (1.0, 2.0)
    """
    maps = torch.as_tensor(weights).detach().double()
    if maps.ndim != 3 or not bool(torch.isfinite(maps).all()):
        raise ValueError(
            f"weights have shape {tuple(maps.shape)}: give finite local maps (n, d_out, d_in)"
        )
    bases, ranks = _row_spaces(maps)
    n, dim = len(maps), maps.shape[2]
    notes = []
    if dead := int((ranks == 0).sum()):
        notes.append(f"{dead} of {n} local maps are zero: no unit is active there")
    alive = ranks > 0
    bases, ranks = bases[alive], ranks[alive]
    if not len(ranks):
        return SpanDifference(tuple(notes), UNDEFINED, 0.0, UNDEFINED, dim)
    mean = torch.einsum("nri,nrj->ij", bases, bases) / len(bases)
    distance = UNDEFINED
    if len(ranks) < 2:
        notes.append("there is one local map only: nothing to compare")
    else:
        total = 0.0
        for i in range(len(bases) - 1):
            shared = (bases[i] @ bases[i + 1 :].mT).square().sum(dim=(1, 2))
            least = torch.minimum(ranks[i], ranks[i + 1 :])
            total += float((1 - shared / least).sum())
        distance = max(2 * total / (len(ranks) * (len(ranks) - 1)), 0.0)
    return SpanDifference(
        tuple(notes), distance, float(ranks.double().mean()), exp_entropy(eigenvalues(mean)), dim
    )


def _row_spaces(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Orthonormal rows of each span (n, r, d_in), zero beyond its rank, and the ranks."""
    _, values, right = torch.linalg.svd(maps, full_matrices=False)
    floor = max(maps.shape[1:]) * torch.finfo(torch.float64).eps * values[:, :1]
    kept = (values > floor) & (values > 0)
    return torch.where(kept[:, :, None], right, 0.0), kept.sum(dim=1)


@torch.no_grad()
def local_fraction_unexplained(moves: Array, weights: Array) -> float:
    r"""Equation 10 with the map of each row's own region.

    .. math:: \sum_i |(I - P_i)\, \delta h_i|^2 \Big/ \sum_i |\delta h_i|^2

    Paper: geometry, section 5: in a deep projector each piece fits the displacement locally.

    Args:
        moves: displacement vectors (n, d_enc).
        weights: local maps (n, d_out, d_enc) of the same samples.

    Returns:
        A share in [0, 1]; NaN where all displacements are zero.

    >>> maps = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> local_fraction_unexplained(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), maps)
    0.3333333333333333
    """
    rows = rows_of(moves, "moves").double()
    maps = torch.as_tensor(weights).detach().double().to(rows.device)
    same_samples(rows, maps, "moves", "weights")
    bases, _ = _row_spaces(maps)
    seen = (bases @ rows[:, :, None])[:, :, 0]
    rest = rows - (seen[:, None, :] @ bases)[:, 0]
    total = float(rows.square().sum())
    return float(rest.square().sum()) / total if total > 0 else UNDEFINED
