"""``likewise reproduce``: run a claim of a paper again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from likewise.commands.errors import UsageError, needs

if TYPE_CHECKING:
    from rich.console import Console


def reproduce(
    name: str | None = None,
    *,
    list: bool = False,
    trials: int | None = None,
    out: Path = Path("reproductions"),
    seed: int = 0,
    jobs: int = 2,
    strict: bool = False,
    docs: Path | None = None,
    full: bool = False,
    data: Path | None = None,
    epochs: int | None = None,
    device: Literal["cuda", "cpu"] = "cuda",
) -> int:
    """Run the experiment behind a claim of a paper, and say whether the claim holds.

    Prints the claim, our figures with standard deviations and the verdict, and writes NAME.png,
    NAME.svg and NAME.json. Some train encoders, each once for all that need it: tiny ones on
    digits, or with `full` a ResNet-18 on CIFAR-10. Returns the exit code: 0, or 1 with `strict`
    where a check failed.

    Args:
        name: which one (see --list), several with commas, a paper's short name for all of it
            (geometry), or "all".
        list: name all reproductions with their claims, and run none.
        trials: how often to draw new data (default 100, as in the papers), or seeds of trainings
            (default 2; with --full 1).
        out: the folder to write to.
        seed: the same seed gives the same figures, whatever the number of jobs.
        jobs: processes, with one thread each.
        strict: exit with code 1 where a check fails.
        docs: also write a Markdown page of all that is in `out`, with its pictures beside it; what
            the page says about others stays. Without a name, nothing is run.
        full: train at full size: GPU, ResNet-18, CIFAR-10; written to NAME-full.*. What trains
            nothing is left out.
        data: with --full, the folder of CIFAR-10's train.parquet and test.parquet.
        epochs: of an ordinary training (default 30; with --full 100); shorter ones are shares.
        device: of --full.
    """
    if name is not None and not list:
        needs("`likewise reproduce`", "plots", "matplotlib")
    from rich.console import Console

    from likewise.reproduce import select
    from likewise.reproduce.encoders import Encoders
    from likewise.reproduce.findings import TrainedReproduction
    from likewise.reproduce.session import show, show_list
    from likewise.reproduce.setting import FAST, full_setting

    console = Console()
    if list:
        show_list(console)
        return 0
    if name is None and docs is not None:
        _write(out, docs, console)
        return 0
    if name is None:
        raise UsageError("give the name of a reproduction, or all; --list names them")
    for argument, value in (("trials", trials), ("jobs", jobs), ("epochs", epochs)):
        if value is not None and value < 1:
            raise UsageError(f"{argument} is {value}: give at least 1")
    changes: dict[str, Any] = {} if epochs is None else {"epochs": epochs}
    try:
        entries = select(name)
        if data is not None and not full:
            raise ValueError(f"data is {data} without --full: the fast setting has its own data")
        setting = full_setting(data, device=device, **changes) if full else replace(FAST, **changes)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if full:
        entries = [entry for entry in entries if isinstance(entry, TrainedReproduction)]
        if not entries:
            raise UsageError(f"{name} trains no encoder: run it without --full")
    encoders = Encoders(setting)
    found = [
        show(entry, console, trials=trials, out=out, seed=seed, jobs=jobs, encoders=encoders)
        for entry in entries
    ]
    if docs is not None:
        _write(out, docs, console)
    failed = any(check.tested and not check.met for findings in found for check in findings.checks)
    return int(strict and failed)


def _write(out: Path, docs: Path, console: Console) -> None:
    from likewise.reproduce.page import read_found, write_page

    if not read_found(out):
        raise UsageError(f"out is {out}, which holds no results: run some reproductions first")
    write_page(out, docs)
    console.print(f"wrote {docs}", highlight=False, soft_wrap=True)
