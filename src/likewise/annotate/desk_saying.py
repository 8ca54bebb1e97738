"""What people say beside answers: undo, the name of a class, that two are one, that one is two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likewise.annotate.desk_mind import Mind
from likewise.annotate.facts import Fact, check_key, check_keys
from likewise.annotate.store import Store
from likewise.data.source import Source


class Saying:
    """A desk's side that takes facts which are no answers to its questions."""

    source: Source
    store: Store
    _mind: Mind

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
