"""Figures about people: how much, how fast, how careful."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np

from likewise.annotate.desk.gold import gold_figures
from likewise.annotate.facts import Fact, Reading, Said, shown
from likewise.annotate.store import Store
from likewise.oracles.beliefs.closure import Closure


class PeopleFigures:
    """Counts and figures by person, kept up with the facts of a store.

    Args:
        place: the number of an item by its key; None: it is not here.
    """

    def __init__(self, place: Callable[[str], int | None]) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._reading = Reading()
        self._counts: dict[str | None, dict[str, int]] = {}
        self._seen: dict[str, set[int]] = {}

    def read(self, store: Store) -> None:
        """Read what is new."""
        with self._lock:
            new = store.facts(after=self._reading.sequence)
            if new:
                grew = self._reading.add(new)
                self._count(new if grew else list(self._reading.facts.values()), grew)

    def _count(self, facts: Sequence[tuple[int, Fact]], grew: bool) -> None:
        if not grew:
            self._counts = {}
        for _, fact in facts:
            if fact.kind != "answer":
                continue
            tiles = shown(fact.body["question"])[1]
            places = map(self._place, tiles)
            self.saw(fact.who, [place for place in places if place is not None])
            if fact.id in self._reading.undone:
                continue
            said = 0 if fact.body.get("skipped") else len(tiles)
            for who in (fact.who, None):
                mine = self._counts.setdefault(who, {"questions": 0, "answers": 0})
                mine["questions"] += 1
                mine["answers"] += said

    def counts(self, who: str | None) -> dict[str, int]:
        """Questions and answers (tiles) of a person, or of all."""
        with self._lock:
            return dict(self._counts.get(who, {"questions": 0, "answers": 0}))

    def saw(self, who: str, items: Sequence[int]) -> None:
        """Somebody is shown some items."""
        self._seen.setdefault(who, set()).update(items)

    def seen(self, who: str) -> Set[int]:
        """The items that somebody was shown; more may come while it is looked at."""
        return self._seen.get(who, frozenset())

    def undone(self, id: str) -> bool:
        """Whether a fact was taken back."""
        with self._lock:
            return id in self._reading.undone

    def table(self, store: Store) -> list[dict[str, Any]]:
        """One row for everybody who answered or was invited."""
        invited = {person.name: person for person in store.people()}
        with self._lock:
            facts = [fact for _, fact in self._reading.facts.values()]
            undone = set(self._reading.undone)
            answers = list(self._reading.answers)
            counts = {name: dict(values) for name, values in self._counts.items()}
        agreement = agreements(answers)
        rows = []
        for name in sorted({*invited, *(fact.who for fact in facts)}):
            mine = [
                fact
                for fact in facts
                if fact.who == name and fact.kind == "answer" and fact.id not in undone
            ]
            seconds = [
                fact.body["seconds"]
                for fact in mine
                if fact.body["question"]["kind"] == "grid" and fact.body.get("seconds")
            ]
            gold = [
                (
                    fact.body["gold"],
                    set(fact.body.get("clicked", ())),
                    set(fact.body.get("unsure", ())),
                    fact.body["question"]["kind"] == "outliers",
                )
                for fact in mine
                if fact.body.get("gold") and not fact.body.get("skipped")
            ]
            person = invited.get(name)
            rows.append(
                {
                    "name": name,
                    **counts.get(name, {"questions": 0, "answers": 0}),
                    "skipped": sum(bool(fact.body.get("skipped")) for fact in mine),
                    "seconds": round(statistics.median(seconds), 2) if seconds else None,
                    "agreement": agreement.get(name),
                    "gold_accuracy": gold_figures(gold),
                    "gold_tiles": sum(len(tiles) for tiles, *_ in gold),
                    "last": max((fact.when for fact in mine), default=None),
                    "admin": bool(person and person.admin),
                    "revoked": bool(person and person.revoked),
                    "expires": person.expires if person else None,
                }
            )
        return rows


def agreements(answers: Sequence[Said]) -> dict[str, float]:
    """How often everybody said what follows from what the others said.

    Pairs about which the others' answers imply nothing do not count; nor does "unsure".

    >>> said = [Said("a", "b", 1.0, "ada"), Said("b", "c", 1.0, "ada")]
    >>> agreements([*said, Said("a", "c", 1.0, "bob"), Said("a", "b", -1.0, "bob")])
    {'ada': 0.0, 'bob': 0.5}
    """
    clear = [said for said in answers if abs(said.value) >= 0.5]
    people = sorted({said.who for said in clear})
    if len(people) < 2:
        return {}
    places: dict[str, int] = {}
    for said in clear:
        places.setdefault(said.a, len(places))
        places.setdefault(said.b, len(places))
    a = np.array([places[said.a] for said in clear])
    b = np.array([places[said.b] for said in clear])
    alike = np.array([said.value > 0 for said in clear])
    who = np.array([people.index(said.who) for said in clear])
    n = len(places)
    figures: dict[str, float] = {}
    for number, name in enumerate(people):
        mine = who == number
        closure = Closure(n)
        yes, no = ~mine & alike, ~mine & ~alike
        closure.add(a[yes], b[yes], a[no], b[no])
        first, second = closure.root[a[mine]], closure.root[b[mine]]
        keys = np.minimum(first, second) * n + np.maximum(first, second)
        differ = np.isin(keys, closure.keys) & (first != second)
        known = (first == second) | differ
        if known.any():
            right = np.where(first == second, alike[mine], ~alike[mine])
            figures[name] = float(right[known].mean())
    return figures
