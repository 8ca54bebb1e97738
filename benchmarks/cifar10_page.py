"""The page of benchmarks/cifar10.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cifar10_entries import EPOCHS, PARTS, entries

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
        "training, compilation included, where a training had the device for itself and was not "
        "interrupted (for speed see throughput.md). Linear: logistic regression on frozen "
        "features, its penalty chosen on a tenth of the training images; kNN: cosine, temperature "
        "0.1; effective rank: of the covariance of the test features, of 512. One seed each, and "
        "the settings of the recipes were compared on these test images.",
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
    lines += _spectrum(found)
    lines += _missing({(row["part"], row["name"], row["epochs"]) for row in found})
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


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| recipe | epochs | seconds | kNN-200 | kNN-1 | linear | effective rank |",
        "| --- |" + " ---: |" * 6,
    ]
    for row in sorted(rows, key=lambda row: -row["linear"]):
        seconds = "" if row["resumed"] or row["side_by_side"] else f"{row['seconds']:.0f}"
        lines.append(
            f"| {row['name']} | {row['epochs']} | {seconds} "
            f"| {row['knn200']:.1%} | {row['knn1']:.1%} | {row['linear']:.1%} "
            f"| {row['effective_rank']:.0f} |"
        )
    return lines


def _spectrum(found: list[Row]) -> list[str]:
    """One row a graph, one column a number of epochs; then the label weights."""
    linear = {(row["part"], row["name"], row["epochs"]): row["linear"] for row in found}
    order = list(dict.fromkeys(entry.name for entry in entries("spectrum")))
    if not any(row["part"] == "spectrum" for row in found):
        return []
    lines = [
        "## From self-supervised to supervised: the same training with another graph",
        "VICReg as in `pal` C.3: K = 16 outputs, a head of two layers, batch 256, AdamW, views "
        "`small`, all three weights 25; linear accuracy. Labels are mixed into the graph with the "
        "weights below.",
        "",
        "| graph | " + " | ".join(f"{epochs} epochs" for epochs in EPOCHS) + " |",
        "| --- |" + " ---: |" * len(EPOCHS),
    ]
    lines += [_across(name, linear, "spectrum", name) for name in order]
    lines += ["", *_falls(order, linear)]
    lines += [
        "### How much the labels weigh, and which samples meet",
        "Some labels are worth nothing in shuffled batches, where classmates hardly meet, and much "
        "in batches that bring them together (`sampler=graph-aware`, which `auto` takes while a "
        "random batch holds fewer known pairs than samples).",
        "",
        "| labels | weight | sampler | " + " | ".join(f"{e} epochs" for e in EPOCHS) + " |",
        "| --- | ---: | --- |" + " ---: |" * len(EPOCHS),
    ]
    settings = {
        (o["label_share"], o["sampler"], o["label_weight"]): (entry.part, entry.name)
        for part in ("spectrum", "weights")
        for entry in entries(part)
        if "label_share" in (o := entry.options)
    }
    for (share, sampler, weight), (part, name) in sorted(settings.items()):
        lines.append(_across(f"{share:.0%} | {weight:g} | {sampler}", linear, part, name))
    return [*lines, ""]


def _across(head: str, linear: dict[tuple[str, str, int], float], part: str, name: str) -> str:
    values = [linear.get((part, name, epochs)) for epochs in EPOCHS]
    cells = ["" if value is None else f"{value:.1%}" for value in values]
    return f"| {head} | " + " | ".join(cells) + " |"


def _falls(order: list[str], linear: dict[tuple[str, str, int], float]) -> list[str]:
    """Where a column does not rise."""
    lines = []
    for epochs in EPOCHS:
        there = [name for name in order if ("spectrum", name, epochs) in linear]
        for before, after in zip(there, there[1:], strict=False):
            fall = linear["spectrum", before, epochs] - linear["spectrum", after, epochs]
            if fall >= 0:
                lines += [
                    f"Not rising after {epochs} epochs: {after} is {100 * fall:.1f} points below.",
                    "",
                ]
    return lines


def _missing(there: set[tuple[str, str, int]]) -> list[str]:
    """What of the benchmark has not been run yet, so that nobody takes the page for all of it."""
    names = [
        f"{entry.name} ({entry.epochs} epochs)"
        for part in PARTS
        for entry in entries(part)
        if (entry.part, entry.name, entry.epochs) not in there
    ]
    return ["## Not measured yet", ", ".join(names) + "."] if names else []
