"""A desk without a store or a sampler: what the server's own tests need, and nothing more."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from likewise.data import open_source
from likewise.data.source import Source


@cache
def _digits() -> Source:
    return open_source("digits:test")


@dataclass(frozen=True)
class FakeAsked:
    id: str
    kind: str
    exemplar: str | None
    tiles: list[str]
    text: str
    expires: float


class FakeDesk:
    """Hands out grids in the order of the keys; facts are a dictionary."""

    def __init__(self, source: Source | None = None, *, grid: int = 15) -> None:
        self.source = source if source is not None else _digits()
        self.target = 0.95
        self.grid = grid
        self.lock = threading.Lock()
        self.numbers = itertools.count()
        self.asked: dict[str, FakeAsked] = {}
        self.facts: dict[str, dict[str, Any]] = {}

    def question(self, who: str, *, kind: str = "grid", about: str | None = None) -> FakeAsked:
        with self.lock:
            number = next(self.numbers)
        keys = self.source.keys
        count = 1 if kind == "pair" else self.grid
        first = keys.index(about) if about is not None else number * (count + 1)
        shown = [keys[(first + k) % len(keys)] for k in range(count + 1)]
        exemplar = None if kind == "outliers" else shown[0]
        text = "Same kind as this?" if kind != "outliers" else "Which do not belong?"
        asked = FakeAsked(f"q{number}", kind, exemplar, shown[1:], text, time.time() + 300)
        self.asked[asked.id] = asked
        return asked

    def _add(self, who: str, id: str, kind: str, **body: Any) -> bool:
        with self.lock:
            new = id not in self.facts
            self.facts.setdefault(
                id, {"id": id, "kind": kind, "who": who, "when": time.time(), "body": body}
            )
            return new

    def answer(self, who: str, *, id: str, question_id: str, question: Any = None, **body: Any):
        asked = self.asked.get(question_id)
        if asked is None and question is None:
            raise ValueError(f"question_id is {question_id!r}, which was never asked")
        tiles = question["tiles"] if asked is None else asked.tiles
        strange = set(body["clicked"]) | set(body["unsure"])
        if not strange <= set(tiles):
            raise ValueError("clicked holds items that the question does not show")
        return self._add(who, id, "answer", question_id=question_id, **body)

    def undo(self, who: str, *, id: str, fact: str) -> bool:
        if fact not in self.facts:
            raise KeyError("there is no such fact")
        return self._add(who, id, "undo", fact=fact)

    def name(self, who: str, *, id: str, item: str, name: str) -> bool:
        return self._add(who, id, "name", item=item, name=name)

    def merge(self, who: str, *, id: str, a: str, b: str) -> bool:
        return self._add(who, id, "answer", a=a, b=b)

    def split(self, who: str, *, id: str, from_: str, items: list[str]) -> bool:
        return self._add(who, id, "split", **{"from": from_, "items": items})

    def history(self, who: str, limit: int = 20) -> list[dict[str, Any]]:
        mine = [fact for fact in self.facts.values() if fact["who"] == who]
        return mine[::-1][:limit]

    def progress(self, who: str) -> dict[str, Any]:
        answered = [fact for fact in self.facts.values() if fact["kind"] == "answer"]
        mine = sum(fact["who"] == who for fact in answered)
        figures = {"questions": mine, "answers": mine * self.grid}
        team = {"questions": len(answered), "answers": len(answered) * self.grid}
        classes = [{"id": 0, "name": None, "count": 3, "exemplar": self.source.keys[0]}]
        return {
            "mine": figures,
            "team": team,
            "questions_left": 12,
            "accuracy": 0.5,
            "classes": classes,
        }

    def map(self) -> list[dict[str, Any]]:
        places = np.random.default_rng(0).normal(size=(len(self.source), 2)).round(4).tolist()
        return [
            {"key": key, "x": x, "y": y, "class": None}
            for key, (x, y) in zip(self.source.keys, places, strict=True)
        ][:5000]

    def item(self, key: str) -> dict[str, Any]:
        return {"class": None, "name": None}

    def people_figures(self) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        pass
