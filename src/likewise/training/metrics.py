"""metrics.csv: the curves of a run, which a resumed run goes on with."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import rank_zero_experiment
from lightning.pytorch.loggers import CSVLogger

METRICS = "metrics.csv"


class MetricsFile(CSVLogger):
    """Lightning's CSV logger, which would delete the rows of before a resume.

    Args:
        folder: of the run.
        resumed_at: the step that a resumed run starts from; None for a new run.
    """

    def __init__(self, folder: Path, *, resumed_at: int | None = None) -> None:
        super().__init__(folder, name="", version="")
        self._kept = [] if resumed_at is None else rows_before(folder / METRICS, resumed_at)

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """The writer; the rows that are kept are on the disk again when it is there."""
        new = self._experiment is None
        writer = super().experiment
        if new and self._kept:
            writer.metrics = [*self._kept]
            writer.save()
        return writer


def rows_before(path: Path, step: int) -> list[dict[str, str]]:
    """The rows that a run which starts at `step` does not write again.

    The loss of step k is written before the step, a look at the end of an epoch after it: of the
    rows at `step` itself the loss comes again, and the look does not.
    """
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        rows = [
            {name: value for name, value in row.items() if name and value}
            for row in csv.DictReader(file)
        ]
    return [row for row in rows if "step" in row and _stays(row, step)]


def _stays(row: dict[str, str], step: int) -> bool:
    at = int(float(row["step"]))
    return at < step or (at == step and not any(name.startswith("train/") for name in row))
