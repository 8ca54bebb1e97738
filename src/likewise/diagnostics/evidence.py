"""The figures that a verdict rests on, measured together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.diagnostics.alignment import alignment, uniformity, view_noise
from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import (
    drawn,
    labels_of,
    pair_of,
    rows_of,
    same_samples,
    wide_chunks,
)
from likewise.diagnostics.negatives import nearest_negatives
from likewise.diagnostics.regression import confusion_rate
from likewise.diagnostics.spectrum import spectrum
from likewise.graph.arrays import Array


@dataclass(frozen=True)
class Evidence(Figures):
    """What :func:`gather_evidence` measured. NaN is undefined, and `notes` say why.

    Attributes:
        rows: samples.
        dim: dimensions of the rows that the loss sees (z1).
        spread: 1 - |mean of unit rows|^2; 0 where all point the same way.
        effective_rank: of the covariance of z1.
        rank_me: RankMe of z1, uncentred.
        encoder_rank: centred effective rank of h1.
        noise: share of the variance of z that is between views of one sample.
        encoder_noise: the same of h; NaN without h.
        projector_noise: the same of z where h is given, too; else NaN.
        alignment: Wang and Isola's, of z.
        uniformity: Wang and Isola's, of z1.
        confusion: how often the nearest other view is another sample's.
        nearest_negative: mean similarity of the nearest negative.
        label_lift: (share of nearest negatives with the same label - chance) / (1 - chance).
        imbalance: samples of the largest class over those of the smallest.
        classes: how many classes the labels hold; 0 without labels.
        encoder_dim: dimensions of h1; 0 without h1.
    """

    rows: int
    dim: int
    spread: float
    effective_rank: float
    rank_me: float
    encoder_rank: float
    noise: float
    encoder_noise: float
    projector_noise: float
    alignment: float
    uniformity: float
    confusion: float
    nearest_negative: float
    label_lift: float
    imbalance: float
    classes: int
    encoder_dim: int = 0


@torch.no_grad()
def gather_evidence(
    z1: Array,
    z2: Array | None = None,
    *,
    h1: Array | None = None,
    h2: Array | None = None,
    labels: Any = None,
    max_rows: int = 4096,
    seed: int = 0,
) -> Evidence:
    """Measure what :func:`likewise.diagnostics.verdict` asks for.

    All figures are of rows taken to length 1, as searches and contrastive losses see them. What is
    linear in the number of rows uses all of them; what compares all pairs (uniformity,
    confusion, nearest negatives) uses a random sample of `max_rows` samples.

    Args:
        z1: what the loss sees of the first view (n, d), n >= 2: projector outputs, or embeddings.
        z2: of the second view; without it what compares views is undefined.
        h1, h2: encoder outputs of the same; without them what compares encoder and projector is
            undefined.
        labels: class indices (n,), -1 where unknown.
        max_rows: how many samples to compare with one another at most.
        seed: of that sample.

    >>> z = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    >>> found = gather_evidence(z, z)
    >>> found.noise, found.confusion, round(found.spread, 1)
    (0.0, 0.0, 1.0)
    """
    one = rows_of(z1, "z1", at_least=2)
    two = None if z2 is None else pair_of(z1, z2, "z1", "z2")[1]
    if (h1 is None) != (h2 is None) and two is not None:
        raise ValueError("one of h1 and h2 is missing: give the encoder's outputs of both views")
    notes: list[str] = []
    found = spectrum(one, normalize=True)
    notes += found.notes
    encoder_rank = encoder_noise = UNDEFINED
    inner: tuple[Tensor, Tensor] | None = None
    if h1 is not None:
        encoder = rows_of(h1, "h1")
        same_samples(one, encoder, "z1", "h1")
        encoder_rank = spectrum(encoder, normalize=True).centered_effective_rank
        if h2 is not None:
            inner = pair_of(h1, h2, "h1", "h2")
            encoder_noise = view_noise(*inner, normalize=True).share
    noise = apart = UNDEFINED
    if two is None:
        notes.append("one view of each sample: what compares views is undefined")
    else:
        noise = view_noise(one, two, normalize=True).share
        apart = alignment(one, two)
    index = drawn(len(one), max_rows, seed, "max_rows")
    few = one if index is None else one[index.to(one.device)]
    few_labels = indices = None
    imbalance, classes = UNDEFINED, 0
    if labels is None:
        notes.append("labels are not given: what compares labels is undefined")
    else:
        indices = labels_of(labels, len(one), device=one.device)
        known = indices[indices >= 0]
        counts = torch.unique(known, return_counts=True)[1]
        classes = len(counts)
        if classes > 1:
            imbalance = float(counts.max()) / float(counts.min())
        else:
            notes.append(f"labels hold {classes} classes: what compares classes is undefined")
        few_labels = indices if index is None else indices[index.to(one.device)]
    confusion = nearest = lift = UNDEFINED
    if two is not None:
        other = two if index is None else two[index.to(one.device)]
        views = torch.stack([few, other], dim=1).flatten(0, 1)
        confusion = confusion_rate(views, n_views=2, max_queries=None).rate
        near = nearest_negatives(few, other, labels=few_labels if classes > 1 else None)
        nearest = near.mean_similarity
        if near.same_label_chance < 1:
            lift = (near.same_label - near.same_label_chance) / (1 - near.same_label_chance)
    return Evidence(
        notes=tuple(dict.fromkeys(notes)),
        rows=len(one),
        dim=one.shape[1],
        spread=_spread(one),
        effective_rank=found.centered_effective_rank,
        rank_me=found.rank_me,
        encoder_rank=encoder_rank,
        noise=noise,
        encoder_noise=encoder_noise,
        projector_noise=UNDEFINED if inner is None else noise,
        alignment=apart,
        uniformity=uniformity(few, max_rows=None).value,
        confusion=confusion,
        nearest_negative=nearest,
        label_lift=lift,
        imbalance=imbalance,
        classes=classes,
        encoder_dim=0 if h1 is None else encoder.shape[1],
    )


def _spread(rows: Tensor) -> float:
    """1 - |mean of unit rows|^2 over rows that have a direction; NaN where none has."""
    total = torch.zeros(rows.shape[1], dtype=torch.float64, device=rows.device)
    count = 0
    for _, chunk in wide_chunks(rows, unit=True):
        total += chunk.sum(dim=0)
        count += int((chunk != 0).any(dim=1).sum())
    if not count:
        return UNDEFINED
    return max(1 - float((total / count).square().sum()), 0.0)
