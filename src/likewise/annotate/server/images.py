"""Pictures of items: decoded from the source, made small, and encoded anew.

A request names a key, never a path, and only the keys of the source exist. What is sent are
pixels that this process has drawn itself: a file that is no image is never sent to anybody, by
whatever name it goes. A file that lies outside of the source's folder (a symbolic link leads
there) is not read.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise.data.folder import FolderSource
from likewise.data.source import BrokenImage, Source

if TYPE_CHECKING:
    from PIL.Image import Image

SIZES = (160, 480)
"""Pixels of the longer side."""

CACHE = 64 * 2**20
"""Bytes of pictures that are kept."""

SMALL = 64
"""Up to this side a picture is sent without loss: blocks of JPEG would be seen when enlarged."""


@dataclass(frozen=True)
class Picture:
    """An encoded picture.

    broken: whether it only says that the item cannot be shown.
    """

    encoded: bytes
    kind: str
    etag: str
    broken: bool = False


class Pictures:
    """Small pictures of a source's items by key, the last ones kept."""

    def __init__(self, source: Source, *, cache: int = CACHE) -> None:
        self._source = source
        source.index_of([])  # a dictionary of all keys is made now, and not when somebody waits
        self._cache = cache
        self._held = 0
        self._kept: OrderedDict[tuple[str, int], Picture] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: str) -> bool:
        try:
            self._source.index_of(key)
        except ValueError:
            return False
        return True

    def picture(self, key: str, size: int) -> Picture:
        """The picture of an item; KeyError where there is no such item."""
        if size not in SIZES:
            raise ValueError(f"size is {size}: give one of {', '.join(map(str, SIZES))}")
        if key not in self:
            raise KeyError(key)
        with self._lock:
            if kept := self._kept.get((key, size)):
                self._kept.move_to_end((key, size))
                return kept
        made = self._make(self._source.index_of(key), size)
        with self._lock:
            if (key, size) not in self._kept:
                self._kept[key, size] = made
                self._held += len(made.encoded)
            while self._held > self._cache and self._kept:
                self._held -= len(self._kept.popitem(last=False)[1].encoded)
        return made

    def _make(self, row: int, size: int) -> Picture:
        from PIL import Image

        try:
            if not inside(self._source, row):
                raise BrokenImage(self._source.keys[row], "it lies outside of the folder")
            pixels = self._source.read(row, enough=size)
        except BrokenImage:
            return _encode(_nothing_to_see(size), broken=True)
        image = Image.fromarray(np.ascontiguousarray(pixels.permute(1, 2, 0).numpy()))
        image.thumbnail((size, size), Image.Resampling.BICUBIC, reducing_gap=2.0)
        return _encode(image)


def inside(source: Source, row: int) -> bool:
    """Whether an item lies in its source's folder itself, after all links are followed.

    Only folders have paths; items of other sources are inside by nature.
    """
    if not isinstance(source, FolderSource):
        return True
    root = Path(os.path.realpath(source._root))
    path = Path(os.path.realpath(source._root / source._names[int(source._rows[row])]))
    return path.is_relative_to(root)


def only_inside(source: Source) -> tuple[Source, int]:
    """The items that lie in the source's folder, and how many do not."""
    if not isinstance(source, FolderSource):
        return source, 0
    kept = np.array([inside(source, row) for row in range(len(source))], dtype=bool)
    outside = int((~kept).sum())
    return (source.subset(np.flatnonzero(kept)) if outside else source), outside


def _encode(image: Image, *, broken: bool = False) -> Picture:
    file = io.BytesIO()
    if max(image.size) <= SMALL:
        kind = "image/webp"
        image.save(file, "WEBP", lossless=True, quality=0, method=0)
    else:
        kind = "image/jpeg"
        image.save(file, "JPEG", quality=85)
    encoded = file.getvalue()
    etag = hashlib.sha256(encoded).hexdigest()[:32]
    return Picture(encoded, kind, f'"{etag}"', broken)


def _nothing_to_see(size: int) -> Image:
    """A grey square with a cross, for an item that cannot be read."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (size, size), (200, 200, 200))
    draw = ImageDraw.Draw(image)
    for ends in ((0, 0, size, size), (0, size, size, 0)):
        draw.line(ends, fill=(140, 140, 140), width=max(1, size // 40))
    return image
