"""Beliefs where nobody errs: groups, differences, and what a closed list of classes implies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.graph import Graph
from likewise.oracles.beliefs.base import Beliefs, Contradiction, Index
from likewise.oracles.beliefs.causes import differing_groups
from likewise.oracles.beliefs.closure import Closure, contains
from likewise.oracles.beliefs.deduction import deduce
from likewise.oracles.beliefs.grouped import (
    MAX_EDGES,
    asked_pairs,
    classes_graph,
    graded_pairs,
    open_pairs,
)


@dataclass
class _View:
    """What is derived from one state of the closure."""

    groups: Index  # (n,), -1: nothing answered
    n_groups: int
    root: Index  # (n,) as in the closure, after deduction
    keys: Index
    first: Index  # both directions of every two groups that differ, by the first
    second: Index
    starts: Index  # (groups + 1,)
    classes: Index
    too_many: tuple[tuple[int, ...], ...]  # items of groups that are more than was declared


class ExactBeliefs(Beliefs):
    """What noise-free answers imply.

    * alike is transitive (union-find), and whatever differs from one of a group differs from all;
    * "not A, not B, ..., so C": where the number k of classes is declared, whatever differs from
      k - 1 groups that all differ from one another is of the one class that is left;
    * an "unsure" changes nothing.

    Deduction is sound, and complete for the rule just stated as long as the search stays within
    its budget (:data:`likewise.oracles.beliefs.deduction.STEPS`); to find everything that k
    classes imply would be to colour a graph, which is NP-hard.

    Where answers contradict one another, "alike" wins, and :meth:`contradictions` tells.

    Args:
        n: the number of items.
        closed_classes: the number of classes, where it is known that there are no others.
        threshold: graded answers count as alike from here on and as different from minus this
            down; weaker ones only give :meth:`graph` a weight.

    >>> from likewise.oracles.answers import Answer
    >>> beliefs = ExactBeliefs(5, closed_classes=2)
    >>> _ = beliefs.add([Answer(0, 1, +1), Answer(1, 2, -1), Answer(0, 3, -1)])
    >>> beliefs.relation(0, 2), beliefs.relation(2, 3), beliefs.relation(0, 4)
    (-1, 1, 0)
    >>> beliefs.groups().tolist(), beliefs.n_classes
    ([0, 0, 1, 1, -1], 2)
    """

    def __init__(
        self, n: int, *, closed_classes: int | None = None, threshold: float = 0.5
    ) -> None:
        super().__init__(n, closed_classes=closed_classes, threshold=threshold)
        self._closure = Closure(n)
        self._cache: _View | None = None

    # --- what is said -------------------------------------------------------------------------

    def _changed(self, before: int) -> None:
        facts = self.facts
        a, b, value = facts.a[before:], facts.b[before:], facts.value[before:]
        alike, different = value >= self.threshold, value <= -self.threshold
        self._closure.add(a[alike], b[alike], a[different], b[different])
        self._cache = None

    # --- what follows -------------------------------------------------------------------------

    @property
    def _view(self) -> _View:
        if self._cache is None:
            self._cache = self._derive()
        return self._cache

    def _derive(self) -> _View:
        closure, touched = self._closure, self.asked()
        root, keys = closure.root, closure.keys
        too_many: tuple[tuple[int, ...], ...] = ()
        if self.closed_classes is not None:
            root, keys, too_many = deduce(closure, touched, self.closed_classes)
        roots = np.flatnonzero((root == np.arange(self.n)) & touched)
        number = np.full(self.n, -1)
        number[roots] = np.arange(len(roots))
        groups = np.where(touched, number[root], -1)
        low, high = number[keys // self.n], number[keys % self.n]
        first, second = np.concatenate([low, high]), np.concatenate([high, low])
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        degrees = np.bincount(first, minlength=len(roots))
        starts = np.concatenate([[0], np.cumsum(degrees)])
        sizes = np.bincount(groups[groups >= 0], minlength=len(roots))
        classes = _greedy_clique(degrees, sizes, starts, second)
        return _View(groups, len(roots), root, keys, first, second, starts, classes, too_many)

    def relations(self, i: int, candidates: ArrayLike) -> NDArray[np.int8]:
        """:meth:`relation` of one item with many."""
        others = self._candidates(i, candidates)
        return self.relations_of(np.full_like(others, i), others)

    def groups(self) -> Index:
        """(n,) the group of every item; -1 where nothing was answered about an item."""
        return self._view.groups.copy()

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return self._view.n_groups

    @property
    def classes(self) -> Index:
        """The groups accepted as classes: a set of groups that all differ from one another.

        Groups are tried in the order of how many others they are known to differ from, then of
        their size, and taken where they differ from all taken before. The others may turn out to
        belong to one of these."""
        return self._view.classes.copy()

    def labels(self) -> Index:
        """(n,) which of the :attr:`classes` an item belongs to; -1: unknown."""
        view = self._view
        number = np.full(view.n_groups + 1, -1)
        number[view.classes] = np.arange(len(view.classes))
        return number[view.groups]

    def excluded(self) -> NDArray[np.bool_]:
        """(n, n_classes) whether an item is known not to be of a class."""
        view = self._view
        table = np.zeros((view.n_groups + 1, len(view.classes)), dtype=bool)
        for c, group in enumerate(view.classes):
            table[view.second[view.starts[group] : view.starts[group + 1]], c] = True
        return table[view.groups]

    def exemplars(self, c: int) -> Index:
        """The items of class number c, those with the most answers "alike" first."""
        if not 0 <= c < self.n_classes:
            raise ValueError(f"c is {c}, but {self.n_classes} classes are known")
        members = np.flatnonzero(self._view.groups == self._view.classes[c])
        facts = self.facts
        alike = facts.value >= self.threshold
        compared = np.bincount(facts.a[alike], minlength=self.n) + np.bincount(
            facts.b[alike], minlength=self.n
        )
        return members[np.argsort(-compared[members], kind="stable")]

    def graph(self, *, max_edges: int = MAX_EDGES) -> Graph:
        """Who is alike and who is different, asked or implied; everybody is alike to themselves.

        Implied pairs have +1 or -1. A pair that was graded has the mean of its answers, unless
        that has the other sign than what is known. Classes are in factored form; pairs of groups
        that are not classes yet are listed.

        Args:
            max_edges: where more pairs than this would have to be listed, only those that were
                asked are.
        """
        view, n, labels = self._view, self.n, self.labels()
        listed = open_pairs(view.root, view.keys, labels, max_edges)
        if listed is None:
            i, j = asked_pairs(self.facts)
            outside = (labels[i] < 0) | (labels[j] < 0)
            nodes = np.flatnonzero(labels < 0)
            i = np.concatenate([i[outside], nodes])
            j = np.concatenate([j[outside], nodes])
            weight = self.relations_of(i, j).astype(np.float64)
            listed = i[weight != 0], j[weight != 0], weight[weight != 0]
        i, j, weight = listed
        a, b, grade = graded_pairs(self.facts)
        known = self.relations_of(a, b)
        fits = (known == 0) | (np.sign(grade) == known)
        a, b, grade, known = a[fits], b[fits], grade[fits], known[fits]
        # Within the classes a grade is what has to be added to the +1 or -1 that is there.
        inside = (labels[a] >= 0) & (labels[b] >= 0)
        grade = np.where(inside, grade - known, grade)
        kept = ~contains(a * n + b, i * n + j)
        i, j = np.concatenate([i[kept], a]), np.concatenate([j[kept], b])
        edges = Graph.from_edges(i, j, np.concatenate([weight[kept], grade]), n=n)
        return classes_graph(labels, self.n_classes) + edges if self.n_classes else edges

    def relations_of(self, a: Index, b: Index) -> NDArray[np.int8]:
        """:meth:`relation` of a list of pairs."""
        view = self._view
        first, second = view.root[a], view.root[b]
        keys = np.minimum(first, second) * self.n + np.maximum(first, second)
        known = contains(view.keys, keys)
        return np.where(first == second, 1, -known.astype(np.int8)).astype(np.int8)

    def contradictions(self, limit: int | None = None) -> list[Contradiction]:
        """Answers that cannot all be true: for every pair said to differ that other answers make
        alike, one of these with a shortest chain of answers "alike" between its ends.

        With a closed list of k classes, also k + 1 groups that all differ, where deduction met
        them.

        Args:
            limit: look for at most so many.
        """
        found = super().contradictions(limit)
        for groups in self._view.too_many:
            if limit is None or len(found) < limit:
                found.append(
                    Contradiction(
                        differing_groups(self.facts, self._view.root, groups, self.threshold)
                    )
                )
        return found


def _greedy_clique(degrees: Index, sizes: Index, starts: Index, second: Index) -> Index:
    """Groups that all differ from one another, tried by degree, then by size, then by number."""
    order = np.lexsort((np.arange(len(degrees)), -sizes, -degrees))
    chosen: list[int] = []
    while len(order):
        group = int(order[0])
        chosen.append(group)
        neighbours = second[starts[group] : starts[group + 1]]
        order = order[contains(neighbours, order)]
    return np.array(sorted(chosen), dtype=np.int64)
