"""Gold tiles: about one tile in twenty has an answer that is sure, so that a person's accuracy is
known."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from likewise.annotate.mind import Snapshot

TRIES = 40
"""Known items that are looked at to find one that fits."""


def gold_tiles(
    snapshot: Snapshot,
    exemplar: int,
    taken: set[int],
    seen: Set[int],
    count: int,
    rng: np.random.Generator,
) -> dict[int, bool]:
    """Items whose relation to the exemplar is known, with it (True: alike).

    Alike and different are drawn by the toss of a coin, so that neither answer is a sign of gold.

    Args:
        snapshot: what is known.
        exemplar: what they are compared with.
        taken: items that are shown already.
        seen: items that this person was asked about; they would be recognised, and come last.
        count: how many, at most.
        rng: for what is random.
    """
    chosen: dict[int, bool] = {}
    if count < 1 or not snapshot.n_classes:
        return chosen
    for _ in range(count):
        wanted = [bool(rng.integers(2))]
        for alike in (wanted[0], not wanted[0]):
            item = _one(snapshot, exemplar, alike, taken | chosen.keys(), seen, rng)
            if item is not None:
                chosen[item] = alike
                break
    return chosen


def _one(
    snapshot: Snapshot,
    exemplar: int,
    alike: bool,
    taken: set[int],
    seen: Set[int],
    rng: np.random.Generator,
) -> int | None:
    own = snapshot.class_of(exemplar)
    if alike:
        if own is None:
            return None
        among = snapshot.members[own]
    else:
        among = snapshot.placed
    drawn = rng.choice(among, min(TRIES, len(among)), replace=False)
    drawn = drawn[~np.isin(drawn, [exemplar, *taken])]
    if not len(drawn):
        return None
    relations = np.array(snapshot.relations(exemplar, drawn.tolist()))
    fits = drawn[relations == (1 if alike else -1)].tolist()
    fresh = [item for item in fits if item not in seen]
    return (fresh or fits or [None])[0]


def gold_figures(answers: list[tuple[dict[str, bool], set[str], set[str], bool]]) -> float | None:
    """The share of gold tiles that somebody got right; "unsure" is neither right nor wrong.

    Args:
        answers: of every submission the gold tiles with the truth, what was clicked, what was
            marked unsure, and whether a click means "different" (outliers).

    >>> gold_figures([({"a": True, "b": False, "c": True}, {"a", "b"}, {"c"}, False)])
    0.5
    """
    right = asked = 0
    for gold, clicked, unsure, reverse in answers:
        for key, alike in gold.items():
            if key not in unsure:
                asked += 1
                right += ((key in clicked) != reverse) == alike
    return right / asked if asked else None
