"""A reproduction from start to end, in front of somebody: progress, table, files."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from likewise.reproduce.findings import Findings, Reproduction
from likewise.reproduce.registry import REPRODUCTIONS
from likewise.reproduce.report import record, save, table
from likewise.reproduce.trials import run_trials


def show(
    entry: Reproduction, console: Console, *, trials: int, out: Path, seed: int, jobs: int
) -> Findings:
    """Print the claim, run the trials, print what was found and write it to the folder `out`."""
    console.print(f"[bold]{entry.name}[/]  {entry.claim}")
    started = time.perf_counter()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("trials", total=trials)
        samples = run_trials(
            entry.trial, trials, seed=seed, jobs=jobs, advance=lambda: progress.advance(task)
        )
    findings = entry.conclude(samples)
    seconds = time.perf_counter() - started
    found = record(entry, findings, samples, trials=trials, seed=seed, seconds=seconds)
    paths = save(entry, samples, found, out)
    console.print(table(found))
    console.print(f"verdict: [bold]{findings.verdict}[/]")
    console.print(f"wrote {', '.join(map(str, paths))} in {seconds:.0f} s\n")
    return findings


def show_list(console: Console) -> None:
    """Print all names and claims."""
    rows = Table("name", "claim")
    for entry in REPRODUCTIONS.values():
        rows.add_row(entry.name, entry.claim)
    console.print(rows)
