"""What people say: answers, undo, the name of a class, that two are one, that one is two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.annotate.desk.open import OpenQuestions
from likewise.annotate.facts import Fact, check_key, check_keys, check_name, question_of, shown
from likewise.annotate.mind import Mind
from likewise.annotate.store import Store
from likewise.data.source import Source

LONGEST = 24 * 3600.0
"""Seconds of one question, at most: who leaves the page open did not think all night."""


class UnknownQuestion(ValueError):  # noqa: N818 (a question, not an event)
    """An answer to a question that is not known here, and did not come with the answer."""


class Saying:
    """A desk's side that takes facts; what it has returned for is on the disk."""

    source: Source
    store: Store
    _mind: Mind
    _open: OpenQuestions

    def answer(
        self,
        who: str,
        *,
        id: str,
        question_id: str,
        clicked: Sequence[str] = (),
        unsure: Sequence[str] = (),
        skipped: bool = False,
        seconds: float = 0.0,
        question: Mapping[str, Any] | None = None,
    ) -> bool:
        """Take an answer to a question.

        Args:
            who: the person.
            id: made by the page: the same id twice is one answer.
            question_id: of the question.
            clicked: keys of tiles: the same kind, or, of outliers, those that do not belong.
            unsure: keys of tiles of which the person cannot tell.
            skipped: nothing is said about any tile.
            seconds: that it took.
            question: as it was received, for when the desk does not know it any more.

        Returns:
            Whether it is new.
        """
        asked, gold = self._asked(question_id, question)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise ValueError(f"seconds is {seconds!r}: give a number")
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"seconds is {seconds}: give 0 or more")
        body: dict[str, Any] = {
            "question": asked,
            "clicked": [] if skipped else check_keys("clicked", clicked),
            "unsure": [] if skipped else check_keys("unsure", unsure),
            "skipped": skipped,
            "seconds": round(min(float(seconds), LONGEST), 3),
            "question_id": question_id,
        }
        if gold:
            body["gold"] = gold
        fact = Fact(id, "answer", who, self.store.clock(), body)
        new = self.store.append([fact], release=[question_id])[0]
        self._open.pop(question_id, skipped=skipped)
        self._mind.shelves.nudge()
        return new

    def _asked(
        self, question_id: str, question: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, bool]]:
        """The question of an id: of this process, of the store, or as the answer brought it."""
        check_name("question_id", question_id)
        found = self._open.get(question_id)
        if found is not None:
            return found.question, found.gold
        lease = self.store.leased(question_id)
        if lease is not None and lease.question.get("question"):
            return lease.question["question"], lease.question.get("gold", {})
        if question is None:
            raise UnknownQuestion(
                f"question_id is {question_id[:40]!r}, which is not known here: send the question "
                "along"
            )
        kept = question_of(question)
        exemplar, tiles = shown(kept)
        self.source.index_of([key for key in [exemplar, *tiles] if key is not None])
        return kept, {}

    def undo(self, who: str, *, id: str, fact: str) -> bool:
        """Take back something that this person said; an undo can be undone.

        Returns:
            Whether it is new.
        """
        found = self.store.fact(fact) if isinstance(fact, str) else None
        if found is None:
            raise ValueError(f"fact is {str(fact)[:60]!r}: nothing of that id was said")
        if found[1].who != who:
            raise PermissionError(f"{str(fact)[:60]!r} was said by somebody else: undo your own")
        return self._say(who, id, "undo", {"fact": fact})

    def name(self, who: str, *, id: str, item: str, name: str) -> bool:
        """Say what the class of an item is called."""
        self._known("item", [item])
        if not isinstance(name, str):
            raise ValueError(f"name is {name!r}: give a text")
        return self._say(who, id, "name", {"item": item, "name": " ".join(name.split())})

    def merge(self, who: str, *, id: str, a: str, b: str) -> bool:
        """Two classes are one: the items a and b, one of each, are alike."""
        self._known("a and b", [a, b])
        body = {
            "question": {"kind": "pair", "a": a, "b": b},
            "clicked": [b],
            "unsure": [],
            "skipped": False,
            "seconds": 0.0,
            "question_id": "merge",
        }
        return self._say(who, id, "answer", body)

    def split(self, who: str, *, id: str, from_: str, items: Sequence[str]) -> bool:
        """Some items are not of the class of `from_`, whatever was said before."""
        self._known("from and items", [from_, *check_keys("items", items, least=1)])
        return self._say(who, id, "split", {"from": from_, "items": list(items)})

    def _known(self, argument: str, keys: list[str]) -> None:
        for key in keys:
            check_key(argument, key)
        self.source.index_of(keys)

    def _say(self, who: str, id: str, kind: Any, body: dict[str, Any]) -> bool:
        new = self.store.append([Fact(id, kind, who, self.store.clock(), body)])[0]
        self._mind.shelves.nudge()
        return new
