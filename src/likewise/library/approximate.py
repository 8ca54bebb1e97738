"""Beyond a million rows: FAISS (an extra) proposes, and what it proposes is compared exactly."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np

from likewise.library.exact import Places, Rows
from likewise.library.index import Index, places_of_rows
from likewise.runs import write_atomically

EXACT_UP_TO = 1_000_000
FILE, NOTE = "faiss.index", "faiss.json"
PROBES = 32
TRAINED_ON = 100_000
AT_ONCE = 100_000


def has_faiss() -> bool:
    """Whether FAISS is installed."""
    return importlib.util.find_spec("faiss") is not None


def search_approximately(index: Index, queries: Rows, k: int) -> tuple[Rows, Places]:
    """Similarities and places in ``index.keys`` of about the k nearest.

    The rows lie in about sqrt(n) cells (inverted lists); the 32 cells nearest to a query are
    looked through, so that a near row in another cell is missed now and then. What is kept beside
    the index gets the new rows and loses those that are gone; it is made anew only where rows
    were numbered anew.
    """
    if not has_faiss():
        raise ValueError(
            "method is 'faiss', which is not installed: pip install '.[faiss]' in the checkout"
        )
    numbers = index.numbers()
    cells = _current(index, np.unique(numbers))
    cells.nprobe = min(PROBES, cells.nlist)
    # Items that are gone have been taken out, and copies share a row: k rows are k items at least.
    near, rows = cells.search(np.ascontiguousarray(queries), min(k, int(cells.ntotal)))
    width = int((rows >= 0).sum(axis=1).min()) if len(rows) else 0  # FAISS fills up with -1
    return places_of_rows(near[:, :width], rows[:, :width], numbers, k)


def _current(index: Index, wanted: Places) -> Any:
    """The cells, brought up to date with the rows."""
    import faiss

    note, file = index.path / NOTE, index.path / FILE
    about = json.loads(note.read_text()) if note.is_file() else {}
    if file.is_file() and about.get("generation") == index.about.generation:
        cells: Any = faiss.read_index(str(file))
        there = np.load(index.path / "faiss.npy") if (index.path / "faiss.npy").is_file() else None
        if there is not None:
            gone = np.setdiff1d(there, wanted, assume_unique=True)
            new = np.setdiff1d(wanted, there, assume_unique=True)
            if len(gone):
                cells.remove_ids(gone)
            _add(cells, index, new)
            if len(gone) or len(new):
                _save(cells, index, wanted)
            return cells
    return _made(index, wanted)


def _made(index: Index, wanted: Places) -> Any:
    import faiss

    n, dim = len(wanted), index.about.dim
    lists = max(1, min(int(4 * np.sqrt(n)), n // 40 or 1))
    cells = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, lists, faiss.METRIC_INNER_PRODUCT)
    rng = np.random.default_rng(0)
    sample = np.sort(rng.permutation(wanted)[: max(TRAINED_ON, 40 * lists)])
    cells.train(_rows(index, sample))
    _add(cells, index, wanted)
    _save(cells, index, wanted)
    return cells


def _add(cells: Any, index: Index, numbers: Places) -> None:
    for begin in range(0, len(numbers), AT_ONCE):
        some = numbers[begin : begin + AT_ONCE]
        cells.add_with_ids(_rows(index, some), some)


def _rows(index: Index, numbers: Places) -> Rows:
    """Rows by number, numbers ascending."""
    found, start = [], 0
    for part in index.parts():
        inside = numbers[(numbers >= start) & (numbers < start + len(part))]
        found.append(np.asarray(part[inside - start]))
        start += len(part)
    return np.ascontiguousarray(np.concatenate(found)) if found else np.zeros((0, 0), np.float32)


def _save(cells: Any, index: Index, numbers: Places) -> None:
    import faiss

    folder: Path = index.path
    with write_atomically(folder / FILE) as aside:
        faiss.write_index(cells, str(aside))
    with write_atomically(folder / "faiss.npy") as aside, aside.open("wb") as file:
        np.save(file, numbers)
    with write_atomically(folder / NOTE) as aside:
        aside.write_text(json.dumps({"generation": index.about.generation}))
