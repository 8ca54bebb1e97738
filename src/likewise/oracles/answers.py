"""What people said: facts about pairs, kept forever, with who said it and when.

Nothing that is derived (what follows from the answers, how sure one may be) is an answer:
:mod:`likewise.oracles.beliefs` computes that, and can compute it again.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from likewise.oracles.questions import Attribute, Grid, Outliers, Pair, Question
from likewise.runs.files import write_atomically

ALIKE, UNSURE, DIFFERENT = 1.0, 0.0, -1.0

LONGEST_LINE = 1 << 16
"""Bytes within which the last line of a file of answers begins."""


@dataclass(frozen=True)
class Answer:
    """One fact: two items are alike, different, or something between; or an item has an attribute.

    Args:
        a: an item.
        b: the other item; None where the fact is about an attribute.
        value: +1 alike (has it), -1 different (has it not), 0 unsure; a number between grades the
            similarity (``pal`` C.2.5).
        who: the person who said so.
        when: seconds since 1970.
        id: a name of its own: an answer that arrives twice with the same id counts once. Without
            one, every arrival is an answer.
        attribute: what was asked of a, where b is None.
        question: the kind, or the number, of the question that it answers.

    >>> Answer(3, 5, +1).pair
    (3, 5)
    """

    a: int
    b: int | None
    value: float
    who: str = ""
    when: float = 0.0
    id: str = ""
    attribute: str | None = None
    question: str = ""

    def __post_init__(self) -> None:
        # Files hold millions: what is right is seen to be right at once.
        if self.b is not None:
            right = self.attribute is None and self.a >= 0 <= self.b != self.a
        else:
            right = self.attribute is not None and self.a >= 0
        if not (right and -1.0 <= self.value <= 1.0):
            raise ValueError(self._fault())

    def _fault(self) -> str:
        if not -1.0 <= self.value <= 1.0:
            return (
                f"value is {self.value}: give +1 (alike), -1 (different), 0 (unsure) or a number "
                "between"
            )
        if self.a < 0 or (self.b is not None and self.b < 0):
            return f"a is {self.a} and b is {self.b}: items are numbers from 0 on"
        if self.b is None:
            return "b is None: name the attribute that was asked of a, or the other item"
        if self.attribute is not None:
            return (
                f"b is {self.b} and attribute is {self.attribute!r}: a fact is about a pair or "
                "about an attribute, not both"
            )
        return f"a and b are both {self.a}: an answer is about two items"

    @property
    def pair(self) -> tuple[int, int]:
        """The two items, the smaller first."""
        if self.b is None:
            raise ValueError(f"{self} is about an attribute: it has no pair")
        return (self.a, self.b) if self.a < self.b else (self.b, self.a)

    def to_dict(self) -> dict[str, Any]:
        """Plain values without what is empty, for JSON."""
        fields: dict[str, Any] = {"a": self.a, "value": self.value}
        if self.b is not None:
            fields["b"] = self.b
        for name in ("who", "when", "id", "attribute", "question"):
            if value := getattr(self, name):
                fields[name] = value
        return fields

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Answer:
        """The answer that :meth:`to_dict` wrote."""
        try:
            if "b" in values:
                return cls(**values)
            return cls(b=None, **values)
        except TypeError as error:
            raise ValueError(f"{values} is not an answer: {error}") from error


def answers_of(
    question: Question,
    clicked: Iterable[int] = (),
    *,
    unsure: Iterable[int] = (),
    graded: dict[int, float] | None = None,
    who: str = "",
    when: float = 0.0,
    id: str = "",
) -> list[Answer]:
    """A pattern of clicks as facts.

    * A pair: "alike" is a click on b.
    * A grid: the clicked candidates are alike to the exemplar, the others different from it.
    * Outliers: the clicked items do not belong. The first item that does belong stands for the
      others: they are alike to it, the clicked ones different from it. Where fewer than one item
      is left, nothing is said.
    * An attribute: the clicked candidates have it, the others have it not.

    Args:
        question: what was asked.
        clicked: the items that were clicked.
        unsure: items marked "cannot tell": a fact of value 0.
        graded: items with a similarity between -1 and 1 in place of a click.
        who, when: as in :class:`Answer`.
        id: a name of the submission; the facts get it with their number behind.

    >>> [(fact.b, fact.value) for fact in answers_of(Grid(0, (4, 7, 9)), [7], unsure=[9])]
    [(4, -1.0), (7, 1.0), (9, 0.0)]
    >>> [(fact.a, fact.b, fact.value) for fact in answers_of(Outliers((4, 7, 9)), [4])]
    [(7, 4, -1.0), (7, 9, 1.0)]
    """
    chosen, doubtful, grades = set(clicked), set(unsure), dict(graded or {})
    offered = set(question.items)
    for name, some in (("clicked", chosen), ("unsure", doubtful), ("graded", set(grades))):
        if strange := sorted(some - offered):
            raise ValueError(
                f"{name} holds {strange}, which the question does not show: {question}"
            )
    if both := sorted(chosen & doubtful | chosen & grades.keys() | doubtful & grades.keys()):
        raise ValueError(f"{both} are answered in two ways: give each item one answer")
    if isinstance(question, (Pair, Grid)):
        exemplar = question.items[0]
        if exemplar in chosen | doubtful | grades.keys():
            raise ValueError(
                f"{exemplar} is what the others are compared with: only the others are answered"
            )
        others: Iterable[int] = question.items[1:]
    elif isinstance(question, Outliers):
        # "Does not belong" is a click; "alike" is silence.
        belong = [
            item
            for item in question.items
            if item not in chosen and item not in doubtful and grades.get(item, 1.0) > 0
        ]
        if not belong:
            return []
        exemplar = belong[0]
        others = [item for item in question.items if item != exemplar]
        chosen = {item for item in others if item not in chosen}
    else:
        exemplar, others = -1, question.candidates

    def value(item: int) -> float:
        if item in doubtful:
            return UNSURE
        return grades.get(item, ALIKE if item in chosen else DIFFERENT)

    facts = []
    for number, item in enumerate(others):
        name = f"{id}-{number}" if id else ""
        if isinstance(question, Attribute):
            fact = Answer(item, None, value(item), who, when, name, question.name, question.kind)
        else:
            fact = Answer(exemplar, item, value(item), who, when, name, None, question.kind)
        facts.append(fact)
    return facts


def write_answers(path: Path | str, answers: Iterable[Answer]) -> None:
    """All answers into a file of one JSON object a line, there as a whole or not at all."""
    with write_atomically(path) as aside, aside.open("w", encoding="utf-8") as file:
        for answer in answers:
            file.write(json.dumps(answer.to_dict(), ensure_ascii=False) + "\n")


def append_answers(path: Path | str, answers: Iterable[Answer]) -> None:
    """More answers at the end of such a file, in one write that has reached the disk on return.

    A last line that a power cut left half is cut off first, as :func:`read_answers` leaves it out.
    """
    path = Path(path)
    lines = "".join(json.dumps(a.to_dict(), ensure_ascii=False) + "\n" for a in answers)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(max(0, file.tell() - LONGEST_LINE))
        last = file.read().rpartition(b"\n")[2]
        if last:
            try:
                json.loads(last)
                lines = "\n" + lines
            except ValueError:
                file.truncate(file.tell() - len(last))
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def read_answers(path: Path | str) -> list[Answer]:
    """The answers of a file, in the order in which they were given.

    A broken line is an error that names it, except the last: that one was being written when the
    power went, and whoever wrote it was never told that it is safe.
    """
    return list(_read(Path(path)))


def _read(path: Path) -> Iterator[Answer]:
    with path.open(encoding="utf-8") as file:
        number = 0
        while lines := list(islice(file, 10_000)):
            try:
                # Many lines as one list: a third of the time of one after the other.
                parsed = json.loads("[" + ",".join(lines) + "]")
                if len(parsed) != len(lines):
                    raise ValueError("a line holds more than one answer, or none")
                answers = [Answer.from_dict(values) for values in parsed]
            except ValueError:
                answers = list(_one_by_one(path, lines, number))
            yield from answers
            number += len(lines)


def _one_by_one(path: Path, lines: list[str], before: int) -> Iterator[Answer]:
    for number, line in enumerate(lines, before + 1):
        if not line.strip():
            continue
        try:
            yield Answer.from_dict(json.loads(line))
        except ValueError as error:
            if isinstance(error, json.JSONDecodeError) and not line.endswith("\n"):
                return
            raise ValueError(f"{path}, line {number}: {error}") from error


def stamped(answers: Iterable[Answer], *, who: str, when: float) -> list[Answer]:
    """The same facts, said by somebody at a time."""
    if not math.isfinite(when):
        raise ValueError(f"when is {when}: give seconds since 1970")
    return [replace(answer, who=who, when=when) for answer in answers]
