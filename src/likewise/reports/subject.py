"""What a report is about: a run or an embeddings file, and all that was found out about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from likewise.diagnostics import Verdict
from likewise.reports.curves import Curves


@dataclass
class Sample:
    """Some items, their embeddings and, where they can be read, their pictures.

    keys: of the items.
    rows: (n, d) float32, the embeddings that a user gets: the encoder's, without augmentation.
    labels: class indices, -1 where unknown; None where nothing is known.
    class_names: what the indices mean.
    pixels: uint8 (n, 3, S, S); None where the pictures are gone.
    of: how many items there are in all.
    place: where they come from, in words.
    """

    keys: list[str]
    rows: NDArray[np.float32]
    labels: NDArray[np.int64] | None
    class_names: list[str] | None
    pixels: Tensor | None
    of: int
    place: str

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which items have a label."""
        if self.labels is None:
            return np.zeros(len(self), dtype=bool)
        return self.labels >= 0

    def class_name(self, index: int) -> str:
        """The name of a class."""
        names = self.class_names
        return names[index] if names is not None and index < len(names) else str(index)


@dataclass
class Subject:
    """One column of a report.

    name: what it is called, in few letters.
    path: the run folder or the embeddings file.
    kind: "run" or "embeddings".
    config: the resolved arguments of the run.
    summary: what came out of the training; empty while it has not ended.
    curves: what was written down while training.
    sample: items to look at; None where there is nothing to embed.
    record: the figures of two views, measured now or at the last look of the training.
    measured: "now", "while training" or "not at all".
    verdict: on these figures; None where there are none.
    weights: singular values of each linear layer of the projector.
    seed: of what is drawn.
    remarks: what a reader should know: what is missing, and why.
    """

    name: str
    path: Path
    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    curves: Curves = field(default_factory=Curves)
    sample: Sample | None = None
    record: dict[str, Any] | None = None
    measured: str = "not at all"
    verdict: Verdict | None = None
    weights: list[NDArray[np.float64]] = field(default_factory=list)
    seed: int = 0
    remarks: list[str] = field(default_factory=list)
