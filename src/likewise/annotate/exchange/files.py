"""Answers from a project into a file, and back; the formats are the neighbouring modules'."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from likewise.annotate.exchange.label_studio import read_tasks, to_label_studio
from likewise.annotate.exchange.lines import read_lines, write_lines
from likewise.annotate.exchange.table import read_table, write_table
from likewise.annotate.facts import Fact
from likewise.annotate.store import Store
from likewise.runs.files import write_atomically

Format = Literal["jsonl", "csv", "label-studio"]
FORMATS: dict[str, Format] = {".jsonl": "jsonl", ".csv": "csv", ".json": "label-studio"}
"""The format of a file by how its name ends."""

AT_A_TIME = 1000
"""Facts that are saved together."""


def format_of(file: Path, format: str = "auto") -> Format:
    """The format that was said, or that the file's name tells.

    >>> format_of(Path("answers.csv"))
    'csv'
    """
    if format == "auto":
        if file.suffix not in FORMATS:
            raise ValueError(
                f"{file} ends in {file.suffix!r}: give --format {', '.join(FORMATS.values())}, or "
                f"a name that ends in {', '.join(FORMATS)}"
            )
        return FORMATS[file.suffix]
    if format not in FORMATS.values():
        raise ValueError(f"format is {format!r}: give one of {', '.join(FORMATS.values())}")
    return format  # type: ignore[return-value]


def export_answers(store: Store, file: Path | str, format: str = "auto") -> int:
    """Write a project's answers into a file, there as a whole or not at all.

    "jsonl" has every fact, also what was undone, and gives the same project back; "csv" and
    "label-studio" have what counts: pairs and names.

    Returns:
        How many lines, rows or tasks were written.
    """
    file = Path(file)
    chosen = format_of(file, format)
    with write_atomically(file) as aside:
        if chosen == "jsonl":
            return write_lines(store, aside)
        reading = store.reading()
        if chosen == "csv":
            return write_table(reading.answers, reading.names, aside)
        tasks = to_label_studio(reading.answers, reading.names)
        aside.write_text(json.dumps(tasks, ensure_ascii=False, indent=1), encoding="utf-8")
        return len(tasks)


def import_answers(
    store: Store, file: Path | str, format: str = "auto", *, who: str = "import"
) -> tuple[int, int]:
    """Add the answers of a file to a project; what is there already (by its id) is left out.

    All of the file is read and checked before anything is saved. A row without an id gets one from
    what it says, so that the same file twice adds nothing.

    Args:
        store: the project.
        file: to read.
        format: by default told by the file's name.
        who: said it, where the file does not tell.

    Returns:
        How many facts the file holds, and how many of them are new.
    """
    file = Path(file)
    chosen = format_of(file, format)
    read: Callable[[Path, str], Iterator[Fact]] = {
        "jsonl": read_lines,
        "csv": read_table,
        "label-studio": read_tasks,
    }[chosen]
    facts = list(read(file, who))
    new = 0
    for start in range(0, len(facts), AT_A_TIME):
        new += sum(store.append(facts[start : start + AT_A_TIME]))
    return len(facts), new
