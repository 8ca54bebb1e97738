"""Hits of a search: as lines, CSV, JSON and a sheet."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from likewise.library.collection import Collection
from likewise.library.results.shared import (
    Files,
    head_of,
    notes_of,
    write_sheets,
)
from likewise.library.search import Found
from likewise.library.sheet import Section, Sheet, Tile
from likewise.library.tables import write_csv, write_json

GROUPS_SHOWN = 200
TILES_SHOWN = 24


def print_hits(found: list[Found], console: Console) -> None:
    """The hits of each query."""
    for one in found:
        table = Table(title=one.query, title_justify="left")
        for column in ("", "similarity", "key", "label"):
            table.add_column(column)
        for rank, hit in enumerate(one.hits, 1):
            table.add_row(str(rank), f"{hit.similarity:.3f}", hit.key, hit.label or "")
        console.print(table)


def write_hits(files: Files, collection: Collection, found: list[Found]) -> None:
    """Hits as files."""
    for path in files[".csv"]:
        rows = (
            (one.query, rank, hit.key, f"{hit.similarity:.6f}", hit.label)
            for one in found
            for rank, hit in enumerate(one.hits, 1)
        )
        write_csv(path, ("query", "rank", "key", "similarity", "label"), rows)
    for path in files[".json"]:
        content = {**head_of(collection), "queries": [one.to_dict() for one in found]}
        write_json(path, content)
    sections = [
        Section(
            one.query,
            [
                *(
                    Tile(name, "asked for" if near else "less like this", True)
                    for name, near in one.shown
                ),
                *(Tile(hit.key, _caption(f"{hit.similarity:.3f}", hit.label)) for hit in one.hits),
            ],
        )
        for one in found
    ]
    write_sheets(files, collection, Sheet("Search", notes_of(collection), sections=sections))


def _caption(text: str, label: str | None) -> str:
    return f"{text} {label}" if label else text
