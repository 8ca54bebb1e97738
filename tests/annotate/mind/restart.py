"""How long the first question takes after a restart, with the index kept and without.

    python -m tests.annotate.mind.restart --items 1000000

The project has been answered in before. Seconds are from the beginning of a new desk to its first
question: the median of some restarts, which take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from likewise.annotate import Desk, Store
from likewise.data.arrays import ArraySource
from tests.annotate.databases import KINDS, new_project


def restarts(project: str, source: ArraySource, rows: np.ndarray, count: int) -> dict[str, float]:
    """The seconds, by what is kept."""
    seconds: dict[str, list[float]] = {"none": [], "auto": []}
    with Store.open(project) as store:
        with Desk(source, rows, store) as desk:
            while not desk._mind.pool:  # until there is an index, and it is kept
                asked = desk.question("ada")
                assert asked is not None
                desk.answer("ada", id=asked.id, question_id=asked.id, clicked=asked.tiles[:1])
        for _ in range(count):
            for cache, found in seconds.items():
                began = time.perf_counter()
                with Desk(source, rows, store, cache=None if cache == "none" else cache) as desk:
                    assert desk.question("ada") is not None
                    found.append(time.perf_counter() - began)
    return {cache: statistics.median(found) for cache, found in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--database", choices=KINDS, nargs="+", default=list(KINDS))
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    kinds = np.arange(given.items) % 100
    rows = rng.standard_normal((100, 128), np.float32)[kinds]
    rows += rng.standard_normal(rows.shape, np.float32)
    source = ArraySource(np.zeros((given.items, 1, 1), np.uint8))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for kind in given.database:
            found = restarts(new_project(kind, Path(folder)), source, rows, given.restarts)
            print(f"{kind}: {found['auto']:.1f} s; without the file {found['none']:.1f} s")


if __name__ == "__main__":
    main()
