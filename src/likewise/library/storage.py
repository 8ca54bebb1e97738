"""How an index lies on the disk: rows in files that are never changed, and a list of the items.

=====================  ================================================================
rows-NAME.npy          float32 rows of length 1; a new file for every batch of images
items.parquet          key, row, size, time and digest of every item, and why it is broken
=====================  ================================================================

The list names the files of rows that belong to it, and is replaced as a whole: whoever is killed
leaves the old index, and at most a file of rows that nobody names.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.runs import write_atomically

ITEMS = "items.parquet"
LOCK = "lock"
VERSION = 1
ABOUT = b"likewise-index"
BROKEN = -1
"""The row of an item that cannot be read."""


@dataclass
class Items:
    """The items of an index, in the order of their source.

    Attributes:
        keys: of every item.
        row: (n,) the number of its row, counted through all files; -1: it is broken.
        glance: (n, 2) size and time of its file.
        digest: (n, 2) of its content.
        reasons: why broken items are.
    """

    keys: list[str] = field(default_factory=list)
    row: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    glance: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    digest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 2), np.uint64))
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass
class About:
    """What an index says of itself."""

    fingerprint: str
    encoder: str
    dim: int
    data: str = ""
    rows: list[tuple[str, int]] = field(default_factory=list)
    """Files of rows, and how many each has."""
    generation: str = ""
    """Another one where rows were numbered anew."""


def read_about(folder: Path) -> About:
    """What the index in a folder says of itself."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / ITEMS
    try:
        content = (pq.read_schema(path).metadata or {}).get(ABOUT, b"null")
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} cannot be read ({reason}): give --rebuild") from None
    about = json.loads(content)
    if about is None or about.pop("version") != VERSION:
        raise ValueError(f"{path} is no index of this version of Likewise: give --rebuild")
    about["rows"] = [(name, count) for name, count in about["rows"]]
    return About(**about)


def read_items(folder: Path) -> Items:
    """The items of an index."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / ITEMS)
    columns = {name: table.column(name).to_numpy() for name in ("row", "size", "time", "a", "b")}
    keys: list[str] = table.column("key").to_pylist()
    broken = np.flatnonzero(columns["row"] == BROKEN)
    reasons = table.column("reason").take(broken).to_pylist() if len(broken) else []
    return Items(
        keys,
        columns["row"].copy(),
        np.stack([columns["size"], columns["time"]], axis=1),
        np.stack([columns["a"], columns["b"]], axis=1),
        {keys[place]: reason or "" for place, reason in zip(broken, reasons, strict=True)},
    )


def write_items(folder: Path, about: About, items: Items) -> None:
    """Put another list in the place of the one that is there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    said: dict[str, Any] = {**vars(about), "version": VERSION}
    reasons = [items.reasons.get(key) for key in items.keys] if items.reasons else None
    table = pa.table(
        {
            "key": pa.array(items.keys, pa.string()),
            "row": pa.array(items.row),
            "size": pa.array(items.glance[:, 0]),
            "time": pa.array(items.glance[:, 1]),
            "a": pa.array(items.digest[:, 0]),
            "b": pa.array(items.digest[:, 1]),
            "reason": pa.array(reasons, pa.string())
            if reasons is not None
            else pa.nulls(len(items.keys), pa.string()),
        }
    ).replace_schema_metadata({ABOUT: json.dumps(said).encode()})
    with write_atomically(folder / ITEMS) as aside:
        pq.write_table(table, aside, use_dictionary=False, compression="zstd")


def add_rows(folder: Path, rows: NDArray[np.float32]) -> tuple[str, int]:
    """A new file of rows: its name, and how many it holds."""
    name = f"rows-{uuid.uuid4().hex[:12]}.npy"
    with write_atomically(folder / name) as aside, aside.open("wb") as file:
        np.save(file, np.ascontiguousarray(rows, dtype=np.float32))
    return name, len(rows)


def open_rows(folder: Path, about: About) -> list[NDArray[np.float32]]:
    """The files of rows, mapped into memory: only what is looked at is read."""
    parts = []
    for name, count in about.rows:
        path = folder / name
        try:
            # Copy on write: torch wants memory that it might write to, and never does.
            part = np.load(path, mmap_mode="c")
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read ({error}): give --rebuild") from None
        if part.shape != (count, about.dim):
            raise ValueError(f"{path} has shape {part.shape}, not {(count, about.dim)}: --rebuild")
        parts.append(part)
    return parts


def drop_strangers(folder: Path, about: About) -> None:
    """Remove files of rows that no list names: of an update that was killed, or merged."""
    named = {name for name, _ in about.rows}
    for path in folder.glob("rows-*.npy"):
        if path.name not in named:
            with suppress(OSError):
                path.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One update at a time, where the system can lock files."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows: two updates at once are the user's to avoid
        yield
        return
    with (folder / LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
