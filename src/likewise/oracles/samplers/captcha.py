"""Templates of classes with grids of candidates: PAL à la captcha."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.oracles.questions import Question
from likewise.oracles.samplers.base import Sampler, settle_suspect, unknown_pairs
from likewise.oracles.samplers.state import State


class Captcha(Sampler):
    """The class with the fewest known items, and random candidates for it (``pal`` algorithm 3).

    As printed, templates are given: tell the beliefs that they differ before the first question.
    Without, they are found while asking: an item that differs from all known classes is the
    template of a new one. The improvements of section 4.3:

    Args:
        discover: items that are probably of none of the known classes are asked against all that
            are left, which makes them templates. False: as printed.
        guided: candidates are those that the classifier puts into the class, at random, then the
            next likely ones.
        prior: rough class probabilities, one for each class in the order of their first items: the
            class with the fewest known items *for its frequency* comes next.
        central: the exemplar is the known item nearest to their mean, not the first one.
    """

    name = "captcha"

    def __init__(
        self,
        *,
        discover: bool = True,
        guided: bool = False,
        prior: Sequence[float] | None = None,
        central: bool = False,
    ) -> None:
        if prior is not None and min(prior, default=0) <= 0:
            raise ValueError(f"prior is {list(prior)}: give positive class probabilities")
        self.discover, self.guided = discover, guided
        self.prior, self.central = prior, central

    def propose(self, state: State) -> Question | None:
        """A grid against the class with the fewest known items."""
        if not state.n_classes:
            return unknown_pairs(state)
        if self.discover and (question := settle_suspect(state)):
            return question
        known = np.bincount(state.labels[state.labels >= 0], minlength=state.n_classes)
        share = np.ones(state.n_classes)
        if self.prior is not None:
            given = np.asarray(self.prior, dtype=float)[: state.n_classes]
            share[: len(given)] = given
        for c in np.argsort(known / share, kind="stable"):
            if question := self._against(state, int(c)):
                return question
        return unknown_pairs(state)

    def _against(self, state: State, c: int) -> Question | None:
        places = state.rng.permutation(np.flatnonzero(state.open & ~state.closed[:, c]))
        places = places[self._allowed(state, c, places)]
        if self.guided:
            # Those predicted first, in random order: the surest lie beside what is known already.
            own = state.pool[places, c]
            rivals = np.delete(state.pool[places], c, axis=1).max(axis=1, initial=0.0)
            places = places[np.argsort(np.maximum(rivals - own, 0.0), kind="stable")]
        exemplar = state.exemplar(c) if self.central else int(state.beliefs.exemplars(c)[0])
        return state.ask(exemplar, state.probe.items[places])

    def _allowed(self, state: State, c: int, places: np.ndarray) -> np.ndarray:
        """Which candidates may be shown for a class; all, here."""
        return np.ones(len(places), dtype=bool)
