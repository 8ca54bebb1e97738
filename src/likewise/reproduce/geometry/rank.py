"""``geometry`` figure 1: the stronger the augmentation, the lower the rank of the projector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from likewise.diagnostics import rank_tau, weight_spectrum
from likewise.diagnostics.moments import exp_entropy
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.geometry.strengths import STRENGTHS, TIMES, last, training, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

SHARE = 0.95
"""Share of the squared singular values that the counted ones make."""


def measure(encoders: Encoders, seed: int) -> Samples:
    """Ranks of the projector's weight and the probe's accuracy, (strengths, times)."""
    shape = (len(STRENGTHS), len(TIMES))
    rank, counted, accuracy = (np.empty(shape) for _ in range(3))
    for row, strength in enumerate(STRENGTHS):
        one = training(encoders.setting, strength, seed)
        for column, at in enumerate(TIMES):
            values = weight_spectrum(encoders.of(one).projector_weight(at))
            rank[row, column] = exp_entropy(torch.as_tensor(values).square())
            counted[row, column] = rank_tau(values, SHARE, kind="variance")
            accuracy[row, column] = encoders.probe(one, at)
    return {"rank": rank, "counted": counted, "accuracy": accuracy}


def conclude(samples: Samples) -> Findings:
    """Who collapses, and who is of use."""
    figures = []
    for row, strength in enumerate(STRENGTHS):
        for name, text in (
            ("rank", "effective rank of the projector's weight"),
            ("counted", f"singular values that make {SHARE:.0%} of its square"),
            ("accuracy", "linear probe"),
        ):
            values = samples[name][:, row]
            figures.append(Figure.of(f"{strength}: {text}, at the start", values[:, 0]))
            figures.append(Figure.of(f"{strength}: {text}, at the end", values[:, -1]))
    small, moderate, large = last(samples["rank"])
    start = samples["rank"][:, :, 0].mean()
    weak, middle, strong = last(samples["accuracy"])
    return Findings(
        figures,
        [
            Check("effective rank of the weight, large / small", large / small, "at most", 0.97),
            Check("the same, moderate / small", moderate / small, "at most", 0.99),
            Check("the same, large / moderate", large / moderate, "less than", 1.0),
            Check("small: effective rank kept, end / start", small / start, "at least", 0.95),
            Check("linear probe, large less small", strong - weak, "at least", 0.01),
            Check("linear probe, large less moderate", strong - middle, "more than", 0.0),
        ],
        f"Under large augmentation the effective rank goes from {start:.1f} to {large:.1f}, under "
        f"small to {small:.1f}.",
    )


def draw(samples: Samples) -> Picture:
    """Ranks and accuracies over the training."""
    figure, panels = canvas(2)
    for row, (strength, color) in enumerate(zip(STRENGTHS, COLORS, strict=False)):
        curve(panels[0], TIMES, samples["rank"][:, row], strength, color)
        curve(panels[1], TIMES, samples["accuracy"][:, row], strength, color)
    label(panels[0], "projector's weight", "share of the training", "effective rank")
    label(panels[1], "encoder", "share of the training", "linear probe", legend=False)
    return figure


FIGURE_1 = TrainedReproduction(
    "geometry-1",
    "The stronger the augmentation, the more the rank of a linear projector falls, and the better "
    "the encoder does on labels (geometry, figure 1).",
    trainings,
    measure,
    conclude,
    draw,
    {"rank": "exp of the entropy of the squared singular values (equation 2 depends on scale)"},
)
