"""``geometry`` figures 5 and 6: how far the nearest negative is, and of which class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.diagnostics import NearestNegatives, nearest_negatives
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.encoders import Encoders, coarse_labels
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.geometry.strengths import (
    LOOKED_AT,
    STRENGTHS,
    TIMES,
    last,
    training,
    trainings,
    view_pair,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

EDGES = np.linspace(0, 1.5, 61)


def look(encoders: Encoders, strength: str, seed: int, at: float) -> NearestNegatives:
    """The nearest negatives of training images, found in the projector's space."""
    pair = view_pair(encoders, training(encoders.setting, strength, seed), at, seed=seed)
    found = encoders.pictures
    return nearest_negatives(
        pair.z1,
        pair.z2,
        h1=pair.h1,
        h2=pair.h2,
        labels=found.labels()[:LOOKED_AT],
        coarse_labels=coarse_labels(found, "train")[:LOOKED_AT],
    )


# --- figure 5: distances ------------------------------------------------------------------------


def measure_5(encoders: Encoders, seed: int) -> Samples:
    """Mean distance to the nearest negative (strengths, times), and its histogram at the end."""
    mean = np.empty((len(STRENGTHS), len(TIMES)))
    counts = np.empty((len(STRENGTHS), len(EDGES) - 1))
    for row, strength in enumerate(STRENGTHS):
        for column, at in enumerate(TIMES):
            found = look(encoders, strength, seed, at)
            mean[row, column] = found.mean_distance
        counts[row] = np.histogram(found.distance.cpu().numpy(), EDGES, density=True)[0]
    return {"distance": mean, "histogram": counts}


def conclude_5(samples: Samples) -> Findings:
    """Whether strong augmentation brings neighbours nearer."""
    figures = [
        Figure.of(f"{strength}: distance at the {when}", samples["distance"][:, row, column])
        for row, strength in enumerate(STRENGTHS)
        for column, when in ((0, "start"), (-1, "end"))
    ]
    small, moderate, large = last(samples["distance"])
    return Findings(
        figures,
        [
            Check("distance, small / large", small / large, "at least", 1.02),
            Check("distance, small / moderate", small / moderate, "more than", 1.0),
            Check("distance, moderate / large", moderate / large, "more than", 1.0),
        ],
        "Distances are of unit rows of the encoder; the nearest is found behind the projector.",
    )


def draw_5(samples: Samples) -> Picture:
    """Histograms at the end."""
    figure, panels = canvas()
    middle = (EDGES[:-1] + EDGES[1:]) / 2
    for row, strength in enumerate(STRENGTHS):
        curve(panels[0], middle, samples["histogram"][:, row], strength, COLORS[row])
    label(panels[0], "at the end of the training", "distance to the nearest negative", "density")
    return figure


FIGURE_5 = TrainedReproduction(
    "geometry-5",
    "In the encoder's space the nearest negative is farther away after training with small "
    "augmentation than with large (geometry, figure 5).",
    trainings,
    measure_5,
    conclude_5,
    draw_5,
    {"images": LOOKED_AT},
)

# --- figure 6: labels ---------------------------------------------------------------------------


def measure_6(encoders: Encoders, seed: int) -> Samples:
    """Share of nearest negatives of the same fine and coarse class, (strengths, times, 2)."""
    same = np.empty((len(STRENGTHS), len(TIMES), 2))
    for row, strength in enumerate(STRENGTHS):
        for column, at in enumerate(TIMES):
            found = look(encoders, strength, seed, at)
            same[row, column] = found.same_label, found.same_coarse
    return {"same": same, "chance": np.array([found.same_label_chance, found.same_coarse_chance])}


def conclude_6(samples: Samples) -> Findings:
    """Whether it rises, for whom the most, and for whom the soonest."""
    same = samples["same"]
    figures, checks = [], []
    for kind, name in enumerate(("fine", "coarse")):
        chance = samples["chance"][:, kind].mean()
        figures.append(Figure(f"{name}: chance", chance))
        for row, strength in enumerate(STRENGTHS):
            for column, when in ((0, "start"), (-1, "end")):
                values = same[:, row, column, kind]
                figures.append(Figure.of(f"{strength}, {name}: at the {when}", values))
            rise = same[:, row, -1, kind] - same[:, row, 0, kind]
            checks.append(Check(f"{strength}, {name}: rise", float(rise.mean()), "at least", 0.02))
    final, mean = same[:, :, -1, 0].mean(axis=0), same[..., 0].mean(axis=0)
    quarter = TIMES.index(0.25)
    early = (mean[:, quarter] - mean[:, 0]) / (mean[:, -1] - mean[:, 0])
    checks += [
        Check("fine: large less small, at the end", final[2] - final[0], "more than", 0.0),
        Check(
            "fine: share of the rise in the first quarter, small less large",
            early[0] - early[2],
            "more than",
            0.0,
        ),
    ]
    return Findings(figures, checks)


def draw_6(samples: Samples) -> Picture:
    """Shares over the training."""
    figure, panels = canvas(2)
    for kind, (panel, name) in enumerate(zip(panels, ("fine", "coarse"), strict=True)):
        for row, strength in enumerate(STRENGTHS):
            curve(panel, TIMES, samples["same"][:, row, :, kind], strength, COLORS[row])
        panel.axhline(samples["chance"][:, kind].mean(), color="black", lw=0.6, ls=":")
        label(panel, f"{name} labels", "share of the training", "nearest negatives of the class")
    return figure


FIGURE_6 = TrainedReproduction(
    "geometry-6",
    "The share of nearest negatives with the same label grows during training for every strength; "
    "the stronger the augmentation, the more they share, and the longer it takes (geometry, "
    "figure 6 and section 5).",
    trainings,
    measure_6,
    conclude_6,
    draw_6,
    {"images": LOOKED_AT, "coarse labels": "animal / vehicle; on digits: loop (0, 6, 8, 9) / none"},
)
