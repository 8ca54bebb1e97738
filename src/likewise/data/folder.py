"""A folder of images, at any depth."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from torch import Tensor

from likewise.data.decoding import decode
from likewise.data.labels import named_indices, natural_order
from likewise.data.source import Source

EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
    + (".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".avif", ".tga")
)
"""What is taken for an image by its name. A file without an extension is looked into, and others
are passed over."""

BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8", b"II*\x00", b"MM\x00*")
"""Of a file that holds a JPEG, PNG, GIF or TIFF image; WebP has its name behind a length."""

NOT_READ = frozenset(
    (".heic", ".heif", ".hif", ".jxl", ".svg", ".psd", ".xcf", ".ai", ".eps", ".exr", ".hdr")
    + (".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".raf", ".rw2", ".pef", ".srw", ".dcm")
)
"""What holds an image that is not read here: passed over as well, and counted."""

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing"})
"""Names of folders and files that say what images are for, not what they show."""


class FolderSource(Source):
    """The images of a folder and of the folders in it; a key is the path from there.

    Hidden files and folders, and files that are no images by their name, are passed over; those
    that hold an image of a kind that is not read (.heic, .svg, ...) are counted in `passed_over`.
    A name without an extension says nothing: such a file is an image if it begins like one.
    Linked folders are followed, and each folder is entered once.

    folder_labels: whether the first folder of a path is its label. "auto": where every image lies
    in a folder, there are two or more of those, and they are not the parts of a data set (train,
    val, test), of which all images are taken, without labels.
    """

    def __init__(self, folder: Path | str, *, folder_labels: bool | Literal["auto"] = "auto"):
        root = Path(folder)
        if not root.is_dir():
            raise ValueError(f"{folder} is no folder: give a folder of images")
        found = sorted(_files(root), key=natural_order)
        names = [name for name in found if _is_image(root, name)]
        kinds = Counter(_extension(name) for name in found)
        passed_over = {kind: kinds[kind] for kind in sorted(kinds) if kind in NOT_READ}
        if not names:
            others = f" among its {len(found):,} files" if found else ""
            if passed_over:
                others += f" (not read: {', '.join(passed_over)})"
            raise ValueError(
                f"{root} has no images{others}: give a folder with "
                "JPEG, PNG, WebP, TIFF, GIF or BMP files"
            )
        # A name that is no text in UTF-8 still makes a key that can be written to a file.
        keys = [os.fsencode(name).decode("utf-8", "backslashreplace") for name in names]
        values = _first_folders(keys, root, folder_labels)
        # A folder is a class by its name, also where a cell of a table would be unknown by it.
        labels, classes = (
            (None, None)
            if values is None
            else named_indices([value.strip() or None for value in values])
        )
        super().__init__(keys, labels, classes, place=f"{str(root).rstrip(os.sep)}{os.sep}")
        self.passed_over = passed_over
        if values is None and folder_labels == "auto":
            self.why_no_labels = _why_no_labels(keys)
        self._root = root
        self._names = names

    def _read(self, row: int, enough: int) -> Tensor:
        return decode(self._root / self._names[row], enough)


def holds_images(folder: Path) -> bool:
    """Whether there is an image in the folder, at any depth."""
    return any(_is_image(folder, name) for name in _files(folder))


def suggested_part(parts: Iterable[str]) -> str:
    """The part of a data set to name in advice: what is meant for training, else the first.

    >>> suggested_part(["test", "train"]), suggested_part(["val", "test"])
    ('train', 'val')
    """
    names = list(parts)
    return next((name for name in names if name.lower() in ("train", "training")), names[0])


def _extension(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _is_image(root: Path, name: str) -> bool:
    """By its name, or where that has no extension by how the file begins."""
    extension = _extension(name)
    return extension in EXTENSIONS or (not extension and _begins_like_an_image(root / name))


def _begins_like_an_image(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            first = opened.read(12)
    except OSError:
        return False
    return first.startswith(BEGINNINGS) or (first[:4], first[8:]) == (b"RIFF", b"WEBP")


def _why_no_labels(keys: list[str]) -> str:
    """What speaks against folder names as labels, where one might expect them."""
    if parts := _parts(keys):
        return f"its folders {', '.join(parts)} are parts of a data set"
    loose = [key for key in keys if "/" not in key]
    folders = {key.split("/", 1)[0] for key in keys} - set(loose)
    if len(folders) > 1 and 0 < len(loose) < len(keys) / 2:
        lie = "lies" if len(loose) == 1 else "lie"
        return f"{len(loose):,} of them {lie} in none of its folders, {loose[0]} for one"
    return ""


def _parts(keys: list[str]) -> list[str]:
    """The first folders, where all of them are parts of a data set; else nothing."""
    folders = {key.split("/", 1)[0] for key in keys if "/" in key}
    loose = any("/" not in key for key in keys)
    is_split = {folder.lower() for folder in folders} <= SPLITS
    return sorted(folders) if is_split and not loose and len(folders) > 1 else []


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
    if not isinstance(folder_labels, (bool, str)) or folder_labels not in (True, False, "auto"):
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
    if parts := _parts(keys):
        if folder_labels == "auto":
            return None
        raise ValueError(
            f"folder_labels is True, and {root} holds {', '.join(parts)}, which look like parts of "
            f"a data set and not like classes: give {root / suggested_part(parts)}, or "
            "folder_labels=False for all of it"
        )
    return [key.split("/", 1)[0] for key in keys]
