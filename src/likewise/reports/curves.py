"""The curves of a run: metrics.csv and the looks of diagnostics.jsonl, by epoch."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

METRICS = "metrics.csv"

Points = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass
class Curves:
    """What was written down while training.

    columns: (steps, values) by the name of the column in metrics.csv.
    records: the looks of diagnostics.jsonl, without those that failed.
    steps_per_epoch: 1 where it is not known, so that curves are over steps.
    """

    columns: dict[str, Points] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    steps_per_epoch: float | None = None

    @property
    def x_label(self) -> str:
        """What the curves are over."""
        return "step" if self.steps_per_epoch is None else "epoch"

    def column(self, name: str) -> Points:
        """(epochs, values) of a column; empty where it was not written."""
        steps, values = self.columns.get(name, (np.empty(0), np.empty(0)))
        return steps / (self.steps_per_epoch or 1.0), values

    def look(self, *path: str) -> Points:
        """(epochs, values) of a figure of the looks; undefined ones are left out."""
        steps, values = [], []
        for record in self.records:
            value: Any = record
            for name in path:
                value = value.get(name) if isinstance(value, Mapping) else None
            if value is not None:
                steps.append(record["step"])
                values.append(value)
        return np.array(steps, dtype=float) / (self.steps_per_epoch or 1.0), np.array(values, float)

    def terms(self) -> list[str]:
        """The named parts of the loss."""
        known = ("train/loss", "train/lr")
        return [n for n in self.columns if n.startswith("train/") and n not in known]


def read_curves(folder: Path, records: Sequence[Mapping[str, Any]]) -> Curves:
    """The curves of a run folder; empty where nothing was logged to files."""
    rows: list[dict[str, str]] = []
    path = folder / METRICS
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row.get("step")]
    names = [name for name in (rows[0] if rows else {}) if name and name not in ("step", "epoch")]
    columns = {}
    for name in names:
        pairs = [(float(row["step"]), float(row[name])) for row in rows if row.get(name)]
        if pairs:
            steps, values = np.array(pairs).T
            columns[name] = steps, values
    looks = [dict(record) for record in records if "error" not in record]
    return Curves(columns, looks, _steps_per_epoch(rows, looks))


def _steps_per_epoch(
    rows: Sequence[Mapping[str, str]], looks: Sequence[Mapping[str, Any]]
) -> float | None:
    """From the rows that say both: a look at the end of an epoch."""
    known = [(float(r["step"]), float(r["epoch"])) for r in rows if r.get("epoch")]
    known += [(look["step"], look["epoch"]) for look in looks]
    steps, epochs = max(known, default=(0.0, 0.0))
    return steps / epochs if epochs else None
