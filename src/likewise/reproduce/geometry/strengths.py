"""Small, moderate and large augmentation (``geometry`` table 2), and what is trained with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from likewise.data.views import POLICIES, Policy
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Samples
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

STRENGTHS = ("small", "moderate", "large")
TIMES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Shares of the training at which networks are looked at."""
LOOKED_AT = 1024
"""Images of which two views are looked at."""
BETA = 2.0


def _digit_views(least: float, strength: float, angle: float) -> Policy:
    # Table 2 for grey digits: no flip (a mirrored 2 is no 2) and no hue; a turn in its place, and
    # twice the changes of light, which are all the colour there is.
    most = round(1.6 * strength, 6)
    return Policy(
        crop_scale=(least, 1.0), rotation=angle, jitter=0.8, brightness=most, contrast=most
    )


DIGIT_POLICIES = {
    "small": _digit_views(0.9, 0.025, 2.0),
    "moderate": _digit_views(0.6, 0.25, 8.0),
    "large": _digit_views(0.35, 0.5, 15.0),
}


def policy(setting: Setting, strength: str) -> Policy:
    """The views of a strength: table 2, or what stands for it on digits."""
    return (DIGIT_POLICIES if setting.is_digits else POLICIES)[strength]


def training(
    setting: Setting,
    strength: str,
    seed: int,
    *,
    projector: tuple[int, ...] | None = None,
    times: tuple[float, ...] = TIMES,
) -> Training:
    """SimCLR with InfoNCE (beta = 2, symmetric) and a linear projector, as all of ``geometry``.

    The paper's optimiser is LARS; here SGD as in our SimCLR, and on digits AdamW, which gets
    there in fewer steps.
    """
    changes: list[tuple[str, object]] = [
        ("objective", "InfoNCE"),
        ("projector", (setting.linear,) if projector is None else projector),
    ]
    if setting.is_digits:
        changes += [("optimizer", "adamw"), ("lr", 4e-3), ("weight_decay", 1e-2)]
    return Training(
        "simclr",
        policy(setting, strength),
        setting.epochs,
        changes=tuple(changes),
        options=(("inverse_temperature", BETA), ("symmetric", True)),
        snapshots=times,
        seed=seed,
    )


def trainings(setting: Setting, seed: int) -> list[Training]:
    """One for each strength."""
    return [training(setting, strength, seed) for strength in STRENGTHS]


@dataclass(frozen=True)
class ViewPair:
    """Two views of the same images: encoder outputs h and projector outputs z."""

    h1: Tensor
    h2: Tensor
    z1: Tensor
    z2: Tensor


def view_pair(encoders: Encoders, one: Training, at: float, *, seed: int = 0) -> ViewPair:
    """Two views of training images, made by the training's own policy."""
    h, z = encoders.embed_views(one, at, "train", most=LOOKED_AT, seed=seed)
    return ViewPair(h[::2], h[1::2], z[::2], z[1::2])


def over_time(samples: Samples, name: str, title: str, y: str) -> Picture:
    """A curve for each strength; samples[name] is (trials, strengths, times)."""
    figure, panels = canvas()
    for place, strength in enumerate(STRENGTHS):
        curve(panels[0], TIMES, samples[name][:, place], strength, COLORS[place])
    label(panels[0], title, "share of the training", y)
    return figure


def last(values: np.ndarray) -> np.ndarray:
    """(trials, strengths, times) at the end, averaged over trials."""
    found: np.ndarray = values[..., -1].mean(axis=0)
    return found
