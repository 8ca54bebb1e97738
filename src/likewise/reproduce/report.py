"""What a reproduction leaves behind: a table on the screen, a picture, and all its numbers."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.reproduce.findings import AnyReproduction, Findings, Samples
from likewise.runs.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture
    from rich.table import Table

    from likewise.reproduce.setting import Setting

CURVE_NUMBERS = 2000
"""Means over trials with more numbers than this stay out of the file (figure 6's graphs)."""
DOTS_PER_INCH = 100


def record(
    entry: AnyReproduction,
    findings: Findings,
    samples: Samples,
    *,
    trials: int,
    seed: int,
    seconds: float,
    setting: Setting | None = None,
) -> dict[str, Any]:
    """Everything that was found, as it stands in NAME.json (NAME-full.json at full size)."""
    return {
        "name": entry.name if setting is None else stem(entry.name, setting),
        "command": command(entry.name, setting, trials),
        "claim": entry.claim,
        "verdict": findings.verdict,
        "remark": findings.remark,
        "checks": [
            {**asdict(check), "outcome": check.outcome, "text": str(check)}
            for check in findings.checks
        ],
        "figures": [{**asdict(figure), "text": str(figure)} for figure in findings.figures],
        "settings": {**({} if setting is None else setting.describe()), **entry.settings},
        "trials": trials,
        "seed": seed,
        "seconds": round(seconds, 1),
        "machine": machine(None if setting is None else setting.device),
        "means": {
            name: {
                "mean": values.mean(axis=0),
                "deviation": values.std(axis=0) if trials > 1 else None,
            }
            for name, values in samples.items()
            if values[0].size <= CURVE_NUMBERS
        },
    }


def stem(name: str, setting: Setting) -> str:
    """The name of a reproduction's files and of its row."""
    return name if setting.name == "fast" else f"{name}-{setting.name}"


def command(name: str, setting: Setting | None, trials: int) -> str:
    """What measures it again."""
    words = [f"likewise reproduce {name} --trials {trials}"]
    if setting is not None:
        words.append(f"--epochs {setting.epochs}")
        words += ["--full --data FOLDER"] if setting.name == "full" else []
    return " ".join(words)


def machine(device: str | None = None) -> str:
    """The processor (or GPU) that figures were measured on."""
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def save(
    entry: AnyReproduction, samples: Samples, found: dict[str, Any], folder: Path
) -> list[Path]:
    """Write NAME.png, NAME.svg and NAME.json; the last one says that all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = entry.draw(samples)
    paths = [folder / f"{found['name']}.{kind}" for kind in ("png", "svg", "json")]
    for path, kind in zip(paths, ("png", "svg"), strict=False):
        with write_atomically(path) as aside:
            _draw(picture, aside, kind)
    text = json.dumps(_plain(found), indent=1, ensure_ascii=False, allow_nan=False)
    with write_atomically(paths[2]) as aside:
        aside.write_text(text + "\n", encoding="utf-8")
    return paths


def table(found: dict[str, Any]) -> Table:
    """The claim, our figures and the verdict."""
    from rich.table import Table

    rows = Table(
        title=f"{found['name']} ({counted(found)}, seed {found['seed']})",
        caption=found["remark"] or None,
        show_lines=False,
    )
    rows.add_column("figure")
    rows.add_column("ours ± standard deviation", justify="right")
    rows.add_section()
    for figure in found["figures"]:
        rows.add_row(figure["name"], figure["text"])
    rows.add_section()
    for check in found["checks"]:
        outcome = check["outcome"]
        color = {"met": "green", "not met": "red"}.get(outcome, "yellow")
        rows.add_row(check["text"], f"[{color}]{outcome}[/]")
    return rows


def counted(found: dict[str, Any]) -> str:
    """ "1 trial", or more."""
    trials = found["trials"]
    return "1 trial" if trials == 1 else f"{trials} trials"


def _draw(picture: Picture, file: Path, kind: str) -> None:
    import matplotlib

    # No date and no random names, so that the same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "likewise"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        picture.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)


def _plain(value: Any) -> Any:
    """What JSON knows: lists for arrays, null for NaN."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
