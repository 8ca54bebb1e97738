"""Questions that are ready: a shelf for every kind, filled by the mind and emptied by people."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from likewise.annotate.facts import QUESTIONS
from likewise.annotate.mind.proposals import Proposal
from likewise.annotate.mind.snapshot import Numbers
from likewise.annotate.mind.thinking import AHEAD
from likewise.annotate.mind.thoughts import (
    Best,
    Nothing,
    Plain,
    Ready,
    Stale,
    Swapped,
    Thought,
)
from likewise.oracles.questions import Pair

IN_USE = 600.0
"""Seconds for which a kind of question that was asked for is kept ready."""


@dataclass
class Shelf:
    """What is ready of one kind of question."""

    best: deque[Proposal] = field(default_factory=deque)
    plain: deque[Proposal] = field(default_factory=deque)
    asked_for: float = -1e9
    empty_at: int = -1  # nothing could be proposed in this turn


class Shelves:
    """The shelves, and a turn that grows whenever something happens at the desk.

    changed: notified about everything; hold it to look at more than one thing.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.turn = 0
        self._shelves = {kind: Shelf() for kind in QUESTIONS}

    def nudge(self) -> None:
        """Something changed: facts came, or items became free."""
        with self.changed:
            self.turn += 1
            self.changed.notify_all()

    def put(self, thought: Thought) -> None:
        """Place what the mind came up with."""
        with self.changed:
            if isinstance(thought, Best):
                self._shelves[thought.kind].best.append(thought.proposal)
            elif isinstance(thought, Plain):
                self._shelves[thought.kind].plain = deque(thought.proposals)
            elif isinstance(thought, Stale):
                self._shelves[thought.kind].best.clear()
            elif isinstance(thought, Nothing):
                self._shelves[thought.kind].empty_at = thought.turn
            elif isinstance(thought, Swapped):
                for shelf in self._shelves.values():
                    shelf.best.clear()
                self.turn += 1  # where there was nothing to ask, there may be something now
            self.changed.notify_all()

    def want(self, kind: str) -> None:
        """Somebody asks for questions of a kind: keep them ready for a while."""
        with self.changed:
            self._shelves[kind].asked_for = time.monotonic()

    def pop(self, kind: str) -> Proposal | None:
        """The best that is ready, or None."""
        with self.changed:
            shelf = self._shelves[kind]
            if not (shelf.best or shelf.plain):
                return None
            found = (shelf.best or shelf.plain).popleft()
            if len(shelf.best) + len(shelf.plain) < AHEAD:
                self.changed.notify_all()
            return found

    def is_over(self, kind: str) -> bool:
        """Whether there is nothing to ask, as things stand."""
        return self._shelves[kind].empty_at >= self.turn

    def spare(self, kind: str, labels: Numbers, count: int = 3) -> list[Proposal]:
        """A few plain questions that are ready, against exemplars of known classes."""
        found: list[Proposal] = []
        with self.changed:
            plain = self._shelves[kind].plain
            for _ in range(len(plain)):
                question = plain[0].question
                front = question.items[1 if isinstance(question, Pair) else 0]
                if len(found) < count and labels[front] >= 0:
                    found.append(plain.popleft())
                else:
                    plain.rotate(-1)
        return found

    # --- what is missing ----------------------------------------------------------------------

    def wanted(self) -> dict[str, Ready]:
        """The kinds that are in use and could do with more, with what is ready of them."""
        now = time.monotonic()
        with self.changed:
            return {
                kind: Ready(
                    len(shelf.best),
                    len(shelf.plain),
                    frozenset(item for ready in shelf.best for item in ready.holds),
                )
                for kind, shelf in self._shelves.items()
                if now - shelf.asked_for < IN_USE
                and shelf.empty_at < self.turn
                and len(shelf.best) < AHEAD
            }

    def hungry(self) -> bool:
        """Whether somebody who asks now would have to wait."""
        now = time.monotonic()
        return any(
            now - shelf.asked_for < IN_USE
            and not (shelf.best or shelf.plain)
            and shelf.empty_at < self.turn
            for shelf in self._shelves.values()
        )
