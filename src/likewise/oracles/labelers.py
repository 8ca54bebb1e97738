"""Who answers: ground truth with mistakes and a clock. (A person answers through the page.)"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.oracles.answers import Answer, answers_of
from likewise.oracles.questions import Attribute, Grid, Pair, Question


@dataclass(frozen=True)
class AnswerTime:
    """Seconds that a person needs: :math:`base + tile \\cdot shown + click \\cdot clicks`.

    The defaults are put together from textbook figures, not measured on this page. The keystroke-
    level model (Card, Moran and Newell 1980) gives 1.35 s to make up one's mind, 1.1 s to point at
    something, 0.1 s for the press of a button and 0.2 s for a key; one look at one tile is one
    fixation of a scene, about 0.33 s (Rayner 1998). A pair is answered by a key, a grid by
    pointing at tiles and then at "send".

    Args:
        base: to understand the question and to send the answer (1.35 + 1.1 + 0.1).
        tile: to look at one image.
        click: to point at one image and press.
        pair: to decide a single pair and to press a key (1.35 + 0.2), in place of `base` and
            `click`.

    >>> time = AnswerTime()
    >>> time.seconds(Grid(0, tuple(range(1, 16))), clicks=7)
    16.23
    >>> time.seconds(Pair(0, 1), clicks=1)
    2.21
    """

    base: float = 2.55
    tile: float = 0.33
    click: float = 1.2
    pair: float = 1.55

    def __post_init__(self) -> None:
        for name in ("base", "tile", "click", "pair"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: seconds are 0 or more")

    def seconds(self, question: Question, clicks: int) -> float:
        """The seconds of one question answered with so many clicks."""
        shown = len(question.items)
        if isinstance(question, Pair):
            return round(self.pair + self.tile * shown, 6)
        return round(self.base + self.tile * shown + self.click * clicks, 6)


@dataclass(frozen=True)
class Answered:
    """The facts that a question brought, and the seconds that it took."""

    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0.0


class Labeler(ABC):
    """Somebody, or something, that answers questions."""

    annotators: tuple[str, ...] = ("",)
    """Who can be asked."""

    @abstractmethod
    def answer(self, question: Question, *, who: str | None = None) -> Answered:
        """What is said about a question.

        Args:
            question: what is asked.
            who: which of the annotators is asked; default: the labeler chooses.
        """


class TruthLabeler(Labeler):
    """Ground truth, with mistakes at given rates and a model of the time that answers take.

    Mistakes are the annotator's own: asked the same pair again, the same annotator says the same
    again (a second opinion has to come from another annotator, or about another exemplar). They
    depend on the seed, the annotator and the pair alone, never on what was asked before.

    Args:
        labels: (n,) the class of every item.
        false_yes: how often "alike" is said of a pair that differs; one number, or one for every
            annotator.
        false_no: how often "different" is said of a pair that is alike.
        seconds: the model of the time.
        annotators: how many people answer; they take turns unless `who` is given.
        attributes: for questions about attributes: the name, and (n,) whether an item has it.
        seed: of the mistakes.

    >>> labeler = TruthLabeler([0, 1, 0, 0])
    >>> [fact.value for fact in labeler.answer(Grid(0, (1, 2, 3))).answers]
    [-1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        labels: ArrayLike,
        *,
        false_yes: float | Sequence[float] = 0.0,
        false_no: float | Sequence[float] = 0.0,
        seconds: AnswerTime | None = None,
        annotators: int = 1,
        attributes: Mapping[str, ArrayLike] | None = None,
        seed: int = 0,
    ) -> None:
        self.labels: NDArray[Any] = np.asarray(labels)
        if self.labels.ndim != 1:
            raise ValueError(f"labels have shape {self.labels.shape}: give one class for each item")
        if annotators < 1:
            raise ValueError(f"annotators is {annotators}: somebody has to answer")
        self.annotators = tuple(f"annotator-{k + 1}" for k in range(annotators))
        self.false_yes = _rates("false_yes", false_yes, annotators)
        self.false_no = _rates("false_no", false_no, annotators)
        self.time = AnswerTime() if seconds is None else seconds
        self.attributes = {
            name: np.asarray(has, dtype=bool) for name, has in (attributes or {}).items()
        }
        self.seed = seed
        self._turn = 0

    def answer(self, question: Question, *, who: str | None = None) -> Answered:
        """The truth about a question, with this annotator's mistakes."""
        annotator = self._annotator(who)
        items = np.array(question.items)
        if items.max() >= len(self.labels):
            raise ValueError(
                f"{question} shows item {items.max()}, but labels are {len(self.labels)}"
            )
        clicked: list[int]
        if isinstance(question, (Pair, Grid)):
            exemplar, others = items[0], items[1:]
            alike = self.labels[others] == self.labels[exemplar]
            said = self._said(alike, others, np.full_like(others, exemplar), annotator)
            clicked = others[said].tolist()
        elif isinstance(question, Attribute):
            has = self._attribute(question.name)[items]
            salt = int.from_bytes(hashlib.sha256(question.name.encode()).digest()[:4], "big")
            clicked = items[self._said(has, items, np.full_like(items, salt), annotator)].tolist()
        else:
            clicked = self._outliers(items, annotator)
        return Answered(
            answers_of(question, clicked, who=self.annotators[annotator]),
            self.time.seconds(question, len(clicked)),
        )

    def _annotator(self, who: str | None) -> int:
        if who is None:
            self._turn += 1
            return (self._turn - 1) % len(self.annotators)
        if who not in self.annotators:
            raise ValueError(f"who is {who!r}: it is one of {', '.join(self.annotators)}")
        return self.annotators.index(who)

    def _attribute(self, name: str) -> NDArray[np.bool_]:
        if name not in self.attributes:
            known = ", ".join(self.attributes) or "none"
            raise ValueError(f"attribute {name!r} is unknown: give attributes= (known: {known})")
        return self.attributes[name]

    def _outliers(self, items: NDArray[np.int64], annotator: int) -> list[int]:
        """The items that are not of the kind most often seen (of several, the first shown)."""
        kinds, first, counts = np.unique(self.labels[items], return_index=True, return_counts=True)
        usual = kinds[np.lexsort((first, -counts))[0]]
        reference = items[first[kinds == usual][0]]
        belongs = self.labels[items] == usual
        others = items != reference
        said = belongs.copy()
        said[others] = self._said(
            belongs[others], items[others], np.full(others.sum(), reference), annotator
        )
        return items[~said].tolist()

    def _said(
        self,
        alike: NDArray[np.bool_],
        a: NDArray[np.int64],
        b: NDArray[np.int64],
        annotator: int,
    ) -> NDArray[np.bool_]:
        rates = np.where(alike, self.false_no[annotator], self.false_yes[annotator])
        mistaken = uniform_of(self.seed, annotator, np.minimum(a, b), np.maximum(a, b)) < rates
        return alike ^ mistaken


def uniform_of(
    seed: int, stream: int, a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.float64]:
    """A number in [0, 1) that depends on the arguments alone: splitmix64 (Steele et al. 2014).

    >>> numbers = uniform_of(0, 0, np.arange(10_000), np.arange(10_000) + 1)
    >>> bool(abs(numbers.mean() - 0.5) < 0.01)
    True
    """
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is what is meant
        state = _mix(np.full(a.shape, seed % 2**63, dtype=np.uint64) + np.uint64(stream + 1))
        state = _mix(state ^ a.astype(np.uint64))
        state = _mix(state ^ b.astype(np.uint64))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _rates(name: str, rates: float | Sequence[float], annotators: int) -> NDArray[np.float64]:
    values = (
        np.broadcast_to(np.asarray(rates, dtype=float), (annotators,))
        if np.ndim(rates) == 0
        else np.asarray(rates, dtype=float)
    )
    if values.shape != (annotators,):
        raise ValueError(
            f"{name} has {values.size} rates for {annotators} annotators: give one each"
        )
    if not ((values >= 0) & (values < 1)).all():
        raise ValueError(f"{name} is {rates}: a rate of mistakes lies between 0 and 1")
    return values
