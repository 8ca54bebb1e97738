"""Results for machines: CSV and JSON files, and where each result goes."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from likewise.runs import write_atomically

KINDS = (".html", ".csv", ".json")


def outputs(out: str | Path | Sequence[str | Path] | None) -> dict[str, list[Path]]:
    """Files to write by kind, or an error before any work is done.

    >>> {kind: [str(path) for path in paths] for kind, paths in outputs("hits.html").items()}
    {'.html': ['hits.html'], '.csv': [], '.json': []}
    """
    given = [] if out is None else [out] if isinstance(out, (str, Path)) else list(out)
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for name in given:
        path = Path(name)
        if path.suffix.lower() not in KINDS:
            raise ValueError(f"out is {str(name)!r}: give names that end in {', '.join(KINDS)}")
        if path.is_dir():
            raise ValueError(f"out is {str(name)!r}, a folder: give the name of a file")
        found[path.suffix.lower()].append(path)
    return found


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file, whole or not at all; None is an empty cell."""
    with write_atomically(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(["" if cell is None else cell for cell in row] for row in rows)


def write_json(path: Path, content: Any) -> None:
    """A JSON file, whole or not at all."""
    with write_atomically(path) as aside:
        aside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def with_sheet(files: dict[str, list[Path]]) -> None:
    """Ask for a sheet beside the first other file, where none is asked for.

    >>> files = outputs("clusters.csv")
    >>> with_sheet(files)
    >>> [str(path) for path in files[".html"]]
    ['clusters.html']
    """
    others = files[".csv"] + files[".json"]
    if others and not files[".html"]:
        files[".html"].append(others[0].with_suffix(".html"))
