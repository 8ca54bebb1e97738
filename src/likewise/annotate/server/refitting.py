"""Rows that know the answers, in closed form: what `likewise ask --retrain` does without a run.

Beside every row stands its spectral embedding, fitted to the answers (known pairs only). The
embedding alone would forget what nobody was asked about, and the row alone what everybody said.

A process of its own: ``python -m likewise.annotate.server.refitting JOB.json``.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.annotate.project import ProjectAnswers, answers_of_project
from likewise.data.keys import Keyed
from likewise.runs.files import write_atomically

MOST_CLASSES = 64
"""Dimensions of the embedding at most."""

SHARE = 0.5
"""Length of the embedding beside the row."""

MOST_ROWS = 5000
"""Rows with answers that the embedding is fitted to; more are drawn from."""


def refitted(
    rows: NDArray[np.float32], keys: list[str], said: ProjectAnswers, *, seed: int = 0
) -> NDArray[np.float32]:
    """The rows with their embedding beside them.

    Args:
        rows: (n, d) of all items.
        keys: of the items.
        said: what people answered.
        seed: of the draw, where very many items have answers.
    """
    from likewise.kernel import SpectralEmbedding

    items = Keyed(keys)
    beliefs = said.beliefs(items)
    if beliefs.n_classes < 2:
        raise ValueError("fewer than two classes are known: there is nothing to tell apart yet")
    asked = np.flatnonzero(beliefs.asked())
    if len(asked) > MOST_ROWS:
        asked = np.sort(np.random.default_rng(seed).permutation(asked)[:MOST_ROWS])
    model = SpectralEmbedding(
        min(MOST_CLASSES, beliefs.n_classes), kernel="gaussian", masked=True, random_state=seed
    )
    with warnings.catch_warnings():
        # Fewer directions than components are expected here: the others are zeros.
        warnings.simplefilter("ignore")
        model.fit(rows[asked], beliefs.graph().subset(asked))
    places = np.array_split(np.arange(len(rows)), max(1, len(rows) // 20_000))
    embedded = np.concatenate([model.transform(rows[place]) for place in places])
    return np.hstack([_unit(rows), SHARE * _unit(embedded)]).astype(np.float32)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length one on average."""
    length = float(np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64).mean()))
    return (rows / max(length, 1e-12)).astype(np.float32)


def main(job: Path) -> int:
    """Do what a job says: read rows, keys and the project, and write the new rows."""
    given = json.loads(job.read_text())
    rows = np.load(given["rows"], mmap_mode="r")
    keys = json.loads(Path(given["keys"]).read_text())
    try:
        found = refitted(np.asarray(rows), keys, answers_of_project(given["project"]))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 3
    with write_atomically(given["result"]) as aside, aside.open("wb") as file:
        np.save(file, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
