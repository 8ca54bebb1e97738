"""Labels with confidence: as lines, CSV, JSON and a sheet."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console

from likewise.data.source import count
from likewise.library.classify import Labelled
from likewise.library.collection import Collection
from likewise.library.results.shared import (
    Files,
    head_of,
    notes_of,
    write_sheets,
)
from likewise.library.sheet import Section, Sheet, Tile
from likewise.library.tables import write_csv, write_json

GROUPS_SHOWN = 200
TILES_SHOWN = 24


def labels_in_words(found: Labelled) -> list[str]:
    """What to expect of the labels."""
    n, answered = len(found.label), int(found.known.sum())
    kept = int((~found.abstained & ~found.known).sum())
    lines = [
        f"{count(answered, 'answer')} of {count(len(found.classes), 'class', 'classes')}; "
        f"{count(n - answered, 'image')} without one",
        f"expected accuracy {found.accuracy}, 95 % interval in brackets",
        f"{kept:,} are labelled with a confidence of at least {found.threshold:g}, expected "
        f"accuracy {found.kept_accuracy}; {int(found.abstained.sum()):,} are abstained from",
        f"held-out answers: accuracy {found.held_out['accuracy']:.3f}, calibration error "
        f"{found.held_out['calibration_error']:.3f}, temperature {found.temperature:.2f}",
    ]
    return lines + found.notes


def print_labels(found: Labelled, collection: Collection, console: Console) -> None:
    """What to expect, and what to ask next."""
    console.print(*labels_in_words(found), sep="\n", highlight=False, soft_wrap=True)
    if found.next:
        names = ", ".join(collection.keys[place] for place in found.next[:5])
        more = f", and {len(found.next) - 5} more" if len(found.next) > 5 else ""
        console.print(f"ask next: {names}{more}", highlight=False, soft_wrap=True)


def write_labels(files: Files, collection: Collection, found: Labelled) -> None:
    """Labels as files."""
    order = {place: rank for rank, place in enumerate(found.next, 1)}
    for path in files[".csv"]:
        header = ("key", "label", "confidence", "source", "likeliest", "ask")
        write_csv(
            path,
            header,
            (_label_row(place, collection, found, order) for place in range(len(collection))),
        )
    for path in files[".json"]:
        content = {
            **head_of(collection),
            **found.to_dict(),
            "ask_next": [collection.keys[place] for place in found.next],
            "labels": {
                key: {"label": found.classes[label], "confidence": round(float(sure), 4)}
                for key, label, sure in zip(
                    collection.keys, found.label, found.confidence, strict=True
                )
            },
        }
        write_json(path, content)
    if files[".html"]:
        write_sheets(files, collection, _label_sheet(collection, found))


def _label_row(
    place: int, collection: Collection, found: Labelled, order: dict[int, int]
) -> tuple[Any, ...]:
    name = found.classes[found.label[place]]
    away = found.abstained[place]
    source = "answer" if found.known[place] else "abstained" if away else "classifier"
    sure = f"{found.confidence[place]:.4f}"
    return collection.keys[place], None if away else name, sure, source, name, order.get(place)


def _label_sheet(collection: Collection, found: Labelled) -> Sheet:
    table = (
        ("confidence at least", "images kept", "expected accuracy"),
        [(f"{at:g}", f"{kept:.1%}", str(expected)) for at, kept, expected in found.by_threshold],
    )

    def tiles(places: list[int]) -> list[Tile]:
        return [
            Tile(
                collection.keys[place],
                f"{found.classes[found.label[place]]} {found.confidence[place]:.2f}",
            )
            for place in places
        ]

    sections = [
        Section(
            "Ask next",
            tiles(found.next),
            "answers about these should raise the accuracy most; under each is the likeliest class",
        )
    ]
    for number, name in enumerate(found.classes):
        inside = np.flatnonzero((found.label == number) & ~found.known)
        order = inside[np.argsort(-found.confidence[inside], kind="stable")]
        sure, unsure = order[:6].tolist(), order[6:][-6:].tolist()
        sections.append(
            Section(
                f"{name}: {count(len(inside), 'image')}",
                tiles(sure + unsure),
                "the surest and the least sure",
            )
        )
    title = f"{count(len(found.classes), 'class', 'classes')} of {len(collection):,} images"
    return Sheet(title, [*notes_of(collection), *labels_in_words(found)], table, sections)
