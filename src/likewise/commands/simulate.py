"""``likewise simulate``: how many questions it would take, with the truth as the person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from likewise.commands.errors import UsageError

if TYPE_CHECKING:
    from likewise.oracles.pal import History


def simulate(
    data: str = "digits",
    *,
    sampler: list[str] | None = None,
    budget: int = 60,
    out: Path = Path("pal.html"),
    grid: int = 15,
    runs: int = 3,
    test: str | None = None,
    false_yes: float = 0.0,
    false_no: float = 0.0,
    enough: float = 0.0,
    seed: int = 0,
) -> dict[str, list[History]]:
    """Ask simulated questions about labelled data, and draw accuracy against questions.

    The labels answer; samplers see the answers only, and find the classes while asking. Writes one
    HTML file with curves (against questions, and against seconds of a person's time, by a model of
    how long answers take) and a table. The level to reach is 95 % of the accuracy of a logistic
    regression that sees all labels.

    Args:
        data: "digits" (scikit-learn's, raw pixels, 500 of them for the test), or a file of labelled
            embeddings: what `likewise embed` wrote, or an .npz with `embedding` and `label`.
        sampler: which ones; without, default, captcha and random.
        budget: questions of each run.
        out: the HTML file to write.
        grid: candidates of a question; 1 asks pairs.
        runs: with how many seeds (for digits, with how many splits).
        test: a file of labelled embeddings for the test; by default a quarter of `data`.
        false_yes: how often the simulated person says "alike" of a pair that is not.
        false_no: how often the simulated person says "different" of a pair that is alike.
        enough: stop a run when a smaller share of items than this is expected to be wrong.
        seed: the same seed gives the same curves.
    """
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from likewise.oracles.curves import FIGURES, figures, write_page
    from likewise.oracles.labelers import TruthLabeler
    from likewise.oracles.pal import PAL
    from likewise.oracles.probe import Probe
    from likewise.oracles.samplers import SAMPLERS
    from likewise.oracles.splits import full_label_accuracy, labelled_split

    names = sampler or ["default", "captcha", "random"]
    for name in names:
        if name not in SAMPLERS:
            raise UsageError(f"sampler is {name!r}: give some of {', '.join(SAMPLERS)}")
    for argument, value in (("budget", budget), ("grid", grid), ("runs", runs)):
        if value < 1:
            raise UsageError(f"{argument} is {value}: give at least 1")
    if out.is_dir():
        raise UsageError(f"out is {out}, a folder: give the name of an HTML file")
    if data != "digits" and Path(data).is_dir():
        raise UsageError(
            f"data is {data}, a folder: give 'digits', or the labelled embeddings of these images: "
            f"likewise embed RUN {data} --out embeddings.parquet"
        )
    console = Console()
    found: dict[str, list[History]] = {name: [] for name in names}
    levels = []
    try:
        for run in range(seed, seed + runs):
            split = labelled_split(data, test, seed=run)
            levels.append(0.95 * full_label_accuracy(split))
            probe = Probe(split.X, seed=run, metric="euclidean" if data == "digits" else "whitened")
            for name in names:
                labeler = TruthLabeler(
                    split.y, false_yes=false_yes, false_no=false_no, seed=run, annotators=3
                )
                loop = PAL(
                    split.X,
                    name,
                    labeler,
                    beliefs="noisy" if false_yes or false_no else "exact",
                    grid=grid,
                    seed=run,
                    probe=probe,
                    test=(split.test_rows, split.test_labels),
                    truth=split.y,
                    enough=enough,
                )
                found[name].append(loop.run(budget, progress=console.is_terminal))
    except ValueError as error:
        raise UsageError(str(error)) from error
    level = float(np.mean(levels))
    kind = f"grids of {grid}" if grid > 1 else "pairs"
    table = Table(title=f"{data}: {kind} to an accuracy of {level:.3f}")
    rows = {name: figures(histories, level) for name, histories in found.items()}
    for column in ("sampler", *FIGURES):
        table.add_column(column)
    for name, row in rows.items():
        table.add_row(name, *(row[column] for column in FIGURES))
    console.print(table)
    done = "replaced" if out.exists() else "wrote"
    write_page(
        out,
        found,
        title=f"Asking about {Path(data).name}: {kind}",
        level=level,
        remark=f"{len(split.X):,} items, {len(split.test_rows):,} for the test, {runs} runs. The "
        "level is 95 % of the accuracy of a logistic regression with all labels. Seconds are "
        "those of a model (base, look at a tile, click), not measured on people.",
    )
    console.print(f"{done} {out}", highlight=False, soft_wrap=True)
    return found
