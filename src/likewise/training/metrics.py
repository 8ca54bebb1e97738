"""metrics.csv: the curves of a run, which a resumed run goes on with."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from likewise.runs.files import write_atomically

METRICS = "metrics.csv"
ROWS_AT_A_TIME = 5
"""How many rows wait for the next write; the end of the training writes all."""

Row = dict[str, Any]


class MetricsFile(Logger):
    """Rows are appended. Where a column is new, or a resumed run leaves rows out, the file is
    written anew, aside: Lightning's CSV logger deletes it first, and a kill then takes it along.

    Args:
        folder: of the run.
        resumed_at: the step that a resumed run starts from; None for a new run.
    """

    def __init__(self, folder: Path, *, resumed_at: int | None = None) -> None:
        super().__init__()
        self._path = folder / METRICS
        self._written = [] if resumed_at is None else rows_before(self._path, resumed_at)
        self._columns = {name for row in self._written for name in row}
        self._is_whole = False
        self._waiting: list[Row] = []

    @property
    def name(self) -> str:
        """That of the file's folder."""
        return self._path.parent.name

    @property
    def version(self) -> str:
        """A run has one."""
        return ""

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """They are in config.yaml."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """A row more."""
        self._waiting.append({**metrics, "step": step})
        if len(self._waiting) >= ROWS_AT_A_TIME:
            self.save()

    @rank_zero_only
    def save(self) -> None:
        """Bring the rows that wait to the disk."""
        if not self._waiting:
            return
        columns = self._columns.union(*self._waiting)
        if self._is_whole and columns == self._columns:
            with self._path.open("a", newline="") as file:
                csv.DictWriter(file, sorted(columns)).writerows(self._waiting)
        else:
            with write_atomically(self._path) as aside, aside.open("w", newline="") as file:
                writer = csv.DictWriter(file, sorted(columns))
                writer.writeheader()
                writer.writerows((*self._written, *self._waiting))
        self._columns, self._is_whole = columns, True
        self._written += self._waiting
        self._waiting = []

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """The training is over, or broke off."""
        self.save()


def rows_before(path: Path, step: int) -> list[Row]:
    """The rows that a run which starts at `step` does not write again.

    The loss of step k is written before the step, a look at the end of an epoch after it: of the
    rows at `step` itself the loss comes again, and the look does not.
    """
    if not path.is_file():
        return []
    text = path.read_text(errors="replace").replace("\0", "")  # a power cut may leave anything
    whole = text[: text.rfind("\n") + 1]  # a kill may have cut the last row short
    rows = [
        {name: value for name, value in row.items() if name and value}
        for row in csv.DictReader(whole.splitlines())
    ]
    return [row for row in rows if _stays(row, step)]


def _stays(row: Row, step: int) -> bool:
    try:
        at = int(float(row["step"]))
    except (KeyError, ValueError):
        return False
    return at < step or (at == step and not any(name.startswith("train/") for name in row))
