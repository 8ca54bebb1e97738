"""Leases: an open question is with one person, for minutes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, text

from likewise.annotate.facts import compact
from likewise.annotate.store.tables import held
from likewise.annotate.store.tables import leases as table

BACKWARDS = 60.0
"""Seconds that a clock may go back before leases of the future count as expired: without that, a
clock set back by a year would hold questions for a year."""

KEPT = 24 * 3600.0
"""Seconds for which a question that was handed out is remembered, answered or not."""


_HOLD = (
    "INSERT INTO likewise_held (item, question_id, granted, expires) "
    "SELECT item, :question_id, :granted, :expires FROM "
)
HOLD_SQLITE = text(_HOLD + "(SELECT value AS item FROM json_each(:items))")
HOLD_POSTGRESQL = text(_HOLD + "unnest(CAST(:items AS text[])) AS item")


@dataclass(frozen=True)
class Lease:
    """A question that was handed out.

    Attributes:
        question_id: of the question.
        who: has it.
        granted: when, in seconds since 1970.
        expires: until when nobody else gets it.
        question: what was asked, as it was given to :meth:`Store.lease`.
    """

    question_id: str
    who: str
    granted: float
    expires: float
    question: dict[str, Any]

    def open(self, now: float) -> bool:
        """Whether it still keeps others away."""
        return self.granted - BACKWARDS <= now < self.expires


def name_of(item: str) -> str:
    """What stands for an item in the table.

    >>> len(name_of("photos/a.jpg"))
    64
    """
    return hashlib.sha256(item.encode("utf-8", "surrogatepass")).hexdigest()


def name_of_pair(a: str, b: str) -> str:
    """What stands for two items, in whichever order, in the table.

    >>> name_of_pair("a.jpg", "b.jpg") == name_of_pair("b.jpg", "a.jpg")
    True
    """
    return name_of(compact(sorted((a, b))))


def grant(
    connection: Connection,
    lease: Lease,
    items: Sequence[str],
    pairs: Sequence[tuple[str, str]] = (),
) -> None:
    """Write a lease; an IntegrityError says that an item or a pair is held by another question.

    That question may be over: :func:`free`, and try again."""
    connection.execute(
        insert(table).values(
            question_id=lease.question_id,
            who=lease.who,
            granted=lease.granted,
            expires=lease.expires,
            question=compact(lease.question),
        )
    )
    if items or pairs:
        # One statement for all, in order: two who want the same items wait for one another, and
        # never in a circle.
        names = sorted({*map(name_of, items), *(name_of_pair(a, b) for a, b in pairs)})
        sqlite = connection.dialect.name == "sqlite"
        connection.execute(
            HOLD_SQLITE if sqlite else HOLD_POSTGRESQL,
            {
                "items": compact(names) if sqlite else names,
                "question_id": lease.question_id,
                "granted": lease.granted,
                "expires": lease.expires,
            },
        )


def free(connection: Connection, now: float) -> None:
    """Let go of what expired leases hold; the questions stay known for late answers."""
    connection.execute(
        delete(held).where(or_(held.c.expires <= now, held.c.granted > now + BACKWARDS))
    )


def forget(connection: Connection, now: float) -> None:
    """Remove leases of days ago. (A late answer brings its question along.)"""
    free(connection, now)
    connection.execute(delete(table).where(table.c.expires < now - KEPT))


def release(connection: Connection, question_ids: Sequence[str]) -> None:
    """Let go of what these questions hold."""
    if question_ids:
        connection.execute(delete(held).where(held.c.question_id.in_(list(question_ids))))


def found(connection: Connection, question_id: str) -> Lease | None:
    """A question that was handed out, open or not."""
    row = connection.execute(select(table).where(table.c.question_id == question_id)).first()
    if row is None:
        return None
    return Lease(row.question_id, row.who, row.granted, row.expires, json.loads(row.question))


def open_leases(connection: Connection, now: float, who: str | None = None) -> list[Lease]:
    """Those that still hold something, the oldest first."""
    chosen = (
        select(table)
        .where(
            table.c.question_id.in_(select(held.c.question_id)),
            table.c.expires > now,
            table.c.granted <= now + BACKWARDS,
        )
        .order_by(table.c.granted, table.c.question_id)
    )
    if who is not None:
        chosen = chosen.where(table.c.who == who)
    return [
        Lease(r.question_id, r.who, r.granted, r.expires, json.loads(r.question))
        for r in connection.execute(chosen)
    ]
