"""``geometry`` figures 4 and 9: the encoder's output uses all of its dimensions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from likewise.diagnostics import rank_tau, spectrum
from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.geometry.strengths import STRENGTHS, training, trainings, view_pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

MOMENTS = (0.0, 0.5, 1.0)
TAU = 1e-3
"""Of the largest singular value; equation 2 does not say which."""


def measure(encoders: Encoders, seed: int, *, transformed: bool) -> Samples:
    """Singular values (strengths, times, d) of the encoder's and of the projector's outputs."""
    found: dict[str, list[list[np.ndarray]]] = {"encoder": [], "projector": []}
    for strength in STRENGTHS:
        one = training(encoders.setting, strength, seed)
        for name in found:
            found[name].append([])
        for at in MOMENTS:
            if transformed:
                pair = view_pair(encoders, one, at, seed=seed)
                rows = pair.h1, pair.z1
            else:
                rows = encoders.embed(one, at, "train")
            for name, outputs in zip(found, rows, strict=True):
                values = spectrum(outputs).singular_values
                found[name][-1].append(values.cpu().numpy())
    return {name: np.array(values) for name, values in found.items()}


def conclude(samples: Samples) -> Findings:
    """Ranks of both, and whether the encoder's is full."""
    figures, checks = [], []
    for name, values in samples.items():
        dim = values.shape[-1]
        ranks = np.apply_along_axis(lambda s: rank_tau(s, TAU), -1, values)
        for row, strength in enumerate(STRENGTHS):
            for column, at in enumerate(MOMENTS):
                text = f"{strength}: rank of the {name}'s output, of {dim}, at {at:g}"
                figures.append(Figure.of(text, ranks[:, row, column]))
        if name == "encoder":
            start, later = ranks[:, :, 0].min() / dim, ranks[:, :, 1:].min() / dim
            checks.append(Check("encoder: least rank at the start, of d", start, "at least", 0.9))
            checks.append(Check("encoder: least rank later, of d", later, "at least", 0.98))
    encoder = samples["encoder"].mean(axis=0)
    tail = encoder[:, :, -1] / encoder[:, :, 0]
    return Findings(
        figures,
        checks,
        f"The smallest singular value is {tail[:, 0].min():.1e} of the largest at the start and "
        f"{tail[:, -1].min():.1e} at the end.",
    )


def draw(samples: Samples) -> Picture:
    """Log-singular values, a panel for each strength, a line style for each time."""
    figure, panels = canvas(3, width=3.4)
    encoder = np.log10(np.maximum(samples["encoder"], 1e-12)).mean(axis=0)
    for row, (panel, strength) in enumerate(zip(panels, STRENGTHS, strict=True)):
        for column, (at, style) in enumerate(zip(MOMENTS, (":", "--", "-"), strict=True)):
            panel.plot(encoder[row, column], style, color=COLORS[row], label=f"at {at:g}")
        label(panel, strength, "singular value", "log10")
    return figure


FIGURE_4 = TrainedReproduction(
    "geometry-4",
    "The encoder's output spans all of its dimensions for every strength of augmentation, up to a "
    "slight deficiency at the start (geometry, figure 4).",
    trainings,
    partial(measure, transformed=False),
    conclude,
    draw,
    {"tau": f"{TAU} of the largest singular value", "images": "as they are"},
)
FIGURE_9 = TrainedReproduction(
    "geometry-9",
    "The same for transformed images: the encoder's output has full rank until the end of the "
    "training (geometry, figure 9).",
    trainings,
    partial(measure, transformed=True),
    conclude,
    draw,
    {"tau": f"{TAU} of the largest singular value", "images": "augmented"},
)
