"""``likewise reproduce``: run a claim of a paper again."""

from __future__ import annotations

from pathlib import Path

from likewise.commands.errors import UsageError


def reproduce(
    name: str | None = None,
    *,
    list: bool = False,
    trials: int = 100,
    out: Path = Path("reproductions"),
    seed: int = 0,
    jobs: int = 2,
    strict: bool = False,
    docs: Path | None = None,
) -> int:
    """Run the experiment behind a claim of a paper, and say whether the claim holds.

    Prints the claim, our figures with standard deviations and the verdict, and writes NAME.png,
    NAME.svg and NAME.json. Returns the exit code: 0, or 1 with `strict` where a check failed.

    Args:
        name: which one (see --list), or "all".
        list: name all reproductions with their claims, and run none.
        trials: how often to draw new data (the papers use 100).
        out: the folder to write to.
        seed: the same seed gives the same figures, whatever the number of jobs.
        jobs: processes, with one thread each.
        strict: exit with code 1 where a check fails.
        docs: also write a Markdown page of all that is in `out`, with its pictures beside it.
    """
    from rich.console import Console

    from likewise.reproduce import REPRODUCTIONS, reproduction
    from likewise.reproduce.session import show, show_list

    console = Console()
    if list:
        show_list(console)
        return 0
    if name is None:
        raise UsageError("give the name of a reproduction, or all; --list names them")
    for argument, value in (("trials", trials), ("jobs", jobs)):
        if value < 1:
            raise UsageError(f"{argument} is {value}: give at least 1")
    try:
        entries = [*REPRODUCTIONS.values()] if name == "all" else [reproduction(name)]
    except ValueError as error:
        raise UsageError(str(error)) from None
    found = [
        show(entry, console, trials=trials, out=out, seed=seed, jobs=jobs) for entry in entries
    ]
    if docs is not None:
        from likewise.reproduce.page import write_page

        write_page(out, docs)
        console.print(f"wrote {docs}")
    failed = any(not check.met for findings in found for check in findings.checks)
    return int(strict and failed)
