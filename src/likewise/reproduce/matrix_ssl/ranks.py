"""``matrix-ssl`` figure 3: effective rank within and between classes, over the training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.diagnostics import class_ranks
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.matrix_ssl.methods import BUDGET, TIMES, TITLES, training
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

METHODS = ("simclr", "byol", "barlow-twins")
KINDS = ("intra-class", "inter-class")


def trainings(setting: Setting, seed: int) -> list[Training]:
    """One for each method."""
    return [training(setting, method, seed) for method in METHODS]


def measure(encoders: Encoders, seed: int) -> Samples:
    """Ranks of encoder and projector outputs of test images, (methods, times, kinds)."""
    labels = encoders.pictures.labels("test")
    found = {
        name: np.empty((len(METHODS), len(TIMES), len(KINDS))) for name in ("encoder", "projector")
    }
    for row, method in enumerate(METHODS):
        one = training(encoders.setting, method, seed)
        for column, at in enumerate(TIMES):
            for name, rows in zip(found, encoders.embed(one, at), strict=True):
                ranks = class_ranks(rows, labels)
                found[name][row, column] = ranks.intra, ranks.inter
    return found


def conclude(samples: Samples) -> Findings:
    """Which ranks grow.

    The first snapshot is of random weights; growth is from a tenth of the training on, as the
    paper's curves begin after an epoch.
    """
    figures, checks = [], []
    for name, values in samples.items():
        for row, method in enumerate(METHODS):
            for kind, text in enumerate(KINDS):
                for column, when in ((0, "start"), (1, "a tenth"), (-1, "end")):
                    title = f"{TITLES[method]}, {name}: {text} effective rank, {when}"
                    figures.append(Figure.of(title, values[:, row, column, kind]))
    growth = samples["encoder"][:, :, -1] / samples["encoder"][:, :, 1]
    mean = growth.mean(axis=0)
    checks.append(Check("SimCLR: intra-class, end / a tenth", mean[0, 0], "less than", 1.0))
    for row, method in ((1, "byol"), (2, "barlow-twins")):
        name = f"{TITLES[method]}: intra-class, end / a tenth"
        checks.append(Check(name, mean[row, 0], "more than", 1.0))
    for row, method in enumerate(METHODS):
        name = f"{TITLES[method]}: inter-class, end / a tenth"
        checks.append(Check(name, mean[row, 1], "more than", 1.0))
    last = samples["encoder"][:, :, -1, 0].mean(axis=0)
    checks.append(
        Check("intra-class at the end, Barlow Twins / SimCLR", last[2] / last[0], "more than", 1.0)
    )
    return Findings(figures, checks)


def draw(samples: Samples) -> Picture:
    """Both ranks over the training."""
    figure, panels = canvas(2)
    for kind, (panel, text) in enumerate(zip(panels, KINDS, strict=True)):
        for row, method in enumerate(METHODS):
            values = samples["encoder"][:, row, :, kind]
            curve(panel, TIMES, values, TITLES[method], COLORS[row])
        label(panel, f"{text}, encoder, test images", "share of the training", "effective rank")
    return figure


FIGURE_3 = TrainedReproduction(
    "matrix-ssl-3",
    "During training, the effective rank within classes keeps growing for BYOL and Barlow Twins "
    "but falls for SimCLR; that between classes grows for all (matrix-ssl, figure 3).",
    trainings,
    measure,
    conclude,
    draw,
    BUDGET,
)
