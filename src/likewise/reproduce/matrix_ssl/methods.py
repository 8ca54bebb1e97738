"""The methods that ``matrix-ssl`` compares, on the same budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from likewise.data.views import POLICIES, Policy
from likewise.reproduce.geometry.strengths import DIGIT_POLICIES
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training
from likewise.training import recipe

TITLES = {
    "simclr": "SimCLR",
    "moco-v2": "MoCo v2",
    "byol": "BYOL",
    "swav": "SwAV",
    "simsiam": "SimSiam",
    "barlow-twins": "Barlow Twins",
    "vicreg": "VICReg",
    "mec": "MEC",
    "matrix-ssl": "Matrix-SSL",
    "collapsed": "SimSiam without stop-gradient",
}
TIMES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
QUEUE = 512
"""Rows of MoCo's queue on digits, of which there are fewer than its own 4,096."""

MOMENTUM = 0.9
"""Of teachers on digits: with 0.996 they would not leave their random start in 330 steps."""

BUDGET = {
    "optimiser": "AdamW with one learning rate for all, no tuning; the recipes' own at full size",
}
"""What a reader of a comparison has to know."""


def digit_policy(setting: Setting, name: str) -> Policy:
    """What a recipe's views are: on digits the same for all."""
    return DIGIT_POLICIES["large"] if setting.is_digits else POLICIES[name]


def training(setting: Setting, method: str, seed: int, **changes: Any) -> Training:
    """A method by its recipe; on digits with narrower heads and AdamW.

    Args:
        setting: fast or full.
        method: one of TITLES.
        seed: of the trial.
        **changes: fields of :class:`Training`.
    """
    stopped = method != "collapsed"
    name = method if stopped else "simsiam"
    found = recipe(name)
    given: list[tuple[str, Any]] = []
    if setting.is_digits:
        given += [
            ("projector", tuple(min(width, setting.wide) for width in found.projector)),
            ("optimizer", "adamw"),
            ("lr", 4e-3),
            ("weight_decay", 1e-4),
        ]
        if found.predictor is not None:
            given.append(("predictor", (setting.wide // 2,)))
        if found.queue:
            given.append(("queue", QUEUE))
        if found.teacher == "momentum":
            given.append(("momentum", MOMENTUM))
    one = Training(
        name,
        digit_policy(setting, found.views),
        setting.epochs,
        changes=tuple(given),
        snapshots=TIMES,
        stop_gradient=stopped,
        seed=seed,
    )
    return replace(one, **changes)
