"""Three clouds of points, people who know which is which, and what tests of the desk need else."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import numpy as np

from likewise.annotate import Asked, Desk
from likewise.data.arrays import ArraySource

N, CLASSES = 60, 3
TRUTH = np.arange(N) % CLASSES
CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
ROWS = CENTRES[TRUTH] + np.random.default_rng(0).normal(size=(N, 2))
SOURCE = ArraySource(np.zeros((N, 2, 2), np.uint8), keys=[f"photo {k}" for k in range(N)])


def kind_of(key: str) -> int:
    return int(TRUTH[int(key.split()[1])])


def true_clicks(asked: Asked) -> list[str]:
    """What somebody says who knows."""
    if asked.exemplar is not None:
        return [key for key in asked.tiles if kind_of(key) == kind_of(asked.exemplar)]
    most = Counter(map(kind_of, asked.tiles)).most_common(1)[0][0]
    return [key for key in asked.tiles if kind_of(key) != most]


def soon(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something that is worked out in the background is there."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.01)


def caught_up(desk: Desk) -> Desk:
    soon(lambda: desk.snapshot.sequence == desk.store.last())
    return desk


class Ids:
    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> str:
        self.number += 1
        return f"fact-{self.number}"


def answer(desk: Desk, who: str, asked: Asked, id: str, clicked: list[str] | None = None) -> bool:
    clicked = true_clicks(asked) if clicked is None else clicked
    return desk.answer(who, id=id, question_id=asked.id, clicked=clicked, seconds=2.0)


def answer_some(desk: Desk, new_id: Ids, count: int, who: str = "ada") -> None:
    for _ in range(count):
        asked = caught_up(desk).question(who)
        if asked is None:
            return
        answer(desk, who, asked, new_id())
    caught_up(desk)
