"""The page of benchmarks/cifar10.py."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cifar10_entries import EPOCHS, PARTS, WEIGHT, entries

from likewise.runs import write_atomically

Row = dict[str, Any]
Linear = dict[tuple[str, str, int], dict[int, float]]
"""Linear accuracy by part, name and epochs, then by seed."""

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
        "training, compilation included, where a training had the device for itself and was not "
        "interrupted (for speed see throughput.md). Linear: logistic regression on frozen "
        "features, its penalty chosen on a tenth of the training images; kNN: cosine, temperature "
        "0.1; effective rank: of the covariance of the test features, of 512. One seed each "
        "where nothing else is said, and the settings of the recipes were compared on these test "
        "images.",
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
    lines += _labels(found) + _spectrum(found)
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


def _seed(row: Row) -> int:
    return int(row.get("seed", 0))


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| recipe | epochs | seconds | kNN-200 | kNN-1 | linear | effective rank |",
        "| --- |" + " ---: |" * 6,
    ]
    for row in sorted(rows, key=lambda row: -row["linear"]):
        seconds = "" if row["resumed"] or row["side_by_side"] else f"{row['seconds']:.0f}"
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


def _spectrum(found: list[Row]) -> list[str]:
    """One row a graph, one column a number of epochs; then the label weights."""
    linear: Linear = defaultdict(dict)
    for row in found:
        linear[row["part"], row["name"], row["epochs"]][_seed(row)] = row["linear"]
    order = list(dict.fromkeys(entry.name for entry in entries("spectrum")))
    if not any(row["part"] == "spectrum" for row in found):
        return []
    lines = [
        "## From self-supervised to supervised: the same training with another graph",
        "VICReg as in `pal` C.3: K = 16 outputs, a head of two layers, batch 256, AdamW, views "
        "`small`, all three weights 25; linear accuracy, mean and deviation over seeds (their "
        f"number behind it). Labels are mixed into the graph with weight {WEIGHT:g}, which was "
        "chosen on seed 0; a seed draws the labels that are known, too.",
        "",
        "| graph | " + " | ".join(f"{epochs} epochs" for epochs in EPOCHS) + " |",
        "| --- |" + " ---: |" * len(EPOCHS),
    ]
    lines += [_across(name, linear, "spectrum", name) for name in order]
    lines += ["", *_rises(order, linear)]
    lines += [
        "### How much the labels weigh, and which samples meet",
        "Some labels are worth nothing in shuffled batches, where classmates hardly meet, and much "
        "in batches that bring them together (`sampler=graph-aware`, which `auto` takes while a "
        "random batch holds fewer known pairs than samples). `known_share` is the part of such a "
        "batch that is drawn from what is known. Seed 0.",
        "",
        "| labels | weight | sampler | known share | "
        + " | ".join(f"{e} epochs" for e in EPOCHS)
        + " |",
        "| --- | ---: | --- | ---: |" + " ---: |" * len(EPOCHS),
    ]
    settings = {
        (o["label_share"], o["sampler"], o["label_weight"], o.get("known_share", 0.5)): entry
        for part in ("spectrum", "weights")
        for entry in entries(part)
        if "label_share" in (o := entry.options)
    }
    for (share, sampler, weight, known), entry in sorted(settings.items(), key=lambda s: s[0]):
        part = f"{known:g}" if sampler == "graph-aware" else ""
        head = f"{share:.0%} | {weight:g} | {sampler} | {part}"
        lines.append(_across(head, linear, entry.part, entry.name, seeds=(0,)))
    return [*lines, ""]


def _across(
    head: str, linear: Linear, part: str, name: str, seeds: Iterable[int] | None = None
) -> str:
    cells = []
    for epochs in EPOCHS:
        by_seed = linear[part, name, epochs]
        values = [
            by_seed[seed] for seed in (by_seed if seeds is None else seeds) if seed in by_seed
        ]
        cells.append(_cell(values))
    return f"| {head} | " + " | ".join(cells) + " |"


def _cell(values: list[float]) -> str:
    if len(values) < 2:
        return "".join(f"{value:.1%}" for value in values)
    return f"{mean(values):.1%} ± {100 * stdev(values):.1f} ({len(values)})"


def _rises(order: list[str], linear: Linear) -> list[str]:
    """Where it rises from graph to graph, seed by seed, and where it does not."""
    falls, rises = [], 0
    for epochs in EPOCHS:
        for before, after in pairwise(order):
            first, second = linear["spectrum", before, epochs], linear["spectrum", after, epochs]
            for seed in sorted(first.keys() & second.keys()):
                change = 100 * (second[seed] - first[seed])
                rises += change > 0
                if change <= 0:
                    falls.append(
                        f"{after} after {epochs} epochs with seed {seed} ({change:.1f} points)"
                    )
    said = f"From row to row, with one seed each, it rises {rises} times of {rises + len(falls)}."
    if falls:
        said += f" It does not: {'; '.join(falls)}."
    return [said, ""]


def _missing(there: set[tuple[str, str, int, int]]) -> list[str]:
    """What of the benchmark has not been run yet, so that nobody takes the page for all of it."""
    names = [
        f"{entry.name} ({entry.epochs} epochs, seed {entry.seed})"
        for part in PARTS
        for entry in entries(part)
        if (entry.part, entry.name, entry.epochs, entry.seed) not in there
    ]
    return ["## Not measured yet", ", ".join(names) + "."] if names else []
