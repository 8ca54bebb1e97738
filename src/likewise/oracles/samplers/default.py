"""Our own: the question of the highest expected information per second of a person's time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.beliefs import NoisyBeliefs
from likewise.oracles.labelers import AnswerTime
from likewise.oracles.propagation import diverse
from likewise.oracles.questions import Grid, Pair, Question
from likewise.oracles.samplers.base import (
    Sampler,
    against_class,
    settle_suspect,
    unknown_pairs,
)
from likewise.oracles.samplers.classic import entropy
from likewise.oracles.samplers.state import Index, State

HYPOTHESES = 3
"""Items that are tried as exemplars of a class that is not known yet."""


@dataclass(frozen=True)
class Proposal:
    """A grid before its size is settled.

    Attributes:
        exemplar: the exemplar.
        fixed: candidates that are shown in any case.
        taken: the others, the best first.
        worth: (len(taken) + 1,) the worth with 0, 1, ... of the others.
        hits: (len(taken) + 1,) the expected clicks.
    """

    exemplar: int
    fixed: Index
    taken: Index
    worth: NDArray[np.floating]
    hits: NDArray[np.floating]

    def best(self, time: AnswerTime, *, fill: bool) -> tuple[float, Index]:
        """The worth by expected second, and the candidates that give it (or all of them)."""
        shown = len(self.fixed) + np.arange(len(self.worth))
        seconds = time.base + time.tile * (1 + shown) + time.click * self.hits
        rate = np.where(shown > 0, self.worth / np.maximum(seconds, 1e-9), -np.inf)
        k = len(self.taken) if fill else int(np.argmax(rate))
        return float(rate[k]), np.concatenate([self.fixed, self.taken[:k]])


class Default(Sampler):
    """Ask where an answer says most about most items, for the time that it takes.

    From zero knowledge: classes are found while asking. Over the neighbour graph of the items, two
    things are known in closed form (:mod:`likewise.oracles.propagation`):

    * the probability p_ic that item i is of class c, with one more column for a class that is not
      known yet: likely where the placed items explain little, and more so after every "no";
    * the reach of an item, r_i = sum_j |C_ij| / sqrt(C_ii), where C is the covariance of the items
      given those that are placed (Ma, Garnett and Schneider 2013, "Sigma-optimality"): how much of
      the others its class would explain.

    The worth of asking whether i is like an exemplar of c is H(p_ic) r_i with the binary entropy H:
    largest at about half hits. A grid takes the largest greedily, each discounted by what those
    before explain, so that candidates are uncertain *and* diverse. Exemplars are the central items
    of the known classes, and a few items that may be the first of a new one; a grid of the latter
    shows the exemplars of the classes that it might yet belong to. What has the largest worth per
    expected second is asked, and a grid ends with the candidate from which on the next would take
    more time than it is worth. Pairs follow one item until it is placed, the likeliest class first.
    Where people err (:class:`NoisyBeliefs`), the beliefs say which answers would tell most, and
    grids are put together from these.

    Args:
        goal: "classifier" asks for what helps to predict all; "partition" is to place every item
            with the fewest answers: once little is left to discover, it takes the surest item
            first, against its likeliest class.
        fill: show as many candidates as a grid may hold, whether or not they are worth the time:
            the fewest questions instead of the fewest seconds.
        discovery: what the first item of a new class is worth, in items of a known one.
        settled: little is left to discover when the placed items leave at most this share of the
            variance open in 19 of 20 items, or when a fifth of the items is placed.
    """

    name = "default"

    def __init__(
        self,
        goal: Literal["classifier", "partition"] = "classifier",
        *,
        fill: bool = False,
        discovery: float = 10.0,
        settled: float = 0.9,
    ) -> None:
        if goal not in ("classifier", "partition"):
            raise ValueError(f"goal is {goal!r}: give 'classifier' or 'partition'")
        if discovery < 0 or settled < 0:
            raise ValueError(
                f"discovery is {discovery} and settled is {settled}: both are 0 or more"
            )
        self.goal, self.fill = goal, fill
        self.discovery, self.settled = discovery, settled

    def propose(self, state: State) -> Question | None:
        """The question that is worth most a second."""
        if isinstance(state.beliefs, NoisyBeliefs):
            return self._again(state, state.beliefs)
        if not state.open.any():
            return unknown_pairs(state)
        if self.goal == "partition" and self._settled(state):
            return self._surest(state)
        if state.grid == 1 and state.n_classes:
            return self._pair(state)
        found = [
            (proposal, *proposal.best(state.time, fill=self.fill))
            for proposal in self._proposals(state)
        ]
        for proposal, _, shown in sorted(found, key=lambda rated: -rated[1]):
            question = self._put(state, proposal, shown)
            if question is not None:
                return question
        return unknown_pairs(state)

    def _proposals(self, state: State) -> Iterator[Proposal]:
        """What may be asked."""
        yield from self._known_classes(state)
        yield from self._new_classes(state)

    def _put(self, state: State, proposal: Proposal, shown: Index) -> Question | None:
        """A proposal as a question, without what is known already."""
        return state.ask(proposal.exemplar, shown)

    def _settled(self, state: State) -> bool:
        if state.n_classes < 2:
            return False
        if float(np.mean(state.labels[state.probe.items] >= 0)) > 0.2:
            return True
        return float(np.quantile(state.unexplained, 0.95)) <= self.settled

    # --- people who err -----------------------------------------------------------------------

    def _again(self, state: State, beliefs: NoisyBeliefs) -> Question | None:
        """What the beliefs want to hear (again), with the exemplar that brings most bits at once.

        Which answers to doubt is theirs to say: the same pair is not asked twice."""
        wanted: dict[int, list[tuple[float, int]]] = {}
        for wish in beliefs.reasks(4 * state.grid):
            wanted.setdefault(wish.exemplar, []).append((wish.gain, wish.item))
        if not wanted:
            return None
        exemplar = max(wanted, key=lambda e: sum(gain for gain, _ in wanted[e][: state.grid]))
        items = [item for _, item in wanted[exemplar][: state.grid]]
        return Pair(items[0], exemplar) if state.grid == 1 else Grid(exemplar, tuple(items))

    # --- pairs --------------------------------------------------------------------------------

    def _pair(self, state: State) -> Question | None:
        place = _unfinished(state)
        if place is None:
            worth = entropy(state.with_new) * reach(state) / state.expected_answers()
            place = int(np.argmax(np.where(state.open, worth, -np.inf)))
        possible = np.where(state.closed[place], -1.0, state.with_new[place, :-1])
        item = state.probe.items[[place]]
        exemplar = state.exemplar(int(possible.argmax()), item)
        return state.ask(exemplar, item) or unknown_pairs(state)

    def _surest(self, state: State) -> Question | None:
        """The item that surely belongs to a class, against that class."""
        if state.grid > 1 and (question := settle_suspect(state)):
            return question
        possible = np.where(state.closed, -1.0, state.pool)
        places = np.flatnonzero(state.open)
        place = _unfinished(state) if state.grid == 1 else None
        if place is not None:
            places = np.array([place])
        places = places[np.argsort(-possible[places].max(axis=1), kind="stable")]
        c = int(possible[places[0]].argmax())
        # Nobody who is likelier of another class: a "no" here is a wasted answer.
        places = places[possible[places].argmax(axis=1) == c]
        return against_class(state, c, places, possible)

    # --- grids --------------------------------------------------------------------------------

    def _known_classes(self, state: State) -> Iterator[Proposal]:
        far = reach(state)
        for c in range(state.n_classes):
            alike = state.with_new[:, c]
            gains = np.where(state.open & ~state.closed[:, c], binary_entropy(alike) * far, 0.0)
            taken = diverse(gains, state.covariance, state.grid)
            if len(taken):
                items = state.probe.items[taken]
                yield Proposal(
                    state.exemplar(c, items),
                    items[:0],
                    items,
                    worth_of(gains, taken, state),
                    sums(alike[taken]),
                )

    def _new_classes(self, state: State) -> Iterator[Proposal]:
        far, covariance, items = reach(state), state.covariance, state.probe.items
        new = state.with_new[:, -1]
        likely = np.argsort(-np.where(state.open, new * far, -np.inf), kind="stable")
        for place in likely[:HYPOTHESES]:
            if not state.open[place]:
                continue
            ordered = np.argsort(-state.with_new[place, :-1], kind="stable")
            rivals = [int(c) for c in ordered if not state.closed[place, c]][: state.grid]
            near = np.abs(covariance[:, place]) / np.sqrt(
                np.maximum(np.diagonal(covariance) * covariance[place, place], 1e-12)
            )
            alike = new[place] * new * np.clip(near, 0.0, 1.0)
            alike += state.with_new[:, :-1] @ state.with_new[place, :-1]
            gains = np.where(state.open, binary_entropy(alike) * far, 0.0)
            gains[place] = 0.0
            taken = diverse(gains, covariance, state.grid - len(rivals))
            own = entropy(state.with_new[[place]])[0] + self.discovery * new[place]
            exemplars = np.array([state.exemplar(c) for c in rivals], dtype=np.int64)
            if len(exemplars) + len(taken):
                yield Proposal(
                    int(items[place]),
                    exemplars,
                    items[taken],
                    own * float(far[place]) + worth_of(gains, taken, state),
                    sums(alike[taken]),
                )


def reach(state: State) -> NDArray[np.floating]:
    """(pool,) sum_j |C_ij| / sqrt(C_ii): how much of the others an item would explain."""
    covariance = state.covariance
    ones = np.ones(len(covariance), dtype=np.float32)
    return (np.abs(covariance) @ ones) / np.sqrt(np.maximum(np.diagonal(covariance), 1e-6))


def _unfinished(state: State) -> int | None:
    """The place of an item that was asked about and is not placed yet, to go on with.

    That is the item of the last answer, or one for which a single class is left: the next answer
    places it, as one of that class or as the first of a new one."""
    facts = state.beliefs.facts
    if not len(facts):
        return None
    for item in (int(facts.a[-1]), int(facts.b[-1])):
        place = int(state.probe.place[item])
        if place >= 0 and state.open[place]:
            return place
    heard = state.groups[state.probe.items] >= 0
    almost = np.flatnonzero(state.open & heard & ((~state.closed).sum(axis=1) == 1))
    return int(almost[0]) if len(almost) else None


def binary_entropy(p: NDArray[np.floating]) -> NDArray[np.floating]:
    """Of a yes that has the probability p, in bits."""
    p = np.clip(np.asarray(p, dtype=np.float64), 1e-12, 1.0 - 1e-12)
    return -(p * np.log2(p) + (1.0 - p) * np.log2(1.0 - p))


def worth_of(gains: NDArray[np.floating], taken: Index, state: State) -> NDArray[np.floating]:
    """The gains of 0, 1, ... candidates, each discounted by what those before explain."""
    left = state.covariance[np.ix_(taken, taken)].astype(np.float64)
    before = np.maximum(np.diagonal(left), 1e-9).copy()
    worth = []
    for k, place in enumerate(taken):
        worth.append(float(gains[place] * np.clip(left[k, k] / before[k], 0.0, 1.0)))
        column = left[:, k].copy()
        left -= np.outer(column, column) / (column[k] + 1e-6)
    return sums(np.array(worth))


def sums(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Of the first 0, 1, ... values."""
    return np.concatenate([[0.0], np.cumsum(values)])
