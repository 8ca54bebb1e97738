"""The contrastive trainings of ``balanced``: SimCLR, the balanced loss and generalised NT-Xent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from likewise.data.views import POLICIES, Policy
from likewise.reproduce.geometry.strengths import DIGIT_POLICIES
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

TIMES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
TEMPERATURE = 0.5
"""Of SimCLR in the paper (section 5); our recipe's own is another."""


def policy(setting: Setting) -> Policy:
    """A.4.1 (that of SimCLR for CIFAR-10), or large augmentation on digits."""
    return DIGIT_POLICIES["large"] if setting.is_digits else POLICIES["simclr"]


def training(setting: Setting, recipe: str, seed: int, **changes: Any) -> Training:
    """A contrastive training with the optimiser of A.4.1 (on digits AdamW).

    Args:
        setting: fast or full.
        recipe: "simclr", "balanced" or "generalized-nt-xent".
        seed: of the trial.
        **changes: fields of :class:`Training`.
    """
    if setting.is_digits:
        given: tuple[tuple[str, Any], ...] = (
            ("projector", (setting.wide, setting.wide)),
            ("optimizer", "adamw"),
            ("lr", 4e-3),
            ("weight_decay", 1e-4),
        )
    else:
        # SGD 0.1 at a batch of 512; heads of A.4.1.
        given = (
            ("projector", (setting.wide, setting.wide)),
            ("projector_ends_normalized", True),
            ("lr", 0.05),
            ("weight_decay", 1e-4),
        )
    one = Training(
        recipe, policy(setting), setting.epochs, changes=given, snapshots=TIMES, seed=seed
    )
    if recipe == "simclr":
        changes["options"] = (("temperature", TEMPERATURE), *changes.get("options", ()))
    return replace(one, **changes)
