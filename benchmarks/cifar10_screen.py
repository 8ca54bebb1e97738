"""Which settings help SimCLR on CIFAR-10: a screening design, so that a handful of short trainings
tells about all of them at once.

Each training of :func:`screen` has about half of the changes, in the pattern of Plackett and Burman
(1946): every two changes meet in all four combinations equally often. The effect of a change is
the mean over the six trainings that have it, less the mean over the six that do not. Two columns
of the pattern change nothing: what they show is noise.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import mean
from typing import Any

from likewise.data.views import Policy
from likewise.data.views.policies import distorted
from likewise.training import RECIPES

EPOCHS = 32
CHANGES = (
    "four views of 256 images",
    "colours 0.8",
    "blur 0.5",
    "solarise 0.2",
    "batch norm after the projector",
    "learning rate x 1.5",
    "crops from 0.12",
    "grayscale 0.1",
    "LARS",
    "noise",
    "noise again",
)
_FIRST = (1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0)
BEFORE: dict[str, Any] = {
    "views": {"base": "simclr", "crop_scale": [0.2, 1.0]},
    "projector_ends_normalized": False,
}
"""What of SimCLR's recipe the screening has changed, as it was."""


def registered(ends_normalized: bool, lars: bool) -> str:
    """The name of SimCLR's recipe with these parts, which `likewise.train` finds it by."""
    name = "simclr, before"
    changes: dict[str, Any] = {"projector_ends_normalized": ends_normalized}
    if ends_normalized:
        name += ", batch norm after the projector"
    if lars:
        name += ", LARS"
        changes.update(optimizer="lars", weight_decay=1e-4, trust_coefficient=0.02)
    RECIPES[name] = replace(RECIPES["simclr"], **changes)
    return name


def pattern() -> list[tuple[int, ...]]:
    """A row a training: which changes it has. Turned first rows, and one without any."""
    turned = [_FIRST[-k:] + _FIRST[:-k] for k in range(len(_FIRST))]
    return [*turned, (0,) * len(_FIRST)]


def training(row: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
    """The recipe and the options of one row of the pattern."""
    has = dict(zip(CHANGES, row, strict=True))
    policy = distorted(Policy(crop_scale=(0.2, 1.0), flip=0.5), 0.8 if has["colours 0.8"] else 0.5)
    if has["blur 0.5"]:
        policy = policy.with_(blur=0.5)
    if has["solarise 0.2"]:
        policy = policy.with_(solarize=(0.0, 0.2))
    if has["crops from 0.12"]:
        policy = policy.with_(crop_scale=(0.12, 1.0))
    if has["grayscale 0.1"]:
        policy = policy.with_(grayscale=0.1)
    options: dict[str, Any] = {
        "views": policy.to_dict(),
        "lr": 0.9 if has["learning rate x 1.5"] else 0.6,
    }
    if has["four views of 256 images"]:
        options["n_views"] = 4
    return registered(bool(has["batch norm after the projector"]), bool(has["LARS"])), options


def effects(values: list[float]) -> dict[str, float]:
    """What each change brings, from one figure for every row of the pattern."""
    rows = pattern()
    return {
        change: mean(v for v, row in zip(values, rows, strict=True) if row[column])
        - mean(v for v, row in zip(values, rows, strict=True) if not row[column])
        for column, change in enumerate(CHANGES)
    }
