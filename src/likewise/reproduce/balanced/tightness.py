"""``balanced`` figure 6: both upper bounds get tighter during training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.diagnostics import prototype_bounds
from likewise.reproduce.balanced.losses import TIMES, training
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

VIEWS = 11
"""The anchor's own, and ten for the expectation over T."""
IMAGES = 1024
ALPHA = 2.0


def trainings(setting: Setting, seed: int) -> list[Training]:
    """SimCLR with temperature 1/2."""
    return [training(setting, "simclr", seed)]


def measure(encoders: Encoders, seed: int) -> Samples:
    """(times, 6): both gaps, the printed bound's gap, where it fails, nu and log n / (nu alpha)."""
    (one,) = trainings(encoders.setting, seed)
    labels = encoders.pictures.labels()[:IMAGES]
    found = []
    for at in TIMES:
        _, z = encoders.embed_views(one, at, "train", n_views=VIEWS, most=IMAGES, seed=seed)
        gaps = prototype_bounds(z, labels, n_views=VIEWS, alpha=ALPHA, max_anchors=512, seed=seed)
        found.append(
            (
                gaps.attracting_gap,
                gaps.repelling_gap,
                gaps.printed_bound - gaps.repelling,
                gaps.printed_broken,
                gaps.nu,
                gaps.floor,
            )
        )
    return {"gaps": np.array(found)}


def conclude(samples: Samples) -> Findings:
    """Whether the gaps fall, and which is larger."""
    texts = (
        "attracting gap",
        "repelling gap",
        "repelling gap as printed",
        "share of anchors where the printed bound fails",
        "nu",
        "constant of the repelling bound, log n / (nu alpha)",
    )
    figures = [
        Figure.of(f"{text}, {when}", samples["gaps"][:, row, column])
        for column, text in enumerate(texts)
        for row, when in ((0, "start"), (1, "a tenth"), (-1, "end"))
    ]
    mean = samples["gaps"].mean(axis=0)
    attract, repel = mean[:, 0], mean[:, 1]
    return Findings(
        figures,
        [
            Check("attracting gap, end / start", attract[-1] / attract[0], "at most", 0.9),
            Check("repelling gap, end / start", repel[-1] / repel[0], "at most", 0.9),
            Check("repelling gap, end / largest", repel[-1] / repel.max(), "at most", 0.9),
            Check("repelling / attracting gap, least", (repel / attract).min(), "more than", 1.0),
        ],
        f"The repelling gap ends at {repel[-1]:.2f}; the constant log n / (nu alpha) of the bound "
        f"is {mean[-1, 5]:.2f} there, and follows nu, which ends at {mean[-1, 4]:.2f}.",
    )


def draw(samples: Samples) -> Picture:
    """Both gaps over the training."""
    figure, panels = canvas(2)
    for column, (panel, text) in enumerate(zip(panels, ("attracting", "repelling"), strict=True)):
        curve(panel, TIMES, samples["gaps"][:, :, column], f"{text} bound", COLORS[column])
        if column:
            curve(panel, TIMES, samples["gaps"][:, :, 5], "log n / (ν α)", COLORS[5], dashed=True)
        label(panel, f"{text} bound", "share of the training", "mean gap")
    return figure


FIGURE_6 = TrainedReproduction(
    "balanced-6",
    "The gaps of both upper bounds decrease during training and settle at a small value; the "
    "repelling gap is the larger one throughout (balanced, figure 6).",
    trainings,
    measure,
    conclude,
    draw,
    {"alpha": ALPHA, "views": VIEWS, "images": IMAGES, "anchors": 512},
)
