"""What is known at one moment, for whoever reads: nothing in it changes, so nobody has to wait."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise.data.keys import Keyed
from likewise.oracles.beliefs import Beliefs

Index = NDArray[np.int64]


@dataclass
class Snapshot:
    """Beliefs as they were after some answers.

    Args:
        items: the keys.
        beliefs: frozen by :func:`frozen`.
        names: of classes, by the number of one of their items; later names come later.
        exemplars: the central item of every class.
        accuracy: the estimate, or None.
        left: about how many questions are left to the target, or None.
        sequence: of the last fact that is in it.
        questions: how many were answered.
        contradictions: pairs of answers that cannot both be true, as far as they were looked for.
    """

    items: Keyed
    beliefs: Beliefs
    names: dict[int, str] = field(default_factory=dict)
    exemplars: list[int] = field(default_factory=list)
    accuracy: float | None = None
    left: int | None = None
    sequence: int = 0
    questions: int = 0
    contradictions: int = 0

    @cached_property
    def labels(self) -> Index:
        """(n,) the class of every item; -1: unknown."""
        return self.beliefs.labels()

    @cached_property
    def n_classes(self) -> int:
        """How many classes are known, all of which differ."""
        return self.beliefs.n_classes

    @cached_property
    def placed(self) -> Index:
        """The items whose class is known."""
        return np.flatnonzero(self.labels >= 0)

    @cached_property
    def kinds(self) -> Index:
        """(n,) the class of every item as people see it: those of :attr:`labels`, and behind them
        groups that have a name, though they may yet turn out to be one of the former."""
        kinds, groups = self.labels.copy(), self.beliefs.groups()
        number = self.n_classes
        for item in self.names:
            if kinds[item] < 0:
                kinds[groups == groups[item] if groups[item] >= 0 else item] = number
                number += 1
        return kinds

    @cached_property
    def members(self) -> list[Index]:
        """The items of every class that people see, in their order."""
        kinds = self.kinds
        shown = np.flatnonzero(kinds >= 0)
        order = np.argsort(kinds[shown], kind="stable")
        count = int(kinds.max(initial=-1)) + 1
        ends = np.searchsorted(kinds[shown][order], np.arange(count + 1))
        ordered = shown[order]
        return [ordered[ends[c] : ends[c + 1]] for c in range(count)]

    @cached_property
    def class_ids(self) -> list[str]:
        """What a class is known by: the key of its first item."""
        return [self.items.keys[int(members[0])] for members in self.members]

    @cached_property
    def class_names(self) -> list[str | None]:
        """What the classes are called; None: nobody said."""
        called = {int(self.kinds[item]): name for item, name in self.names.items()}
        return [called.get(c) for c in range(len(self.members))]

    def class_of(self, item: int) -> int | None:
        """The number of an item's class, or None."""
        kind = int(self.kinds[item])
        return None if kind < 0 else kind

    def name_of(self, item: int) -> str | None:
        """What an item's class is called, or None."""
        c = self.class_of(item)
        return None if c is None else self.class_names[c]

    def exemplar(self, c: int) -> int:
        """An item that shows what class c is."""
        return self.exemplars[c] if c < len(self.exemplars) else int(self.members[c][0])

    def relations(self, item: int, others: Sequence[int]) -> list[int]:
        """+1 alike, -1 different, 0 unknown: one item with some others."""
        return self.beliefs.relations(item, list(others)).tolist()


def frozen(beliefs: Beliefs) -> Beliefs:
    """Beliefs that stay as they are when more is added to the original.

    What is derived is replaced by new arrays whenever answers are added, never written into; so
    the old arrays, which a shallow copy holds, are a snapshot."""
    beliefs.labels()  # derive now: the copy has to hold what is derived, not derive it later
    return copy.copy(beliefs)
