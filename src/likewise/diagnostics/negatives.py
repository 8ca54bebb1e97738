"""The nearest negative of every sample: how near, and of which class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import labels_of, pair_of, same_samples, unit_rows, wide_chunks
from likewise.diagnostics.neighbors import nearest_of_many
from likewise.graph.arrays import Array, in_kind, is_numpy


def nearest_rows(z1: Tensor, z2: Tensor) -> Tensor:
    """For every i the row 2 j + k of the most similar z_j^(k), j != i (k = 0, 1).

    Of equally similar rows the one with the lowest number. In float32 and in tiles.

    >>> z = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> nearest_rows(z, z).tolist()
    [2, 0, 2]
    """
    n = len(z1)
    bank = torch.stack([z1, z2], dim=1).flatten(0, 1)
    # Two rows are the sample's own: of the three nearest, at least one is a negative.
    rows = nearest_of_many(bank, z1, min(3, 2 * n))[1]
    own = rows // 2 == torch.arange(n, device=rows.device)[:, None]
    first = (~own).int().argmax(dim=1)
    found: Tensor = rows.gather(1, first[:, None])[:, 0]
    return found


def gathered(h1: Tensor, h2: Tensor, rows: Tensor) -> Tensor:
    """The rows 2 j + k of two views, in their own space."""
    sample, view = rows // 2, rows % 2
    return torch.where((view == 0)[:, None], h1[sample], h2[sample])


@dataclass(frozen=True)
class NearestNegatives(Figures):
    """What :func:`nearest_negatives` found.

    Attributes:
        sample: of every i the sample j whose view is its nearest negative h*.
        view: 0 or 1, which view of it.
        similarity: Sim(f(h1), f(h*)) in the projector's space, for every i.
        distance: |h1 / |h1| - h* / |h*|| in the encoder's space, for every i.
        mean_similarity: its mean.
        mean_distance: its mean.
        same_label: share of nearest negatives with the label of their sample.
        same_label_chance: that share for a negative drawn at random.
        same_coarse: the same for the coarse labels.
        same_coarse_chance: for a negative drawn at random.
    """

    sample: Any
    view: Any
    similarity: Any
    distance: Any
    mean_similarity: float
    mean_distance: float
    same_label: float
    same_label_chance: float
    same_coarse: float
    same_coarse_chance: float


@torch.no_grad()
def nearest_negatives(
    z1: Array,
    z2: Array,
    *,
    h1: Array | None = None,
    h2: Array | None = None,
    labels: Any = None,
    coarse_labels: Any = None,
) -> NearestNegatives:
    r"""Which other sample is nearest to each, how near it is, and whether its label is the same.

    .. math:: \tilde h_i^\star = \arg\max_{h_j^{(k)},\, j \ne i,\, k = 1, 2}
        \mathrm{Sim}(f(h_i^{(1)}), f(h_j^{(k)}))

    Paper: geometry, proposition 3.1 (the definition), figure 5 (distance in the encoder's space)
    and figure 6 (labels). Errata: table 1 prints the unnormalised product; the argmax is of the
    cosine. Computed in float32 (half precision picks another row for 3% of samples); of equals,
    the lowest row.

    Args:
        z1: projector outputs of the first view (n, d), n >= 2.
        z2: of the second view.
        h1, h2: encoder outputs of the same, for `distance`; default: z1 and z2.
        labels: class indices (n,), -1 where unknown; without them the share is undefined.
        coarse_labels: of coarser classes.

    >>> z = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> found = nearest_negatives(z, z, labels=[0, 0, 1])
    >>> found.sample.tolist(), round(found.same_label, 3), round(found.same_label_chance, 3)
    ([1, 0, 1], 0.667, 0.333)
    """
    first, second = pair_of(z1, z2, "z1", "z2", at_least=2)
    if (h1 is None) != (h2 is None):
        raise ValueError("one of h1 and h2 is missing: give the encoder's outputs of both views")
    one, two = (first, second) if h1 is None or h2 is None else pair_of(h1, h2, "h1", "h2")
    same_samples(first, one, "z1", "h1")
    rows = nearest_rows(first, second)
    similarity = _cosines(first, gathered(first, second, rows))
    distance = _unit_distances(one, gathered(one, two, rows))
    notes: list[str] = []
    sample = rows // 2
    fine = _matches(labels, sample, "labels", notes)
    rough = _matches(coarse_labels, sample, "coarse_labels", notes)
    numpy = is_numpy(z1)
    return NearestNegatives(
        tuple(notes),
        in_kind(sample, numpy),
        in_kind(rows % 2, numpy),
        in_kind(similarity, numpy),
        in_kind(distance, numpy),
        float(similarity.mean()),
        float(distance.mean()),
        *fine,
        *rough,
    )


def _cosines(first: Tensor, second: Tensor) -> Tensor:
    pairs = zip(wide_chunks(first, unit=True), wide_chunks(second, unit=True), strict=True)
    return torch.cat([(a * b).sum(dim=1) for (_, a), (_, b) in pairs])


def _unit_distances(first: Tensor, second: Tensor) -> Tensor:
    pairs = zip(wide_chunks(first), wide_chunks(second), strict=True)
    return torch.cat(
        [torch.linalg.vector_norm(unit_rows(a) - unit_rows(b), dim=1) for (_, a), (_, b) in pairs]
    )


def _matches(labels: Any, sample: Tensor, name: str, notes: list[str]) -> tuple[float, float]:
    """Share of samples whose nearest negative has their label, and what chance would give."""
    if labels is None:
        notes.append(f"{name} are not given: the share of equal labels is undefined")
        return UNDEFINED, UNDEFINED
    indices = labels_of(labels, len(sample), name, sample.device)
    both = (indices >= 0) & (indices[sample] >= 0)
    known = indices[indices >= 0]
    if len(known) < 2 or not bool(both.any()):
        notes.append(f"{name} name no sample together with its nearest negative: share undefined")
        return UNDEFINED, UNDEFINED
    if len(known) < len(indices):
        notes.append(f"{len(indices) - len(known)} samples have no label in {name}")
    counts = torch.unique(known, return_counts=True)[1].double()
    if len(counts) == 1:
        notes.append(f"{name} hold one class only: the share says nothing")
    chance = float((counts * (counts - 1)).sum()) / (len(known) * (len(known) - 1))
    return float((indices[sample] == indices)[both].double().mean()), chance
