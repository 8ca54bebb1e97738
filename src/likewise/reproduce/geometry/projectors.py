"""``geometry`` section 5: wider and deeper projectors fit the displacements piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.diagnostics import (
    displacements,
    local_affine_maps,
    local_fraction_unexplained,
    span_difference,
)
from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.geometry.strengths import training, view_pair
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

HIDDEN = {
    "linear": (),
    "1 x narrow": (1,),
    "1 x middle": (4,),
    "1 x wide": (16,),
    "2 x middle": (4, 4),
    "3 x middle": (4, 4, 4),
}
"""Hidden widths, as multiples of the projector's output width."""
MAPS = 64
"""Rows whose local maps are compared."""


def _training(setting: Setting, name: str, seed: int) -> Training:
    if not HIDDEN[name]:  # the one of the other figures
        return training(setting, "large", seed)
    widths = (*(setting.linear * times for times in HIDDEN[name]), setting.linear)
    return training(setting, "large", seed, projector=widths, times=())


def trainings(setting: Setting, seed: int) -> list[Training]:
    """One for each projector, all with large augmentation."""
    return [_training(setting, name, seed) for name in HIDDEN]


def measure(encoders: Encoders, seed: int) -> Samples:
    """(projectors, 5): probe, neighbours, regions, distance of spans, local equation 10."""
    found = np.empty((len(HIDDEN), 5))
    for row, name in enumerate(HIDDEN):
        one = _training(encoders.setting, name, seed)
        pair = view_pair(encoders, one, 1.0, seed=seed)
        moves = displacements(pair.h1, pair.h2, pair.z1, pair.z2)[:MAPS]
        projector = encoders.of(one).network().projector
        maps = local_affine_maps(projector, pair.h1[:MAPS])  # type: ignore[arg-type]
        found[row] = (
            encoders.probe(one),
            encoders.neighbors(one),
            maps.regions / MAPS,
            span_difference(maps.weights).distance,
            local_fraction_unexplained(moves, maps.weights),
        )
    return {"found": found}


NAMES = (
    "linear probe",
    "nearest neighbours",
    f"regions / {MAPS} samples",
    "distance of local spans",
    "displacements unexplained, locally",
)


def conclude(samples: Samples) -> Findings:
    """What a deeper or wider projector changes."""
    values = samples["found"]
    figures = [
        Figure.of(f"{name}: {text}", values[:, row, column])
        for row, name in enumerate(HIDDEN)
        for column, text in enumerate(NAMES)
    ]
    mean = dict(zip(HIDDEN, values.mean(axis=0), strict=True))
    probe = {name: float(numbers[0]) for name, numbers in mean.items()}
    spans = {name: float(numbers[3]) for name, numbers in mean.items()}
    left = {name: float(numbers[4]) for name, numbers in mean.items()}
    best = max(probe, key=lambda name: probe[name])
    return Findings(
        figures,
        [
            Check(
                "linear probe, best MLP less linear projector",
                max(v for name, v in probe.items() if name != "linear") - probe["linear"],
                "more than",
                0.0,
            ),
            Check("linear: distance of local spans", spans["linear"], "at most", 1e-9),
            Check(
                "distance of local spans, 3 layers less 1",
                spans["3 x middle"] - spans["1 x middle"],
                "more than",
                0.0,
            ),
            Check(
                "displacements unexplained locally, 3 layers / linear",
                left["3 x middle"] / left["linear"],
                "less than",
                1.0,
            ),
        ],
        f"The best encoder has the projector {best!r}.",
    )


def draw(samples: Samples) -> Picture:
    """Accuracy, and what is left unexplained."""
    figure, panels = canvas(2)
    values = samples["found"].mean(axis=0)
    place = np.arange(len(HIDDEN))
    for panel, columns, y in (
        (panels[0], (0, 1), "accuracy"),
        (panels[1], (3, 4), "share"),
    ):
        for at, column in enumerate(columns):
            panel.bar(
                place + 0.4 * at - 0.2,
                values[:, column],
                0.4,
                label=NAMES[column],
                color=COLORS[at],
            )
        panel.set_xticks(place, list(HIDDEN), fontsize=7, rotation=20)
        label(panel, "", "projector", y)
    panels[0].set_ylim(max(0, values[:, :2].min() - 0.1), 1)
    return figure


PROJECTORS = TrainedReproduction(
    "geometry-projector",
    "The wider and deeper the projector, the more its local maps differ, the better each fits the "
    "displacements of its own samples, and the better the encoder (geometry, section 5; argued "
    "there, not measured).",
    trainings,
    measure,
    conclude,
    draw,
    {"hidden layers": "1, 4 or 16 times the projector's output width", "samples": MAPS},
)
