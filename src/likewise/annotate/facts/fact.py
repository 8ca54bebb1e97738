"""What people do on the page, as facts that are only ever added: answers, undos, names, splits.

A fact speaks of items by key. What it says about pairs is in
:mod:`likewise.annotate.facts.reading`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["answer", "undo", "name", "split"]

KINDS: tuple[Kind, ...] = ("answer", "undo", "name", "split")
QUESTIONS = ("grid", "pair", "outliers")
"""The kinds of questions that an answer may be to."""

LONGEST_ID = 100
LONGEST_NAME = 200
LONGEST_KEY = 4096
MOST_ITEMS = 10_000
"""Items of one fact: a split of a large class is the longest."""


@dataclass(frozen=True)
class Fact:
    """One thing that somebody said; it is never changed, and undone only by another fact.

    Args:
        id: made by whoever sends it: the same id twice is one fact.
        kind: "answer", "undo", "name" or "split".
        who: the person.
        when: seconds since 1970, by the server's clock; for people to read. What came first is
            told by the sequence number that the store gives.
        body: what was said, as JSON, by key:

            * answer: ``question`` ({"kind": "grid", "exemplar", "candidates"}, {"kind": "pair",
              "a", "b"} or {"kind": "outliers", "items"}), ``clicked``, ``unsure``, ``skipped``,
              ``seconds``, ``question_id``, and ``gold`` (tiles whose answer was known, with it);
            * undo: ``fact``, the id of what is undone (an undo, too, can be undone);
            * name: ``item`` and ``name``: the class of this item is called so;
            * split: ``from`` and ``items``: these are not of the class of ``from``, whatever was
              said before.

    >>> Fact("8f1e", "name", "ada", 0.0, {"item": "a.jpg", "name": "cats"}).body["name"]
    'cats'
    """

    id: str
    kind: Kind
    who: str
    when: float
    body: dict[str, Any]

    def __post_init__(self) -> None:
        check_id(self.id)
        check_name("who", self.who)
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}: give one of {', '.join(KINDS)}")
        if not isinstance(self.when, (int, float)) or not math.isfinite(self.when):
            raise ValueError(f"when is {self.when!r}: give seconds since 1970")
        if not isinstance(self.body, dict):
            raise ValueError(f"body is a {type(self.body).__name__}: give a dict")
        _CHECKS[self.kind](self.body)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "who": self.who,
            "when": self.when,
            "body": self.body,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Fact:
        """The fact that :meth:`to_dict` wrote."""
        try:
            return cls(**{name: values[name] for name in ("id", "kind", "who", "when", "body")})
        except KeyError as error:
            raise ValueError(f"a fact has no {error}: give id, kind, who, when, body") from error


def question_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """A question in keys as it is kept, from that or from what the page was sent.

    The page has ``exemplar`` and ``tiles``, where a tile is a key or has one.

    >>> question_of({"kind": "grid", "exemplar": {"key": "a"}, "tiles": [{"key": "b"}, "c"]})
    {'kind': 'grid', 'exemplar': 'a', 'candidates': ['b', 'c']}
    >>> question_of({"kind": "pair", "a": "x", "b": "y"})
    {'kind': 'pair', 'a': 'x', 'b': 'y'}
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"question is a {type(values).__name__}: give an object with its kind")
    kind = values.get("kind")
    if kind not in QUESTIONS:
        raise ValueError(f"the question's kind is {kind!r}: give one of {', '.join(QUESTIONS)}")

    def one(*names: str) -> Any:
        found = next((values[name] for name in names if values.get(name) is not None), None)
        return _plain(found)

    def several(*names: str) -> list[Any]:
        found: Any = next((values[name] for name in names if values.get(name) is not None), [])
        if not isinstance(found, (list, tuple)):
            raise ValueError(f"{names[0]} of the question is no list")
        return [_plain(each) for each in found]

    question: dict[str, Any]
    if kind == "grid":
        question = {
            "kind": kind,
            "exemplar": one("exemplar"),
            "candidates": several("candidates", "tiles"),
        }
    elif kind == "pair":
        tiles = several("tiles")
        question = {
            "kind": kind,
            "a": one("a", "exemplar"),
            "b": one("b") if values.get("b") is not None else (tiles or [None])[0],
        }
    else:
        question = {"kind": kind, "items": several("items", "tiles")}
    check_question(question)
    return question


def shown(question: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """The exemplar (None for outliers) and the tiles of a question in keys.

    >>> shown({"kind": "pair", "a": "x", "b": "y"})
    ('x', ['y'])
    """
    if question["kind"] == "grid":
        return question["exemplar"], list(question["candidates"])
    if question["kind"] == "pair":
        return question["a"], [question["b"]]
    return None, list(question["items"])


def compact(values: Any) -> str:
    """JSON in ASCII, so that every database keeps it as it is.

    >>> compact({"name": "Bär"})
    '{"name":"B\\\\u00e4r"}'
    """
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


# --- checks: a store holds nothing that cannot be read back ----------------------------------


def check_id(value: Any) -> str:
    """An id: up to 100 printable ASCII characters without spaces at its ends."""
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= LONGEST_ID
        or not (value.isascii() and value.isprintable() and value == value.strip())
    ):
        raise ValueError(
            f"id is {_short(value)}: give 1 to {LONGEST_ID} printable ASCII characters, such as a "
            "UUID"
        )
    return value


def check_name(argument: str, value: Any) -> str:
    """A name of a person or of a class: 1 to 200 characters that can be printed."""
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= LONGEST_NAME
        or not value.isprintable()
        or not value.strip()
    ):
        raise ValueError(
            f"{argument} is {_short(value)}: give 1 to {LONGEST_NAME} printable characters"
        )
    return value


def check_key(argument: str, value: Any) -> str:
    """The key of an item: any text, but not endless."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_KEY:
        raise ValueError(f"{argument} is {_short(value)}: give the key of an item")
    return value


def check_keys(argument: str, values: Any, *, least: int = 0) -> list[str]:
    """Keys, each once."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ValueError(f"{argument} is {_short(values)}: give a list of keys")
    if not least <= len(values) <= MOST_ITEMS:
        raise ValueError(f"{argument} holds {len(values)} keys: give {least} to {MOST_ITEMS:,}")
    for value in values:
        check_key(f"an item of {argument}", value)
    if len(set(values)) < len(values):
        raise ValueError(f"{argument} names an item twice: give every item once")
    return list(values)


def check_question(question: Any) -> None:
    """A question in keys."""
    if not isinstance(question, dict) or question.get("kind") not in QUESTIONS:
        raise ValueError(
            f"question is {_short(question)}: give its kind, one of {', '.join(QUESTIONS)}, and "
            "its keys"
        )
    if question["kind"] == "grid":
        check_key("exemplar", question.get("exemplar"))
        candidates = check_keys("candidates", question.get("candidates"), least=1)
        if question["exemplar"] in candidates:
            raise ValueError("the exemplar is among the candidates: leave it out")
    elif question["kind"] == "pair":
        check_key("a", question.get("a"))
        check_key("b", question.get("b"))
        if question["a"] == question["b"]:
            raise ValueError("a and b are the same item: ask about two")
    else:
        check_keys("items", question.get("items"), least=2)


def _check_answer(body: dict[str, Any]) -> None:
    check_question(body.get("question"))
    tiles = set(shown(body["question"])[1])
    clicked = check_keys("clicked", body.get("clicked", []))
    unsure = check_keys("unsure", body.get("unsure", []))
    for name, some in (("clicked", clicked), ("unsure", unsure)):
        if strange := [key for key in some if key not in tiles]:
            raise ValueError(f"{name} holds {_short(strange[0])}, which the question does not show")
    if both := set(clicked) & set(unsure):
        raise ValueError(f"{_short(min(both))} is clicked and unsure: give each tile one answer")
    if not isinstance(body.get("skipped", False), bool):
        raise ValueError(f"skipped is {_short(body['skipped'])}: give true or false")
    seconds = body.get("seconds", 0.0)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ValueError(f"seconds is {_short(seconds)}: give a number")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"seconds is {seconds}: give 0 or more")
    gold = body.get("gold", {})
    if not isinstance(gold, dict) or not all(
        isinstance(value, bool) and key in tiles for key, value in gold.items()
    ):
        raise ValueError(f"gold is {_short(gold)}: give tiles with true (alike) or false")


def _check_undo(body: dict[str, Any]) -> None:
    check_id(body.get("fact"))


def _check_naming(body: dict[str, Any]) -> None:
    check_key("item", body.get("item"))
    check_name("name", body.get("name"))


def _check_split(body: dict[str, Any]) -> None:
    check_key("from", body.get("from"))
    if body["from"] in check_keys("items", body.get("items"), least=1):
        raise ValueError("from is among the items: an item is always of its own class")


_CHECKS = {
    "answer": _check_answer,
    "undo": _check_undo,
    "name": _check_naming,
    "split": _check_split,
}


def _plain(tile: Any) -> Any:
    return tile.get("key") if isinstance(tile, Mapping) else tile


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
