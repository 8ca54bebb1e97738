"""Files that are there as a whole, or not at all; what can be none is refused before the work."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = 2**16
"""Bytes below which nothing is left on a disk; torch and safetensors have errors of their own."""


@contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """A temporary file beside `path`, which takes its place when the block ends well.

    On any error, a full disk among them, the temporary file goes and `path` stays as it was; a full
    disk is an OSError, whatever the library that wrote to it has made of it. The
    bytes reach the disk before the name does, so that a power cut leaves the old file or the new.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "scores.json"
    >>> with write_atomically(path) as aside:
    ...     _ = aside.write_text("{}")
    ...     assert not path.exists()
    >>> path.read_text()
    '{}'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read; give what an ordinary file gets.
        aside.chmod(0o666 & ~_umask())
        os.replace(aside, path)
    except Exception as error:
        if not isinstance(error, OSError) and (_says_full(error) or _is_full(path.parent)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise
    finally:
        aside.unlink(missing_ok=True)


def check_file(path: Path | str, name: str = "out") -> None:
    """Raise unless a file can have that path; folders that are missing are made with it.

    >>> check_file("scores/of-today.json")
    >>> check_file(".")
    Traceback (most recent call last):
    ...
    ValueError: out is ., a folder: give the name of a file
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{name} is {path}, a folder: give the name of a file")
    _check_above(path, path.absolute().parents, name)


def check_folder(path: Path | str, name: str = "out") -> None:
    """Raise unless a folder can be there, and be written to.

    >>> check_folder("runs/a")
    >>> check_folder("/dev/null/a")
    Traceback (most recent call last):
    ...
    ValueError: out is /dev/null/a, and /dev/null is no folder: give another place
    """
    path = Path(path)
    _check_above(path, (path, *path.absolute().parents), name)


def _check_above(path: Path, places: Iterable[Path], name: str) -> None:
    there = next(place for place in places if place.exists())
    if not there.is_dir():
        raise ValueError(f"{name} is {path}, and {there} is no folder: give another place")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{name} is {path}, and nothing can be written in {there}")


def _says_full(error: Exception) -> bool:
    """What failed may have given its space back meanwhile."""
    return f"os error {errno.ENOSPC}" in str(error) or os.strerror(errno.ENOSPC) in str(error)


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < FULL


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
