"""CSV: what counts, one pair or one name a row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from likewise.annotate.exchange.plain import name_of_row, pair_of_row
from likewise.annotate.facts import Fact, Said

COLUMNS = ("kind", "a", "b", "value", "name", "who", "when", "id", "question")


def write_table(answers: Sequence[Said], names: Mapping[str, str], path: Path) -> int:
    """Write answers and names; how many rows that takes."""
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


def read_table(path: Path, who: str) -> Iterator[Fact]:
    """The facts of a table that has at least the columns a, b and value.

    Args:
        path: the file.
        who: said what has no author.
    """
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
                    yield name_of_row(values, who)
                else:
                    yield pair_of_row(values, who)
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {table.line_num}: {error}") from error


def _cell(text: str) -> str:
    # A spreadsheet would run a text that begins like a formula.
    return "'" + text if text[:1] in "=+-@\t\r'" and text else text


def _text(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] in "=+-@\t\r'" else cell
