"""The index: rows of all images of a source, kept on the disk and brought up to date."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.data import Source
from likewise.library import storage
from likewise.library.changes import Changes
from likewise.library.contents import NO_TIME, digest, glances
from likewise.library.embedder import Embedder
from likewise.library.exact import Places, Rows, search_rows
from likewise.library.storage import About, Items

CHUNK = 20_000
"""Images that are embedded before the index is written: what is lost when it is stopped."""

FILES = 32
"""Files of rows above which all but the largest are merged."""

Progress = Callable[[int, int], None]


class Index:
    """Rows of length 1 by key, on the disk.

    An image is embedded once: files that are as they were are not even read, and a file that was
    renamed, moved or copied is known by its content.

    Args:
        path: the folder of the index; it is made when something is put in.
        embedder: whose rows these are.
        rebuild: forget what is there.
    """

    def __init__(self, path: Path | str, embedder: Embedder, *, rebuild: bool = False) -> None:
        self.path = Path(path)
        self.embedder = embedder
        self.about = self._fresh()
        self.items = Items()
        there = (self.path / storage.ITEMS).is_file()
        if there and not rebuild:
            self._read()
        elif self.path.is_dir() and not there and any(self.path.glob("[!.]*")):
            strangers = {p.name for p in self.path.iterdir()} - {storage.LOCK}
            if any(not name.startswith("rows-") for name in strangers):
                raise ValueError(f"{self.path} is a folder of something else: give another --index")
        self._parts: list[Rows] | None = None

    def _fresh(self) -> About:
        embedder = self.embedder
        return About(
            embedder.fingerprint,
            embedder.description,
            embedder.encoder.dim,
            generation=uuid.uuid4().hex[:12],
        )

    def _read(self) -> None:
        about = storage.read_about(self.path)
        if about.fingerprint != self.embedder.fingerprint:
            raise ValueError(
                f"{self.path} was made with another encoder ({about.encoder}, fingerprint "
                f"{about.fingerprint}) than {self.embedder.description} (fingerprint "
                f"{self.embedder.fingerprint}): give --rebuild to embed all images again, or "
                "another --index"
            )
        self.about, self.items = about, storage.read_items(self.path)

    def __len__(self) -> int:
        return int((self.items.row != storage.BROKEN).sum())

    @property
    def keys(self) -> list[str]:
        """Of all items that could be read, in the order of the source."""
        items = self.items
        if not items.reasons:
            return items.keys
        return [
            key for key, row in zip(items.keys, items.row, strict=True) if row != storage.BROKEN
        ]

    def parts(self) -> list[Rows]:
        """The rows as they lie on the disk, mapped into memory."""
        if self._parts is None:
            self._parts = storage.open_rows(self.path, self.about)
        return self._parts

    def numbers(self) -> NDArray[np.int64]:
        """(n,) where the rows of :attr:`keys` are among those of :meth:`parts`."""
        return self.items.row[self.items.row != storage.BROKEN]

    def rows(self) -> Rows:
        """(n, d) in the order of :attr:`keys`, in memory."""
        numbers, parts = self.numbers(), self.parts()
        if not len(numbers):
            return np.zeros((0, self.about.dim), np.float32)
        if len(parts) == 1 and np.array_equal(numbers, np.arange(len(parts[0]))):
            return np.asarray(parts[0])
        found = np.empty((len(numbers), self.about.dim), np.float32)
        start = 0
        for part in parts:
            here = (numbers >= start) & (numbers < start + len(part))
            found[here] = part[numbers[here] - start]
            start += len(part)
        return found

    def search(self, queries: Rows, k: int) -> tuple[Rows, Places]:
        """Similarities (m, k) and places in :attr:`keys` of the k nearest; exact.

        Items of the same content share a row: each of them is found.
        """
        numbers = self.numbers()
        total = sum(len(part) for part in self.parts())
        if len(numbers) == total and np.array_equal(numbers, np.arange(total)):
            return search_rows(self.parts(), queries, k)
        dead = np.ones(total, dtype=bool)
        dead[numbers] = False
        near, rows = search_rows(self.parts(), queries, k, dead=dead)
        return places_of_rows(near, rows, numbers, k)

    def update(self, source: Source, progress: Progress | None = None) -> Changes:
        """Make the index that of a source: embed what is new or changed, drop what is gone."""
        begun = time.perf_counter()
        with storage.locked(self.path):
            if (self.path / storage.ITEMS).is_file() and self.items.keys:
                self._read()  # somebody else may have been here meanwhile
            first = not self.items.keys
            changes, items, waiting = self._compare(source)
            changes.first = first
            if changes or waiting or not np.array_equal(items.glance, self.items.glance):
                self._embed(source, items, waiting, changes, progress)
            changes.broken = dict(items.reasons)
            self.items = items
            self._parts = None
            if changes or first:
                self._tidy()
        changes.seconds = time.perf_counter() - begun
        return changes

    def _compare(self, source: Source) -> tuple[Changes, Items, dict[int, list[int]]]:
        """What changed, the new list of items, and which of them wait for a row.

        Those that wait are grouped by content: the first of a group is embedded for all.
        """
        old, changes = self.items, Changes()
        before = {key: place for place, key in enumerate(old.keys)}
        seen = glances(source)
        n = len(source)
        items = Items(
            list(source.keys),
            np.full(n, storage.BROKEN, np.int64),
            np.full((n, 2), NO_TIME, np.int64) if seen is None else seen,
            np.zeros((n, 2), np.uint64),
        )
        was = np.array([before.get(key, -1) for key in items.keys], dtype=np.int64)
        same = was >= 0
        if seen is None:
            same[:] = False
        else:
            same[same] = (seen[same] == old.glance[was[same]]).all(axis=1)
            same &= seen[:, 1] != NO_TIME
        items.row[same] = old.row[was[same]]
        items.digest[same] = old.digest[was[same]]
        gone = set(before) - set(items.keys)
        by_content = _Contents(old)
        waiting: dict[tuple[int, int], list[int]] = {}
        kept = np.flatnonzero(same).tolist()
        for place in np.flatnonzero(~same).tolist():
            key, bits = items.keys[place], digest(source, place)
            items.digest[place] = bits
            if was[place] >= 0 and bool((old.digest[was[place]] == bits).all()):
                items.row[place] = old.row[was[place]]
                kept.append(place)
                continue
            twins = by_content.places(bits)
            source_of = next((old.keys[t] for t in twins if old.keys[t] in gone), None)
            if was[place] >= 0:
                changes.changed.append(key)
            elif source_of is not None:
                gone.discard(source_of)
                changes.renamed.append((source_of, key))
            else:
                changes.added.append(key)
            if len(twins):
                items.row[place] = old.row[twins[0]]
                changes.copies += source_of is None
            else:
                waiting.setdefault((int(bits[0]), int(bits[1])), []).append(place)
        changes.unchanged = len(kept)
        if old.reasons:
            items.reasons = {
                items.keys[place]: old.reasons.get(items.keys[place], "")
                for place in kept
                if items.row[place] == storage.BROKEN
            }
        changes.removed = [key for key in old.keys if key in gone]
        groups = {places[0]: places for places in waiting.values()}
        changes.copies += sum(len(places) - 1 for places in groups.values())
        return changes, items, groups

    def _embed(
        self,
        source: Source,
        items: Items,
        waiting: dict[int, list[int]],
        changes: Changes,
        progress: Progress | None,
    ) -> None:
        """Give rows to those that wait, and write the list, chunk by chunk."""
        about = self.about
        about.data = source.place
        order = sorted(waiting)
        done = 0

        def report(count: int) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(done, len(order))

        for begin in range(0, len(order), CHUNK):
            places = order[begin : begin + CHUNK]
            keys, rows, broken = self.embedder.rows_of(source.subset(places), report)
            start = sum(count for _, count in about.rows)
            if len(rows):
                about.rows = [*about.rows, storage.add_rows(self.path, rows)]
            row_of = {key: start + number for number, key in enumerate(keys)}
            for place in places:
                for twin in waiting[place]:
                    items.row[twin] = row_of.get(items.keys[place], storage.BROKEN)
                    if items.keys[place] in broken:
                        items.reasons[items.keys[twin]] = broken[items.keys[place]]
            changes.embedded += len(rows)
            if begin + CHUNK < len(order):
                self._write_so_far(items, waiting, order[begin + CHUNK :])
        storage.write_items(self.path, about, items)

    def _write_so_far(self, items: Items, waiting: dict[int, list[int]], left: list[int]) -> None:
        """The list without those that still wait: who is stopped here goes on from here."""
        kept = np.ones(len(items.keys), dtype=bool)
        for place in left:
            kept[waiting[place]] = False
        some = np.flatnonzero(kept)
        part = Items(
            [items.keys[place] for place in some],
            items.row[some],
            items.glance[some],
            items.digest[some],
            {key: why for key, why in items.reasons.items()},
        )
        storage.write_items(self.path, self.about, part)

    def _tidy(self) -> None:
        """Merge small files, and leave rows out that nobody has any more."""
        about, items = self.about, self.items
        sizes = [count for _, count in about.rows]
        total = sum(sizes)
        used = np.unique(items.row[items.row >= 0])
        mostly_dead = total - len(used) > len(used) + 1000
        if len(sizes) > FILES or mostly_dead:
            kept = -1 if mostly_dead else int(np.argmax(sizes))
            starts = np.cumsum([0, *sizes])
            merged, numbers = [], np.full(total, -1, np.int64)
            files: list[tuple[str, int]] = []
            if kept >= 0:
                files.append(about.rows[kept])
                numbers[starts[kept] : starts[kept + 1]] = np.arange(sizes[kept])
            next_row = sum(count for _, count in files)
            for place, part in enumerate(self.parts()):
                if place == kept:
                    continue
                inside = used[(used >= starts[place]) & (used < starts[place + 1])]
                numbers[inside] = next_row + np.arange(len(inside))
                next_row += len(inside)
                merged.append(part[inside - starts[place]])
            if merged:
                files.append(storage.add_rows(self.path, np.concatenate(merged)))
            there = items.row >= 0
            items.row[there] = numbers[items.row[there]]
            about.rows, about.generation = files, uuid.uuid4().hex[:12]
            storage.write_items(self.path, about, items)
            self._parts = None
        storage.drop_strangers(self.path, about)


class _Contents:
    """Which items have a content; sorted when first asked for."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._order: NDArray[np.int64] | None = None

    def places(self, bits: NDArray[np.uint64]) -> list[int]:
        """The readable items with this digest."""
        first = self._items.digest[:, 0]
        if self._order is None:
            self._order = np.argsort(first, kind="stable")
            self._sorted = first[self._order]
        left = int(np.searchsorted(self._sorted, bits[0], "left"))
        right = int(np.searchsorted(self._sorted, bits[0], "right"))
        return [
            int(place)
            for place in self._order[left:right]
            if self._items.digest[place, 1] == bits[1] and self._items.row[place] >= 0
        ]


def places_of_rows(
    near: Rows, rows: Places, numbers: NDArray[np.int64], k: int
) -> tuple[Rows, Places]:
    """Rows as places of the items that have them; several items may have one row."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    if len(ordered) == 0 or (np.diff(ordered) > 0).all():
        return near, order[np.searchsorted(ordered, rows)]
    k = min(k, len(numbers))
    found_near = np.zeros((len(near), k), np.float32)
    found = np.zeros((len(near), k), np.int64)
    for query in range(len(near)):
        left = np.searchsorted(ordered, rows[query], "left")
        right = np.searchsorted(ordered, rows[query], "right")
        lengths = right - left
        items = np.concatenate([np.sort(order[a:b]) for a, b in zip(left, right, strict=True)])[:k]
        found[query], found_near[query] = items, np.repeat(near[query], lengths)[:k]
    return found_near, found
