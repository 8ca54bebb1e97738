"""``geometry`` figure 7: the projector's columns come to span the displacements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.diagnostics import displacements, fraction_unexplained
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.geometry.strengths import (
    LOOKED_AT,
    STRENGTHS,
    TIMES,
    over_time,
    training,
    trainings,
    view_pair,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


def measure(encoders: Encoders, seed: int) -> Samples:
    """Equation 10 (strengths, times)."""
    found = np.empty((len(STRENGTHS), len(TIMES)))
    for row, strength in enumerate(STRENGTHS):
        one = training(encoders.setting, strength, seed)
        for column, at in enumerate(TIMES):
            pair = view_pair(encoders, one, at, seed=seed)
            moves = displacements(pair.h1, pair.h2, pair.z1, pair.z2)
            weight = encoders.of(one).projector_weight(at)
            found[row, column] = fraction_unexplained(moves, weight)
    return {"unexplained": found}


def conclude(samples: Samples) -> Findings:
    """How far it falls."""
    values = samples["unexplained"]
    figures, checks = [], []
    for row, strength in enumerate(STRENGTHS):
        for column, when in ((0, "start"), (1, "a tenth"), (-1, "end")):
            figures.append(Figure.of(f"{strength}: unexplained, {when}", values[:, row, column]))
        ratio = values[:, row, -1].mean() / values[:, row, 0].mean()
        checks.append(Check(f"{strength}: unexplained, end / start", ratio, "at most", 0.9))
    mean = values.mean(axis=0)
    drastic = (mean[:, -1] / mean[:, 0]).mean()
    checks.append(Check("mean over strengths, end / start: drastic", drastic, "at most", 0.5))
    least = values.mean(axis=0).min(axis=1)
    turn = ", ".join(f"{s} {v:.2f}" for s, v in zip(STRENGTHS, least, strict=True))
    return Findings(figures, checks, f"The least value on the way: {turn}.")


def draw(samples: Samples) -> Picture:
    """The share over the training."""
    return over_time(samples, "unexplained", "equation 10", "fraction unexplained")


FIGURE_7 = TrainedReproduction(
    "geometry-7",
    "The fraction of the displacements' span that a linear projector leaves unexplained falls "
    "drastically after initialisation (geometry, figure 7, equation 10).",
    trainings,
    measure,
    conclude,
    draw,
    {"images": LOOKED_AT},
)
