"""``geometry`` figure 3: InfoNCE and its upper bound go together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from likewise.diagnostics import info_nce_parts
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.geometry.strengths import (
    BETA,
    STRENGTHS,
    TIMES,
    training,
    trainings,
    view_pair,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

BATCH = 128
BATCHES = 4
ROOM = math.log(2 * (BATCH - 1))


def measure(encoders: Encoders, seed: int) -> Samples:
    """The loss, its bound and the two parts, (strengths, times, 4), over batches of 128."""
    found = np.empty((len(STRENGTHS), len(TIMES), 4))
    gaps = np.empty((len(STRENGTHS), len(TIMES), BATCHES))
    for row, strength in enumerate(STRENGTHS):
        one = training(encoders.setting, strength, seed)
        for column, at in enumerate(TIMES):
            pair = view_pair(encoders, one, at, seed=seed)
            parts = []
            # Images are in no order of classes, but neighbours may share a digit: take strides.
            for start in range(BATCHES):
                rows = slice(start, None, len(pair.z1) // BATCH)
                z1, z2 = pair.z1[rows][:BATCH], pair.z2[rows][:BATCH]
                parts.append(info_nce_parts(z1, z2, inverse_temperature=BETA))
            found[row, column] = np.mean(
                [(p.info_nce, p.upper_bound, p.invariance, p.repulsion) for p in parts], axis=0
            )
            gaps[row, column] = [p.gap for p in parts]
    return {"parts": found, "gaps": gaps}


def conclude(samples: Samples) -> Findings:
    """How near the bound is, and whether it moves with the loss."""
    parts, gaps = samples["parts"], samples["gaps"]
    mean = parts.mean(axis=0)
    figures, checks = [], []
    for row, strength in enumerate(STRENGTHS):
        for column, when in ((0, "start"), (-1, "end")):
            for place, name in enumerate(("InfoNCE", "bound", "invariance", "repulsion")):
                values = parts[:, row, column, place]
                figures.append(Figure.of(f"{strength}: {name}, at the {when}", values))
        together = float(np.corrcoef(mean[row, :, 0], mean[row, :, 1])[0, 1])
        figures.append(Figure(f"{strength}: correlation over the training", together))
        checks.append(
            Check(f"{strength}: correlation over the training", together, "at least", 0.8)
        )
        falls = [mean[row, 0, place] - mean[row, -1, place] for place in (0, 1)]
        share = falls[1] / falls[0]
        figures.append(Figure(f"{strength}: fall of the bound / fall of the loss", share))
    checks += [
        Check("least gap of any batch", float(gaps.min()), "at least", 0.0),
        Check("largest gap of any batch, of log 2(N - 1)", gaps.max() / ROOM, "at most", 1.0),
    ]
    start, end = gaps[:, :, 0].mean(), gaps[:, :, -1].mean()
    return Findings(
        figures,
        checks,
        f"The gap grows from {start:.2f} to {end:.2f} of at most {ROOM:.2f}: the nearest of "
        f"{2 * (BATCH - 1)} negatives stands for all of them.",
    )


def draw(samples: Samples) -> Picture:
    """Loss and bound, a panel for each strength."""
    figure, panels = canvas(3, width=3.4)
    for row, (panel, strength) in enumerate(zip(panels, STRENGTHS, strict=True)):
        curve(panel, TIMES, samples["parts"][:, row, :, 1], "upper bound", COLORS[1], dashed=True)
        curve(panel, TIMES, samples["parts"][:, row, :, 0], "InfoNCE", COLORS[0])
        label(panel, strength, "share of the training", "loss", legend=row == 0)
    return figure


FIGURE_3 = TrainedReproduction(
    "geometry-3",
    "An upper bound that sees only the nearest negative tracks InfoNCE throughout training "
    "(geometry, figure 3, proposition 3.1).",
    trainings,
    measure,
    conclude,
    draw,
    {"beta": BETA, "N": BATCH, "batches": BATCHES},
)
