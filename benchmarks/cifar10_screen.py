"""Which settings help SimCLR on CIFAR-10: a screening design, so that a handful of short trainings
tells about all of them at once.

Each training of :func:`pattern` has about half of the changes, as Plackett and Burman (1946) lay
them out: every two changes meet in all four combinations equally often. The effect of a change is
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
VIEWS_BEFORE: dict[str, Any] = {"base": "simclr", "crop_scale": [0.2, 1.0]}
"""The recipe's views before the screening."""


def before(*, ends_normalized: bool = False, lars: bool = False) -> str:
    """The name under which `likewise.train` finds SimCLR's recipe as it was before the screening,
    but for its views, with these changes."""
    name = "simclr before the screening"
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
    normalized = bool(has["batch norm after the projector"])
    return before(ends_normalized=normalized, lars=bool(has["LARS"])), options


def effects(values: list[float]) -> dict[str, float]:
    """What each change brings, from one figure for every row of the pattern."""
    rows = pattern()
    return {
        change: mean(v for v, row in zip(values, rows, strict=True) if row[column])
        - mean(v for v, row in zip(values, rows, strict=True) if not row[column])
        for column, change in enumerate(CHANGES)
    }
