"""``matrix-ssl`` tables 1, 4 and 5: accuracies of methods and of variants of Matrix-SSL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.matrix_ssl.methods import BUDGET, TITLES, training
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

METHODS = tuple(name for name in TITLES if name != "collapsed")
GAMMAS = (0.0, 0.3, 0.5, 0.6, 1.0, 1.3, 1.5)
ORDERS = (3, 4, 5)
SHARE = 0.5
"""Of the epochs, for the variants of tables 4 and 5."""


def methods(setting: Setting, seed: int) -> list[Training]:
    """One for each method of table 1."""
    return [training(setting, method, seed) for method in METHODS]


def _variant(setting: Setting, seed: int, **options: float) -> Training:
    usual = {"alignment_weight": 1.0, "order": 4}
    changed = {name: value for name, value in options.items() if usual[name] != value}
    return training(
        setting,
        "matrix-ssl",
        seed,
        epochs=setting.part(SHARE),
        options=tuple(changed.items()),
        snapshots=(),
    )


def gammas(setting: Setting, seed: int) -> list[Training]:
    """One for each alignment weight of table 4."""
    return [_variant(setting, seed, alignment_weight=gamma) for gamma in GAMMAS]


def orders(setting: Setting, seed: int) -> list[Training]:
    """One for each order of the Taylor series of table 5."""
    return [_variant(setting, seed, order=order) for order in ORDERS]


def measurer(
    trainings: Callable[[Setting, int], Sequence[Training]],
) -> Callable[[Encoders, int], Samples]:
    """Accuracies (trainings, 2) of a linear probe and of nearest neighbours."""

    def measure(encoders: Encoders, seed: int) -> Samples:
        found = [
            (encoders.probe(one), encoders.neighbors(one))
            for one in trainings(encoders.setting, seed)
        ]
        return {"accuracy": np.array(found)}

    return measure


def _figures(samples: Samples, names: Sequence[str]) -> list[Figure]:
    return [
        Figure.of(f"{name}: {text}", samples["accuracy"][:, row, column])
        for row, name in enumerate(names)
        for column, text in enumerate(("linear probe", "nearest neighbours"))
    ]


def _lead(probe: np.ndarray, place: int) -> float:
    """How far one is ahead of the best other."""
    return float(probe[place] - np.delete(probe, place).max())


def conclude_1(samples: Samples) -> Findings:
    """The order of the methods."""
    probe = samples["accuracy"][:, :, 0].mean(axis=0)
    order = [TITLES[METHODS[place]] for place in np.argsort(-probe)]
    without = probe[:-1]
    return Findings(
        _figures(samples, [TITLES[name] for name in METHODS]),
        [
            Check("Matrix-SSL less the best other", _lead(probe, len(probe) - 1), "more than", 0.0),
            Check("MEC less the best but Matrix-SSL", _lead(without, 7), "more than", 0.0),
            Check("Matrix-SSL less SimCLR", float(probe[-1] - probe[0]), "more than", 0.0),
        ],
        f"From the best: {', '.join(order)}.",
    )


def conclude_4(samples: Samples) -> Findings:
    """Whether gamma = 1 is the best, and whether gamma matters."""
    probe = samples["accuracy"][:, :, 0].mean(axis=0)
    return Findings(
        _figures(samples, [f"gamma {gamma:g}" for gamma in GAMMAS]),
        [
            Check("gamma 1 less the best other", _lead(probe, GAMMAS.index(1.0)), "more than", 0.0),
            Check("best less worst", float(np.ptp(probe)), "at most", 0.02),
        ],
        f"The best is gamma {GAMMAS[int(probe.argmax())]:g}; the paper's range is 0.005.",
    )


def conclude_5(samples: Samples) -> Findings:
    """Whether order 4 is the best, and whether the order matters."""
    probe = samples["accuracy"][:, :, 0].mean(axis=0)
    return Findings(
        _figures(samples, [f"order {order}" for order in ORDERS]),
        [
            Check("order 4 less the best other", _lead(probe, ORDERS.index(4)), "more than", 0.0),
            Check("best less worst", float(np.ptp(probe)), "at most", 0.02),
        ],
        f"The best is order {ORDERS[int(probe.argmax())]}; the paper's range is 0.002.",
    )


def drawer(names: Sequence[str]) -> Callable[[Samples], Picture]:
    """Accuracies as bars with one standard deviation."""

    def draw(samples: Samples) -> Picture:
        figure, panels = canvas(width=1.6 + 0.6 * len(names))
        place = np.arange(len(names))
        for column, text in enumerate(("linear probe", "nearest neighbours")):
            values = samples["accuracy"][:, :, column]
            panels[0].bar(
                place + 0.4 * column - 0.2,
                values.mean(axis=0),
                0.4,
                yerr=values.std(axis=0),
                label=text,
                color=COLORS[column],
            )
        low = float(samples["accuracy"].min())
        panels[0].set_ylim(max(0.0, low - 0.1), 1)
        panels[0].set_xticks(place, names, fontsize=7)
        label(panels[0], "test images", "", "accuracy")
        return figure

    return draw


TABLE_1 = TrainedReproduction(
    "matrix-ssl-table-1",
    "On an equal budget Matrix-SSL is the best of nine methods by a linear probe, and MEC the "
    "second (matrix-ssl, table 1).",
    methods,
    measurer(methods),
    conclude_1,
    drawer([TITLES[name] for name in METHODS]),
    BUDGET,
)
TABLE_4 = TrainedReproduction(
    "matrix-ssl-table-4",
    "Matrix-SSL is best with an alignment weight gamma of 1, and gamma matters little "
    "(matrix-ssl, table 4).",
    gammas,
    measurer(gammas),
    conclude_4,
    drawer([f"γ = {gamma:g}" for gamma in GAMMAS]),
    {"epochs of each training": "half as many", **BUDGET},
)
TABLE_5 = TrainedReproduction(
    "matrix-ssl-table-5",
    "Matrix-SSL is best with the Taylor series of order 4, and the order matters little "
    "(matrix-ssl, table 5).",
    orders,
    measurer(orders),
    conclude_5,
    drawer([f"order {order}" for order in ORDERS]),
    {"epochs of each training": "half as many", **BUDGET},
)
