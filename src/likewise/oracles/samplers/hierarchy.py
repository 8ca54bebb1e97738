"""Coarse before fine: attributes first, classes among those that share them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.questions import Attribute, Question
from likewise.oracles.samplers.captcha import Captcha
from likewise.oracles.samplers.state import State


class Hierarchy(Captcha):
    """Coarse questions until opinions are strong, then fine ones (``pal`` algorithm 6).

    While an attribute ("animals with fur") is not predicted surely, the items of which it is least
    sure are shown with "click all that have it". After that, it is :class:`Captcha`, guided, and
    an exemplar meets only candidates that share its attributes, as far as these are known or
    predicted. An attribute is taken to be a property of a class: all its items have it, or none.

    Args:
        attributes: the names, coarsest first.
        opinion: an opinion is strong where the mean probability of an item's likelier side is at
            least this.
        most: ask about one attribute so often at most.
    """

    name = "hierarchy"

    def __init__(
        self, attributes: Sequence[str] = (), *, opinion: float = 0.95, most: int = 20
    ) -> None:
        super().__init__(guided=True, central=True)
        if not 0.5 < opinion <= 1:
            raise ValueError(f"opinion is {opinion}: give a probability above 0.5, up to 1")
        self.attributes, self.opinion, self.most = tuple(attributes), opinion, most

    def propose(self, state: State) -> Question | None:
        """An attribute that is still open, or a grid of items that share them all."""
        if state.n < 2 or (state.labels >= 0).all():
            return None
        for name in self.attributes:
            has, known = self._attribute(state, name)
            sure = float(np.mean(np.maximum(has, 1.0 - has)))
            open_ = np.flatnonzero(~known)
            if sure >= self.opinion or len(open_) == 0 or known.sum() >= self.most * state.grid:
                continue
            order = np.lexsort((state.rng.random(len(open_)), np.abs(has[open_] - 0.5)))
            return Attribute(name, tuple(state.probe.items[open_[order[: state.grid]]].tolist()))
        return super().propose(state)

    def _attribute(self, state: State, name: str) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """(pool,) the probability of an attribute, and whether it was answered."""
        said = np.full(state.n, -1)
        heard = np.zeros(state.n, dtype=bool)
        for answer in state.beliefs.facts.attributes:
            if answer.attribute == name:
                heard[answer.a] = True  # an "unsure", too, is not asked again
                if answer.value != 0:
                    said[answer.a] = int(answer.value > 0)
        items = state.probe.items
        if not (said >= 0).any():
            return np.full(len(items), 0.5), heard[items]
        return state.probe.fit(said, 2).pool[:, 1], heard[items]

    def _allowed(self, state: State, c: int, places: np.ndarray) -> np.ndarray:
        """Candidates whose attributes are those of the exemplar, where there are any."""
        allowed = np.ones(len(places), dtype=bool)
        here = state.probe.place[state.exemplar(c)]
        if here < 0:
            return allowed
        for name in self.attributes:
            has, _ = self._attribute(state, name)
            allowed &= (has[places] >= 0.5) == (has[here] >= 0.5)
        return allowed if allowed.any() else np.ones(len(places), dtype=bool)
