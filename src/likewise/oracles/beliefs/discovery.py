"""Which classes answers that may be wrong speak of, and how likely every item is of each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from likewise.oracles.beliefs.closure import Index
from likewise.oracles.beliefs.facts import Facts
from likewise.oracles.beliefs.propagation import Matrix, Network, Posterior, Rates

MERGE = float(np.log(20.0))
"""Logarithm of how much likelier answers must be with two classes as one, to take them as one."""

ROUNDS = 200
"""Classes founded or merged at most before it is left as it is."""

TEMPERATURES = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0)
"""Among which the temperature of a prior is chosen."""


@dataclass(frozen=True)
class Settings:
    """What :class:`NoisyBeliefs` was told."""

    closed_classes: int | None
    confidence: float
    new_class: float
    iterations: int

    def complete(self, classes: int) -> bool:
        """Whether there are no others."""
        return self.closed_classes is not None and classes >= self.closed_classes


@dataclass(frozen=True)
class Prior:
    """What a classifier thinks: logarithms (n, classes), and the item that stands for each class.

    The temperature None is the one under which the answers are likeliest."""

    table: Matrix | None = None
    anchors: Index = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    temperature: float | None = None

    def of(self, items: Index, anchors: Index, temperature: float) -> Matrix:
        """(items, classes) logarithms of the tempered prior; classes younger than the classifier
        get the mean share of a class."""
        k = len(anchors)
        uniform = np.full((len(items), k), -np.log(max(k, 1)))
        columns = [np.flatnonzero(self.anchors == anchor) for anchor in anchors]
        old = np.array([len(column) > 0 for column in columns], dtype=bool)
        if self.table is None or not old.any():
            return uniform
        numbers = np.array([column[0] for column in columns if len(column)])
        known = self.table[np.ix_(items, numbers)] / temperature
        uniform[:, old] = known - logsumexp(known)
        return uniform - logsumexp(uniform)


@dataclass(frozen=True)
class View:
    """All that is derived from the answers.

    Attributes:
        posterior: (n, classes + 1); the last: none that was found yet.
        anchors: (classes,) the surest item of each class.
        labels: (n,) the class that an item is accepted into, or -1.
        unseen: the share of items of classes not found yet.
        evidence: (classes, classes) logarithm of how much likelier answers are with two as one.
        answers: (n,) how many opinions there are about each item.
        rates: of every annotator's mistakes.
        temperature: of the prior.
    """

    posterior: Matrix
    anchors: Index
    labels: Index
    unseen: float
    evidence: Matrix
    answers: Index
    rates: Rates
    temperature: float


class Discovery:
    """Classes are founded by items that are of none, and merged where answers say that two are one.

    Computed from all answers anew, so that it depends on nothing but them and the prior.
    """

    def __init__(self, facts: Facts, settings: Settings, prior: Prior) -> None:
        self.n, self.settings, self.prior = facts.n, settings, prior
        self.network = Network(facts.a, facts.b, facts.value, facts.who, len(facts.people))
        # Items without an answer neither learn nor teach: propagate among the others only.
        self.items = np.unique(np.concatenate([self.network.a, self.network.b]))
        self.network.a = np.searchsorted(self.items, self.network.a)
        self.network.b = np.searchsorted(self.items, self.network.b)
        size = len(self.items)
        self.counts = np.bincount(self.network.a, minlength=size) + np.bincount(
            self.network.b, minlength=size
        )
        self.rates = Rates.unknown(len(facts.people))
        self.temperature = 1.0 if prior.temperature is None else prior.temperature

    def run(self) -> View:
        """The classes and the posterior."""
        if not len(self.items):
            return self._nothing()
        anchors = np.searchsorted(self.items, self.prior.anchors).tolist()
        if not anchors:
            anchors = [int(np.lexsort((self.items, -self.counts))[0])]
        tempered = self.prior.table is None or self.prior.temperature is not None
        dropped: set[int] = set()
        for left in range(ROUNDS, -1, -1):
            result = self._propagate(anchors)
            merge = self._to_merge(result) if left else None
            if merge is not None and len(anchors) > 1:
                dropped.add(anchors.pop(merge))
                continue
            new = self._to_found(result, anchors, dropped) if left else None
            if new is not None:
                anchors.append(new)
            elif tempered or not left:
                break
            else:
                self.temperature, tempered = self._fitting(anchors, result), True
        return self._finish(anchors, result)

    def _propagate(self, anchors: list[int]) -> Posterior:
        result = self.network.run(
            self.prior.of(self.items, self.items[anchors], self.temperature),
            anchors,
            self.rates,
            iterations=self.settings.iterations,
            closed=self.settings.complete(len(anchors)),
        )
        self.rates = result.rates
        return result

    def _fitting(self, anchors: list[int], result: Posterior) -> float:
        """The temperature of the prior under which the answers are likeliest."""
        said = result.said[:, :-1]

        def likelihood(temperature: float) -> float:
            prior = self.prior.of(self.items, self.items[anchors], temperature)
            return float(logsumexp(prior + said).sum())

        return max(TEMPERATURES, key=likelihood)

    def _to_merge(self, result: Posterior) -> int | None:
        """A class that has lost all its items, or that the answers say to be one with another."""
        kept = np.bincount(result.belief.argmax(axis=1), minlength=result.belief.shape[1])[:-1]
        if not kept.all():
            return int(np.flatnonzero(kept == 0)[-1])
        evidence = np.triu(self.network.merging(result), 1)
        if evidence.max(initial=0.0) > MERGE:
            return int(np.unravel_index(evidence.argmax(), evidence.shape)[1])
        return None

    def _to_found(self, result: Posterior, anchors: list[int], dropped: set[int]) -> int | None:
        """An item that is of none of the classes."""
        if self.settings.complete(len(anchors)):
            return None
        alone = result.belief[:, -1].copy()
        alone[list(dropped)] = 0.0
        candidates = np.flatnonzero(alone >= self.settings.new_class)
        if not len(candidates):
            return None
        # The one compared most often has most to say about the others of its class.
        order = np.lexsort((candidates, -alone[candidates], -self.counts[candidates]))
        return int(candidates[order[0]])

    def _nothing(self) -> View:
        none = np.zeros(0, dtype=np.int64)
        return View(
            posterior=np.ones((self.n, 1)),
            anchors=none,
            labels=np.full(self.n, -1),
            unseen=1.0,
            evidence=np.zeros((0, 0)),
            answers=np.zeros(self.n, dtype=np.int64),
            rates=self.rates,
            temperature=self.temperature,
        )

    def _finish(self, founders: list[int], result: Posterior) -> View:
        n, items = self.n, self.items
        anchors = items[founders]
        prior = np.exp(self.prior.of(np.arange(n), anchors, self.temperature))
        posterior = np.concatenate(
            [prior * (1 - result.unseen), np.full((n, 1), result.unseen)], axis=1
        )
        posterior[items] = result.belief
        best = posterior[:, :-1].argmax(axis=1)
        labels = np.full(n, -1)
        accepted = items[posterior[items, best[items]] >= self.settings.confidence]
        labels[accepted] = best[accepted]
        answers = np.zeros(n, dtype=np.int64)
        answers[items] = self.counts
        for c in range(len(anchors)):
            members = items[best[items] == c]
            if len(members):
                sure = np.round(posterior[members, c], 6)
                anchors[c] = members[np.lexsort((members, -answers[members], -sure))[0]]
            labels[anchors[c]] = c
        return View(
            posterior=posterior,
            anchors=anchors,
            labels=labels,
            unseen=result.unseen,
            evidence=self.network.merging(result),
            answers=answers,
            rates=result.rates,
            temperature=self.temperature,
        )


def logsumexp(logarithms: Matrix) -> Matrix:
    """Over each row, as a column."""
    top = logarithms.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(logarithms - top).sum(axis=1, keepdims=True)))
