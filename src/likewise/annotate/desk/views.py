"""What people see of a project: their history, progress, items, the map, the others."""

from __future__ import annotations

import threading
from typing import Any

from likewise.annotate.desk.figures import PeopleFigures
from likewise.annotate.desk.handing import in_words
from likewise.annotate.desk.map import flat_map
from likewise.annotate.facts import body_without_secrets, check_key, shown
from likewise.annotate.mind import Mind, Snapshot
from likewise.annotate.store import Store
from likewise.data.source import Source


class Views:
    """A desk's side that is looked at."""

    source: Source
    store: Store
    target: float
    _mind: Mind

    def __init__(self) -> None:
        self._figures = PeopleFigures(self._place)
        self._map: tuple[Any, Any] | None = None
        self._map_lock = threading.Lock()

    @property
    def snapshot(self) -> Snapshot:
        """What is known, as of the last answers that were thought about."""
        return self._mind.snapshot

    def history(self, who: str, limit: int = 20) -> list[dict[str, Any]]:
        """A person's last facts, the newest first, with what they need to be shown again.

        Every entry has ``id``, ``kind``, ``when``, ``undone``, ``body`` (without what was gold),
        and for answers ``exemplar``, ``tiles`` and ``text``.
        """
        limit = max(1, min(int(limit), 200))
        self._figures.read(self.store)
        snapshot = self.snapshot
        entries: list[dict[str, Any]] = []
        for sequence, fact in self.store.latest(who, limit):
            entry = {
                "id": fact.id,
                "kind": fact.kind,
                "when": fact.when,
                "sequence": sequence,
                "undone": self._figures.undone(fact.id),
                "body": body_without_secrets(fact.body),
            }
            if fact.kind == "answer":
                exemplar, tiles = shown(fact.body["question"])
                kind = fact.body["question"]["kind"]
                place = None if exemplar is None else self._place(exemplar)
                entry |= {
                    "exemplar": exemplar,
                    "tiles": tiles,
                    "text": in_words(kind, place, snapshot),
                }
            entries.append(entry)
        return entries

    def _place(self, key: str) -> int | None:
        try:
            return int(self.source.index_of(key))
        except ValueError:
            return None

    def progress(self, who: str) -> dict[str, Any]:
        """How far it is: ``mine`` and ``team`` (questions and answers), ``questions_left`` to the
        target and ``accuracy`` (estimates, or None), ``placed`` of ``items``, ``target``, and the
        ``classes``: id, name, count, exemplar."""
        snapshot = self.snapshot
        self._figures.read(self.store)
        return {
            "mine": self._figures.counts(who),
            "team": self._figures.counts(None),
            "questions_left": snapshot.left,
            "accuracy": snapshot.accuracy,
            "target": self.target,
            "items": len(self.source),
            "placed": len(snapshot.placed),
            "classes": [
                {
                    "id": self._class_id(snapshot, c),
                    "name": snapshot.class_names[c],
                    "count": len(snapshot.members[c]),
                    "exemplar": self.source.keys[snapshot.exemplar(c)],
                }
                for c in range(len(snapshot.members))
            ],
        }

    def _class_id(self, snapshot: Snapshot, c: int | None) -> str | None:
        """What a class is known by: the key of its first item."""
        return None if c is None else self.source.keys[int(snapshot.members[c][0])]

    def item(self, key: str) -> dict[str, Any]:
        """One item: its key, the id of its class and what that is called (None: unknown)."""
        place, snapshot = int(self.source.index_of(check_key("key", key))), self.snapshot
        c = snapshot.class_of(place)
        return {
            "key": key,
            "class": self._class_id(snapshot, c),
            "name": snapshot.name_of(place),
        }

    def map(self) -> list[dict[str, Any]]:
        """Up to 5,000 items in the plane: key, x, y (0 to 1) and class (its id, or None)."""
        snapshot, X = self.snapshot, self._mind.X
        with self._map_lock:
            if self._map is None or self._map[0] is not X:
                self._map = (X, flat_map(X))
            items, places = self._map[1]
        return [
            {
                "key": self.source.keys[item],
                "x": x,
                "y": y,
                "class": self._class_id(snapshot, snapshot.class_of(item)),
            }
            for item, (x, y) in zip(items, places, strict=True)
        ]

    def people_figures(self) -> list[dict[str, Any]]:
        """Of everybody who answered: name, questions, answers, median seconds of a grid, agreement
        with what others said, and accuracy on gold tiles (None: not known yet)."""
        self._figures.read(self.store)
        return self._figures.table(self.store)
