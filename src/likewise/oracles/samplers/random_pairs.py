"""Random pairs: the supervised oracle."""

from __future__ import annotations

from likewise.oracles.questions import Question
from likewise.oracles.samplers.base import Sampler, unknown_pairs
from likewise.oracles.samplers.state import State


class RandomPairs(Sampler):
    """Random pairs (``pal`` algorithm 2, supervised), less those that are known or implied.

    With a grid, one random exemplar and random candidates.
    """

    name = "random"

    def propose(self, state: State) -> Question | None:
        """Any pair that nobody knows about."""
        return unknown_pairs(state)
