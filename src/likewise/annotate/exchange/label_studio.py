"""Label Studio's JSON: a task a pair, with the choice "alike", "different" or "unsure"; a task an
item that was named. Image classification that was done in Label Studio can be read, too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from likewise.annotate.exchange.plain import name_fact, pair_fact
from likewise.annotate.facts import Fact, Said

CHOICES = {1.0: "alike", -1.0: "different", 0.0: "unsure"}
VALUES = {choice: value for value, choice in CHOICES.items()}
NAMED = {"likewise": "name"}
"""Marks our own tasks that name a class: they say nothing about other items."""
ITEMS = ("image", "img", "key", "file")
"""Where a task of image classification may have its item."""


def to_label_studio(answers: Iterable[Said], names: dict[str, str]) -> list[dict[str, Any]]:
    """Tasks as Label Studio exports and imports them.

    >>> [task] = to_label_studio([Said("a.jpg", "b.jpg", 1.0, "ada")], {})
    >>> task["data"], task["annotations"][0]["result"][0]["value"]
    ({'a': 'a.jpg', 'b': 'b.jpg'}, {'choices': ['alike']})
    """
    pairs: dict[tuple[str, str], list[Said]] = {}
    for said in answers:
        pairs.setdefault((said.a, said.b), []).append(said)
    tasks: list[dict[str, Any]] = [
        {
            "data": {"a": a, "b": b},
            "annotations": [
                {
                    "unique_id": said.id,
                    "completed_by": {"email": said.who},
                    "created_at": _moment(said.when),
                    "result": [_choice("alike", "pair", CHOICES[said.value])],
                }
                for said in several
            ],
        }
        for (a, b), several in pairs.items()
    ]
    tasks += [
        {
            "data": {"image": item},
            "meta": dict(NAMED),
            "annotations": [{"result": [_choice("name", "image", name)]}],
        }
        for item, name in names.items()
    ]
    return [{"id": number, **task} for number, task in enumerate(tasks, 1)]


def read_tasks(path: Path, who: str) -> Iterator[Fact]:
    """The facts of a file of tasks: :func:`from_label_studio`.

    Args:
        path: the file.
        who: said what has no author.
    """
    try:
        yield from from_label_studio(json.loads(path.read_text(encoding="utf-8")), who)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def from_label_studio(tasks: Any, who: str) -> Iterator[Fact]:
    """The facts of tasks as Label Studio exports them.

    A task with ``a`` and ``b`` is a pair. A task with an image and a choice is an item of that
    name; images of one name are alike to the first of it, and the first of every two names
    differ.
    """
    if not isinstance(tasks, list):
        raise ValueError("it is no list of tasks: export it from Label Studio as JSON")
    firsts: dict[str, str] = {}
    for number, task in enumerate(tasks, 1):
        try:
            data = task["data"]
            for annotation in task.get("annotations", []):
                if annotation.get("was_cancelled"):
                    continue
                choice = _chosen(annotation.get("result", []))
                if choice is None:
                    continue
                author = _author(annotation, who)
                when = _seconds(annotation.get("created_at"))
                given = str(annotation.get("unique_id") or "")
                if "a" in data and "b" in data:
                    yield pair_fact(data["a"], data["b"], _value(choice), author, when, given)
                elif task.get("meta") == NAMED:
                    yield name_fact(_item(data), choice, author, when, given)
                else:
                    yield from _named(_item(data), choice, author, when, firsts)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"task {number} cannot be read: {error!r}") from error
        except ValueError as error:
            raise ValueError(f"task {number}: {error}") from error


def _named(item: str, name: str, who: str, when: float, firsts: dict[str, str]) -> Iterator[Fact]:
    if name not in firsts:
        for other in firsts.values():
            if other != item:
                yield pair_fact(other, item, -1.0, who, when)
        firsts[name] = item
        yield name_fact(item, name, who, when)
    elif firsts[name] != item:
        yield pair_fact(firsts[name], item, 1.0, who, when)


def _choice(name: str, of: str, chosen: str) -> dict[str, Any]:
    return {"from_name": name, "to_name": of, "type": "choices", "value": {"choices": [chosen]}}


def _chosen(result: Sequence[dict[str, Any]]) -> str | None:
    for part in result:
        if part.get("type") == "choices" and part["value"]["choices"]:
            return str(part["value"]["choices"][0])
    return None


def _value(choice: str) -> float:
    if choice not in VALUES:
        raise ValueError(f"the choice is {choice!r}: a pair is {', '.join(VALUES)}")
    return VALUES[choice]


def _item(data: dict[str, Any]) -> str:
    for name in ITEMS:
        if data.get(name):
            return str(data[name])
    raise ValueError(f"its data has {', '.join(data)}: it needs a and b, or an image")


def _author(annotation: dict[str, Any], who: str) -> str:
    author = annotation.get("completed_by")
    if isinstance(author, dict):
        author = author.get("email") or author.get("id")
    return who if author in (None, "") else str(author)


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, timezone.utc).isoformat()


def _seconds(moment: Any) -> float:
    if not moment:
        return 0.0
    parsed = datetime.fromisoformat(str(moment).replace("Z", "+00:00"))
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)).timestamp()
