"""What could be asked, many questions at once: from the sampler, from the classifier, from nothing.

The sampler's questions are the best and take time. Where many people answer at once, or while the
index is still being built, there are plainer ones, so that nobody waits.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.annotate.mind.snapshot import Index, Snapshot
from likewise.oracles.questions import Grid, Outliers, Pair, Question
from likewise.oracles.samplers import Sampler, State

DRAWN = 2000
"""Items that are drawn at random where all of them would be too many to look at."""

BEYOND = 4000
"""Items outside of the classifier's pool that it looks at in one go."""


@dataclass(frozen=True)
class Proposal:
    """A question that may be handed out.

    Attributes:
        question: by number.
        holds: the items that nobody else is to be asked about meanwhile: those without a class.
    """

    question: Question
    holds: frozenset[int]


def proposal(question: Question, labels: NDArray[np.signedinteger[Any]]) -> Proposal:
    """A question with the items that it is about."""
    return Proposal(question, frozenset(item for item in question.items if labels[item] < 0))


def best(sampler: Sampler, state: State, busy: set[int], tries: int = 3) -> Proposal | None:
    """The sampler's next question about items that are not busy; None where it has none."""
    state = copy.copy(state)  # it shares all that is derived, except what is open
    state.open = state.open.copy()
    places = state.probe.place[np.fromiter(busy, np.int64, len(busy))]
    state.open[places[places >= 0]] = False
    for _ in range(tries):
        question = sampler.propose(state)
        if question is None:
            return None
        question = without(question, {item for item in busy if state.labels[item] < 0})
        if question is not None:
            return proposal(question, state.labels)
    return None


def without(question: Question, items: set[int]) -> Question | None:
    """A question that does not show some items; None where nothing is left of it."""
    if not items.intersection(question.items):
        return question
    if isinstance(question, Grid):
        left = tuple(item for item in question.candidates if item not in items)
        return Grid(question.exemplar, left) if left and question.exemplar not in items else None
    if isinstance(question, Outliers):
        kept = tuple(item for item in question.items if item not in items)
        return Outliers(kept) if len(kept) > 2 else None
    return None


def plain(state: State, busy: set[int], rng: np.random.Generator) -> Iterator[Proposal]:
    """Many grids (or pairs) at once: items against the class that they probably are of.

    They are of the classifier's pool and of outside of it, half and half; within a class the least
    sure come first.
    """
    sources: list[list[Proposal]] = []
    for items, probabilities in _guesses(state, rng):
        free = np.array([item not in busy for item in items.tolist()], dtype=bool)
        items, probabilities = items[free], probabilities[free]
        likeliest = probabilities.argmax(axis=1)
        order = np.argsort(probabilities.max(axis=1), kind="stable")
        grids: list[Proposal] = []
        for c in np.unique(likeliest).tolist():
            mine = items[order[likeliest[order] == c]]
            exemplar = state.exemplar(c)
            for start in range(0, len(mine), state.grid):
                question = state.ask(exemplar, mine[start : start + state.grid])
                if question is not None:
                    grids.append(proposal(question, state.labels))
        sources.append([grids[place] for place in rng.permutation(len(grids))])
    for several in zip_longest(*sources):
        yield from (found for found in several if found is not None)


def _guesses(
    state: State, rng: np.random.Generator
) -> Iterator[tuple[Index, NDArray[np.floating]]]:
    if not state.n_classes:
        return
    if len(state.probe.items) < state.n:
        drawn = rng.permutation(np.unique(rng.integers(0, state.n, 2 * BEYOND)))
        drawn = drawn[(state.groups[drawn] < 0) & (state.probe.place[drawn] < 0)][:BEYOND]
        if len(drawn):
            yield drawn, state.fitted.of(state.X[drawn])
    places = np.flatnonzero(state.open)
    if len(places):
        allowed = np.where(state.closed[places], 0.0, state.with_new[places, :-1])
        yield state.probe.items[places], allowed


def from_nothing(
    X: NDArray[np.floating],
    snapshot: Snapshot,
    grid: int,
    busy: set[int],
    rng: np.random.Generator,
    count: int = 20,
) -> Iterator[Proposal]:
    """Grids of a random item with the nearest of a few thousand others: needs no index."""
    n = len(X)
    drawn = rng.choice(n, min(n, DRAWN), replace=False)
    labels = snapshot.labels
    free = np.array([labels[i] < 0 and i not in busy for i in drawn.tolist()], dtype=bool)
    drawn = drawn[free]
    rows = np.asarray(X[drawn], dtype=np.float32)
    used: set[int] = set()
    for place in range(min(count, len(drawn))):
        exemplar = int(drawn[place])
        if exemplar in used:
            continue
        away = ((rows - rows[place]) ** 2).sum(axis=1)
        order = [int(i) for i in drawn[np.argsort(away, kind="stable")] if int(i) not in used]
        near = [item for item in order if item != exemplar][: 2 * grid]
        known = snapshot.relations(exemplar, near) if near else []
        tiles = [item for item, relation in zip(near, known, strict=True) if not relation][:grid]
        if not tiles:
            continue
        question: Question
        question = Pair(tiles[0], exemplar) if grid == 1 else Grid(exemplar, tuple(tiles))
        used.update((exemplar, *tiles))
        yield proposal(question, labels)


def outliers(
    state: State, grid: int, busy: set[int], rng: np.random.Generator
) -> Iterator[Proposal]:
    """Items that are probably all of one class, with some that surely are: who does not belong?"""
    for items, probabilities in _guesses(state, rng):
        free = np.array([item not in busy for item in items.tolist()], dtype=bool)
        items, probabilities = items[free], probabilities[free]
        if not len(items):
            continue
        likeliest = probabilities.argmax(axis=1)
        surest = np.argsort(-probabilities.max(axis=1), kind="stable")
        for c in rng.permutation(state.n_classes).tolist():
            sure = [state.exemplar(c)]
            sure += [i for i in state.beliefs.exemplars(c)[:5].tolist() if i not in sure][:2]
            mine = items[surest[likeliest[surest] == c]]
            room = max(grid - len(sure), 1)
            for start in range(0, len(mine), room):
                part = mine[start : start + room].tolist()
                question = Outliers(tuple([*sure, *part]))
                yield proposal(question, state.labels)


def about_item(
    X: NDArray[np.floating],
    snapshot: Snapshot,
    item: int,
    grid: int,
    busy: set[int],
    *,
    kind: str = "grid",
    chunk: int = 100_000,
) -> Proposal | None:
    """A question from an item that somebody chose: the nearest others of which it is not known
    whether they are like it."""
    row = np.asarray(X[item], dtype=np.float32)
    away = np.empty(len(X), dtype=np.float32)
    for start in range(0, len(X), chunk):
        part = np.asarray(X[start : start + chunk], dtype=np.float32)
        away[start : start + chunk] = np.einsum("ij,ij->i", part, part) - 2 * (part @ row)
    wanted = min(len(X), 40 * grid + 200)
    near = np.argpartition(away, wanted - 1)[:wanted]
    near = near[np.argsort(away[near], kind="stable")]
    near = near[near != item]
    if not len(near):
        return None
    known = np.array(snapshot.relations(item, near.tolist()))
    groups = snapshot.groups
    tiles: list[int] = []
    seen: set[int] = set()
    for other in near[known == 0].tolist():
        group = int(groups[other])
        if other in busy and snapshot.labels[other] < 0 or (group >= 0 and group in seen):
            continue
        if group >= 0:
            seen.add(group)
        tiles.append(other)
        if len(tiles) == (1 if kind == "pair" else grid):
            break
    if not tiles:
        return None
    question: Question
    if kind == "pair":
        question = Pair(tiles[0], item)  # shown first is the second, as samplers have it
    elif kind == "outliers":
        if len(tiles) < 2:
            return None
        question = Outliers((item, *tiles[: max(grid - 1, 2)]))
    else:
        question = Grid(item, tuple(tiles))
    return proposal(question, snapshot.labels)
