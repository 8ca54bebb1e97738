"""The page of benchmarks/cifar10.py."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cifar10_entries import PARTS, entries
from cifar10_screen import CHANGES, EPOCHS, effects, pattern
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

FIGURES = {"held out": "held_out", "linear": "linear", "kNN-200": "knn200"}

TITLES = {
    "short": "Every recipe, 20 epochs",
    "variants": "Other settings",
    "long": "200 epochs",
}


KEPT = (
    *("part", "name", "recipe", "epochs", "seed", "options"),
    *("linear", "held_out", "knn200", "knn1", "effective_rank", "seconds"),
    *("resumed", "side_by_side", "device", "torch"),
)
"""What stays of a result."""


def results(out: Path, kept: Path) -> list[Row]:
    """What is in `out` and what `kept` has from earlier: the newer where both know it."""
    wanted = {
        (entry.part, entry.name, entry.epochs, entry.seed): None
        for part in PARTS
        for entry in entries(part)
    }
    rows = json.loads(kept.read_text()) if kept.is_file() else []
    rows += [json.loads(file.read_text()) for file in sorted(out.glob("*.json"))]
    found: dict[tuple[str, str, int, int], Row] = {}
    for row in rows:
        key = (row["part"], row["name"], row["epochs"], row["seed"])
        if key in wanted:
            found[key] = {name: row[name] for name in KEPT if name in row}
        else:
            print(f"left out: {', '.join(map(str, key))}, which is no entry of the benchmark")
    return [found[key] for key in wanted if key in found]


def keep(found: list[Row], kept: Path) -> None:
    """One result a line, so that a difference can be read."""
    with write_atomically(kept) as aside:
        aside.write_text("[\n" + ",\n".join(json.dumps(row) for row in found) + "\n]\n")


def write_page(out: Path, path: Path) -> None:
    """The Markdown page of all that is in `out`, and of what the file beside the page has kept."""
    kept = path.with_suffix(".json")
    found = results(out, kept)
    if not found:
        raise SystemExit(f"{out} holds no results: run the parts first")
    keep(found, kept)
    machines = sorted({f"{row['device']}, torch {row['torch']}" for row in found})
    lines = [
        "# CIFAR-10",
        "ResNet-18 with a 3x3 stem and no max-pool, batch 512, on the JPEG copy (quality 75) of "
        "CIFAR-10, on which accuracies are several points below those on the original images. "
        f"Measured on: {'; '.join(machines)}. An epoch is 2 x 50,000 views. Seconds are those of "
        "training, compilation included; in brackets, where several trainings shared the device; "
        "none, where one was interrupted or they were not kept (for speed see throughput.md). "
        "Linear: logistic regression on frozen features, its penalty chosen on a tenth of the "
        "training images; kNN: cosine, temperature 0.1; effective rank: of the covariance of the "
        "test features, of 512. "
        "One seed each where nothing else is said. SimCLR's settings were screened on training "
        "images that the probe had not seen; those of the other recipes, and all of 'Other "
        "settings', were compared on these test images.",
        "",
        "    python benchmarks/cifar10.py --data ../shared/data/cifar10 --out build/cifar10 "
        f"--part {'|'.join(PARTS)}",
        "    python benchmarks/cifar10.py --out build/cifar10 --page docs/benchmarks/cifar10.md",
        "",
        f"The second command adds what the first has left in --out to [{kept.name}]({kept.name}), "
        "from which this page is made.",
        "",
    ]
    for part, title in TITLES.items():
        rows = [row for row in found if row["part"] == part]
        if rows:
            lines += [f"## {title}", *_table(rows), ""]
        if part == "short":
            lines += _explained(rows) + _active(rows)
        if part == "long":
            lines += _over_seeds(found)
            lines += _screening(found)
    lines += _labels(found)
    spectrum = Spectrum(found)
    if spectrum.there:
        picture = path.with_name(f"{path.stem}-spectrum.svg")
        spectrum.draw(picture)
        lines += spectrum.text(picture.name)
    lines += _missing(found)
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


def _over_seeds(found: list[Row]) -> list[str]:
    """Mean and deviation of what was trained for 200 epochs with several seeds."""
    trainings: dict[str, list[Row]] = defaultdict(list)
    for row in found:
        if row["epochs"] == 200:
            trainings[row["name"]].append(row)
    said = [
        f"{name} {_spread(rows, 'linear')} and {_spread(rows, 'knn200')} ({len(rows)} seeds)"
        for name, rows in trainings.items()
        if len(rows) > 1
    ]
    if not said:
        return []
    return [
        f"Linear and kNN-200 over seeds, mean and deviation: {'; '.join(said)}. Two settings whose "
        "figures differ by less than such a deviation are not told apart by one seed each.",
        "",
    ]


def _spread(rows: list[Row], key: str) -> str:
    values = [100 * row[key] for row in rows]
    return f"{mean(values):.1f} ± {stdev(values):.1f} %"


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| recipe | epochs | seconds | kNN-200 | kNN-1 | linear | effective rank |",
        "| --- |" + " ---: |" * 6,
    ]
    for row in sorted(rows, key=lambda row: (-row["epochs"], -row["linear"])):
        seconds = "" if row["resumed"] or row["seconds"] is None else f"{row['seconds']:.0f}"
        if seconds and row["side_by_side"]:
            seconds = f"({seconds})"
        seed = f", seed {row['seed']}" if row["seed"] else ""
        lines.append(
            f"| {row['name']}{seed} | {row['epochs']} "
            f"| {seconds} "
            f"| {row['knn200']:.1%} | {_percent(row['knn1'])} | {row['linear']:.1%} "
            f"| {row['effective_rank']:.0f} |"
        )
    return lines


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _screening(found: list[Row]) -> list[str]:
    """What each change of the screening brings to SimCLR."""
    rows = sorted((row for row in found if row["part"] == "screen"), key=lambda row: row["name"])
    if len(rows) < len(pattern()):
        return []
    brings = {key: effects([100 * row[key] for row in rows]) for key in FIGURES.values()}
    return [
        "## Which settings help SimCLR",
        f"{len(rows)} trainings of {EPOCHS} epochs (part `screen`), each with about half of the "
        "changes, in the pattern of Plackett and Burman (1946): the mean of those that have a "
        "change, less the mean of those that do not, in points. Two columns of the pattern change "
        "nothing and show the noise. The recipe was chosen by the first column: training images, "
        "of which the probe is fitted to four fifths at a time. It takes what helps there by more "
        "than the noise, but for the four views (`--n-views 4`, half as many images a batch): "
        "whether they still help after 200 epochs was not measured.",
        "",
        f"| change | {' | '.join(FIGURES)} |",
        "| --- |" + " ---: |" * len(FIGURES),
        *(
            f"| {change} | {' | '.join(f'{brings[key][change]:+.1f}' for key in brings)} |"
            for change in sorted(CHANGES, key=lambda change: -brings["held_out"][change])
        ),
        "",
    ]


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
            f"| {_percent(row['knn1'])} | {row['linear']:.1%} | {row['effective_rank']:.0f} |"
            for row in [*alone, *rows]
        ),
        "",
    ]


def _missing(found: list[Row]) -> list[str]:
    """What of the benchmark has not been run yet, so that nobody takes the page for all of it."""
    there = {(row["part"], row["name"], row["epochs"], row["seed"]) for row in found}
    missing = [
        entry
        for part in PARTS
        for entry in entries(part)
        if (entry.part, entry.name, entry.epochs, entry.seed) not in there
    ]
    if not missing:
        return []
    names = [
        f"{entry.name} ({entry.part}, {entry.epochs} epochs, seed {entry.seed})"
        for entry in missing
    ]
    recipes = [entry.recipe for entry in missing if entry.part == "short"]
    return [
        "## Not measured yet",
        ", ".join(names) + ".",
        *(line for recipe in recipes for line in _nearest(recipe, found)),
    ]


def _nearest(recipe: str, found: list[Row]) -> list[str]:
    """What other settings of a recipe reached, where it was not run as it is."""
    linear: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in found:
        if row["recipe"] == recipe:
            linear[row["name"], row["epochs"]].append(row["linear"])
    said = [
        f"{name}, {epochs} epochs: {mean(values):.1%}" for (name, epochs), values in linear.items()
    ]
    return ["", f"Of {recipe} there is, under other settings: {'; '.join(said)}."] if said else []
