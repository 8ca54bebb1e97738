"""A folder of images, at any depth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from torch import Tensor

from likewise.data.decoding import decode
from likewise.data.labels import class_indices, natural_order
from likewise.data.source import Source

EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
    + (".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".avif", ".tga")
)
"""What is taken for an image; other files are passed over."""

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing"})
"""Names of folders and files that say what images are for, not what they show."""


class FolderSource(Source):
    """The images of a folder and of the folders in it; a key is the path from there.

    Hidden files and folders, and files that are no images by their name, are passed over. Linked
    folders are followed, and each folder is entered once.

    folder_labels: whether the first folder of a path is its label. "auto": where every image lies
    in a folder, and there are two or more of those.
    """

    def __init__(self, folder: Path | str, *, folder_labels: bool | Literal["auto"] = "auto"):
        root = Path(folder)
        if not root.is_dir():
            raise ValueError(f"{folder} is no folder: give a folder of images")
        found = sorted(_files(root), key=natural_order)
        names = [name for name in found if os.path.splitext(name)[1].lower() in EXTENSIONS]
        if not names:
            others = f" among its {len(found):,} files" if found else ""
            raise ValueError(
                f"{root} has no images{others}: give a folder with "
                "JPEG, PNG, WebP, TIFF, GIF or BMP files"
            )
        # A name that is no text in UTF-8 still makes a key that can be written to a file.
        keys = [os.fsencode(name).decode("utf-8", "backslashreplace") for name in names]
        values = _first_folders(keys, root, folder_labels)
        labels, classes = (None, None) if values is None else class_indices(values)
        super().__init__(keys, labels, classes, place=f"{str(root).rstrip(os.sep)}{os.sep}")
        self._root = root
        self._names = names

    def _read(self, row: int, enough: int) -> Tensor:
        return decode(self._root / self._names[row], enough)


def _files(root: Path) -> Iterator[str]:
    """Paths from `root`, with "/" between their parts, of all that may be an image file."""
    seen: set[tuple[int, int]] = set()
    # Real folders first: of a folder that is linked as well, the keys are its own.
    waiting, linked = [""], list[str]()
    while waiting or linked:
        inside = waiting.pop() if waiting else linked.pop(0)
        status = os.stat(root / inside)
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        try:
            with os.scandir(root / inside) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except PermissionError as error:
            raise ValueError(f"{error.filename} cannot be listed: you may not read it") from None
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir():
                (linked if entry.is_symlink() else waiting).append(path)
            elif entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path)):
                yield path  # a link to nowhere is reported as broken


def _first_folders(
    keys: list[str], root: Path, folder_labels: bool | Literal["auto"]
) -> list[str] | None:
    if folder_labels not in (True, False, "auto"):
        raise ValueError(f"folder_labels is {folder_labels!r}: give 'auto', True or False")
    if folder_labels is False:
        return None
    loose = [key for key in keys if "/" not in key]
    folders = {key.split("/", 1)[0] for key in keys}
    if loose or len(folders) < 2:
        if folder_labels == "auto":
            return None
        why = f"{loose[0]!r} lies in none" if loose else f"there is only {next(iter(folders))!r}"
        raise ValueError(
            f"folder_labels is True, and the folders of {root} are no labels, since {why}: "
            "give a folder with a folder per class"
        )
    if {folder.lower() for folder in folders} <= SPLITS:
        raise ValueError(
            f"{root} holds {', '.join(sorted(folders))}, which look like parts of a data set and "
            f"not like classes: give {root / min(folders)}, or folder_labels=False for all of it"
        )
    return [key.split("/", 1)[0] for key in keys]
