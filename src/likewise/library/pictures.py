"""Near-duplicates of a collection: by its pictures where they are at hand, else by its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.data import load_images
from likewise.library.collection import Collection
from likewise.library.duplicates import (
    SIDE,
    STRICT,
    Duplicates,
    duplicates_of_pictures,
    duplicates_of_rows,
    grey_pictures,
)


def find_duplicates(collection: Collection, *, strict: float = STRICT) -> Duplicates:
    """Groups of near-duplicates; items of the same content are twins whatever else."""
    contents = _contents(collection)
    source = collection.source
    if source is None:
        return duplicates_of_rows(collection.rows, strict=strict, contents=contents)
    known = set(source.keys)
    there = np.array([key in known for key in collection.keys])
    if not there.all():
        found = duplicates_of_rows(collection.rows, strict=strict, contents=contents)
        found.notes.append(f"{int((~there).sum()):,} images are not at hand")
        return found
    images = load_images(source.subset(source.index_of(collection.keys)), SIDE, at_least=0)
    if len(images) < len(collection):
        # Read once, and broken now: the folder is changing under us.
        gone = next(iter(images.broken))
        raise ValueError(f"{gone} cannot be read any more: run the command again")
    return duplicates_of_pictures(
        grey_pictures(images.pixels), collection.rows, strict=strict, contents=contents
    )


def _contents(collection: Collection) -> NDArray[np.int64] | None:
    """(n,) a number for every content, where an index knows them."""
    if collection.index is None:
        return None
    items = collection.index.items
    digests = items.digest[items.row >= 0]
    return np.unique(digests, axis=0, return_inverse=True)[1].reshape(-1)
