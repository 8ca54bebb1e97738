"""What an item is, whatever it is called: the digest of its bytes, and what tells at a glance."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.data import BrokenImage, FolderSource, Source

Numbers = NDArray[np.int64]
Digest = NDArray[np.uint64]

RECENT = 2_000_000_000
"""Nanoseconds: a file that changed so shortly ago may change again within the clock's grain."""

NO_TIME = -1


def glances(source: Source) -> Numbers | None:
    """(n, 2) size and time of change of every file; None where items are no files.

    Where both are as they were, a file is taken for unchanged without being read. The time of a
    file that changed within the last two seconds is left out, so that it is read again next time.
    """
    if not isinstance(source, FolderSource):
        return None
    root = Path(source.place)
    found = np.full((len(source), 2), NO_TIME, dtype=np.int64)
    now = time.time_ns()
    for place, key in enumerate(source.keys):
        try:
            status = os.stat(root / key)
        except OSError:  # a link to nowhere, or a name that is no text: read it each time
            continue
        found[place, 0] = status.st_size
        if now - status.st_mtime_ns > RECENT:
            found[place, 1] = status.st_mtime_ns
    return found


def digest(source: Source, place: int) -> Digest:
    """128 bits of the file's bytes, or of the pixels where the item is no file; (2,) uint64.

    Something that cannot be read has the digest of why.
    """
    if isinstance(source, FolderSource):
        try:
            return _bits((Path(source.place) / source.keys[place]).read_bytes())
        except OSError:
            pass
    try:
        pixels = source.read(place).numpy()
    except BrokenImage as error:
        return _bits(error.reason.encode())
    return _bits(str(pixels.shape).encode() + np.ascontiguousarray(pixels).tobytes())


def _bits(content: bytes) -> Digest:
    return np.frombuffer(hashlib.blake2b(content, digest_size=16).digest(), dtype=np.uint64)
