"""What every sampler is: a rule that proposes the next question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.questions import Question
from likewise.oracles.samplers.state import Index, State


class Sampler(ABC):
    """Proposes questions: never what is known or implied, and None once nothing is left to ask.

    A sampler keeps nothing between questions: what it proposes is a function of the state, so that
    asking can stop and go on from the answers alone.
    """

    name: ClassVar[str]
    asks: ClassVar[bool] = True
    """Whether it ever asks a person."""

    @abstractmethod
    def propose(self, state: State) -> Question | None:
        """The next question, or None."""


class ScoringSampler(Sampler):
    """Asks about the items of the highest score, each against its most probable class.

    A grid has one exemplar: that of the class of the first item. Its other candidates are the
    items of the highest scores with the same most probable class, then the next.
    """

    def propose(self, state: State) -> Question | None:
        """The question with the item of the highest score."""
        if not state.n_classes:
            return unknown_pairs(state)
        if question := settle_suspect(state):
            return question
        places = np.flatnonzero(state.open)
        if not len(places):
            return unknown_pairs(state)
        # Ties are broken at random, or the order of the items would decide.
        scores = self.scores(state)[places]
        places = places[np.lexsort((state.rng.random(len(places)), -scores))]
        possible = np.where(state.closed, -1.0, state.pool)
        c = int(possible[places[0]].argmax())
        return against_class(state, c, places, possible)

    @abstractmethod
    def scores(self, state: State) -> NDArray[np.floating]:
        """(pool,) the higher, the sooner an item is asked about."""


def against_class(
    state: State, c: int, places: Index, possible: NDArray[np.floating]
) -> Question | None:
    """Ask about places, in order of preference, against class c: first those likeliest of it."""
    likeliest = possible[places].argmax(axis=1) == c
    may = ~state.closed[places, c]
    ordered = np.concatenate([places[may & likeliest], places[may & ~likeliest]])
    items = state.probe.items[ordered]
    return state.ask(state.exemplar(c, items[: state.grid]), items)


def settle_suspect(state: State) -> Question | None:
    """Is it the first of a new class? Ask it against the classes that it might yet belong to.

    A suspect is an item that was refused by a class and is likelier of none that is known. It is
    the exemplar; with the classes' exemplars, other suspects are shown, which may be its like.
    """
    if not state.n_classes:
        return None
    items = state.probe.items
    heard = state.groups[items] >= 0
    suspects = np.flatnonzero(state.open & heard & (state.with_new[:, -1] > 0.5))
    if not len(suspects):
        return None
    left = (~state.closed[suspects]).sum(axis=1)
    suspects = suspects[np.argsort(left, kind="stable")]
    place = suspects[0]
    ordered = np.argsort(-state.with_new[place, :-1], kind="stable")
    rivals = [state.exemplar(int(c)) for c in ordered if not state.closed[place, c]]
    if state.grid == 1:
        return state.ask(rivals[0], items[[place]])
    return state.ask(int(items[place]), [*rivals, *items[suspects[1:]].tolist()])


def unknown_pairs(state: State, tries: int = 50) -> Question | None:
    """Random items of which nobody knows whether they are alike; None where all is known."""
    if (state.labels >= 0).all():
        return None
    wanted = min(4 * state.grid + 8, state.n)
    for _ in range(tries):
        drawn = state.rng.choice(state.n, min(wanted + 1, state.n), replace=False)
        question = state.ask(int(drawn[0]), drawn[1:])
        if question is not None:
            return question
    # Hardly anything is open: look at one item of every group.
    stands = np.where(state.groups >= 0, state.groups, state.n + np.arange(state.n))
    first = np.unique(stands, return_index=True)[1]
    for item in state.rng.permutation(first):
        question = state.ask(int(item), state.rng.permutation(first))
        if question is not None:
            return question
    return None
