"""From self-supervised to supervised: what benchmarks/cifar10.py found, as tables and a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cifar10_entries import EPOCHS, WEIGHT, entries

from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.runs import write_atomically


class Spectrum:
    """Linear accuracy of one training on one graph after another.

    Args:
        found: all results of the benchmark.
    """

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self.there = any(row["part"] == "spectrum" for row in found)
        self.graphs = list(dict.fromkeys(entry.name for entry in entries("spectrum")))
        # By part, name and epochs, then by seed.
        self.linear: dict[tuple[str, str, int], dict[int, float]] = defaultdict(dict)
        for row in found:
            self.linear[row["part"], row["name"], row["epochs"]][row["seed"]] = row["linear"]

    def text(self, picture: str) -> list[str]:
        """One row a graph, one column a number of epochs; then the label weights."""
        return [
            "## From self-supervised to supervised: the same training with another graph",
            "VICReg as in `pal` C.3: K = 16 outputs, a head of two layers, batch 256, AdamW, views "
            "`small`, all three weights 25; linear accuracy, mean and deviation over seeds (their "
            f"number behind it). Labels are mixed into the graph with weight {WEIGHT:g}, which was "
            "chosen on seed 0; a seed draws the labels that are known, too.",
            "",
            f"![Linear accuracy of each graph, one line a number of epochs.]({picture})",
            "",
            "| graph | " + " | ".join(f"{epochs} epochs" for epochs in EPOCHS) + " |",
            "| --- |" + " ---: |" * len(EPOCHS),
            *(self._across(name, "spectrum", name) for name in self.graphs),
            "",
            *self._rises(),
            *self._weights(),
            "",
        ]

    def draw(self, path: Path) -> None:
        """One line a number of epochs, one dot a seed."""
        import matplotlib

        figure, (panel,) = canvas(width=6.4)
        for epochs, color in zip(EPOCHS, COLORS, strict=False):
            points = [
                (place, 100 * value)
                for place, name in enumerate(self.graphs)
                for value in self.linear["spectrum", name, epochs].values()
            ]
            if not points:
                continue
            panel.scatter(*zip(*points, strict=True), s=10, color=color, zorder=3)
            means = {
                place: mean(value for at, value in points if at == place) for place, _ in points
            }
            panel.plot(means.keys(), means.values(), color=color, label=f"{epochs} epochs", lw=1.6)
        panel.set_xticks(range(len(self.graphs)), [_two_lines(name) for name in self.graphs])
        label(panel, "", "what the graph knows", "linear accuracy, %")
        with matplotlib.rc_context({"svg.hashsalt": "likewise"}), write_atomically(path) as aside:
            figure.savefig(aside, format="svg", metadata={"Date": None})

    def _weights(self) -> list[str]:
        lines = [
            "### How much the labels weigh, and which samples meet",
            "Some labels are worth nothing in shuffled batches, where classmates hardly meet, and "
            "much in batches that bring them together (`sampler=graph-aware`; `auto` chooses). "
            "`known_share` is the part of such a batch that is drawn from what is known. Seed 0.",
            "",
            "| labels | weight | sampler | known share | "
            + " | ".join(f"{epochs} epochs" for epochs in EPOCHS)
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
            lines.append(self._across(head, entry.part, entry.name, seeds=(0,)))
        return lines

    def _across(self, head: str, part: str, name: str, seeds: Iterable[int] | None = None) -> str:
        cells = []
        for epochs in EPOCHS:
            by_seed = self.linear[part, name, epochs]
            wanted = by_seed if seeds is None else seeds
            cells.append(_cell([by_seed[seed] for seed in wanted if seed in by_seed]))
        return f"| {head} | " + " | ".join(cells) + " |"

    def _rises(self) -> list[str]:
        """Where it rises from graph to graph, seed by seed, and where it does not."""
        falls, rises = [], 0
        for epochs in EPOCHS:
            for before, after in pairwise(self.graphs):
                first = self.linear["spectrum", before, epochs]
                second = self.linear["spectrum", after, epochs]
                for seed in sorted(first.keys() & second.keys()):
                    change = 100 * (second[seed] - first[seed])
                    rises += change > 0
                    if change <= 0:
                        falls.append(f"{after}, {epochs} epochs, seed {seed} ({change:.1f} points)")
        said = f"From row to row, seed by seed, it rises {rises} times of {rises + len(falls)}."
        if falls:
            said += f" It does not: {'; '.join(falls)}."
        return [said, ""]


def _cell(values: list[float]) -> str:
    if len(values) < 2:
        return "".join(f"{value:.1%}" for value in values)
    return f"{mean(values):.1%} ± {100 * stdev(values):.1f} ({len(values)})"


def _two_lines(name: str) -> str:
    return name.replace(" of the labels", "\nof the labels").replace("supervised ", "supervised\n")
