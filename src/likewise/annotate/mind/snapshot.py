"""What is known at one moment, for whoever reads: nothing in it changes, so nobody has to wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.beliefs import Beliefs, ExactBeliefs

Index = NDArray[np.int64]
Numbers = NDArray[np.int32]


@dataclass
class Snapshot:
    """Beliefs as they were after some answers.

    It holds only the items about which something was said: with a million items and a thousand
    answers, it goes from one process to another in a millisecond.

    Args:
        n: how many items there are.
        touched: the items about which something was said, in order.
        group_of: the group of each of them.
        label_of: the class of each of them; -1: unknown.
        apart: sorted; a * (number of groups) + b for every two groups that differ, both ways.
        names: of classes, by the number of one of their items; later names come later.
        exemplars: the central item of every class.
        accuracy: the estimate, or None.
        left: about how many questions are left to the target, or None.
        sequence: of the last fact that is in it.
        questions: how many were answered.
    """

    n: int
    touched: Index
    group_of: Index
    label_of: Index
    apart: Index
    names: dict[int, str] = field(default_factory=dict)
    exemplars: list[int] = field(default_factory=list)
    accuracy: float | None = None
    left: int | None = None
    sequence: int = 0
    questions: int = 0

    def __getstate__(self) -> dict[str, Any]:
        # Without what is derived: it is as large as there are items, and quickly made again.
        return {name: vars(self)[name] for name in self.__dataclass_fields__}

    def derive(self) -> Snapshot:
        """Derive everything now, so that none of those who read has to."""
        _ = self.labels, self.groups, self.placed, self.kinds, self.members, self.class_names
        return self

    @cached_property
    def labels(self) -> Numbers:
        """(n,) the class of every item; -1: unknown."""
        return self._spread(self.label_of)

    @cached_property
    def groups(self) -> Numbers:
        """(n,) the group of every item: those known to be alike; -1: nothing was said."""
        return self._spread(self.group_of)

    def _spread(self, values: Index) -> Numbers:
        found = np.full(self.n, -1, dtype=np.int32)  # half the memory to write, for every snapshot
        found[self.touched] = values
        return found

    @cached_property
    def n_classes(self) -> int:
        """How many classes are known, all of which differ."""
        return int(self.label_of.max(initial=-1)) + 1

    @cached_property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.group_of.max(initial=-1)) + 1

    @cached_property
    def placed(self) -> Index:
        """The items whose class is known."""
        return self.touched[self.label_of >= 0]

    @cached_property
    def kinds(self) -> Numbers:
        """(n,) the class of every item as people see it: those of :attr:`labels`, and behind them
        groups that have a name, though they may yet turn out to be one of the former."""
        kinds, number = self.labels.copy(), self.n_classes
        for item in self.names:
            if kinds[item] < 0:
                group = self.groups[item]
                kinds[self.touched[self.group_of == group] if group >= 0 else item] = number
                number += 1
        return kinds

    @cached_property
    def members(self) -> list[Index]:
        """The items of every class that people see, in their order."""
        shown = np.union1d(self.touched, np.fromiter(self.names, np.int64, len(self.names)))
        kinds = self.kinds[shown]
        shown, kinds = shown[kinds >= 0], kinds[kinds >= 0]
        order = np.argsort(kinds, kind="stable")
        count = int(kinds.max(initial=-1)) + 1
        ends = np.searchsorted(kinds[order], np.arange(count + 1))
        ordered = shown[order]
        return [ordered[ends[c] : ends[c + 1]] for c in range(count)]

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
        numbers = np.asarray(others, dtype=np.int64)
        mine, theirs = int(self.groups[item]), self.groups[numbers].astype(np.int64)
        alike = (numbers == item) | ((theirs == mine) & (mine >= 0))
        wanted = mine * self.n_groups + theirs
        place = np.searchsorted(self.apart, wanted)
        place[place == len(self.apart)] = 0
        differ = (self.apart[place] == wanted) if len(self.apart) else np.zeros(len(numbers), bool)
        differ &= (theirs >= 0) & (mine >= 0)
        return np.where(alike, 1, -differ.astype(np.int64)).tolist()


def snapshot_of(beliefs: Beliefs, **more: Any) -> Snapshot:
    """What beliefs say now, with more of what a snapshot holds.

    >>> from likewise.oracles.answers import Answer
    >>> beliefs = ExactBeliefs(5).add([Answer(0, 1, +1), Answer(1, 2, -1)])
    >>> snapshot_of(beliefs).relations(0, [1, 2, 3])
    [1, -1, 0]
    """
    groups, labels = beliefs.groups(), beliefs.labels()
    touched = np.flatnonzero((groups >= 0) | (labels >= 0))
    count = int(groups.max(initial=-1)) + 1
    if isinstance(beliefs, ExactBeliefs):
        facts = beliefs.facts
        said = facts.value <= -beliefs.threshold
        first, second = groups[facts.a[said]], groups[facts.b[said]]
    else:
        rows, classes = np.nonzero(beliefs.excluded()[touched])
        of_class = np.full(beliefs.n_classes, -1, dtype=np.int64)
        of_class[labels[touched][labels[touched] >= 0]] = groups[touched][labels[touched] >= 0]
        first, second = groups[touched[rows]], of_class[classes]
    # A group that differs from itself is a contradiction: alike wins.
    real = (first != second) & (first >= 0) & (second >= 0)
    first, second = first[real], second[real]
    apart = np.unique(np.concatenate([first * count + second, second * count + first]))
    return Snapshot(beliefs.n, touched, groups[touched], labels[touched], apart, **more)
