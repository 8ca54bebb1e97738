"""The classifier's index, kept in a file so that a restart is quick; rebuilt where it is broken.

Nothing in the file is needed: it is derived from the rows, and can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.annotate.store import Store
from likewise.data.source import Source
from likewise.oracles.probe import Probe
from likewise.oracles.propagation import Matrix
from likewise.runs.cache import cache_folder, distinct_name
from likewise.runs.files import write_atomically

log = logging.getLogger("likewise.annotate")

MAGIC = b"likewise index 1\n"


def file_of_project(store: Store, source: Source) -> Path | None:
    """Where a project's index is kept; None where there is no place for it.

    Of an SQLite project it lies beside the file. Of a PostgreSQL database it lies in the user's
    cache folder, under a name that differs where the database or the images do: two servers on one
    database, and two folders of images, do not get in each other's way.
    """
    if store.file is not None:
        return store.file.with_name(store.file.name + ".index")
    try:
        folder = cache_folder("annotate")
    except (OSError, RuntimeError) as error:  # of a user who has no home, or may not write there
        log.warning("there is no folder to keep the index in (a restart is slower): %s", error)
        return None
    name = distinct_name(Path(source.place).name, store.database, source.place)
    return folder / f"{name}.index"


class KeptProbe(Probe):
    """A :class:`Probe` whose kernels are read from a file, where it has them, and written there.

    The file is a line with a name, a line of JSON (what the kernels belong to, and their SHA-256)
    and the numbers. A file of other rows, a broken one or none: they are computed.

    Args:
        X: (n, d) rows.
        file: where the kernels are kept.
        items: the pool, where it is chosen already.
    """

    def __init__(
        self, X: NDArray[np.floating], file: Path, *, items: NDArray[np.int64] | None = None
    ) -> None:
        super().__init__(X, items=items)
        self.file = file
        self._kept = self._load()
        self.rebuilt = not self._kept
        """Whether anything had to be computed."""
        if self.rebuilt:
            self._kept = {smooth: self.graph.kernel(smooth) for smooth in self._wanted()}
            self._save()

    def kernel(self, smoothness: float) -> Matrix:
        """The kernel of the pool, from the file or computed once."""
        return self._kept[smoothness]

    def _wanted(self) -> list[float]:
        return sorted({smoothness for smoothness, _ in self.ways})

    def _belongs_to(self) -> str:
        digest = hashlib.sha256(json.dumps([self.neighbors, self._wanted()]).encode())
        digest.update(self.items.tobytes())
        digest.update(np.ascontiguousarray(self.X[self.items], dtype=np.float64).tobytes())
        return digest.hexdigest()

    def _load(self) -> dict[float, Matrix]:
        m, wanted = len(self.items), self._wanted()
        try:
            with self.file.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise ValueError("it is no index")
                about = json.loads(file.readline(10_000))
                if about["of"] != self._belongs_to():
                    return {}  # of other rows: nothing is wrong
                numbers = file.read()
            if hashlib.sha256(numbers).hexdigest() != about["sha256"]:
                raise ValueError("its checksum is wrong")
            kernels = np.frombuffer(numbers, dtype="<f4").reshape(len(wanted), m, m)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("the index in %s is broken (%s) and is computed again", self.file, error)
            return {}
        return dict(zip(wanted, kernels, strict=True))

    def _save(self) -> None:
        numbers = np.stack([self._kept[smooth] for smooth in self._wanted()]).astype("<f4")
        content = numbers.tobytes()
        about = {"of": self._belongs_to(), "sha256": hashlib.sha256(content).hexdigest()}
        try:
            with write_atomically(self.file) as aside, aside.open("wb") as file:
                file.write(MAGIC + json.dumps(about).encode() + b"\n")
                file.write(content)
        except OSError as error:  # a full disk: it costs a restart some seconds
            log.warning("the index could not be kept in %s: %s", self.file, error)
