"""Answers in and out of a project: JSON lines (everything), CSV (pairs), Label Studio's JSON."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from likewise.annotate.exchange_label_studio import from_label_studio, to_label_studio
from likewise.annotate.facts import Fact
from likewise.annotate.store import Store
from likewise.runs.files import write_atomically

Format = Literal["jsonl", "csv", "label-studio"]
FORMATS: dict[str, Format] = {".jsonl": "jsonl", ".csv": "csv", ".json": "label-studio"}
"""The format of a file by how its name ends."""

COLUMNS = ("kind", "a", "b", "value", "name", "who", "when", "id", "question")

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
            return _write_lines(store, aside)
        reading = store.reading()
        if chosen == "csv":
            return _write_table(reading.answers, reading.names, aside)
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
        "csv": _read_table,
        "label-studio": _read_tasks,
    }[chosen]
    facts = list(read(file, who))
    new = 0
    for start in range(0, len(facts), AT_A_TIME):
        new += sum(store.append(facts[start : start + AT_A_TIME]))
    return len(facts), new


# --- JSON lines ---------------------------------------------------------------------------------


def _write_lines(store: Store, path: Path) -> int:
    count = after = 0
    with path.open("w", encoding="utf-8") as out:
        while facts := store.facts(after=after, limit=10_000):
            for _, fact in facts:
                out.write(json.dumps(fact.to_dict(), ensure_ascii=True) + "\n")
            count, after = count + len(facts), facts[-1][0]
    return count


def read_lines(path: Path, who: str = "import") -> Iterator[Fact]:
    """The facts of a file of JSON lines: facts, or pairs as ``likewise.oracles.write_answers`` has
    them, with keys for a and b.

    Args:
        path: the file.
        who: said what has no author.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                values = json.loads(line)
                if not isinstance(values, dict):
                    raise ValueError("a line is one JSON object")
                if "body" in values:
                    yield Fact.from_dict(values)
                else:
                    yield _pair(values, who)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error


# --- CSV ----------------------------------------------------------------------------------------


def _write_table(answers: Sequence[Any], names: dict[str, str], path: Path) -> int:
    with path.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for said in answers:
            table.writerow(
                [
                    "pair",
                    *map(_cell, (said.a, said.b)),
                    f"{said.value:g}",
                    "",
                    *map(_cell, (said.who, repr(said.when), said.id, said.question)),
                ]
            )
        for item, name in names.items():
            table.writerow(["name", _cell(item), "", "", _cell(name), "", "", "", ""])
    return len(answers) + len(names)


def _read_table(path: Path, who: str) -> Iterator[Fact]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file)
        if not {"a", "b", "value"} <= set(table.fieldnames or ()):
            raise ValueError(
                f"{path} has the columns {', '.join(table.fieldnames or ())}: it needs a, b, value"
            )
        try:
            for row in table:
                values = {name: _text(cell) for name, cell in row.items() if name and cell}
                if values.get("kind", "pair") == "name":
                    yield _naming(values, who)
                else:
                    yield _pair(values, who)
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {table.line_num}: {error}") from error


def _cell(text: str) -> str:
    # A spreadsheet would run a text that begins like a formula.
    return "'" + text if text[:1] in "=+-@\t\r'" and text else text


def _text(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] in "=+-@\t\r'" else cell


# --- Label Studio -------------------------------------------------------------------------------


def _read_tasks(path: Path, who: str) -> Iterator[Fact]:
    try:
        tasks = json.loads(path.read_text(encoding="utf-8"))
        yield from from_label_studio(tasks, who)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


# --- facts from plain values --------------------------------------------------------------------


def _pair(values: dict[str, Any], who: str) -> Fact:
    """An answer about one pair."""
    for name in ("a", "b", "value"):
        if values.get(name) is None:
            raise ValueError(f"{name} is missing")
    a, b, value = str(values["a"]), str(values["b"]), float(values["value"])
    if value not in (1.0, -1.0, 0.0):
        raise ValueError(
            f"value is {values['value']}: give 1 (alike), -1 (different) or 0 (unsure)"
        )
    body = {
        "question": {"kind": "pair", "a": a, "b": b},
        "clicked": [b] if value > 0 else [],
        "unsure": [b] if value == 0 else [],
        "skipped": False,
        "seconds": 0.0,
        "question_id": "import",
    }
    said_by = str(values.get("who") or who)
    id = str(values.get("id") or _id("pair", a, b, value, said_by))
    return Fact(id, "answer", said_by, _when(values), body)


def _naming(values: dict[str, Any], who: str) -> Fact:
    item, name = values.get("a", ""), values.get("name", "")
    said_by = str(values.get("who") or who)
    id = str(values.get("id") or _id("name", item, name, said_by))
    return Fact(id, "name", said_by, _when(values), {"item": item, "name": name})


def _when(values: dict[str, Any]) -> float:
    when = float(values.get("when") or 0.0)
    if not math.isfinite(when):
        raise ValueError(f"when is {values['when']}: give seconds since 1970")
    return when


def _id(*parts: Any) -> str:
    """The same for the same content."""
    return "import-" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
