"""What thinks behind the desk: reads facts, keeps beliefs and classifier, proposes questions ahead.

One thread does all of it. Those who ask and answer never wait for it, unless there is nothing to
hand out: they read the last :class:`Snapshot`, and take questions from a pool.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from likewise.annotate import desk_proposals as proposals
from likewise.annotate.desk_estimates import estimated_accuracy, questions_left
from likewise.annotate.desk_proposals import Proposal
from likewise.annotate.desk_snapshot import Snapshot, frozen
from likewise.annotate.facts import Fact, shown
from likewise.annotate.facts_effective import Reading, Said
from likewise.annotate.store import Store
from likewise.data.keys import Keyed
from likewise.oracles.answers import Answer
from likewise.oracles.beliefs import Beliefs
from likewise.oracles.probe import Probe
from likewise.oracles.questions import Pair
from likewise.oracles.samplers import Sampler, State

AHEAD = 4
"""Questions of the sampler that are ready, of every kind that is in use."""

RESERVE = 256
"""Plain questions that are ready, for when the sampler does not keep up."""

SMALL = 5000
"""Items up to which the sampler always keeps up, and to ask at random is a waste."""

COLD = 5.0
"""Seconds that the first question waits for the index; after that, plain ones are asked."""

LOOK = 1.0
"""Seconds after which facts of other processes are looked for."""

IN_USE = 600.0
"""Seconds for which a kind of question that was asked for is kept ready."""

MOST = 0.9
"""The share of the classifier's pool that is placed when another pool is drawn."""

SWITCH = 0.0005
"""Seconds between two threads of the interpreter."""

log = logging.getLogger("likewise.annotate")


@dataclass
class Shelf:
    """What is ready of one kind of question."""

    best: deque[Proposal] = field(default_factory=deque)
    plain: deque[Proposal] = field(default_factory=deque)
    asked_for: float = -IN_USE
    proposed_at: int = -1  # the best ones know the facts up to this one
    plain_at: int = -1
    dry_at: int = -1  # no more plain ones could be made in this turn
    renewed: float = -1e9  # when the plain ones were made, and what that cost
    cost: float = 0.0
    empty_at: int = -1  # nothing could be proposed in this turn


class Mind:
    """See the module.

    Args:
        items: the keys.
        X: (n, d) rows.
        store: of the facts.
        sampler: what proposes questions.
        beliefs: makes empty beliefs.
        grid: tiles of a question.
        target: the accuracy at which enough is known.
        seed: of what is random.
        busy: the items that somebody has before them now.
        build: makes the classifier's index.
    """

    def __init__(
        self,
        items: Keyed,
        X: NDArray[np.floating],
        store: Store,
        sampler: Sampler,
        beliefs: Callable[[], Beliefs],
        *,
        grid: int,
        target: float,
        seed: int,
        busy: Callable[[], set[int]],
        build: Callable[[NDArray[np.floating]], Probe],
    ) -> None:
        self.items, self.X, self.store, self.sampler = items, X, store, sampler
        self.grid, self.target = grid, target
        self.seen: dict[str, set[int]] = {}
        """The items that everybody was asked about."""
        self.reading = Reading()
        self.changed = threading.Condition()
        self.shelves = {kind: Shelf() for kind in ("grid", "pair", "outliers")}
        self.turn = 0
        self._empty, self._busy, self._build = beliefs, busy, build
        self._beliefs = beliefs()
        self._added = 0
        self._questions = 0
        self._rng = np.random.default_rng([seed, 1])
        self._probe: Probe | None = None
        self._builder = ThreadPoolExecutor(1, thread_name_prefix="likewise-index")
        self._building: Future[tuple[NDArray[np.floating], Probe]] | None = None
        self._state: dict[str, State] = {}
        self._stopped = False
        self.snapshot = Snapshot(items, frozen(self._beliefs))
        self._rebuild(X)
        self._read(store.facts())
        self.snapshot = self._look()
        self._thread = threading.Thread(target=self._run, name="likewise-mind", daemon=True)

    def start(self) -> None:
        """Begin to think."""
        # A thread that waits for the interpreter gets it after this time. With the usual 5 ms, an
        # answer that calls the database ten times would wait for up to 50 ms.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH))
        self._thread.start()

    def close(self) -> None:
        """Stop, soon."""
        with self.changed:
            self._stopped = True
            self.changed.notify_all()
        self._thread.join(timeout=60)
        self._builder.shutdown(wait=False, cancel_futures=True)

    def nudge(self) -> None:
        """Something changed: facts came, or items became free."""
        with self.changed:
            self.turn += 1
            self.changed.notify_all()

    def refit(self, X: NDArray[np.floating]) -> None:
        """Other rows for the same items: used as soon as their index is there."""
        self._rebuild(X)
        self.nudge()

    def pool_items(self) -> list[int]:
        """The items that the classifier's index holds; it waits for the first index."""
        with self.changed:
            while self._probe is None and not self._stopped:
                self.changed.wait(0.1)
            return [] if self._probe is None else self._probe.items.tolist()

    # --- handing out --------------------------------------------------------------------------

    def take(self, kind: str, patience: float) -> Iterator[Proposal]:
        """Questions that are ready, the best first, waiting for them where there are none.

        It ends where there is nothing to ask, or when patience does."""
        shelf = self.shelves[kind]
        until = time.monotonic() + patience
        while True:
            with self.changed:
                shelf.asked_for = time.monotonic()
                while not (shelf.best or shelf.plain):
                    left = until - time.monotonic()
                    if shelf.empty_at >= self.turn or self._stopped or left <= 0:
                        return
                    self.changed.notify_all()
                    self.changed.wait(min(left, 1.0))
                found = (shelf.best or shelf.plain).popleft()
                if len(shelf.best) + len(shelf.plain) < AHEAD:
                    self.changed.notify_all()
            yield found

    def spare(self, kind: str, count: int = 3) -> list[Proposal]:
        """A few plain questions that are ready, against exemplars of known classes."""
        labels = self.snapshot.labels
        found: list[Proposal] = []
        with self.changed:
            plain = self.shelves[kind].plain
            for _ in range(len(plain)):
                question = plain[0].question
                front = question.items[1 if isinstance(question, Pair) else 0]
                if len(found) < count and labels[front] >= 0:
                    found.append(plain.popleft())
                else:
                    plain.rotate(-1)
        return found

    # --- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        self._wait_for_index(COLD)
        while not self._stopped:
            started = time.monotonic()
            try:
                turn = self.turn
                self._think(turn)
            except Exception:  # a thought that fails must not end all thinking
                log.exception("the next questions could not be worked out; trying again")
                self._state.clear()
                time.sleep(0.5)
            # Twice as much rest as work: the processor is for those who wait for an answer.
            rest = min(2 * (time.monotonic() - started), 2.0)
            with self.changed:
                self.changed.notify_all()
                if not self._stopped and self._content(turn):
                    self.changed.wait(LOOK)
            if rest > 0.1 and not self._hungry():
                self._pause(rest)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopped and not self._hungry() and time.monotonic() < until:
            time.sleep(0.02)

    def _content(self, turn: int) -> bool:
        return turn == self.turn and not any(self._wants(shelf) for shelf in self.shelves.values())

    def _hungry(self) -> bool:
        now = time.monotonic()
        return any(
            now - shelf.asked_for < IN_USE and not shelf.best and not shelf.plain
            for shelf in self.shelves.values()
        )

    def _wants(self, shelf: Shelf) -> bool:
        if time.monotonic() - shelf.asked_for > IN_USE or shelf.empty_at >= self.turn:
            return False
        return len(shelf.best) < AHEAD

    def _think(self, turn: int) -> None:
        if self.store.last() > self.reading.sequence:
            self._read(self.store.facts(after=self.reading.sequence))
        swapped = self._take_index()
        if swapped or self.snapshot.sequence != self.reading.sequence:
            self._state.clear()
            self.snapshot = self._look()
            self._renew()
        for kind, shelf in self.shelves.items():
            if self._stopped:
                return
            if swapped:  # what is ready knows the old rows
                with self.changed:
                    shelf.best.clear()
                    shelf.plain_at = -1
            if self._wants(shelf):
                self._fill(kind, shelf, turn)

    # --- facts --------------------------------------------------------------------------------

    def _read(self, facts: list[tuple[int, Fact]]) -> None:
        if not facts:
            return
        for _, fact in facts:
            if fact.kind == "answer":
                self._questions += 1
                seen = self.seen.setdefault(fact.who, set())
                seen.update(
                    place
                    for key in shown(fact.body["question"])[1]
                    if (place := self._place(key)) is not None
                )
        if not self.reading.add(facts):
            self._beliefs = self._empty()
            self._added = 0
        new = self.reading.answers[self._added :]
        self._added = len(self.reading.answers)
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
        beliefs = frozen(self._beliefs)
        names = {
            place: name
            for key, name in self.reading.names.items()
            if (place := self._place(key)) is not None
        }
        exemplars: list[int] = []
        accuracy, left = None, None
        if self._probe is not None:
            state = self._state_of("grid")
            exemplars = [state.exemplar(c) for c in range(state.n_classes)]
            accuracy = estimated_accuracy(state)
            left = questions_left(state, accuracy, self.target, self._questions, self.grid)
        return Snapshot(
            self.items,
            beliefs,
            names,
            exemplars,
            accuracy,
            left,
            self.reading.sequence,
            self._questions,
        )

    def _state_of(self, kind: str) -> State:
        assert self._probe is not None
        size = 1 if kind == "pair" else self.grid
        name = "pair" if size == 1 else "grid"
        if name not in self._state:
            self._state[name] = State(
                self.X, self._beliefs, self._rng, size, self._probe, self._questions
            )
        return self._state[name]

    # --- questions ----------------------------------------------------------------------------

    def _fill(self, kind: str, shelf: Shelf, turn: int) -> None:
        with self.changed:
            # What was proposed before the last answer is proposed again, if it is still worth it.
            stale = len(shelf.best) and shelf.proposed_at != self.reading.sequence
            if stale:
                shelf.best.clear()
            shelf.proposed_at = self.reading.sequence
            busy = {item for ready in shelf.best for item in ready.holds}
        busy |= self._busy()
        if self._plain_wanted(shelf):
            # They may overlap with the best: what is taken by then is left out when a question is
            # handed out.
            started, shelf.dry_at = time.monotonic(), -1
            fresh = deque(islice(self._plain(kind, self._busy()), RESERVE))
            with self.changed:
                shelf.plain, shelf.plain_at = fresh, self.reading.sequence
                self.changed.notify_all()
            if len(fresh) < RESERVE // 4:
                shelf.dry_at = turn
            shelf.renewed = time.monotonic()
            shelf.cost = shelf.renewed - started
        if self._probe is not None and kind != "outliers":
            state = self._state_of(kind)
            while len(shelf.best) < AHEAD and not self._stopped:
                found = proposals.best(self.sampler, state, busy)
                if found is None:
                    break
                busy |= found.holds
                self._offer(shelf.best, found)
                if turn != self.turn:
                    break  # somebody answered: better ones can be had
        if not shelf.best and not shelf.plain and self._probe is not None:
            shelf.empty_at = turn  # without the index, nothing is certain: wait for it

    def _plain_wanted(self, shelf: Shelf) -> bool:
        """Where few are left; or where they know less than is known by now, but so seldom that it
        takes a twentieth of the time."""
        if shelf.plain_at < 0 or (len(shelf.plain) < RESERVE // 4 and shelf.dry_at != self.turn):
            return True
        age = time.monotonic() - shelf.renewed
        return shelf.plain_at != self.reading.sequence and age > 20 * shelf.cost

    def _offer(self, shelf: deque[Proposal], ready: Proposal) -> None:
        with self.changed:
            shelf.append(ready)
            self.changed.notify_all()

    def _plain(self, kind: str, busy: set[int]) -> Iterator[Proposal]:
        size = 1 if kind == "pair" else self.grid
        used: set[int] = set(busy)

        def unused(some: Iterator[Proposal]) -> Iterator[Proposal]:
            for ready in some:
                if not used & ready.holds and ready.holds:
                    used.update(ready.holds)
                    yield ready

        if self._probe is not None and kind == "outliers":
            state = self._state_of(kind)
            yield from unused(proposals.outliers(state, self.grid, used, self._rng))
        elif self._probe is not None and self.snapshot.n_classes > 1:
            yield from unused(proposals.plain(self._state_of(kind), used, self._rng))
        elif kind != "outliers" and (self._probe is None or len(self.X) > SMALL):
            for _ in range(5):
                yield from unused(
                    proposals.from_nothing(self.X, self.snapshot, size, used, self._rng)
                )

    # --- the index ----------------------------------------------------------------------------

    def _rebuild(self, X: NDArray[np.floating]) -> None:
        self._submit(X, lambda: self._build(X))

    def _renew(self) -> None:
        """Another pool, once most of this one is placed; people go on with the old meanwhile."""
        probe, labels = self._probe, self.snapshot.labels
        if probe is None or self._building is not None or len(probe.items) == len(labels):
            return
        if np.mean(labels[probe.items] >= 0) > MOST and (labels < 0).any():
            self._submit(self.X, lambda: probe.renewed(labels))

    def _submit(self, X: NDArray[np.floating], make: Callable[[], Probe]) -> None:
        def build() -> tuple[NDArray[np.floating], Probe]:
            probe = make()
            for smoothness, _ in probe.ways:
                probe.kernel(smoothness)
            _ = probe.field
            return X, probe

        self._building = self._builder.submit(build)
        self._building.add_done_callback(lambda _: self.nudge())

    def _wait_for_index(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._building is not None and not self._building.done() and not self._stopped:
            if time.monotonic() > until:
                return
            time.sleep(0.005)

    def _take_index(self) -> bool:
        if self._building is None or not self._building.done():
            return False
        building, self._building = self._building, None
        self.X, self._probe = building.result()
        return True
