"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """A temporary file beside `path`, which takes its place when the block ends well.

    On any error, a full disk among them, the temporary file goes and `path` stays as it was. The
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
    finally:
        aside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
