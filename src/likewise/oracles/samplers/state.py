"""What a sampler sees: the rows, what is known about them, and a classifier trained on that."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.beliefs import Beliefs, ExactBeliefs, NoisyBeliefs
from likewise.oracles.beliefs.closure import contains
from likewise.oracles.labelers import AnswerTime
from likewise.oracles.probe import Fitted, Probe
from likewise.oracles.questions import Grid, Pair, Question

Index = NDArray[np.int64]

SHARPNESS = 2.0
"""Propagated probabilities are too timid: their square, normalised, is nearer to how often they
are right."""


@dataclass
class State:
    """One moment of asking. What is derived is computed on first use and kept; a state is not to
    be used any more once its beliefs have changed.

    Args:
        X: (n, d) rows.
        beliefs: what is known about the n items.
        rng: for what is random.
        grid: candidates of a question; with 1, pairs are asked.
        probe: the classifier; by default a new one.
        questions: how many were asked so far.
        time: the model of a person's time.
    """

    X: NDArray[np.floating]
    beliefs: Beliefs
    rng: np.random.Generator
    grid: int = 15
    probe: Probe = None  # type: ignore[assignment]
    questions: int = 0
    time: AnswerTime = field(default_factory=AnswerTime)

    def __post_init__(self) -> None:
        if len(self.X) != self.beliefs.n:
            raise ValueError(f"X has {len(self.X)} rows, but beliefs are about {self.beliefs.n}")
        if self.grid < 1:
            raise ValueError(f"grid is {self.grid}: give the number of candidates, at least 1")
        if self.probe is None:
            self.probe = Probe(self.X)

    # --- what is known ------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """How many items there are."""
        return self.beliefs.n

    @cached_property
    def n_classes(self) -> int:
        """How many classes were found."""
        return self.beliefs.n_classes

    @cached_property
    def labels(self) -> Index:
        """(n,) the class of every item; -1 where it is unknown."""
        return self.beliefs.labels()

    @cached_property
    def groups(self) -> Index:
        """(n,) the group of every item; -1 where nothing was answered."""
        return self.beliefs.groups()

    @cached_property
    def _met(self) -> Index:
        """Pairs (low * n + high, sorted) that were asked and are not settled by that.

        Where nobody errs, those are the ones of which somebody was unsure."""
        facts = self.beliefs.facts
        a, b = facts.a, facts.b
        if isinstance(self.beliefs, ExactBeliefs):
            weak = np.abs(facts.value) < self.beliefs.threshold
            a, b = a[weak], b[weak]
        return np.unique(self._pairs(a, b))

    def _pairs(self, a: Index | int, b: Index) -> Index:
        return np.minimum(a, b) * self.n + np.maximum(a, b)

    def met(self, a: Index | int, b: Index) -> NDArray[np.bool_]:
        """Which pairs were asked without being settled: they are not asked again."""
        return contains(self._met, self._pairs(a, b))

    @cached_property
    def closed(self) -> NDArray[np.bool_]:
        """(pool, classes) that is not to be asked: known, implied, or nobody could tell."""
        items = self.probe.items
        placed = (self.labels[items] >= 0)[:, None]
        if not isinstance(self.beliefs, ExactBeliefs):
            closed = self.beliefs.excluded()[items] | placed
        else:
            closed = np.zeros((len(items), self.n_classes), dtype=bool)
            for c in range(self.n_classes):
                closed[:, c] = self.beliefs.relations(self.exemplar(c), items) != 0
            closed |= placed
            low, high = self._met // self.n, self._met % self.n
            for a, b in ((low, high), (high, low)):
                theirs, place = self.labels[b], self.probe.place[a]
                here = (theirs >= 0) & (place >= 0)
                closed[place[here], theirs[here]] = True
        return closed

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """(pool,) whether something can still be asked that would place an item.

        Of a group whose class is unknown, one item stands for all."""
        items = self.probe.items
        unplaced = self.labels[items] < 0
        if self.n_classes:
            unplaced &= ~self.closed.all(axis=1)
        groups = self.groups[items]
        first = np.unique(np.where(groups >= 0, groups, -1 - np.arange(len(items))), True)[1]
        alone = np.zeros(len(items), dtype=bool)
        alone[first] = True
        return unplaced & alone

    # --- the classifier -----------------------------------------------------------------------

    @cached_property
    def fitted(self) -> Fitted:
        """The classifier, trained on what is known."""
        return self.probe.fit(self.labels, self.n_classes)

    def probabilities(self) -> NDArray[np.floating]:
        """(n, classes) of all items. (Samplers use :attr:`pool`, which does not grow with n.)"""
        return self.fitted.items()

    @cached_property
    def _possible(self) -> NDArray[np.floating]:
        """(pool, classes) sharpened probabilities, 0 where a class is ruled out."""
        found = self.fitted.pool**SHARPNESS
        found /= np.maximum(found.sum(axis=1, keepdims=True), 1e-12)
        if isinstance(self.beliefs, NoisyBeliefs):
            # Answers that may be wrong count by how likely they make a class.
            heard = self.beliefs.asked()[self.probe.items]
            found[heard] = self.beliefs.posterior()[self.probe.items[heard]]
        found[self.closed & (self.labels[self.probe.items] < 0)[:, None]] = 0.0
        return found

    @cached_property
    def pool(self) -> NDArray[np.floating]:
        """(pool, classes) probabilities of the items of the pool, given what is ruled out."""
        total = self._possible.sum(axis=1, keepdims=True)
        return self._possible / np.where(total > 0, total, 1.0)

    @cached_property
    def covariance(self) -> NDArray[np.float32]:
        """(pool, pool) what is open about the pool, given the placed items."""
        places = self.probe.place[np.flatnonzero(self.labels >= 0)]
        return self.probe.field.given(places[places >= 0])

    @cached_property
    def unexplained(self) -> NDArray[np.floating]:
        """(pool,) the share of an item's variance that the placed items leave open."""
        left = np.diagonal(self.covariance) / self.probe.field.prior
        return np.clip(left, 0.0, 1.0)

    @cached_property
    def with_new(self) -> NDArray[np.floating]:
        """(pool, classes + 1) probabilities; the last column is a class that is not known yet.

        Among items about which nothing is explained, new classes are as frequent as among those
        placed so far, (classes + 1) / (placed + 2); where more is explained, they are rarer."""
        placed = int((self.labels >= 0).sum())
        rate = (self.n_classes + 1) / (placed + 2) if placed else 1.0
        new = np.maximum(rate * self.unexplained, 1e-9)
        new[self.labels[self.probe.items] >= 0] = 0.0
        # What is ruled out takes no part, so that a "no" makes a new class likelier, too.
        found = np.c_[self._possible * (1.0 - new)[:, None], new]
        return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12)

    def expected_change(self) -> float:
        """The share of items whose predicted class an answer would be expected to correct."""
        if not self.n_classes:
            return 1.0
        return float(np.mean(1.0 - self.with_new[:, :-1].max(axis=1)))

    def expected_answers(self) -> NDArray[np.floating]:
        """(pool,) answers until an item is placed, asked class by class, the likeliest first.

        A new class is one that differs from all: sum_k k p_(k) + (classes left) p_new."""
        found = self.with_new
        ordered = -np.sort(-found[:, :-1], axis=1)
        left = np.maximum((~self.closed).sum(axis=1), 1)
        rank = np.arange(1, self.n_classes + 1)
        return np.maximum(ordered @ rank + found[:, -1] * left, 1e-6)

    # --- questions ----------------------------------------------------------------------------

    def exemplar(self, c: int, items: Index | None = None) -> int:
        """The known item of a class that is nearest to their mean.

        Args:
            c: the class.
            items: of several exemplars, one that the fewest of these were compared with before.
        """
        if c not in self._exemplars:
            # Looking in the pool is quick; whoever errs is asked about the surest ones.
            here = self.probe.items[self.labels[self.probe.items] == c]
            if isinstance(self.beliefs, NoisyBeliefs) or not len(here):
                here = self.beliefs.exemplars(c)
            members = here[:500]
            rows = np.asarray(self.X[members], dtype=np.float64)
            away = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
            self._exemplars[c] = members[np.argsort(away, kind="stable")]
        choices = self._exemplars[c]
        if items is not None and len(self._met):
            counts = [int(self.met(int(choice), items).sum()) for choice in choices[:20]]
            return int(choices[int(np.argmin(counts))])
        return int(choices[0])

    @cached_property
    def _exemplars(self) -> dict[int, Index]:
        return {}

    def ask(self, exemplar: int, candidates: Index | list[int]) -> Question | None:
        """A grid (or a pair) without what is known already; None where nothing is left of it.

        No two candidates are of one group, since an answer about one is an answer about both."""
        shown = np.asarray(candidates, dtype=np.int64)
        shown = shown[~self.met(exemplar, shown)]
        if self.n_classes:  # before the first class, nothing is known
            shown = shown[self.beliefs.relations(exemplar, shown) == 0]
        taken: list[int] = []
        seen: set[int] = set()
        for item in shown.tolist():
            group = int(self.groups[item])
            if item == exemplar or item in taken or group in seen:
                continue
            if group >= 0:
                seen.add(group)
            taken.append(item)
            if len(taken) == self.grid:
                break
        if not taken:
            return None
        if self.grid == 1:
            return Pair(taken[0], exemplar)
        return Grid(exemplar, tuple(taken))
