"""A reproduction from start to end, in front of somebody: progress, table, files."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
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

from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import (
    AnyReproduction,
    Findings,
    Samples,
    TrainedReproduction,
)
from likewise.reproduce.registry import REPRODUCTIONS
from likewise.reproduce.report import record, save, table
from likewise.reproduce.trials import one_thread, run_trials

CONTROLLED_TRIALS = 100
"""Draws of the data of a reproduction that trains no encoder: what the papers use."""


def show(
    entry: AnyReproduction,
    console: Console,
    *,
    trials: int | None,
    out: Path,
    seed: int,
    jobs: int,
    encoders: Encoders,
) -> Findings:
    """Print the claim, run the trials, print what was found and write it to the folder `out`.

    `encoders` holds the setting, and what earlier reproductions of the session have trained.
    """
    console.print(f"[bold]{entry.name}[/]  {entry.claim}")
    trained = isinstance(entry, TrainedReproduction)
    trials = trials or (encoders.setting.trials if trained else CONTROLLED_TRIALS)
    started = time.perf_counter()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        if isinstance(entry, TrainedReproduction):
            samples = look(entry, encoders, trials, seed=seed, jobs=jobs, progress=progress)
        else:
            task = progress.add_task("trials", total=trials)
            samples = run_trials(
                entry.trial, trials, seed=seed, jobs=jobs, advance=lambda: progress.advance(task)
            )
    findings = entry.conclude(samples)
    seconds = time.perf_counter() - started
    found = record(
        entry,
        findings,
        samples,
        trials=trials,
        seed=seed,
        seconds=seconds,
        setting=encoders.setting if trained else None,
    )
    paths = save(entry, samples, found, out)
    console.print(table(found))
    console.print(f"verdict: [bold]{findings.verdict}[/]")
    console.print(f"wrote {', '.join(map(str, paths))} in {seconds:.0f} s\n")
    return findings


def look(
    entry: TrainedReproduction,
    encoders: Encoders,
    trials: int,
    *,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Samples:
    """Train what the seeds of a reproduction need and has not been trained yet, and measure."""
    seeds = range(seed, seed + trials)
    wanted = [one for each in seeds for one in entry.trainings(encoders.setting, each)]
    task = None
    if progress is not None:
        task = progress.add_task("trainings", total=encoders.missing(wanted))
    encoders.prepare(
        wanted,
        jobs=jobs,
        advance=None if progress is None or task is None else lambda: progress.advance(task),
    )
    with one_thread():
        each_seed = [entry.measure(encoders, each) for each in seeds]
    return {name: np.stack([found[name] for found in each_seed]) for name in each_seed[0]}


def show_list(console: Console) -> None:
    """Print all names and claims."""
    rows = Table()
    rows.add_column("name", no_wrap=True, min_width=max(map(len, REPRODUCTIONS)))
    rows.add_column("claim")
    for entry in REPRODUCTIONS.values():
        rows.add_row(entry.name, entry.claim)
    console.print(rows)
