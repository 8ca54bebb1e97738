"""Nearest neighbours in a random batch."""

from __future__ import annotations

import numpy as np

from likewise.oracles.questions import Question
from likewise.oracles.samplers.base import Sampler, unknown_pairs
from likewise.oracles.samplers.state import State


class NearestNeighbors(Sampler):
    """An item of a random batch with its nearest others (``pal`` algorithm 4, NNCLR).

    The paper takes nearest neighbours to be alike without asking; here a person is asked whether
    they are. Its printed graph is the identity (the nearest to an item is the item itself): that
    one is left out, as ERRATA says.

    Args:
        batch: items of the batch.
    """

    name = "neighbors"

    def __init__(self, *, batch: int = 256) -> None:
        if batch < 2:
            raise ValueError(f"batch is {batch}: a neighbour needs at least 2 items")
        self.batch = batch

    def propose(self, state: State) -> Question | None:
        """Someone of the batch that nobody has placed yet, with the nearest of the batch."""
        places = np.flatnonzero(state.open)
        if not len(places):
            return unknown_pairs(state)
        item = int(state.probe.items[state.rng.choice(places)])
        drawn = state.rng.choice(state.n, min(self.batch, state.n), replace=False)
        away = ((np.asarray(state.X[drawn]) - np.asarray(state.X[item])) ** 2).sum(axis=1)
        return state.ask(item, drawn[np.argsort(away, kind="stable")]) or unknown_pairs(state)
