"""Beliefs where people err: a posterior over (item, class), and what to ask again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from likewise.graph import Graph
from likewise.graph.factored import FactoredGraph
from likewise.oracles.beliefs import again
from likewise.oracles.beliefs.again import Reask
from likewise.oracles.beliefs.base import Beliefs, Index
from likewise.oracles.beliefs.discovery import Discovery, Prior, Settings, View
from likewise.oracles.beliefs.propagation import Matrix


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
        iterations: of belief propagation, at most.

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
        self._settings = Settings(closed_classes, confidence, new_class, iterations)
        self._prior = Prior()
        self._cache: View | None = None

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
        P = P / np.maximum(P.sum(axis=1, keepdims=True), 1e-12)
        self._prior = Prior(np.log(np.maximum(P, 1e-6)), anchors, temperature)
        self._cache = None

    # --- the posterior ------------------------------------------------------------------------

    @property
    def _view(self) -> View:
        if self._cache is None:
            self._cache = Discovery(self.facts, self._settings, self._prior).run()
        return self._cache

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
        relation[np.flatnonzero(known)[excluded[i, theirs[known]]]] = -1
        relation[(known & (theirs == mine)) | (others == i)] = 1
        return relation

    def exemplars(self, c: int) -> Index:
        """The items accepted into class number c: the one that stands for it, then the surest."""
        view = self._view
        if not 0 <= c < len(view.anchors):
            raise ValueError(f"c is {c}, but {len(view.anchors)} classes are known")
        return again.members(view, c)

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
        return again.uncertain(self._view)[:k]

    def reasks(self, k: int, *, annotators: Sequence[str] = (), exemplars: int = 10) -> list[Reask]:
        """The k questions to ask next: uncertain items, each against an exemplar of the class
        about which an answer tells most, and which it was not compared with before.

        Items without an answer are among them: their first question is chosen like a second. A
        pair that was asked is asked again only where an annotator is left who did not answer it.
        Classes that may be one and the same come first.

        Args:
            k: how many; fewer are given where nothing is left to ask.
            annotators: who can be asked.
            exemplars: how many of a class are tried.
        """
        return again.reasks(self._view, self.facts, k, annotators, exemplars)
