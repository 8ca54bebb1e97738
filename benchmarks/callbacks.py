"""What the diagnostics of `likewise train --diagnose-every` cost: training with and without.

    python benchmarks/callbacks.py --out callbacks.json

On a GPU: SimCLR with a ResNet-18 (bf16, compiled) on 50,000 random images of 32 x 32 (the time of
a step does not depend on what the images show), batch 512. On a CPU: the tiny encoder on 3,000. The
entries take turns, round after round, so that a machine that slows down slows down all of them.
Epochs are timed from the second on (the first compiles); the look before the first step is added
by its own time. `default` is what `likewise train` does by itself; `every epoch` is the most that
can be asked for.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from likewise.data import open_source
from likewise.runs import write_atomically
from likewise.training import prepared as starting
from likewise.training import session
from likewise.training.choices import choose_diagnose_every
from likewise.training.fit import Outcome
from likewise.training.records import read_records

ENTRIES: dict[str, int | None] = {"without": 0, "default": None, "every epoch": 1}


def arguments_of(**changes: Any) -> dict[str, Any]:
    """All arguments of `likewise train`, at their defaults but for the changes."""
    import inspect

    from likewise.commands.train import train

    usual = {name: part.default for name, part in inspect.signature(train).parameters.items()}
    return {**usual, **changes}


def train_once(every: int | None, given: argparse.Namespace, images: Any) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())
    outcomes: list[Outcome] = []
    original = starting.fit

    def fit(*arguments: Any, **options: Any) -> Outcome:
        outcomes.append(original(*arguments, **options))
        return outcomes[-1]

    starting.fit = fit
    try:
        prepared = session.prepare(
            **arguments_of(
                data=images,
                out=folder / "run",
                recipe="simclr",
                encoder=given.encoder,
                epochs=given.epochs,
                batch_size=given.batch_size,
                device=given.device,
                monitor_every=0,
                diagnose_every=every,
                checkpoint_minutes=60.0,
                logger=["csv"],
                force=True,
            )
        )
        prepared.train()
        looks = read_records(folder / "run")
        found = {
            "epochs_seconds": sum(outcomes[0].epoch_seconds[1:]),
            "first_look_seconds": looks[0]["held_seconds"] if looks else 0.0,
            "held_seconds": sum(look["held_seconds"] for look in looks),
            "looks": len(looks),
            "seconds": outcomes[0].seconds,
            "diagnose_every": choose_diagnose_every(prepared.config)[0],
        }
    finally:
        starting.fit = original
        shutil.rmtree(folder, ignore_errors=True)
    return found


def main() -> None:
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if gpu else "cpu")
    parser.add_argument("--encoder", default="resnet18" if gpu else "tiny")
    parser.add_argument("--images", type=int, default=50_000 if gpu else 3_000)
    parser.add_argument("--epochs", type=int, default=60 if gpu else 12)
    parser.add_argument("--batch-size", type=int, default=512 if gpu else 256)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--entries", nargs="+", choices=[*ENTRIES], default=[*ENTRIES])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    pixels = np.random.default_rng(0).integers(0, 256, (given.images, 32, 32, 3), dtype=np.uint8)
    source = open_source(pixels)
    # What the others are compared with always runs.
    entries = [name for name in ENTRIES if name in ("without", *given.entries)]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in entries}
    for _ in range(given.rounds):
        for name in entries:
            found[name].append(train_once(ENTRIES[name], given, source))
    machine = torch.cuda.get_device_name() if gpu else f"CPU, {torch.get_num_threads()} threads"
    base = median(one["epochs_seconds"] for one in found["without"])
    print(
        f"{machine}: {given.encoder}, {given.images:,} images, batch {given.batch_size}, "
        f"{given.epochs} epochs, {given.rounds} rounds"
    )
    print("| entry | looks | seconds | cost | forward passes alone |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, rounds in found.items():
        seconds = median(one["epochs_seconds"] for one in rounds)
        extra = seconds + median(one["first_look_seconds"] for one in rounds) - base
        held = median(one["held_seconds"] for one in rounds)
        print(
            f"| {name} | {rounds[0]['looks']} | {seconds:.2f} | {extra / base:+.2%} | "
            f"{held / base:.2%} |"
        )
    if given.out is not None:
        content = {"machine": machine, "settings": vars(given), "found": found}
        with write_atomically(given.out) as aside:
            aside.write_text(json.dumps(content, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
