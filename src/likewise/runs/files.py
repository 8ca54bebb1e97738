"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
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
        if not isinstance(error, OSError) and _is_full(path.parent):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise
    finally:
        aside.unlink(missing_ok=True)


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < FULL


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
