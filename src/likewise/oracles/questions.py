"""What a person can be asked: two items, a grid against an exemplar, outliers, an attribute.

A question holds item numbers and nothing else: it can be hashed, compared, kept as JSON and shown
on a page. What an answer to it says, as facts, is in :mod:`likewise.oracles.answers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, TypeAlias


@dataclass(frozen=True)
class Pair:
    """Are these two alike?

    >>> Pair(3, 5).pairs()
    [(3, 5)]
    """

    a: int
    b: int
    kind: ClassVar[str] = "pair"

    def __post_init__(self) -> None:
        _take(self, "a", _item("a", self.a))
        _take(self, "b", _item("b", self.b))
        if self.a == self.b:
            raise ValueError(f"a and b are both {self.a}: ask about two different items")

    @property
    def items(self) -> tuple[int, ...]:
        """Every item that is shown, in order."""
        return (self.a, self.b)

    def pairs(self) -> list[tuple[int, int]]:
        """What is asked, as pairs."""
        return [(self.a, self.b)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.kind, "a": self.a, "b": self.b}


@dataclass(frozen=True)
class Grid:
    """Click those that are the same kind as the exemplar (``pal`` section 4.3 and algorithm 3).

    >>> Grid(exemplar=0, candidates=(4, 7)).pairs()
    [(0, 4), (0, 7)]
    """

    exemplar: int
    candidates: tuple[int, ...]
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        _take(self, "exemplar", _item("exemplar", self.exemplar))
        _take(self, "candidates", _distinct("candidates", self.candidates))
        if self.exemplar in self.candidates:
            raise ValueError(
                f"the exemplar {self.exemplar} is among the candidates: everything is alike to "
                "itself, leave it out"
            )

    @property
    def items(self) -> tuple[int, ...]:
        """Every item that is shown: the exemplar, then the candidates."""
        return (self.exemplar, *self.candidates)

    def pairs(self) -> list[tuple[int, int]]:
        """What is asked, as pairs."""
        return [(self.exemplar, candidate) for candidate in self.candidates]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "kind": self.kind,
            "exemplar": self.exemplar,
            "candidates": list(self.candidates),
        }


@dataclass(frozen=True)
class Outliers:
    """Click those that do not belong (``pal`` section 4.1): no exemplar is shown.

    Which pairs are compared shows only in the answer: the items that belong are alike.

    >>> Outliers((1, 2, 3)).pairs()
    []
    """

    items: tuple[int, ...]
    kind: ClassVar[str] = "outliers"

    def __post_init__(self) -> None:
        _take(self, "items", _distinct("items", self.items))
        if len(self.items) < 2:
            raise ValueError(
                f"items are {self.items}: an outlier needs at least one other item to differ from"
            )

    def pairs(self) -> list[tuple[int, int]]:
        """None before somebody answered."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.kind, "items": list(self.items)}


@dataclass(frozen=True)
class Attribute:
    """Click all that have an attribute, e.g. "animals with fur" (``pal`` algorithm 6, coarse).

    >>> Attribute("has fur", (1, 2)).pairs()
    []
    """

    name: str
    candidates: tuple[int, ...]
    kind: ClassVar[str] = "attribute"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"name is {self.name!r}: say what to look for, such as 'has fur'")
        _take(self, "candidates", _distinct("candidates", self.candidates))

    @property
    def items(self) -> tuple[int, ...]:
        """Every item that is shown."""
        return self.candidates

    def pairs(self) -> list[tuple[int, int]]:
        """None: items are compared with a description."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.kind, "name": self.name, "candidates": list(self.candidates)}


Question: TypeAlias = Pair | Grid | Outliers | Attribute
"""Anything that can be asked."""

KINDS: dict[str, type[Pair] | type[Grid] | type[Outliers] | type[Attribute]] = {
    kind.kind: kind for kind in (Pair, Grid, Outliers, Attribute)
}
"""The questions by the name that :meth:`to_dict` gives them."""


def question_from_dict(values: Mapping[str, Any]) -> Question:
    """The question that ``to_dict()`` wrote.

    >>> question_from_dict(Grid(0, (4, 7)).to_dict())
    Grid(exemplar=0, candidates=(4, 7))
    """
    fields = dict(values)
    kind = fields.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: a question is one of {', '.join(KINDS)}")
    try:
        return KINDS[kind](**fields)
    except TypeError as error:
        raise ValueError(f"{dict(values)} is not a {kind} question: {error}") from error


def _take(question: object, name: str, value: object) -> None:
    object.__setattr__(question, name, value)  # the way into a frozen dataclass


def _item(name: str, value: object) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {value!r}: give the number of an item, 0 or more")
    return int(value)


def _distinct(name: str, values: Iterable[int]) -> tuple[int, ...]:
    numbers = tuple(_item(f"an item of {name}", value) for value in values)
    if not numbers:
        raise ValueError(f"{name} are empty: ask about at least one item")
    if len(set(numbers)) != len(numbers):
        twice = sorted({number for number in numbers if numbers.count(number) > 1})
        raise ValueError(f"{name} hold {twice} more than once: show every item once")
    return numbers
