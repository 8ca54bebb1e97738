"""``likewise report``: is it collapsing, and why? One HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from likewise.commands.errors import UsageError


def report(
    runs: list[Path],
    *,
    out: Path = Path("report.html"),
    data: str | None = None,
    samples: int = 1500,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    seed: int = 0,
) -> Path:
    """Write one HTML file on a run, or on several side by side.

    It holds the verdict (healthy or not, why, and what to try) with the figures behind it, training
    curves, rank over time, spectra, a map with the images, best and worst nearest neighbours, the
    confusion of a kNN classifier, figures by class, the configuration and how to reproduce it. The
    file needs nothing but a browser. What cannot be shown (images are gone, no labels) is said.

    Args:
        runs: folders that `likewise train` wrote, or files that `likewise embed` wrote.
        out: the HTML file to write.
        data: images to look at, in place of those that the runs were trained on.
        samples: how many of them to look at, drawn by the seed.
        device: where to embed; "auto" is a GPU where there is one.
        seed: of the draw, of the views and of the map.
    """
    import inspect
    import shlex

    from rich.console import Console

    from likewise.commands.train import train
    from likewise.evaluation.embedded import choose_device
    from likewise.reports import open_subject, write_report

    console = Console(stderr=True)
    paths = [Path(run) for run in ([runs] if isinstance(runs, (str, Path)) else runs)]
    if out.is_dir():
        raise UsageError(f"out is {out}, a folder: give the name of an HTML file")
    try:
        place = choose_device(device)
        with console.status("looking") as status:
            subjects = [
                open_subject(
                    path, data=data, samples=samples, device=place, seed=seed, say=status.update
                )
                for path in paths
            ]
            status.update("drawing")
            words = ["likewise", "report", *map(str, paths), "--out", str(out)]
            words += ["--data", data] if data is not None else []
            words += [] if samples == 1500 else ["--samples", str(samples)]
            words += [] if seed == 0 else ["--seed", str(seed)]
            usual = {n: p.default for n, p in inspect.signature(train).parameters.items()}
            done = "replaced" if out.exists() else "wrote"
            write_report(out, subjects, command=shlex.join(words), usual=usual)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    for subject in subjects:
        said = "no verdict" if subject.verdict is None else ", ".join(subject.verdict.names)
        console.print(f"{subject.name}: {said}", highlight=False, soft_wrap=True)
    console.print(f"{done} {out}", highlight=False, soft_wrap=True)
    return out
