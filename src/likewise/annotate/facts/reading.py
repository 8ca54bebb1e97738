"""What facts say about pairs, once undos and splits are taken into account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likewise.annotate.facts.fact import Fact, shown

if TYPE_CHECKING:
    from likewise.oracles.answers import Answer

# As likewise.oracles.answers has them, which takes seconds to import.
ALIKE, UNSURE, DIFFERENT = 1.0, 0.0, -1.0

Numbered = tuple[int, Fact]
"""A fact with the sequence number that the store gave it."""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer about a pair, by key: :class:`likewise.oracles.Answer` before items have numbers.

    Attributes:
        a: the key of an item.
        b: of the other.
        value: +1 alike, -1 different, 0 unsure.
        who: the person.
        when: seconds since 1970.
        id: the fact's id with the number of the pair behind.
        question: the kind of question that it answers.
        sequence: of the fact.
    """

    a: str
    b: str
    value: float
    who: str = ""
    when: float = 0.0
    id: str = ""
    question: str = ""
    sequence: int = 0

    def numbered(self, a: int, b: int) -> Answer:
        """The same about the items of these numbers. (The id stays behind: the store has seen to
        it that every fact counts once.)"""
        from likewise.oracles.answers import Answer

        return Answer(a, b, self.value, self.who, self.when, "", None, self.question)


def pairs_of(sequence: int, fact: Fact) -> list[Said]:
    """The pairs that an answer speaks of, as :func:`likewise.oracles.answers_of` has them.

    Gold tiles are left out: what is asked to see how careful somebody is was known before.

    >>> body = {
    ...     "question": {"kind": "grid", "exemplar": "x", "candidates": ["a", "b", "c"]},
    ...     "clicked": ["a"],
    ...     "gold": {"c": True},
    ... }
    >>> [(said.b, said.value) for said in pairs_of(1, Fact("f", "answer", "ada", 0.0, body))]
    [('a', 1.0), ('b', -1.0)]
    """
    body = fact.body
    if fact.kind != "answer" or body.get("skipped"):
        return []
    exemplar, tiles = shown(body["question"])
    kind = body["question"]["kind"]
    clicked, unsure, gold = (
        set(body.get("clicked", ())),
        set(body.get("unsure", ())),
        body.get("gold", {}),
    )
    yes, no = (ALIKE, DIFFERENT)
    if exemplar is None:
        # Outliers: a click is "does not belong"; the first that belongs stands for the others.
        exemplar = next((key for key in tiles if key not in clicked and key not in unsure), None)
        if exemplar is None:
            return []
        yes, no = (DIFFERENT, ALIKE)
        tiles = [key for key in tiles if key != exemplar]
    return [
        Said(
            exemplar,
            key,
            UNSURE if key in unsure else yes if key in clicked else no,
            fact.who,
            fact.when,
            f"{fact.id}-{number}",
            kind,
            sequence,
        )
        for number, key in enumerate(tiles)
        if key not in gold
    ]


def undone(facts: Iterable[Fact]) -> set[str]:
    """The ids of facts that are undone; an undo that is undone itself does nothing.

    >>> facts = [Fact(id, "undo", "ada", 0.0, {"fact": of}) for id, of in (("2", "1"), ("3", "2"))]
    >>> undone(facts)
    {'2'}
    """
    gone: set[str] = set()
    # The last word counts: whether an undo stands is settled before what it undoes.
    for fact in reversed([fact for fact in facts if fact.kind == "undo"]):
        if fact.id not in gone:
            gone.add(fact.body["fact"])
    return gone


class Reading:
    """Facts read in order: the answers and names that count now.

    Attributes:
        answers: every answer about a pair that counts.
        names: what a class is called, by one of its items; later names come later.
        facts: all facts by id, with their numbers, undone or not.
        sequence: the number of the last fact.

    >>> grid = {"kind": "grid", "exemplar": "x", "candidates": ["a"]}
    >>> reading = Reading()
    >>> reading.add([(1, Fact("1", "answer", "ada", 0.0, {"question": grid, "clicked": ["a"]}))])
    True
    >>> len(reading.answers)
    1
    >>> reading.add([(2, Fact("2", "undo", "ada", 0.0, {"fact": "1"}))]), reading.answers
    (False, [])
    """

    def __init__(self, facts: Iterable[Numbered] = ()) -> None:
        self.answers: list[Said] = []
        self.names: dict[str, str] = {}
        self.facts: dict[str, Numbered] = {}
        self.undone: set[str] = set()
        self.sequence = 0
        self.add(facts)

    def add(self, facts: Iterable[Numbered]) -> bool:
        """Read more.

        Returns:
            True where the answers only grew; False where something that was said before does not
            count any more, so that whatever was derived has to be derived again.
        """
        grew = True
        for sequence, fact in facts:
            self.sequence = max(self.sequence, sequence)
            if fact.id in self.facts:
                continue
            self.facts[fact.id] = (sequence, fact)
            if fact.kind in ("undo", "split"):
                grew = False
            elif grew:
                self._take(sequence, fact)
        if not grew:
            self._again()
        return grew

    def _again(self) -> None:
        self.answers, self.names = [], {}
        self.undone = undone(fact for _, fact in self.facts.values())
        for sequence, fact in self.facts.values():
            self._take(sequence, fact)

    def _take(self, sequence: int, fact: Fact) -> None:
        if fact.id in self.undone:
            return
        if fact.kind == "answer":
            self.answers += pairs_of(sequence, fact)
        elif fact.kind == "name":
            self.names.pop(fact.body["item"], None)  # a later name comes last
            self.names[fact.body["item"]] = fact.body["name"]
        elif fact.kind == "split":
            self.answers = list(_split(self.answers, sequence, fact))


def _split(answers: list[Said], sequence: int, fact: Fact) -> Iterator[Said]:
    """Answers after a split: the items leave the class of `from`, which stays together.

    A yes between an item that leaves and one that stays is taken back; where that cut the class,
    a yes between two that stay takes its place.
    """
    start, leaving = fact.body["from"], set(fact.body["items"])
    alike: dict[str, list[str]] = {}
    for said in answers:
        if said.value >= 0.5:
            alike.setdefault(said.a, []).append(said.b)
            alike.setdefault(said.b, []).append(said.a)
    together, reached = {start: None}, [start]  # a dict: in order
    while reached:
        for other in alike.get(reached.pop(), ()):
            if other not in together:
                together[other] = None
                reached.append(other)
    staying = [key for key in together if key not in leaving]
    cut = False
    for said in answers:
        if said.value >= 0.5 and said.a in together and (said.a in leaving) != (said.b in leaving):
            cut = True
        else:
            yield said
    new = Said(start, start, 0.0, fact.who, fact.when, "", "split", sequence)
    number = 0
    if cut:
        for key in staying[1:]:
            yield replace(new, b=key, value=ALIKE, id=f"{fact.id}-{number}")
            number += 1
    for key in fact.body["items"]:
        yield replace(new, b=key, value=DIFFERENT, id=f"{fact.id}-{number}")
        number += 1


def body_without_secrets(body: dict[str, Any]) -> dict[str, Any]:
    """The body as its author may see it: not which tiles were gold."""
    return {name: value for name, value in body.items() if name != "gold"}
