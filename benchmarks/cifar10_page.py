"""The page of benchmarks/cifar10.py."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cifar10_entries import PARTS, entries
from cifar10_spectrum import Spectrum

from likewise.runs import write_atomically

Row = dict[str, Any]

WHY = {
    "matrix-ssl-momentum": (
        "the loss wants the cross-covariance of two views to be I / d with d = 512, so that with "
        "rows of length 1 and views that agree on r dimensions only a share r / 512 of their "
        "energy may lie there, and the rest has to lie where views differ (docs/theory.md, eq. 22 "
        "of matrix-ssl). After 20 epochs r is a few dozen at most. The recipe `matrix-ssl` has "
        "d = 16."
    ),
}
"""Why a recipe is weak at 20 epochs, where that is understood."""

TITLES = {
    "short": "Every recipe, 20 epochs",
    "variants": "Other settings",
    "long": "200 epochs",
}


def write_page(out: Path, path: Path) -> None:
    """The Markdown page of all that is in `out`."""
    found: list[Row] = [json.loads(file.read_text()) for file in sorted(out.glob("*.json"))]
    if not found:
        raise SystemExit(f"{out} holds no results: run the parts first")
    machines = sorted({f"{row['device']}, torch {row['torch']}" for row in found})
    lines = [
        "# CIFAR-10",
        "ResNet-18 with a 3x3 stem and no max-pool, batch 512, on the JPEG copy (quality 75) of "
        "CIFAR-10, on which accuracies are several points below those on the original images. "
        f"Measured on: {'; '.join(machines)}. An epoch is 2 x 50,000 views. Seconds are those of "
        "training, compilation included; in brackets, where several trainings shared the device; "
        "none, where one was interrupted (for speed see throughput.md). Linear: logistic "
        "regression on frozen features, its penalty chosen on a tenth of the training images; kNN: "
        "cosine, temperature 0.1; effective rank: of the covariance of the test features, of 512. "
        "One seed each where nothing else is said, and the settings of the recipes were compared "
        "on these test images.",
        "",
        "    python benchmarks/cifar10.py --data ../shared/data/cifar10 --out build/cifar10 "
        f"--part {'|'.join(PARTS)}",
        "    python benchmarks/cifar10.py --out build/cifar10 --page docs/benchmarks/cifar10.md",
        "",
    ]
    for part, title in TITLES.items():
        rows = [row for row in found if row["part"] == part]
        if rows:
            lines += [f"## {title}", *_table(rows), ""]
        if part == "short":
            lines += _explained(rows) + _active(rows)
        if part == "long":
            lines += _over_seeds([row for row in rows if row["name"] == "simclr"])
    lines += _labels(found)
    spectrum = Spectrum(found)
    if spectrum.there:
        picture = path.with_name(f"{path.stem}-spectrum.svg")
        spectrum.draw(picture)
        lines += spectrum.text(picture.name)
    lines += _missing({(row["part"], row["name"], row["epochs"], _seed(row)) for row in found})
    with write_atomically(path) as aside:
        aside.write_text("\n".join(lines).rstrip() + "\n")


def _explained(rows: list[Row]) -> list[str]:
    lines = []
    for row in rows:
        if row["linear"] < 0.55:
            why = WHY.get(row["name"], "not explained yet.")
            lines += [f"{row['name']} is below 55 % ({row['linear']:.1%}): {why}", ""]
    return lines


def _active(rows: list[Row]) -> list[str]:
    """Whether asking for neighbours beats taking views only, as pal table 1 has it."""
    linear = {row["name"]: row["linear"] for row in rows}
    if not {"nnclr", "simclr", "vicreg"} <= set(linear):
        return []
    active, passive = linear["nnclr"], max(linear["simclr"], linear["vicreg"])
    verdict = "shows here" if active > passive else "does not show here"
    return [
        "That an active oracle beats passive ones (`pal`, table 1: NNCLR, which asks for the "
        f"nearest neighbour, beside SimCLR and VICReg) {verdict}, at 20 epochs of one budget: "
        f"{active:.1%} beside {linear['simclr']:.1%} and {linear['vicreg']:.1%}.",
        "",
    ]


def _over_seeds(rows: list[Row]) -> list[str]:
    """Mean and deviation of the one recipe that was trained with several seeds."""
    if len(rows) < 2:
        return []
    spread = [
        f"{title} {100 * mean(values):.1f} % ± {100 * stdev(values):.1f}"
        for title, key in (("linear", "linear"), ("kNN-200", "knn200"))
        for values in [[row[key] for row in rows]]
    ]
    return [
        f"{rows[0]['name']} over {len(rows)} seeds: {', '.join(spread)}. Two settings whose "
        "figures differ by less than that are not told apart by one seed each.",
        "",
    ]


def _seed(row: Row) -> int:
    return int(row.get("seed", 0))


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| recipe | epochs | seconds | kNN-200 | kNN-1 | linear | effective rank |",
        "| --- |" + " ---: |" * 6,
    ]
    for row in sorted(rows, key=lambda row: (-row["epochs"], -row["linear"])):
        seconds = "" if row["resumed"] else f"{row['seconds']:.0f}"
        if seconds and row["side_by_side"]:
            seconds = f"({seconds})"
        lines.append(
            f"| {row['name']}{f', seed {_seed(row)}' if _seed(row) else ''} | {row['epochs']} "
            f"| {seconds} "
            f"| {row['knn200']:.1%} | {row['knn1']:.1%} | {row['linear']:.1%} "
            f"| {row['effective_rank']:.0f} |"
        )
    return lines


def _labels(found: list[Row]) -> list[str]:
    """What some labels bring to the default recipe, with every default."""
    rows = [row for row in found if row["part"] == "labels"]
    if not rows:
        return []
    rows.sort(key=lambda row: row["options"]["label_share"])
    alone = [row for row in found if (row["part"], row["name"]) == ("short", "simclr")]
    return [
        "## Some labels, and the default recipe as it is",
        "`likewise train --recipe simclr --labels source --label-share S`, 20 epochs: weight and "
        "sampler are what the command chooses.",
        "",
        "| graph | kNN-200 | kNN-1 | linear | effective rank |",
        "| --- |" + " ---: |" * 4,
        *(
            f"| {'views alone' if row in alone else row['name']} | {row['knn200']:.1%} "
            f"| {row['knn1']:.1%} | {row['linear']:.1%} | {row['effective_rank']:.0f} |"
            for row in [*alone, *rows]
        ),
        "",
    ]


def _missing(there: set[tuple[str, str, int, int]]) -> list[str]:
    """What of the benchmark has not been run yet, so that nobody takes the page for all of it."""
    names = [
        f"{entry.name} ({entry.epochs} epochs, seed {entry.seed})"
        for part in PARTS
        for entry in entries(part)
        if (entry.part, entry.name, entry.epochs, entry.seed) not in there
    ]
    return ["## Not measured yet", ", ".join(names) + "."] if names else []
