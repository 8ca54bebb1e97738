"""What to ask again: uncertain items, each against an exemplar that it has not met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.oracles.beliefs.closure import Index
from likewise.oracles.beliefs.discovery import MERGE, View
from likewise.oracles.beliefs.facts import Facts
from likewise.oracles.beliefs.propagation import Matrix
from likewise.oracles.questions import Pair

FEW = 3
"""Items of a class that are asked whether it is another class."""

PROVISIONAL = 0.9
"""From which posterior on an item serves as an exemplar where no surer one is left."""


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


def uncertain(view: View) -> Index:
    """Items that are not accepted yet, those first whose next answer tells most."""
    best = gains(view).max(axis=1, initial=0.0)
    items = np.flatnonzero(view.labels < 0)
    # An item that was begun is finished first: a hundred items half known teach a classifier
    # less than fifty known, and only what is known not to be of any class founds a new one.
    begun = (view.answers > 0) & (view.posterior.max(axis=1) < PROVISIONAL)
    return items[np.lexsort((items, -best[items], ~begun[items]))]


def reasks(
    view: View, facts: Facts, k: int, annotators: Sequence[str], exemplars: int
) -> list[Reask]:
    """See :meth:`NoisyBeliefs.reasks`."""
    if not len(view.anchors):
        return [Reask(item, 0) for item in range(1, min(k + 1, facts.n))]
    offered = _offered(view, exemplars)
    asked = _asked(facts)
    gain = gains(view)
    wishes = [(item, [c]) for item, c in _doubtful_classes(view)] + [
        (item, np.argsort(-gain[item], kind="stable").tolist()) for item in uncertain(view).tolist()
    ]
    chosen: list[Reask] = []
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
                chosen.append(Reask(item, exemplar, people, float(gain[item, c])))
                break
    return chosen


def members(view: View, c: int) -> Index:
    """The items accepted into class number c: the one that stands for it, then the surest."""
    return _surest(view, c, np.flatnonzero(view.labels == c), 6)


def _asked(facts: Facts) -> dict[int, dict[int, set[str]]]:
    """Of every item: whom it was compared with, and by whom."""
    asked: dict[int, dict[int, set[str]]] = {}
    for a, b, who in zip(facts.a.tolist(), facts.b.tolist(), facts.who.tolist(), strict=True):
        for one, other in ((a, b), (b, a)):
            asked.setdefault(one, {}).setdefault(other, set()).add(facts.people[who])
    return asked


def _doubtful_classes(view: View) -> list[tuple[int, int]]:
    """Classes that may be one, as an item of the smaller and the number of the larger: a few
    mistakes can found a class twice, and nobody is uncertain about its items."""
    sizes = np.bincount(view.labels[view.labels >= 0], minlength=len(view.anchors))
    if sizes.sum() < FEW * len(sizes):
        return []
    doubtful = []
    # A class of very few is rarer than two mistakes in a row: it takes more to believe it.
    needed = np.where(sizes <= FEW, 2.5 * MERGE, MERGE)
    for small, large in zip(*np.nonzero(view.evidence > -needed[:, None]), strict=True):
        if (sizes[small], -small) < (sizes[large], -large):
            doubtful += [(int(item), int(large)) for item in members(view, int(small))[:FEW]]
    return doubtful


def _offered(view: View, count: int) -> list[list[int]]:
    """The exemplars of every class: the accepted ones, then those that are likely."""
    offered = []
    for c in range(len(view.anchors)):
        likely = (view.posterior[:, c] >= PROVISIONAL) & (view.answers > 0)
        offered.append(_surest(view, c, np.flatnonzero(likely), 3)[:count].tolist())
    return offered


def _surest(view: View, c: int, items: Index, digits: int) -> Index:
    sure = np.round(view.posterior[items, c], digits)
    order = np.lexsort((items, -view.answers[items], -sure, items != view.anchors[c]))
    return items[order]


def gains(view: View) -> Matrix:
    """(n, n_classes) the bits that an answer about an item and a class is expected to bring."""
    q = view.posterior[:, :-1]
    if not q.shape[1]:
        return q
    false_yes, false_no = float(view.rates.yes.mean()), float(view.rates.no.mean())
    yes = q * (1 - false_no) + (1 - q) * false_yes
    gain = _entropy(yes) - q * _entropy(false_no) - (1 - q) * _entropy(false_yes)
    # Of two classes that tell as much, ask about the likelier: a yes ends it.
    return np.asarray(np.round(gain, 9) + 1e-6 * q)


def _entropy(p: Matrix | float) -> Matrix:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
