"""A training in a process of its own, which can be killed at a given point.

    python tests/training/driver.py FOLDER [--resume] [--die-in-step K] [--die-in-save K]

The process ends itself with SIGKILL, as a machine that loses power does: in the middle of step K,
or when half of the K-th checkpoint is on the disk.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import torch


def pictures(n: int = 48, size: int = 16) -> np.ndarray:
    """Coloured noise with a bright corner: enough to learn something from."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 128, (n, size, size, 3), dtype=np.uint8)
    for i in range(n):
        row, column = (i % 4 // 2) * size // 2, (i % 2) * size // 2
        images[i, row : row + size // 2, column : column + size // 2] += 100
    return images


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_step(step: int) -> None:
    from likewise.training.module import TrainingModule

    original = TrainingModule.training_step

    def training_step(self: Any, *args: Any) -> Any:
        if self.trainer.global_step == step:
            die()
        return original(self, *args)

    TrainingModule.training_step = training_step  # type: ignore[method-assign]


def die_in_save(count: int) -> None:
    original = torch.save
    calls = [0]

    def save(content: Any, path: Any) -> None:
        original(content, path)
        calls[0] += 1
        if calls[0] == count:
            size = os.path.getsize(path)
            os.truncate(path, size // 2)
            die()

    torch.save = save


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--die-in-step", type=int)
    parser.add_argument("--die-in-save", type=int)
    parser.add_argument("--recipe", default="byol")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.die_in_step is not None:
        die_in_step(given.die_in_step)
    if given.die_in_save is not None:
        die_in_save(given.die_in_save)
    import likewise
    from likewise.data import open_source

    source = open_source(pictures())
    if given.resume:
        likewise.train(source, resume=given.folder)
        return
    likewise.train(
        source,
        out=given.folder,
        recipe=given.recipe,
        encoder="tiny",
        projector=[16, 8],
        epochs=3,
        batch_size=8,
        device="cpu",
        checkpoint_steps=4,
        monitor_every=1,
        diagnose_every=1,
        logger=["csv"],
    )


if __name__ == "__main__":
    main()
