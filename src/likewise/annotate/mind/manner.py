"""How to think, as another process can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.annotate.mind.index import KeptProbe
from likewise.oracles.beliefs import Beliefs, ExactBeliefs, NoisyBeliefs
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import Sampler

Rows: TypeAlias = NDArray[np.floating]


@dataclass(frozen=True)
class Manner:
    """How to think; it can be sent to another process.

    Attributes:
        sampler: what proposes questions.
        grid: tiles of a question.
        target: the accuracy at which enough is known.
        seed: of what is random.
        beliefs: "exact" or "noisy".
        confidence: with "noisy", the posterior from which on an item counts as placed.
        kept: the file that keeps the classifier's index, or None.
        at_once: indexes are built, and plain questions renewed, whenever that is due, and nothing
            depends on how long it takes: for tests, and for few items.
    """

    sampler: Sampler
    grid: int
    target: float
    seed: int
    beliefs: Literal["exact", "noisy"] = "exact"
    confidence: float = 0.99
    kept: Path | None = None
    at_once: bool = False

    def empty(self, n: int) -> Beliefs:
        """Beliefs about n items of which nobody has said anything."""
        if self.beliefs == "exact":
            return ExactBeliefs(n)
        return NoisyBeliefs(n, confidence=self.confidence)

    def probe(self, X: Rows) -> Probe:
        """The classifier's index."""
        return Probe(X) if self.kept is None else KeptProbe(X, self.kept)
