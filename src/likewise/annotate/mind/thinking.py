"""What thinks: reads facts, keeps beliefs and classifier, proposes questions.

It is plain code without locks. Where it runs, in a process of its own, in a thread or in the call
of whoever asks, is decided in :mod:`likewise.annotate.mind.mind`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from likewise.annotate.facts import QUESTIONS, Fact, Reading, Said
from likewise.annotate.mind import proposals
from likewise.annotate.mind.building import Building
from likewise.annotate.mind.estimates import estimated_accuracy, questions_left
from likewise.annotate.mind.manner import Manner, Rows
from likewise.annotate.mind.proposals import Proposal
from likewise.annotate.mind.snapshot import Snapshot, snapshot_of
from likewise.annotate.mind.thoughts import (
    Best,
    Known,
    Nothing,
    Order,
    Plain,
    Ready,
    Stale,
    Swapped,
    Thought,
)
from likewise.annotate.store import Store
from likewise.data.keys import Keyed
from likewise.oracles.answers import Answer
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import State

AHEAD = 4
"""Questions of the sampler that are ready, of every kind that is in use."""

RESERVE = 256
"""Plain questions that are ready, for when the sampler does not keep up."""

SMALL = 5000
"""Items up to which the sampler always keeps up, and to ask at random is a waste."""

COLD = 5.0
"""Seconds that the first question waits for the index; after that, plain ones are asked."""

MOST = 0.9
"""The share of the classifier's pool that is placed when another pool is drawn."""


@dataclass
class _Made:
    """What was made of one kind of question."""

    best_at: int = -1  # the sampler's questions know the facts up to this one
    plain_at: int = -1
    dry_at: int = -1  # no more plain ones could be made in this turn
    renewed: float = -1e9  # when the plain ones were made, and what that cost
    cost: float = 0.0


class Thinker:
    """See the module.

    Args:
        items: the keys.
        X: (n, d) rows.
        store: of the facts.
        manner: how.
    """

    def __init__(self, items: Keyed, X: Rows, store: Store, manner: Manner) -> None:
        self.items, self.X, self.store, self.manner = items, X, store, manner
        self._reading = Reading()
        self._beliefs = manner.empty(len(items))
        self._added = 0
        self._questions = 0
        self._rng = np.random.default_rng([manner.seed, 1])
        self._made = {kind: _Made() for kind in QUESTIONS}
        self._state: dict[str, State] = {}
        self._snapshot: Snapshot | None = None
        self._probe: Probe | None = None
        self._rows = self._refits = 0
        self._building = Building(at_once=manner.at_once)
        self._building.begin(0, X, lambda: manner.probe(X))

    def close(self) -> None:
        """Begin nothing any more."""
        self._building.close()

    def refit(self, X: Rows) -> None:
        """Other rows for the same items: used as soon as their index is there."""
        self._refits += 1
        self._building.begin(self._refits, X, lambda: self.manner.probe(X))

    def think(self, order: Order, enough: Callable[[], bool]) -> Iterator[Thought]:
        """What is new, and what could be asked, as it comes up.

        Args:
            order: what is wanted.
            enough: whether better questions could be had by thinking anew.
        """
        try:
            yield from self._think(order, enough)
        except Exception:
            self._state.clear()
            raise

    def _think(self, order: Order, enough: Callable[[], bool]) -> Iterator[Thought]:
        if self.store.last() > self._reading.sequence:
            self._read(self.store.facts(after=self._reading.sequence))
        if self._snapshot is None:
            self._snapshot = self._look()  # what is known does not have to wait for the index
            yield Known(self._snapshot)
            self._building.wait(COLD)
        built = self._building.take()
        if built is not None:
            self._rows, self.X, self._probe = built.rows, built.X, built.probe
        assert self._snapshot is not None
        if built is not None or self._snapshot.sequence != self._reading.sequence:
            self._state.clear()
            self._snapshot = self._look()
            yield Known(self._snapshot)
            self._renew()
        if built is not None:
            for made in self._made.values():  # what is ready knows the old rows
                made.best_at = made.plain_at = -1
            yield Swapped(built.rows, built.probe.items.tolist())
        for kind, ready in order.ready.items():
            yield from self._fill(kind, ready, order, enough)

    # --- facts --------------------------------------------------------------------------------

    def _read(self, facts: list[tuple[int, Fact]]) -> None:
        self._questions += sum(fact.kind == "answer" for _, fact in facts)
        if not self._reading.add(facts):
            self._beliefs = self.manner.empty(len(self.items))
            self._added = 0
        new = self._reading.answers[self._added :]
        self._added = len(self._reading.answers)
        self._beliefs.add(self._numbered(new))

    def _place(self, key: str) -> int | None:
        try:
            return int(self.items.index_of(key))
        except ValueError:  # answers about items that are not in this source stay in the store
            return None

    def _numbered(self, answers: list[Said]) -> list[Answer]:
        found = []
        for said in answers:
            a, b = self._place(said.a), self._place(said.b)
            if a is not None and b is not None:
                found.append(said.numbered(a, b))
        return found

    # --- what follows -------------------------------------------------------------------------

    def _look(self) -> Snapshot:
        names = {
            place: name
            for key, name in self._reading.names.items()
            if (place := self._place(key)) is not None
        }
        exemplars: list[int] = []
        accuracy, left = None, None
        if self._probe is not None:
            state, manner = self._state_of("grid"), self.manner
            exemplars = [state.exemplar(c) for c in range(state.n_classes)]
            accuracy = estimated_accuracy(state)
            left = questions_left(state, accuracy, manner.target, self._questions, manner.grid)
        return snapshot_of(
            self._beliefs,
            names=names,
            exemplars=exemplars,
            accuracy=accuracy,
            left=left,
            sequence=self._reading.sequence,
            questions=self._questions,
        )

    def _state_of(self, kind: str) -> State:
        assert self._probe is not None
        size = 1 if kind == "pair" else self.manner.grid
        name = "pair" if size == 1 else "grid"
        if name not in self._state:
            self._state[name] = State(
                self.X, self._beliefs, self._rng, size, self._probe, self._questions
            )
        return self._state[name]

    def _renew(self) -> None:
        """Another pool, once most of this one is placed and others are not; people go on with the
        old meanwhile."""
        probe = self._probe
        if probe is None or self._building.underway or len(probe.items) == len(self.items):
            return
        assert self._snapshot is not None
        labels = self._snapshot.labels
        others = (labels < 0) & (probe.place < 0)
        if np.mean(labels[probe.items] >= 0) > MOST and others.any():
            known = labels.astype(np.int64)
            self._building.begin(self._rows, self.X, lambda: probe.renewed(known))

    # --- questions ----------------------------------------------------------------------------

    def _fill(
        self, kind: str, ready: Ready, order: Order, enough: Callable[[], bool]
    ) -> Iterator[Thought]:
        made, sequence = self._made[kind], self._reading.sequence
        best, plain, busy = ready.best, ready.plain, set(order.busy)
        if best and made.best_at != sequence:
            # What was proposed before the last answer is proposed again, if it is still worth it.
            best = 0
            yield Stale(kind)
        else:
            busy |= ready.holds
        made.best_at = sequence
        if self._plain_wanted(made, plain, order.turn):
            # They may overlap with the best: what is taken by then is left out when a question is
            # handed out.
            started, made.dry_at = time.monotonic(), -1
            fresh = list(islice(self._plain(kind, set(order.busy)), RESERVE))
            plain, made.plain_at = len(fresh), sequence
            if plain < RESERVE // 4:
                made.dry_at = order.turn
            made.renewed = time.monotonic()
            made.cost = made.renewed - started
            yield Plain(kind, fresh)
        if self._probe is not None and kind != "outliers":
            state = self._state_of(kind)
            while best < AHEAD:
                found = proposals.best(self.manner.sampler, state, busy)
                if found is None:
                    break
                busy |= found.holds
                best += 1
                yield Best(kind, found)
                if enough():
                    break
        if not best and not plain and self._probe is not None and not self._building.underway:
            yield Nothing(kind, order.turn)  # without the index, nothing is certain: wait for it

    def _plain_wanted(self, made: _Made, plain: int, turn: int) -> bool:
        """Where few are left; or where they know less than is known by now, but so seldom that it
        takes a twentieth of the time."""
        if made.plain_at < 0 or (plain < RESERVE // 4 and made.dry_at != turn):
            return True
        if made.plain_at == self._reading.sequence:
            return False
        return self.manner.at_once or time.monotonic() - made.renewed > 20 * made.cost

    def _plain(self, kind: str, busy: set[int]) -> Iterator[Proposal]:
        assert self._snapshot is not None
        size = 1 if kind == "pair" else self.manner.grid
        used = busy

        def unused(some: Iterator[Proposal]) -> Iterator[Proposal]:
            for ready in some:
                if not used & ready.holds and ready.holds:
                    used.update(ready.holds)
                    yield ready

        if self._probe is not None and kind == "outliers":
            state = self._state_of(kind)
            yield from unused(proposals.outliers(state, self.manner.grid, used, self._rng))
        elif self._probe is not None and self._snapshot.n_classes > 1:
            yield from unused(proposals.plain(self._state_of(kind), used, self._rng))
        elif kind != "outliers" and (self._probe is None or len(self.X) > SMALL):
            for _ in range(5):
                yield from unused(
                    proposals.from_nothing(self.X, self._snapshot, size, used, self._rng)
                )
