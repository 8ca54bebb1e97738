"""What every kind of belief offers: relations, groups, classes, a graph, contradictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self

from likewise.graph import Graph
from likewise.oracles.answers import Answer
from likewise.oracles.beliefs.causes import joined_ends
from likewise.oracles.beliefs.closure import Closure, Index
from likewise.oracles.beliefs.facts import Facts


@dataclass(frozen=True)
class Contradiction:
    """Answers that cannot all be true.

    Attributes:
        answers: first an answer "different", then a shortest chain of answers "alike" that joins
            its two ends; or, where there are more kinds than were declared, the answers that
            tell them apart.
    """

    answers: tuple[Answer, ...]

    @property
    def items(self) -> tuple[int, ...]:
        """The items that it is about."""
        ends = {answer.a for answer in self.answers} | {
            answer.b for answer in self.answers if answer.b is not None
        }
        return tuple(sorted(ends))


class Beliefs(ABC):
    """What is known about n items, and what follows from it.

    The state is a function of the set of answers, not of their order: adding them in another
    order, in other batches or all over again gives the same.

    Args:
        n: the number of items.
        closed_classes: the number of classes, where it is known that there are no others.
        threshold: graded answers say "alike" from here on, "different" from minus this down.
    """

    def __init__(
        self, n: int, *, closed_classes: int | None = None, threshold: float = 0.5
    ) -> None:
        if n < 1:
            raise ValueError(f"n is {n}: give the number of items, at least 1")
        if closed_classes is not None and closed_classes < 1:
            raise ValueError(f"closed_classes is {closed_classes}: there is at least one class")
        if not 0 < threshold <= 1:
            raise ValueError(
                f"threshold is {threshold}: give the grade from which on two items count as "
                "alike, above 0 and at most 1"
            )
        self.n = n
        self.closed_classes = closed_classes
        self.threshold = threshold
        self.facts = Facts(n)

    def add(self, answers: Iterable[Answer] | Facts) -> Self:
        """Learn more answers (many at once cost far less than one after the other)."""
        before = len(self.facts)
        self.facts.extend(answers)
        if len(self.facts) > before:
            self._changed(before)
        return self

    @property
    def answers(self) -> list[Answer]:
        """Every answer so far, in the order of arrival: the same answers give the same beliefs."""
        return self.facts.answers()

    @property
    def n_answers(self) -> int:
        """How many answers about pairs were given."""
        return len(self.facts)

    def asked(self) -> NDArray[np.bool_]:
        """(n,) of which items anything was answered (more than "unsure")."""
        return self.facts.touched()

    @abstractmethod
    def _changed(self, before: int) -> None:
        """Answers from number `before` on are new."""

    def relation(self, i: int, j: int) -> int:
        """+1: i and j are known, or implied, to be alike; -1: to be different; 0: unknown."""
        return int(self.relations(i, [j])[0])

    @abstractmethod
    def relations(self, i: int, candidates: ArrayLike) -> NDArray[np.int8]:
        """:meth:`relation` of one item with many."""

    @abstractmethod
    def groups(self) -> Index:
        """(n,) the group of every item, numbered in the order of their first items; -1 where
        nothing was answered about an item.

        Items of one group are alike. Items of two groups differ, or it is unknown."""

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.groups().max(initial=-1)) + 1

    @property
    @abstractmethod
    def classes(self) -> Index:
        """The groups that are accepted as classes: all known to differ from one another."""

    @property
    def n_classes(self) -> int:
        """How many classes were found so far."""
        return len(self.classes)

    @abstractmethod
    def labels(self) -> Index:
        """(n,) which of the :attr:`classes` an item belongs to (0, 1, ...); -1: unknown."""

    @abstractmethod
    def excluded(self) -> NDArray[np.bool_]:
        """(n, n_classes) whether an item is known not to be of a class."""

    @abstractmethod
    def exemplars(self, c: int) -> Index:
        """The items of class number c, those that were compared most often first."""

    @abstractmethod
    def graph(self) -> Graph:
        """Who is alike (+1) and who is different (-1), asked or implied; graded answers are
        weights between. Everybody is alike to themselves."""

    def contradictions(self, limit: int | None = None) -> list[Contradiction]:
        """Answers that cannot all be true: for every pair said to differ that other answers make
        alike, one of these with a shortest chain of answers "alike" between its ends.

        Args:
            limit: look for at most so many.
        """
        facts = self.facts
        alike = facts.value >= self.threshold
        closure, none = Closure(self.n), np.zeros(0, dtype=np.int64)
        closure.add(facts.a[alike], facts.b[alike], none, none)
        causes = joined_ends(facts, closure.root, self.threshold, limit)
        return [Contradiction(answers) for answers in causes]

    def _candidates(self, i: int, candidates: ArrayLike) -> Index:
        others = np.asarray(candidates, dtype=np.int64).reshape(-1)
        for name, low, high in (
            ("i", i, i),
            ("candidates", others.min(initial=0), others.max(initial=0)),
        ):
            if low < 0 or high >= self.n:
                bad = low if low < 0 else high
                raise ValueError(
                    f"{name}: item {bad} is none of the {self.n} items 0..{self.n - 1}"
                )
        return others
