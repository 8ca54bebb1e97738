"""From a proposal to what a person sees: without what is known by now, with some gold tiles."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from likewise.annotate.desk.gold import gold_tiles
from likewise.annotate.mind import Proposal, Snapshot
from likewise.oracles.questions import Outliers, Pair, Question

Pairing: TypeAlias = tuple[int, int]
"""Two items, the smaller number first."""

MOST_GOLD = 0.4
"""The share of gold tiles in one question, at most."""

OWED = 2.0
"""Gold tiles that may be missing before a question is chosen for their sake."""

FEWEST_OUTLIERS = 3


@dataclass(frozen=True)
class Layout:
    """What is shown, by number.

    Attributes:
        kind: of the question.
        exemplar: None for outliers.
        tiles: in the order of the page.
        gold: the tiles whose answer is known, with it (True: alike).
        holds: the items that nobody else is to be asked about meanwhile.
        pairs: what is asked, as pairs; nobody else is to be asked about those either.
    """

    kind: str
    exemplar: int | None
    tiles: list[int]
    gold: dict[int, bool]
    holds: frozenset[int]
    pairs: frozenset[Pairing]


def pairing(a: int, b: int) -> Pairing:
    """Two items, in whichever order.

    >>> pairing(7, 3)
    (3, 7)
    """
    return (a, b) if a < b else (b, a)


def pairs_asked(
    exemplar: int | None, tiles: Sequence[int], gold: Collection[int]
) -> frozenset[Pairing]:
    """The pairs that a question asks about; what is gold is known.

    >>> sorted(pairs_asked(5, [3, 7, 9], {9}))
    [(3, 5), (5, 7)]
    >>> sorted(pairs_asked(None, [1, 2, 3], {1}))  # who does not belong with the others?
    [(1, 2), (1, 3), (2, 3)]
    """
    new = [tile for tile in tiles if tile not in gold]
    if exemplar is not None:
        return frozenset(pairing(exemplar, tile) for tile in new)
    return frozenset(pairing(one, other) for one in new for other in tiles if one != other)


class Handing:
    """Lays out questions.

    Args:
        grid: tiles of a question.
        gold_share: the share of tiles whose answer is known already.
        rng: for what is random.
    """

    def __init__(self, grid: int, gold_share: float, rng: np.random.Generator) -> None:
        self.grid, self.gold_share = grid, gold_share
        self._rng = rng
        self._tally: dict[str, tuple[int, int]] = {}  # tiles and gold tiles of everybody

    def lay_out(
        self,
        who: str,
        ready: Proposal,
        snapshot: Snapshot,
        busy: set[int],
        seen: Set[int],
        *,
        open_pairs: Set[Pairing] = frozenset(),
        chosen: int | None = None,
    ) -> Layout | None:
        """What somebody is shown of a proposal; None where nothing is left of it.

        Args:
            who: the person.
            ready: what was proposed, perhaps some answers ago.
            snapshot: what is known now.
            busy: items that are in open questions, or were skipped not long ago.
            seen: items that this person was asked about.
            open_pairs: pairs that are in open questions.
            chosen: an item that the person wants to be asked about, busy or not.
        """
        exemplar, tiles = _unknown(ready.question, snapshot)
        # What had a class when it was proposed may have none any more, and the reverse.
        taken = {i for i in busy if i in ready.holds or snapshot.labels[i] < 0} - {chosen}
        tiles = [tile for tile in tiles if tile not in taken]
        tiles = _not_open(exemplar, tiles, open_pairs, snapshot)
        if exemplar in taken or not tiles:
            return None
        if exemplar is None:
            placed = [tile for tile in tiles if snapshot.labels[tile] >= 0]
            # Outliers need somebody who surely belongs, and somebody of whom it is not known.
            if len(tiles) < FEWEST_OUTLIERS or len(placed) in (0, len(tiles)) and chosen is None:
                return None
            tiles, gold = self._gold_among_outliers(who, tiles, placed, snapshot, seen)
        else:
            tiles, gold = self.with_gold(who, ready.question.kind, exemplar, tiles, snapshot, seen)
        before = self._tally.get(who, (0, 0))
        self._tally[who] = (before[0] + len(tiles), before[1] + len(gold))
        about = [i for i in (exemplar, *tiles) if i is not None and i not in gold]
        holds = frozenset(i for i in about if snapshot.labels[i] < 0 and i not in busy)
        tiles = [tiles[k] for k in self._rng.permutation(len(tiles))]
        pairs = pairs_asked(exemplar, tiles, gold)
        return Layout(ready.question.kind, exemplar, tiles, gold, holds, pairs)

    def with_gold(
        self,
        who: str,
        kind: str,
        exemplar: int,
        tiles: list[int],
        snapshot: Snapshot,
        seen: Set[int],
    ) -> tuple[list[int], dict[int, bool]]:
        """Tiles with some gold ones; no more than a grid has."""
        count = self._gold_count(who, len(tiles))
        gold = gold_tiles(snapshot, exemplar, set(tiles), seen, count, self._rng)
        if kind == "pair":
            return (list(gold), gold) if gold else (tiles, {})
        return [*tiles[: max(self.grid - len(gold), 1)], *gold], gold

    def _gold_among_outliers(
        self, who: str, tiles: list[int], placed: list[int], snapshot: Snapshot, seen: Set[int]
    ) -> tuple[list[int], dict[int, bool]]:
        """Those that surely belong are gold anyway; perhaps one more, of any class."""
        gold = dict.fromkeys(placed, True)
        if placed and self._rng.random() < self.gold_share * len(tiles):
            gold |= gold_tiles(snapshot, placed[0], set(tiles), seen, 1, self._rng)
        return list(dict.fromkeys([*tiles, *gold])), gold

    def owes(self, who: str) -> bool:
        """Whether somebody has seen too little gold: then a question about a known class is due,
        since no answer about an exemplar without a class is sure."""
        shown, gold = self._tally.get(who, (0, 0))
        return self.gold_share * shown - gold >= OWED

    def _gold_count(self, who: str, tiles: int) -> int:
        """How many tiles of the next question should be gold, so that the share comes out.

        Where the exemplar has no class yet, no answer about it is sure; what is missing then is
        made up for later."""
        if not self.gold_share:
            return 0
        shown, gold = self._tally.get(who, (0, 0))
        missing = self.gold_share * (shown + tiles) - gold
        share = min(max(missing / tiles, self.gold_share / 2), MOST_GOLD)
        return int(self._rng.binomial(tiles, share))


def _unknown(question: Question, snapshot: Snapshot) -> tuple[int | None, list[int]]:
    """The exemplar, and the tiles of which it is not known whether they are like it."""
    if isinstance(question, Outliers):
        return None, list(question.items)
    if isinstance(question, Pair):  # of the samplers: (item, exemplar)
        exemplar, tiles = question.b, [question.a]
    else:
        exemplar, tiles = question.items[0], list(question.items[1:])
    known = snapshot.relations(exemplar, tiles)
    return exemplar, [tile for tile, sign in zip(tiles, known, strict=True) if sign == 0]


def _not_open(
    exemplar: int | None, tiles: list[int], open_pairs: Set[Pairing], snapshot: Snapshot
) -> list[int]:
    """The tiles about which nobody else is asked beside this exemplar, or beside these tiles."""
    if exemplar is not None:
        return [tile for tile in tiles if pairing(exemplar, tile) not in open_pairs]
    kept: list[int] = []
    for tile in sorted(tiles, key=lambda item: snapshot.labels[item] < 0):  # the sure ones stay
        sure = snapshot.labels[tile] >= 0
        if sure or not any(pairing(tile, other) in open_pairs for other in kept):
            kept.append(tile)
    return [tile for tile in tiles if tile in kept]


def in_words(kind: str, exemplar: int | None, snapshot: Snapshot) -> str:
    """The question as a sentence."""
    if exemplar is None:
        return "Which of these do not belong with the others?"
    name = snapshot.name_of(exemplar)
    if kind == "pair":
        return "Are these two the same kind?" if name is None else f"Is this also “{name}”?"
    if name is None:
        return "Which of these are the same kind as this one?"
    return f"Which of these are “{name}”, like this one?"
