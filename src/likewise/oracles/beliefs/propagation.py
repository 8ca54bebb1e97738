"""Belief propagation over answers that may be wrong, and the annotators' rates of mistakes.

Item i has a class z_i. An annotator with the rates p (says "alike" of a pair that differs) and q
(says "different" of a pair that is alike) gives the answer v to the pair (i, j) with

    P(v | z_i = z_j) = (1 - q if v is alike, else q),
    P(v | z_i != z_j) = (p if v is alike, else 1 - p):

the two coins of Dawid and Skene (1979), tossed for pairs. A graded answer of value v counts as the
power \\|v\\| of the answer that it leans to; "unsure" says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.oracles.beliefs.closure import Index

Matrix = NDArray[np.float64]

RATE, STRENGTH = 0.05, 50.0
"""What is thought of an annotator before the first answer: 1 mistake in 20, worth 50 answers."""

LARGEST_RATE = 0.35
"""Nobody is taken to err more often than this: beyond, "yes" would mean "no"."""

ANCHORED = 0.999
"""How likely the item that founded a class belongs to it, before any answer."""

SAME_UNKNOWN = 0.3
"""How likely two items, both of classes that nobody has found yet, are alike."""


@dataclass
class Rates:
    """Mistakes of every annotator: `yes` where the truth is no, `no` where the truth is yes."""

    yes: Matrix
    no: Matrix

    @classmethod
    def unknown(cls, people: int) -> Rates:
        """Before the first answer."""
        return cls(np.full(people, RATE), np.full(people, RATE))


class Network:
    """Items and answers, and the messages that answers carry between items.

    Args:
        a, b: the two items of every answer.
        value: what was said.
        who: the number of the annotator.
        people: how many annotators there are.
    """

    def __init__(self, a: Index, b: Index, value: Matrix, who: Index, people: int) -> None:
        said = value != 0
        low, high = np.minimum(a, b)[said], np.maximum(a, b)[said]
        size = int(high.max(initial=0)) + 1
        keys, first, place = np.unique(
            (low * size + high) * people + who[said], return_index=True, return_inverse=True
        )
        # Who is asked the same again says the same again: that is no second opinion. (Sorted, so
        # that sums do not depend on who answered first.)
        mean = np.bincount(place, value[said]) / np.maximum(np.bincount(place), 1)
        mean, first = mean[mean != 0], first[mean != 0]
        self.a, self.b, self.who = low[first], high[first], who[said][first]
        self.yes, self.weight, self.people = mean > 0, np.abs(mean), people

    def likelihoods(self, rates: Rates) -> tuple[Matrix, Matrix]:
        """P(what was said | alike) and P(what was said | different), for every answer."""
        alike = np.where(self.yes, 1 - rates.no[self.who], rates.no[self.who])
        different = np.where(self.yes, rates.yes[self.who], 1 - rates.yes[self.who])
        return alike**self.weight, different**self.weight

    def run(
        self,
        log_prior: Matrix,
        anchors: Sequence[int],
        rates: Rates,
        *,
        iterations: int,
        closed: bool = False,
    ) -> Posterior:
        """Sum-product messages, with the rates, and the share of classes not found yet, that fit.

        The message of item b to item a over an answer is, for class c,
        m(c) = r(c) P(v | alike) + (1 - r(c)) P(v | different), where r is what b would think
        without a. On a tree this is exact. The last class is "none that was found yet".

        Args:
            log_prior: (items, classes), normalised.
            anchors: the item that stands for every class.
            rates: to begin with.
            iterations: rounds at most; it ends when nothing moves any more.
            closed: whether there are no other classes.
        """
        size, n, k = len(self.a), *log_prior.shape
        k += 1
        to_a, to_b = np.zeros((size, k)), np.zeros((size, k))
        unseen = 1e-12 if closed else 0.5
        prior = _with_unseen(log_prior, anchors, unseen)
        belief, said = prior, np.zeros((n, k))
        cavity_a = cavity_b = np.zeros((size, k))
        for round_ in range(iterations):
            cavity_a = _normalised(belief[self.a] - to_a)
            cavity_b = _normalised(belief[self.b] - to_b)
            alike, different = self.likelihoods(rates)
            new_a = _message(cavity_b, alike, different)
            new_b = _message(cavity_a, alike, different)
            # Half of the way from the second round on: loops of answers must not swing.
            keep = 0.5 if round_ else 0.0
            to_a = keep * to_a + (1 - keep) * new_a
            to_b = keep * to_b + (1 - keep) * new_b
            before = _normalised(belief)
            said = _gather(self.a, to_a, n) + _gather(self.b, to_b, n)
            belief = prior + said
            after = _normalised(belief)
            rates = self._rates(cavity_a, cavity_b, alike, different, unseen)
            if not closed:
                unseen = float(np.clip((1 + after[:, -1].sum()) / (2 + n), 1e-3, 0.9))
                prior = _with_unseen(log_prior, anchors, unseen)
            if round_ and np.abs(after - before).max(initial=0.0) < 1e-3:
                break
        return Posterior(_normalised(belief), said, unseen, rates, cavity_a, cavity_b)

    def _rates(
        self,
        cavity_a: Matrix,
        cavity_b: Matrix,
        alike: Matrix,
        different: Matrix,
        unseen: float,
    ) -> Rates:
        """The share of mistakes among the answers that should have been no, or yes.

        While classes are missing, "no" to all that are known is as well explained by an annotator
        who says no too often, and each belief would talk the other up: until few items are left
        of classes not found yet, the rates stay near what was thought before the first answer."""
        same = _same(cavity_a, cavity_b)
        joint = same * alike
        same = joint / (joint + (1 - same) * different)
        strength = STRENGTH + 4 * len(same) * min(1.0, max(0.0, unseen - 0.02) / 0.08)

        def share(truth: Matrix, mistaken: NDArray[np.bool_]) -> Matrix:
            weight = truth * self.weight
            wrong = np.bincount(self.who, weight * mistaken, self.people)
            total = np.bincount(self.who, weight, self.people)
            # What all annotators do is the best guess about one who said little so far.
            common = (wrong.sum() + RATE * strength) / (total.sum() + strength)
            rate = (wrong + common * strength) / (total + strength)
            return np.clip(rate, 1e-3, LARGEST_RATE)

        return Rates(yes=share(1 - same, self.yes), no=share(same, ~self.yes))

    def merging(self, posterior: Posterior) -> Matrix:
        """(classes, classes): the logarithm of how much likelier the answers between two classes
        would be if they were one."""
        alike, different = self.likelihoods(posterior.rates)
        evidence = np.log(alike / different)[:, None]
        one = (posterior.cavity_a[:, :-1] * evidence).T @ posterior.cavity_b[:, :-1]
        return one + one.T


@dataclass
class Posterior:
    """What is thought: (items, classes + 1), what the answers alone say (logarithms), the share of
    classes not found yet, the rates, and each end of every answer without it."""

    belief: Matrix
    said: Matrix
    unseen: float
    rates: Rates
    cavity_a: Matrix
    cavity_b: Matrix


def _with_unseen(log_prior: Matrix, anchors: Sequence[int], unseen: float) -> Matrix:
    column = np.full((len(log_prior), 1), np.log(unseen))
    prior = np.concatenate([np.log1p(-unseen) + log_prior, column], axis=1)
    # What stands for a class is an item like others: enough answers can move it to another class.
    prior[list(anchors)] = np.log((1 - ANCHORED) / max(len(anchors), 1))
    prior[list(anchors), np.arange(len(anchors))] = np.log(ANCHORED)
    return prior


def _same(first: Matrix, second: Matrix) -> Matrix:
    products = first * second
    return products[:, :-1].sum(axis=1) + SAME_UNKNOWN * products[:, -1]


def _message(cavity: Matrix, alike: Matrix, different: Matrix) -> Matrix:
    agree = cavity.copy()
    agree[:, -1] *= SAME_UNKNOWN
    return np.log(agree * alike[:, None] + (1 - agree) * different[:, None])


def _gather(items: Index, messages: Matrix, n: int) -> Matrix:
    return (
        np.stack([np.bincount(items, column, n) for column in messages.T], axis=1)
        if len(items)
        else np.zeros((n, messages.shape[1]))
    )


def _normalised(logarithms: Matrix) -> Matrix:
    values = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)
