"""Facts from plain values, as files have them."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from likewise.annotate.facts import Fact

IMPORTED = "import"
"""The id of the question that an imported answer answers."""


def pair_fact(a: Any, b: Any, value: float, who: str, when: float, id: str = "") -> Fact:
    """An answer about one pair: 1 (alike), -1 (different) or 0 (unsure).

    Without an id it gets one from what it says: the same twice is one fact.

    >>> pair_fact("x", "y", 1.0, "ada", 0.0).body["clicked"]
    ['y']
    >>> pair_fact("x", "y", 1.0, "ada", 0.0).id == pair_fact("x", "y", 1.0, "ada", 7.0).id
    True
    """
    body = {
        "question": {"kind": "pair", "a": str(a), "b": str(b)},
        "clicked": [str(b)] if value > 0 else [],
        "unsure": [str(b)] if value == 0 else [],
        "skipped": False,
        "seconds": 0.0,
        "question_id": IMPORTED,
    }
    return Fact(id or _id("pair", a, b, value, who), "answer", who, when, body)


def name_fact(item: str, name: str, who: str, when: float, id: str = "") -> Fact:
    """What the class of an item is called. As :func:`pair_fact`."""
    return Fact(id or _id("name", item, name, who), "name", who, when, {"item": item, "name": name})


def pair_of_row(values: dict[str, Any], who: str) -> Fact:
    """An answer from a row with ``a``, ``b``, ``value``, and perhaps ``who``, ``when``, ``id``."""
    for name in ("a", "b", "value"):
        if values.get(name) is None:
            raise ValueError(f"{name} is missing")
    value = float(values["value"])
    if value not in (1.0, -1.0, 0.0):
        raise ValueError(
            f"value is {values['value']}: give 1 (alike), -1 (different) or 0 (unsure)"
        )
    return pair_fact(str(values["a"]), str(values["b"]), value, *_signed(values, who))


def name_of_row(values: dict[str, Any], who: str) -> Fact:
    """A name from a row with ``a`` and ``name``, and perhaps ``who``, ``when``, ``id``."""
    return name_fact(values.get("a", ""), values.get("name", ""), *_signed(values, who))


def _signed(values: dict[str, Any], who: str) -> tuple[str, float, str]:
    when = float(values.get("when") or 0.0)
    if not math.isfinite(when):
        raise ValueError(f"when is {values['when']}: give seconds since 1970")
    return str(values.get("who") or who), when, str(values.get("id") or "")


def _id(*parts: Any) -> str:
    """The same for the same content."""
    return "import-" + hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]
