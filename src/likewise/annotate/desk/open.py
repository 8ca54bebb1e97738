"""Who has what before them: open questions, and what they keep others from being asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from likewise.annotate.desk.handing import Layout, Pairing, pairs_asked
from likewise.annotate.facts import shown
from likewise.annotate.store import Lease

OPEN_EACH = 4
"""Open questions of one person: one is looked at, one is prefetched, two may be in a second tab."""

ABANDONED = 30.0
"""Seconds after which the same person may get a question again, if nothing else is left."""

RESTING = 600.0
"""Seconds for which nobody is asked about what was skipped, unless nothing else is left."""


@dataclass(frozen=True)
class Open:
    """A question that is with somebody.

    Attributes:
        who: has it; "" where it is with somebody of another server.
        question: in keys.
        gold: the tiles whose answer is known, with it.
        items: all that it shows, without gold. Nobody else is asked about those of them that
            have no class, also where they had one when the question was handed out.
        pairs: what is asked.
        granted: when, by a clock that never goes back.
        expires: until when.
    """

    who: str
    question: dict[str, Any]
    gold: dict[str, bool]
    items: frozenset[int]
    pairs: frozenset[Pairing]
    granted: float
    expires: float


class OpenQuestions:
    """The open questions of a desk by their id. The store has them, too, for when this is lost.

    Args:
        seconds: of a lease.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.lock = threading.RLock()
        """Held by whoever looks what is taken and takes something."""
        self._open: dict[str, Open] = {}
        self._resting: dict[int, float] = {}  # items of skipped questions, and until when

    def recall(
        self, leases: Iterable[Lease], place: Callable[[str], int | None], now: float
    ) -> None:
        """What the store has open: a server that was killed left it so."""
        ticks = time.monotonic()
        for lease in leases:
            if kept := lease.question.get("question"):
                exemplar, tiles = shown(kept)
                gold = lease.question.get("gold", {})
                front = None if exemplar is None else place(exemplar)
                places = {key: number for key in tiles if (number := place(key)) is not None}
                known = {places[key] for key in gold if key in places}
                pairs = frozenset[Pairing]()
                if exemplar is None or front is not None:
                    pairs = pairs_asked(front, list(places.values()), known)
                items = _without_gold(front, places.values(), known)
                left = min(lease.expires - now, self.seconds)
                self._open[lease.question_id] = Open(
                    lease.who, kept, gold, items, pairs, ticks, ticks + left
                )

    def put(
        self,
        id: str,
        who: str,
        question: dict[str, Any],
        gold: dict[str, bool],
        layout: Layout,
    ) -> None:
        """A question is with somebody now."""
        now = time.monotonic()
        with self.lock:
            self._open[id] = Open(
                who,
                question,
                gold,
                _without_gold(layout.exemplar, layout.tiles, layout.gold),
                layout.pairs,
                now,
                now + self.seconds,
            )

    def get(self, id: str) -> Open | None:
        """An open question of this server."""
        found = self._open.get(id)
        return found if found is not None and found.who else None

    def pop(self, id: str, *, skipped: bool = False) -> None:
        """A question was answered, or was not handed out after all."""
        with self.lock:
            done = self._open.pop(id, None)
            if skipped and done is not None:
                until = time.monotonic() + RESTING
                self._resting.update(dict.fromkeys(done.items, until))

    def held(self) -> set[int]:
        """The items of all open questions."""
        now = time.monotonic()
        with self.lock:
            return {item for one in self._open.values() if one.expires > now for item in one.items}

    def pairs(self) -> set[Pairing]:
        """The pairs that somebody is asked about now."""
        now = time.monotonic()
        with self.lock:
            return {pair for one in self._open.values() if one.expires > now for pair in one.pairs}

    def busy(self) -> set[int]:
        """The items that are not to be asked about now: held, or skipped not long ago."""
        now = time.monotonic()
        with self.lock:
            resting = {item for item, until in self._resting.items() if until > now}
        return self.held() | resting

    def let_go(self, who: str) -> tuple[list[str], bool]:
        """End what expired, and the oldest of somebody who has too many: pages are closed without
        a word.

        Returns:
            The ids of this person's questions that were ended early, and whether any was ended.
        """
        now = time.monotonic()
        with self.lock:
            over = {id for id, one in self._open.items() if one.expires <= now}
            mine = [id for id, one in self._open.items() if one.who == who and id not in over]
            dropped = mine[: max(0, len(mine) - OPEN_EACH + 1)]
            for id in (*over, *dropped):
                del self._open[id]
        return dropped, bool(over or dropped)

    def fall_back(self, who: str) -> tuple[list[str], bool]:
        """Nothing else is left: what was skipped comes again, and what somebody was handed a while
        ago, on a page that is closed by now. As :meth:`let_go`."""
        before = time.monotonic() - ABANDONED
        with self.lock:
            mine = [id for id, one in self._open.items() if one.who == who and one.granted < before]
            for id in mine:
                del self._open[id]
            rested, self._resting = bool(self._resting), {}
        return mine, bool(mine or rested)


def _without_gold(
    exemplar: int | None, tiles: Iterable[int], gold: Collection[int]
) -> frozenset[int]:
    return frozenset(i for i in (exemplar, *tiles) if i is not None and i not in gold)
