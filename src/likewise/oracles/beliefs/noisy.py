"""Beliefs where people err: a posterior over (item, class), and what to ask again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from likewise.graph import Graph
from likewise.graph.factored import FactoredGraph
from likewise.oracles.beliefs.base import Beliefs, Index
from likewise.oracles.beliefs.propagation import Matrix, Network, Posterior, Rates
from likewise.oracles.questions import Pair

MERGE = np.log(20.0)
"""Logarithm of how much likelier answers must be with two classes as one, to take them as one."""

FEW = 3
"""Items of a class that are asked whether it is another class."""

PROVISIONAL = 0.9
"""From which posterior on an item serves as an exemplar where no surer one is left."""

TEMPERATURES = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0)


@dataclass(frozen=True)
class Reask:
    """Somebody should be asked whether an item is like an exemplar.

    Attributes:
        item: whose class is uncertain.
        exemplar: an item of the class that it probably has, which it was not compared with yet.
        not_by: who answered about this item before; ask somebody else, if there is one.
        gain: bits that the answer is expected to bring.
    """

    item: int
    exemplar: int
    not_by: tuple[str, ...] = ()
    gain: float = 0.0

    @property
    def question(self) -> Pair:
        """The question."""
        return Pair(self.exemplar, self.item)


@dataclass
class _View:
    posterior: Matrix  # (n, classes + 1); the last: none that was found yet
    anchors: Index  # (classes,) the item that stands for each class
    rates: Rates
    temperature: float
    labels: Index  # (n,) accepted; -1: not
    unseen: float
    evidence: Matrix  # (classes, classes) logarithm of how much likelier they are one
    answers: Index  # (n,) answers that each item has


class NoisyBeliefs(Beliefs):
    """What answers that may be wrong imply: how likely every item is of every class.

    Classes are found while asking: the item with the most answers stands for the first, and an
    item that is confidently of none of the classes so far stands for the next. Two of them that
    the answers say to be one are taken as one. Items are compared by answers with other items,
    exemplars or not: what an answer says counts as much as the other end is certain (belief
    propagation). Annotators have two rates of mistakes each, which are estimated from all answers
    (:mod:`likewise.oracles.beliefs.propagation`).

    An item is accepted into a class when the posterior reaches `confidence` and at least one
    answer was given about it; :meth:`relation` and :meth:`labels` speak of accepted items only.

    Args:
        n: the number of items.
        closed_classes: the number of classes, where it is known that there are no others.
        confidence: from which posterior on an item is accepted.
        new_class: from which posterior on an item founds a class.
        threshold: for :meth:`contradictions`, see :class:`ExactBeliefs`.

    >>> from likewise.oracles.answers import Answer
    >>> said = [Answer(0, 1, +1, who) for who in "abc"] + [Answer(1, 2, -1, who) for who in "abc"]
    >>> beliefs = NoisyBeliefs(4).add([*said, Answer(0, 2, +1, "d")])
    >>> beliefs.relation(0, 1), beliefs.relation(0, 2), beliefs.relation(0, 3)
    (1, -1, 0)
    """

    def __init__(
        self,
        n: int,
        *,
        closed_classes: int | None = None,
        confidence: float = 0.99,
        new_class: float = 0.8,
        threshold: float = 0.5,
        iterations: int = 30,
    ) -> None:
        super().__init__(n, closed_classes=closed_classes, threshold=threshold)
        for name, value in (("confidence", confidence), ("new_class", new_class)):
            if not 0.5 < value < 1:
                raise ValueError(f"{name} is {value}: give a probability above 0.5 and below 1")
        self.confidence = confidence
        self.new_class = new_class
        self.iterations = iterations
        self._prior: Matrix | None = None
        self._prior_anchors: Index = np.zeros(0, dtype=np.int64)
        self._temperature: float | None = None
        self._cache: _View | None = None

    def _changed(self, before: int) -> None:
        self._cache = None

    def set_prior(self, probabilities: ArrayLike, temperature: float | None = None) -> None:
        """What a classifier thinks before the answers.

        It must not have seen, for an item, what was answered about that item: predict each item
        by a model that was fitted without it (cross-validation), or its own label confirms
        itself.

        Args:
            probabilities: (n, n_classes), columns in the order of :attr:`anchors`.
            temperature: the prior is p^(1/temperature), normalised. Default: the temperature
                under which the answers are likeliest.
        """
        P = np.asarray(probabilities, dtype=np.float64)
        anchors = self.anchors
        if P.shape != (self.n, len(anchors)):
            raise ValueError(
                f"probabilities have shape {P.shape}: give one row for each of the {self.n} items "
                f"and one column for each of the {len(anchors)} classes found so far"
            )
        if not (np.isfinite(P).all() and (P >= 0).all()):
            raise ValueError("probabilities hold negative or infinite numbers")
        if temperature is not None and not temperature > 0:
            raise ValueError(f"temperature is {temperature}: give a positive number")
        self._prior = np.log(np.maximum(P / np.maximum(P.sum(axis=1, keepdims=True), 1e-12), 1e-6))
        self._prior_anchors, self._temperature, self._cache = anchors, temperature, None

    # --- the posterior ------------------------------------------------------------------------

    @property
    def _view(self) -> _View:
        if self._cache is None:
            self._cache = self._derive()
        return self._cache

    def _derive(self) -> _View:
        facts = self.facts
        network = Network(facts.a, facts.b, facts.value, facts.who, len(facts.people))
        items = np.unique(np.concatenate([network.a, network.b]))
        # Items without an answer neither learn nor teach: propagate among the others only.
        network.a, network.b = np.searchsorted(items, network.a), np.searchsorted(items, network.b)
        counts = np.bincount(network.a, minlength=len(items)) + np.bincount(
            network.b, minlength=len(items)
        )
        rates = Rates.unknown(len(facts.people))
        anchors = np.searchsorted(items, self._prior_anchors).tolist()
        dropped: set[int] = set()
        temperature = 1.0 if self._temperature is None else self._temperature
        tempered = self._prior is None or self._temperature is not None
        if not anchors and len(items):
            anchors = [int(np.lexsort((items, -counts))[0])]
        result: Posterior | None = None
        while len(items):
            result = network.run(
                self._class_prior(items, items[anchors], temperature),
                anchors,
                rates,
                iterations=self.iterations,
                closed=self.closed_classes is not None and len(anchors) >= self.closed_classes,
            )
            rates = result.rates
            merge = self._to_merge(network, result)
            if merge is not None and len(anchors) > 1:
                dropped.add(anchors.pop(merge))
                continue
            new = self._to_found(result, anchors, dropped, counts)
            if new is not None:
                anchors.append(new)
            elif tempered:
                break
            else:
                temperature = self._fitting(items, items[anchors], result)
                tempered = True
        found = items[anchors] if len(items) else np.zeros(0, dtype=np.int64)
        return self._finish(items, found, result, rates, temperature, network, counts)

    def _class_prior(self, items: Index, anchors: Index, temperature: float) -> Matrix:
        """(items, classes) logarithms of the tempered prior; classes younger than the classifier
        get the mean share of a class."""
        k = len(anchors)
        if self._prior is None:
            return np.full((len(items), k), -np.log(k))
        table = np.full((len(items), k), np.nan)
        for c, anchor in enumerate(anchors):
            column = np.flatnonzero(self._prior_anchors == anchor)
            if len(column):
                table[:, c] = self._prior[items, column[0]] / temperature
        young = np.isnan(table).all(axis=0)
        if young.all():
            return np.full((len(items), k), -np.log(k))
        old = table[:, ~young]
        table[:, ~young] = old - _logsumexp(old)
        table[:, young] = np.log(1 / k)
        return table - _logsumexp(table)

    def _fitting(self, items: Index, anchors: Index, result: Posterior) -> float:
        """The temperature of the prior under which the answers are likeliest."""
        said = result.said[:, :-1]

        def likelihood(temperature: float) -> float:
            prior = self._class_prior(items, anchors, temperature)
            return float(_logsumexp(prior + said).sum())

        return max(TEMPERATURES, key=likelihood)

    def _to_merge(self, network: Network, result: Posterior) -> int | None:
        """A class that has lost all its items, or that the answers say to be one with another."""
        kept = np.bincount(result.belief.argmax(axis=1), minlength=result.belief.shape[1])[:-1]
        if not kept.all():
            return int(np.flatnonzero(kept == 0)[-1])
        evidence = np.triu(network.merging(result), 1)
        if evidence.max(initial=0.0) > MERGE:
            return int(np.unravel_index(evidence.argmax(), evidence.shape)[1])
        return None

    def _to_found(
        self, result: Posterior, anchors: list[int], dropped: set[int], counts: Index
    ) -> int | None:
        if self.closed_classes is not None and len(anchors) >= self.closed_classes:
            return None
        alone = result.belief[:, -1].copy()
        alone[list(dropped)] = 0.0
        candidates = np.flatnonzero(alone >= self.new_class)
        if not len(candidates):
            return None
        # The one compared most often has most to say about the others of its class.
        order = np.lexsort((candidates, -alone[candidates], -counts[candidates]))
        return int(candidates[order[0]])

    def _finish(
        self,
        items: Index,
        anchors: Index,
        result: Posterior | None,
        rates: Rates,
        temperature: float,
        network: Network,
        counts: Index,
    ) -> _View:
        n, k = self.n, len(anchors)
        posterior = np.zeros((n, k + 1))
        posterior[:, -1] = 1.0
        if result is not None:
            unseen = result.unseen
            everything = np.arange(n)
            posterior[:, :-1] = np.exp(self._class_prior(everything, anchors, temperature)) * (
                1 - unseen
            )
            posterior[:, -1] = unseen
            posterior[items] = result.belief
        labels = np.full(n, -1)
        best = posterior[:, :-1].argmax(axis=1) if k else np.zeros(n, dtype=np.int64)
        accepted = np.zeros(n, dtype=bool)
        accepted[items] = posterior[items, best[items]] >= self.confidence if k else False
        labels[accepted] = best[accepted]
        answers = np.zeros(n, dtype=np.int64)
        answers[items] = counts
        anchors = anchors.copy()
        for c in range(k):
            members = items[best[items] == c]
            sure = np.round(posterior[members, c], 6)
            if len(members):
                anchors[c] = members[np.lexsort((members, -answers[members], -sure))[0]]
            labels[anchors[c]] = c
        share = 1.0 if result is None else result.unseen
        evidence = np.zeros((k, k)) if result is None else network.merging(result)
        return _View(posterior, anchors, rates, temperature, labels, share, evidence, answers)

    # --- what is accepted ---------------------------------------------------------------------

    @property
    def anchors(self) -> Index:
        """(n_classes,) the surest item of every class, which stands for it."""
        return self._view.anchors.copy()

    def posterior(self) -> Matrix:
        """(n, n_classes) how likely every item is of every class; what is missing to 1 is how
        likely it is of a class that was not found yet."""
        return self._view.posterior[:, :-1].copy()

    @property
    def unseen(self) -> float:
        """The share of items, among those asked about, of classes that were not found yet."""
        return self._view.unseen

    def predictions(self) -> Index:
        """(n,) the likeliest class of every item, certain or not; -1 before the first class."""
        if not len(self._view.anchors):
            return np.full(self.n, -1)
        return self._view.posterior[:, :-1].argmax(axis=1)

    def rates(self) -> dict[str, tuple[float, float]]:
        """Every annotator's estimated mistakes: how often yes where it should be no, and no where
        it should be yes."""
        rates = self._view.rates
        return {
            person: (float(rates.yes[k]), float(rates.no[k]))
            for k, person in enumerate(self.facts.people)
        }

    def labels(self) -> Index:
        """(n,) the class that an item is accepted into; -1: none yet."""
        return self._view.labels.copy()

    def groups(self) -> Index:
        """(n,) accepted items by class, others with an answer each on their own; -1: no answer."""
        view, touched = self._view, self.asked()
        own = np.arange(self.n) + len(view.anchors)
        mark = np.where(view.labels >= 0, view.labels, np.where(touched, own, -1))
        kinds, first, places = np.unique(mark[touched], return_index=True, return_inverse=True)
        rank = np.empty(len(kinds), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(kinds))
        groups = np.full(self.n, -1)
        groups[touched] = rank[places]
        return groups

    @property
    def classes(self) -> Index:
        """The groups that are classes, in the order of :attr:`anchors`."""
        return self.groups()[self._view.anchors]

    def excluded(self) -> NDArray[np.bool_]:
        """(n, n_classes) whether an item with an answer is, almost surely, not of a class."""
        posterior = self._view.posterior[:, :-1]
        return (posterior <= 1 - self.confidence) & self.asked()[:, None]

    def relations(self, i: int, candidates: ArrayLike) -> NDArray[np.int8]:
        """+1 accepted into the same class; -1 one is accepted into a class that the other is
        excluded from; 0 else."""
        others = self._candidates(i, candidates)
        labels, excluded = self._view.labels, self.excluded()
        mine, theirs = labels[i], labels[others]
        relation = np.zeros(len(others), dtype=np.int8)
        if mine >= 0:
            relation[excluded[others, mine]] = -1
        known = theirs >= 0
        relation[known & excluded[i, np.maximum(theirs, 0)]] = -1
        relation[(known & (theirs == mine)) | (others == i)] = 1
        return relation

    def exemplars(self, c: int) -> Index:
        """The items accepted into class number c: the one that stands for it, then the surest."""
        view = self._view
        if not 0 <= c < len(view.anchors):
            raise ValueError(f"c is {c}, but {len(view.anchors)} classes are known")
        members = np.flatnonzero(view.labels == c)
        sure = np.round(view.posterior[members, c], 6)
        order = np.lexsort((members, -view.answers[members], -sure, members != view.anchors[c]))
        return members[order]

    def graph(self) -> Graph:
        """Weights 2 P(alike) - 1 among the items with an answer; everybody is alike to
        themselves."""
        view, touched = self._view, self.asked()
        codes = np.where(touched[:, None], view.posterior[:, :-1], 0.0)
        k = max(codes.shape[1], 1)
        if codes.shape[1] == 0:
            codes = np.zeros((self.n, 1))
        soft = FactoredGraph(
            self.n,
            codes=torch.from_numpy(codes),
            middle=2 * torch.eye(k, dtype=torch.float64) - 1,
            known_rows=torch.from_numpy(touched),
        )
        diagonal = 2 * (codes**2).sum(axis=1) - codes.sum(axis=1) ** 2
        nodes = np.arange(self.n)
        soft.answers_numpy = True
        return soft + Graph.from_edges(nodes, nodes, 1.0 - diagonal, n=self.n)

    # --- what to ask again --------------------------------------------------------------------

    def uncertain(self, k: int | None = None) -> Index:
        """Items that are not accepted yet, those first whose next answer tells most."""
        gains = self._gains().max(axis=1, initial=0.0)
        items = np.flatnonzero(self._view.labels < 0)
        # An item that was begun is finished first: a hundred items half known teach a classifier
        # less than fifty known, and only what is known not to be of any class founds a new one.
        likely = self._view.posterior.max(axis=1)
        begun = (self._view.answers > 0) & (likely < PROVISIONAL)
        return items[np.lexsort((items, -gains[items], ~begun[items]))][:k]

    def reasks(self, k: int, *, annotators: Sequence[str] = (), exemplars: int = 10) -> list[Reask]:
        """The k questions to ask next: uncertain items, each against an exemplar of the class
        about which an answer tells most, and which it was not compared with before.

        Items without an answer are among them: their first question is chosen like a second. A
        pair that was asked is asked again only where an annotator is left who did not answer it.

        Args:
            k: how many; fewer are given where nothing is left to ask.
            annotators: who can be asked.
            exemplars: how many of a class are tried.
        """
        view, facts = self._view, self.facts
        if not len(view.anchors):
            return [Reask(item, 0) for item in range(1, min(k + 1, self.n))]
        offered = self._offered(exemplars)
        asked: dict[int, dict[int, set[str]]] = {}
        for a, b, who in zip(facts.a.tolist(), facts.b.tolist(), facts.who.tolist(), strict=True):
            for one, other in ((a, b), (b, a)):
                asked.setdefault(one, {}).setdefault(other, set()).add(facts.people[who])
        chosen: list[Reask] = []
        gains = self._gains()
        doubts = self._doubtful_classes()
        wishes = [(item, [c]) for item, c in doubts] + [
            (item, np.argsort(-gains[item], kind="stable").tolist())
            for item in self.uncertain().tolist()
        ]
        for item, order in wishes:
            if len(chosen) == k:
                break
            met = asked.get(item, {})
            for c in order:
                choices = [
                    exemplar
                    for exemplar in offered[c]
                    if exemplar != item and (exemplar not in met or set(annotators) - met[exemplar])
                ]
                if choices:
                    exemplar = min(choices, key=lambda e: len(met.get(e, ())))
                    people = tuple(sorted(set().union(*met.values())))
                    chosen.append(Reask(item, exemplar, people, float(gains[item, c])))
                    break
        return chosen

    def _doubtful_classes(self) -> list[tuple[int, int]]:
        """Classes that may be one, as an item of the smaller and the number of the larger: a few
        mistakes can found a class twice, and nobody is uncertain about its items."""
        view = self._view
        sizes = np.bincount(view.labels[view.labels >= 0], minlength=len(view.anchors))
        if sizes.sum() < FEW * len(sizes):
            return []
        doubtful = []
        for small, large in zip(*np.nonzero(view.evidence > -MERGE), strict=True):
            if (sizes[small], -small) < (sizes[large], -large):
                members = self.exemplars(int(small))[:FEW]
                doubtful += [(int(item), int(large)) for item in members]
        return doubtful

    def _offered(self, count: int) -> list[list[int]]:
        """The exemplars of every class: the accepted ones, then those that are likely."""
        view = self._view
        offered = []
        for c in range(len(view.anchors)):
            likely = view.posterior[:, c]
            members = np.flatnonzero((likely >= PROVISIONAL) & (view.answers > 0))
            sure = np.round(likely[members], 3)
            order = np.lexsort((members, -view.answers[members], -sure, members != view.anchors[c]))
            offered.append(members[order][:count].tolist())
        return offered

    def _gains(self) -> Matrix:
        """(n, n_classes) the bits that an answer about an item and a class is expected to bring."""
        view = self._view
        q = view.posterior[:, :-1]
        false_yes, false_no = float(view.rates.yes.mean()), float(view.rates.no.mean())
        yes = q * (1 - false_no) + (1 - q) * false_yes
        gain = _entropy(yes) - q * _entropy(false_no) - (1 - q) * _entropy(false_yes)
        # Of two classes that tell as much, ask about the likelier: a yes ends it.
        return np.asarray(np.round(gain, 9) + 1e-6 * q)


def _logsumexp(logarithms: Matrix) -> Matrix:
    top = logarithms.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(logarithms - top).sum(axis=1, keepdims=True)))


def _entropy(p: Matrix | float) -> Matrix:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
