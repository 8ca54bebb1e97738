"""``balanced`` figure 5: what the balancing parameters do to the accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.reproduce.balanced.losses import training
from likewise.reproduce.drawing import canvas, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

GRID = (1.0, 2.0, 4.0, 8.0)
LOSSES = {"balanced": "balanced", "generalized-nt-xent": "generalised NT-Xent"}
EPOCHS = 10
"""Of each training, at both sizes."""


def _training(setting: Setting, loss: str, alpha: float, weight: float, seed: int) -> Training:
    return training(
        setting,
        loss,
        seed,
        epochs=min(EPOCHS, setting.epochs),
        options=(("alpha", alpha), ("weight", weight)),
        snapshots=(),
    )


def trainings(setting: Setting, seed: int) -> list[Training]:
    """Two losses, four alphas, four lambdas."""
    return [
        _training(setting, loss, alpha, weight, seed)
        for loss in LOSSES
        for alpha in GRID
        for weight in GRID
    ]


def measure(encoders: Encoders, seed: int) -> Samples:
    """Accuracy of the linear probe, (losses, alphas, lambdas)."""
    found = [encoders.probe(one) for one in trainings(encoders.setting, seed)]
    return {"accuracy": np.array(found).reshape(len(LOSSES), len(GRID), len(GRID))}


def conclude(samples: Samples) -> Findings:
    """Where the best is, and which loss has the better best."""
    mean = samples["accuracy"].mean(axis=0)
    figures = [
        Figure.of(
            f"{name}, alpha {alpha:g}, lambda {weight:g}: linear probe",
            samples["accuracy"][:, place, row, column],
        )
        for place, name in enumerate(LOSSES.values())
        for row, alpha in enumerate(GRID)
        for column, weight in enumerate(GRID)
    ]
    best = [np.unravel_index(int(table.argmax()), table.shape) for table in mean]
    words = "; ".join(
        f"{name} is best at alpha {GRID[at[0]]:g}, lambda {GRID[at[1]]:g} ({mean[place][at]:.3f})"
        for place, (name, at) in enumerate(zip(LOSSES.values(), best, strict=True))
    )
    checks = [
        Check(
            "best of the balanced loss less best of generalised NT-Xent",
            mean[0].max() - mean[1].max(),
            "more than",
            0.0,
        )
    ]
    for place, name in enumerate(LOSSES.values()):
        gain = mean[place].max() - mean[place][:, 0].max()
        checks.append(Check(f"{name}: best less best with lambda 1", gain, "at least", 0.001))
    checks.append(
        Check("largest less least accuracy of the balanced grid", np.ptp(mean[0]), "at least", 0.02)
    )
    return Findings(figures, checks, f"{words[0].upper()}{words[1:]}.")


def draw(samples: Samples) -> Picture:
    """Both grids."""
    figure, panels = canvas(2, width=3.8)
    mean = samples["accuracy"].mean(axis=0)
    for panel, table, name in zip(panels, mean, LOSSES.values(), strict=True):
        panel.imshow(table, vmin=mean.min(), vmax=mean.max(), cmap="viridis")
        middle = (mean.min() + mean.max()) / 2
        for (row, column), value in np.ndenumerate(table):
            color = "black" if value > middle else "white"
            panel.text(
                column, row, f"{100 * value:.1f}", ha="center", va="center", fontsize=8, color=color
            )
        panel.set_xticks(range(len(GRID)), [f"{value:g}" for value in GRID])
        panel.set_yticks(range(len(GRID)), [f"{value:g}" for value in GRID])
        label(panel, name, "λ", "α", legend=False)
    return figure


FIGURE_5 = TrainedReproduction(
    "balanced-5",
    "The balanced contrastive loss has a better best than generalised NT-Xent over alpha and "
    "lambda in {1, 2, 4, 8}, and neither is best at lambda = 1 (balanced, figures 4 and 5).",
    trainings,
    measure,
    conclude,
    draw,
    {"epochs of each training": EPOCHS},
)
