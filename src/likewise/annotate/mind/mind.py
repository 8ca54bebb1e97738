"""Where thinking happens: in a process of its own, in a thread, or in the call of who asks.

Those who ask and answer never wait for it, unless there is nothing to hand out: they read the last
:class:`Snapshot`, and take questions from the shelves.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from likewise.annotate.mind.manner import Manner, Rows
from likewise.annotate.mind.process import Elsewhere
from likewise.annotate.mind.proposals import Proposal
from likewise.annotate.mind.shelves import Shelves
from likewise.annotate.mind.snapshot import Snapshot, snapshot_of
from likewise.annotate.mind.thinking import Thinker
from likewise.annotate.mind.thoughts import Known, Order, Swapped, Thought
from likewise.annotate.store import Store
from likewise.data.keys import Keyed

Place = Literal["process", "thread", "call"]

LOOK = 1.0
"""Seconds after which facts of other processes are looked for."""

DEATHS = 3
"""Of a process for thinking, before it has said a word, after which there will be no other."""

FIRST = 60.0
"""Seconds to wait for what is known, once at the start."""

REST = {"process": 1.0, "thread": 2.0}
"""Rest, as a multiple of work: the processor is for those who wait for an answer."""

SWITCH = 0.0005
"""Seconds between two threads of the interpreter."""

log = logging.getLogger("likewise.annotate")


class Thinking(Protocol):
    """What :class:`Thinker` and :class:`Elsewhere` have in common."""

    def think(self, order: Order, enough: Callable[[], bool]) -> Iterator[Thought]:
        """What is new, and what could be asked."""

    def refit(self, X: Rows) -> None:
        """Other rows."""

    def close(self) -> None:
        """Stop."""


class Mind:
    """Keeps the shelves full and the snapshot new.

    Args:
        items: the keys.
        X: (n, d) rows.
        store: of the facts.
        manner: how to think.
        place: where. In the "call", everything that was said before a call is known in it, and
            the same calls give the same questions.
        busy: the items that are not to be asked about now.
    """

    def __init__(
        self,
        items: Keyed,
        X: Rows,
        store: Store,
        manner: Manner,
        place: Place,
        busy: Callable[[], set[int]],
    ) -> None:
        self.place = place
        self.X = X
        """The rows that are in use."""
        self.pool: list[int] = []
        """The items that the classifier's index holds; none before there is one."""
        self.shelves = Shelves()
        self._store, self._busy = store, busy
        self._snapshot = snapshot_of(manner.empty(len(items)))
        self._looked = threading.Event()
        self._rows = {0: X}
        self._stopped = False
        self._known_at = (-1, -1)  # in the call: the turn and the fact up to which all is known
        self._lock = threading.RLock()  # one thought at a time
        self._spoke, self._deaths = False, 0  # a process that never says a word is given up
        self._begin = lambda: Thinker(items, self.X, store, manner)
        self._thinker: Thinking
        if place == "process":
            self._thinker = Elsewhere(items, X, store, manner)
        else:
            self._thinker = self._begin()
        self._thread = threading.Thread(target=self._run, name="likewise-mind", daemon=True)
        if place == "thread":
            # A thread that waits for the interpreter gets it after this time. With the usual 5 ms,
            # an answer that calls the database ten times would wait for up to 50 ms.
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH))
        if place != "call":
            self._thread.start()

    def close(self) -> None:
        """Stop, soon."""
        with self.shelves.changed:
            self._stopped = True
            self.shelves.changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=60)
        self._thinker.close()

    @property
    def snapshot(self) -> Snapshot:
        """What is known."""
        if self.place == "call":
            self._catch_up()
        elif not self._looked.is_set():
            self._looked.wait(FIRST)
            self._looked.set()  # once is enough
        return self._snapshot

    def refit(self, X: Rows) -> None:
        """Other rows for the same items: used as soon as their index is there."""
        with self._lock:
            self._rows[max(self._rows) + 1] = X
            self._thinker.refit(X)
        self.shelves.nudge()

    # --- handing out --------------------------------------------------------------------------

    def take(self, kind: str, patience: float) -> Iterator[Proposal]:
        """Questions that are ready, the best first, waiting for them where there are none.

        It ends where there is nothing to ask, or when patience does."""
        shelves = self.shelves
        until = time.monotonic() + patience
        shelves.want(kind)
        while not self._stopped:
            if self.place == "call":
                self._catch_up()
            with shelves.changed:
                found = shelves.pop(kind)
                left = until - time.monotonic()
                if found is None:
                    if shelves.is_over(kind) or left <= 0:
                        return
                    shelves.changed.notify_all()
                    if self.place != "call":
                        shelves.changed.wait(min(left, 1.0))
            if found is not None:
                yield found
                if left <= 0:
                    return
            elif self.place == "call":
                self._step()

    # --- thinking -----------------------------------------------------------------------------

    def _step(self) -> bool:
        """One thought; whether anything came of it."""
        shelves = self.shelves
        with self._lock:
            turn = shelves.turn
            order = Order(turn, frozenset(self._busy()), shelves.wanted())
            fruitful = False
            for thought in self._thinker.think(
                order, lambda: self._stopped or shelves.turn != turn
            ):
                fruitful = self._spoke = True
                if isinstance(thought, Known):
                    self._snapshot = thought.snapshot.derive()
                    self._looked.set()
                elif isinstance(thought, Swapped):
                    self.X, self.pool = self._rows[thought.rows], thought.pool
                    for old in [number for number in self._rows if number < thought.rows]:
                        del self._rows[old]
                shelves.put(thought)
            return fruitful

    def _catch_up(self) -> None:
        with self._lock:
            while self._known_at != (now := (self.shelves.turn, self._store.last())):
                self._known_at = now
                self._step()

    def _run(self) -> None:
        shelves, rest = self.shelves, REST.get(self.place, 0.0)
        while not self._stopped:
            started, turn = time.monotonic(), shelves.turn
            try:
                fruitful = self._step()
            except Exception:  # a thought that fails must not end all thinking
                if self._stopped:
                    return
                log.exception("the next questions could not be worked out; trying again")
                self._fall_back()
                time.sleep(0.5)
                continue
            pause = min(rest * (time.monotonic() - started), 2.0)
            with shelves.changed:
                if not self._stopped and not fruitful and turn == shelves.turn:
                    shelves.changed.wait(LOOK)
            if pause > 0.1:
                self._pause(pause)

    def _fall_back(self) -> None:
        """Think in this process, where one of its own does not live to say a word."""
        if self.place != "process" or self._spoke:
            return
        self._deaths += 1
        if self._deaths == DEATHS:
            log.error("thinking in a process of its own does not work: it happens in this one now")
            with self._lock:
                self._thinker.close()
                self._thinker = self._begin()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopped and not self.shelves.hungry() and time.monotonic() < until:
            time.sleep(0.02)
