"""Groups of near-duplicates: as lines, CSV, JSON and a sheet."""

from __future__ import annotations

from rich.console import Console

from likewise.data.source import count
from likewise.library.collection import Collection
from likewise.library.duplicates import Duplicates
from likewise.library.results.shared import (
    Files,
    head_of,
    notes_of,
    write_sheets,
)
from likewise.library.sheet import Section, Sheet, Tile
from likewise.library.tables import write_csv, write_json
from likewise.library.twins import Effect

GROUPS_SHOWN = 200
TILES_SHOWN = 24


def print_duplicates(found: Duplicates, effect: Effect, console: Console) -> None:
    """How many groups, and what they do."""
    console.print(
        f"{count(len(found.groups), 'group')} of near-duplicates, compared by {found.method}",
        effect.text(),
        *found.notes,
        sep="\n",
        highlight=False,
        soft_wrap=True,
    )


def write_duplicates(
    files: Files, collection: Collection, found: Duplicates, effect: Effect
) -> None:
    """Groups as files."""
    closest = _closest(found)
    for path in files[".csv"]:
        rows = (
            (number, collection.keys[place], f"{closest[place]:.4f}")
            for number, group in enumerate(found.groups, 1)
            for place in group
        )
        write_csv(path, ("group", "key", "closeness"), rows)
    for path in files[".json"]:
        content = {
            **head_of(collection),
            "compared_by": found.method,
            "effect": effect.to_dict(),
            "groups": [[collection.keys[place] for place in group] for group in found.groups],
        }
        write_json(path, content)
    sections = [
        Section(
            f"Group {number}: {count(len(group), 'image')}",
            [Tile(collection.keys[p], f"{closest[p]:.2f}") for p in group[:TILES_SHOWN]],
        )
        for number, group in enumerate(found.groups[:GROUPS_SHOWN], 1)
    ]
    notes = [*notes_of(collection), effect.text(), *found.notes]
    notes.append("under each image: how close its nearest twin is (1: the same, 0: a neighbour)")
    if len(found.groups) > GROUPS_SHOWN:
        notes.append(f"the first {GROUPS_SHOWN} groups are shown")
    title = f"{count(len(found.groups), 'group')} of near-duplicates"
    write_sheets(files, collection, Sheet(title, notes, sections=sections))


def _closest(found: Duplicates) -> dict[int, float]:
    closest: dict[int, float] = {}
    for (a, b), value in zip(found.pairs.tolist(), found.closeness.tolist(), strict=True):
        for place in (a, b):
            closest[place] = max(closest.get(place, 0.0), value)
    return closest
