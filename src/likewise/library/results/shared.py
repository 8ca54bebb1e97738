"""What all verbs share: pictures for sheets, and what was looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor

from likewise.data import decode
from likewise.library.collection import Collection
from likewise.library.sheet import SIDE, Picture, Sheet

Files = dict[str, list[Path]]
Numbers = NDArray[np.int64]


def picture_of(collection: Collection) -> Picture:
    """The image of a key, or of a file that was asked for."""

    def picture(name: str) -> Tensor | None:
        found = collection.image(name, enough=2 * SIDE)
        if found is None and name not in collection.place_of and Path(name).is_file():
            return decode(Path(name), 2 * SIDE)
        return found

    return picture


def head_of(collection: Collection) -> dict[str, Any]:
    """What all JSON files begin with: what was looked at, and what changed since last time."""
    changes = collection.changes
    return {
        "collection": collection.description,
        "images": len(collection),
        "changes": None if changes is None else changes.to_dict(),
    }


def notes_of(collection: Collection) -> list[str]:
    """The same for a sheet."""
    changes = collection.changes
    return [collection.description] + ([] if changes is None else [changes.text()])


def write_sheets(files: Files, collection: Collection, sheet: Sheet) -> None:
    """The sheet as the .html files that were asked for."""
    for path in files[".html"]:
        sheet.write(path, picture_of(collection))


def say_written(files: Files) -> None:
    """Name the files, on the side."""
    console = Console(stderr=True)
    for paths in files.values():
        for path in paths:
            console.print(f"wrote {path}", highlight=False, soft_wrap=True)
