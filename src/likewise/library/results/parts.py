"""Subsets and splits: as lines, CSV, JSON and a sheet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from likewise.data.source import count
from likewise.library.collection import Collection
from likewise.library.results.shared import (
    Files,
    Numbers,
    head_of,
    notes_of,
    write_sheets,
)
from likewise.library.sheet import Section, Sheet, Tile
from likewise.library.tables import write_csv, write_json

GROUPS_SHOWN = 200
TILES_SHOWN = 24


def write_subset(
    files: Files,
    collection: Collection,
    places: Numbers,
    method: str,
    groups: Numbers | None,
    names: list[str] | None,
) -> None:
    """A subset as files, in the order in which it was taken."""

    def group(place: int) -> str | None:
        return None if groups is None or names is None else names[groups[place]]

    chosen = [int(place) for place in places]
    for path in files[".csv"]:
        rows = (
            (order, collection.keys[place], group(place)) for order, place in enumerate(chosen, 1)
        )
        write_csv(path, ("order", "key", "group"), rows)
    for path in files[".json"]:
        content = {
            **head_of(collection),
            "method": method,
            "keys": [collection.keys[place] for place in chosen],
        }
        write_json(path, content)
    tiles = [
        Tile(collection.keys[p], group(p) or collection.label_of(p) or "") for p in chosen[:500]
    ]
    note = "the first 500" if len(chosen) > 500 else "in the order in which they were taken"
    title = f"{count(len(chosen), 'image')} of {len(collection):,}, {method}"
    sheet = Sheet(title, notes_of(collection), sections=[Section("Chosen", tiles, note)])
    write_sheets(files, collection, sheet)


def split_table(
    parts: NDArray[np.object_], groups: Numbers, names: list[str]
) -> tuple[list[str], list[list[str]]]:
    """How many images of each class or cluster are in each part."""
    header = sorted(set(parts.tolist()), key=["train", "validation", "test"].index)
    rows = []
    for number in np.unique(groups).tolist():
        name = names[number] if number >= 0 else "no label"
        inside = groups == number
        rows.append([name, *(f"{int((parts[inside] == part).sum()):,}" for part in header)])
    rows.append(["all", *(f"{int((parts == part).sum()):,}" for part in header)])
    return ["", *header], rows


def print_split(
    parts: NDArray[np.object_],
    groups: Numbers,
    names: list[str],
    twins: Numbers,
    console: Console,
) -> None:
    """How many images of each kind are in each part."""
    header, rows = split_table(parts, groups, names)
    table = Table(*header)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    inside = int((twins >= 0).sum())
    if inside:
        console.print(
            f"{inside:,} images have near-duplicates, which are in the same part as they are",
            highlight=False,
        )


def write_split(
    files: Files,
    collection: Collection,
    parts: NDArray[np.object_],
    groups: Numbers,
    names: list[str],
    twins: Numbers,
) -> None:
    """A split as files."""
    for path in files[".csv"]:
        rows = (
            (
                key,
                part,
                names[group] if group >= 0 else None,
                int(twin) + 1 if twin >= 0 else None,
            )
            for key, part, group, twin in zip(collection.keys, parts, groups, twins, strict=True)
        )
        write_csv(path, ("key", "part", "group", "twins"), rows)
    for path in files[".json"]:
        content = {
            **head_of(collection),
            "parts": {
                part: [k for k, own in zip(collection.keys, parts, strict=True) if own == part]
                for part in sorted(set(parts.tolist()))
            },
        }
        write_json(path, content)
    if not files[".html"]:
        return
    sections = []
    for part in sorted(set(parts.tolist())):
        places = np.flatnonzero(parts == part)
        shown = places[np.linspace(0, len(places) - 1, min(TILES_SHOWN, len(places))).astype(int)]
        tiles = [
            Tile(collection.keys[p], names[groups[p]] if groups[p] >= 0 else "") for p in shown
        ]
        sections.append(Section(f"{part}: {count(len(places), 'image')}", tiles))
    table = split_table(parts, groups, names)
    sheet = Sheet(f"Split of {len(collection):,} images", notes_of(collection), table, sections)
    write_sheets(files, collection, sheet)
