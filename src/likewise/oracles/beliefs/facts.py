"""Answers as columns: a million of them fit in arrays, and arrays are quick to work on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.answers import Answer


class Facts:
    """Answers about pairs of n items as columns that grow.

    Answers about attributes are kept and left out of the columns; an answer whose id arrived
    before is left out altogether.

    >>> facts = Facts(4).extend([Answer(0, 1, +1, "ada"), Answer(3, 2, -1, "bob")])
    >>> facts.a.tolist(), facts.b.tolist(), facts.value.tolist(), facts.who.tolist()
    ([0, 3], [1, 2], [1.0, -1.0], [0, 1])
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.people: list[str] = []
        """The annotators, in the order in which they first appeared."""
        self.attributes: list[Answer] = []
        """Answers about attributes."""
        self._answers: list[Answer] = []
        self._everything: list[Answer] = []
        self._ids: set[str] = set()
        self._places: dict[str, int] = {}
        self._columns: dict[str, NDArray[Any]] = {
            "a": np.zeros(0, dtype=np.int64),
            "b": np.zeros(0, dtype=np.int64),
            "value": np.zeros(0, dtype=np.float64),
            "who": np.zeros(0, dtype=np.int64),
        }

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, number: int) -> Answer:
        return self._answers[number]

    @property
    def a(self) -> NDArray[np.int64]:
        """The first item of every answer."""
        return self._columns["a"][: len(self)]

    @property
    def b(self) -> NDArray[np.int64]:
        """The other item."""
        return self._columns["b"][: len(self)]

    @property
    def value(self) -> NDArray[np.float64]:
        """+1, -1, 0 or a grade."""
        return self._columns["value"][: len(self)]

    @property
    def who(self) -> NDArray[np.int64]:
        """The number of the annotator in :attr:`people`."""
        return self._columns["who"][: len(self)]

    def answers(self) -> list[Answer]:
        """All of them, those about attributes too, in the order of arrival."""
        return list(self._everything)

    def touched(self) -> NDArray[np.bool_]:
        """(n,) which items have an answer other than "unsure"."""
        seen = np.zeros(self.n, dtype=bool)
        said = self.value != 0
        seen[self.a[said]] = True
        seen[self.b[said]] = True
        return seen

    def extend(self, answers: Iterable[Answer] | Facts) -> Facts:
        """More answers; all of them, or none where one names an item that does not exist."""
        given = answers.answers() if isinstance(answers, Facts) else list(answers)
        fresh, ids = given, set(self._ids)
        if any(answer.id for answer in given):
            fresh = []
            for answer in given:
                if answer.id:
                    if answer.id in ids:
                        continue
                    ids.add(answer.id)
                fresh.append(answer)
        pairs = [answer for answer in fresh if answer.b is not None]
        a = np.fromiter((answer.a for answer in pairs), np.int64, len(pairs))
        b = np.fromiter((answer.b for answer in pairs), np.int64, len(pairs))
        attributes = [answer for answer in fresh if answer.b is None]
        largest = max(
            a.max(initial=-1), b.max(initial=-1), max((x.a for x in attributes), default=-1)
        )
        if largest >= self.n:
            raise ValueError(
                f"an answer is about item {largest}, but there are {self.n} items: items are "
                f"numbers from 0 to {self.n - 1}"
            )
        value = np.fromiter((answer.value for answer in pairs), np.float64, len(pairs))
        for answer in pairs:
            if answer.who not in self._places:
                self._places[answer.who] = len(self.people)
                self.people.append(answer.who)
        places = self._places
        who = np.fromiter((places[answer.who] for answer in pairs), np.int64, len(pairs))
        for name, column in (("a", a), ("b", b), ("value", value), ("who", who)):
            self._append(name, column)
        self._answers += pairs
        self._everything += fresh
        self.attributes += attributes
        self._ids = ids
        return self

    def _append(self, name: str, column: NDArray[np.generic]) -> None:
        old, used = self._columns[name], len(self)
        if used + len(column) > len(old):
            # Room for as many again: many small additions cost as much as one large one.
            grown = np.zeros(max(2 * used, used + len(column)), dtype=old.dtype)
            grown[:used] = old[:used]
            self._columns[name] = old = grown
        old[used : used + len(column)] = column
