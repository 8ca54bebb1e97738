"""metrics.csv holds the curves of a run, whenever it is killed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from likewise.training import metrics
from likewise.training.metrics import ROWS_AT_A_TIME, MetricsFile


def steps_in(folder: Path) -> list[int]:
    with (folder / "metrics.csv").open(newline="") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def log(file: MetricsFile, steps: range) -> None:
    for step in steps:
        file.log_metrics({"train/loss": float(step)}, step)


def test_rows_are_appended_and_a_new_column_is_empty_in_those_before(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path)
    log(file, range(2 * ROWS_AT_A_TIME))
    assert steps_in(tmp_path) == [*range(2 * ROWS_AT_A_TIME)]  # without save
    file.log_metrics({"monitor/knn": 0.5, "epoch": 1}, 2 * ROWS_AT_A_TIME)
    file.finalize("success")
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    assert lines[0] == "epoch,monitor/knn,step,train/loss"
    assert lines[1] == ",,0,0.0" and lines[-1] == "1,0.5,10,"
    assert len(lines) == 2 * ROWS_AT_A_TIME + 2


def test_a_resumed_run_that_is_killed_before_it_writes_leaves_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(MetricsFile(tmp_path), range(10))
    before = (tmp_path / "metrics.csv").read_bytes()
    resumed = MetricsFile(tmp_path, resumed_at=6)
    log(resumed, range(6, 7))
    assert (tmp_path / "metrics.csv").read_bytes() == before

    class KilledError(Exception):
        pass

    class Writer(csv.DictWriter):
        def writerows(self, rows: object) -> None:
            raise KilledError

    with monkeypatch.context() as killed:
        killed.setattr(metrics.csv, "DictWriter", Writer)
        with pytest.raises(KilledError):
            resumed.save()
    assert (tmp_path / "metrics.csv").read_bytes() == before
    resumed.save()
    assert steps_in(tmp_path) == [*range(7)]


def test_a_row_that_a_kill_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,train/loss\r\n0,3.5\r\n12,2.5\r\n1")
    resumed = MetricsFile(tmp_path, resumed_at=13)
    log(resumed, range(13, 14))
    resumed.save()
    assert steps_in(tmp_path) == [0, 12, 13]


def test_rows_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    content = b"step,train/loss\r\n0,3.5\r\n\x00\x00\xff,\r\n3,2.5\r\n"
    (tmp_path / "metrics.csv").write_bytes(content)
    assert [row["step"] for row in metrics.rows_before(tmp_path / "metrics.csv", 9)] == ["0", "3"]
