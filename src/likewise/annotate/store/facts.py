"""Facts in their table: only ever added, and numbered in the order in which they came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.functions import max as largest

from likewise.annotate.facts import Fact, compact
from likewise.annotate.store.connections import one_at_a_time
from likewise.annotate.store.tables import facts as table


def add_facts(connection: Connection, facts: Sequence[Fact]) -> list[bool]:
    """Add facts; of each, whether it is new (False: one with its id was there already)."""
    # Facts become visible in the order of their numbers: who has read up to one has read all
    # before it.
    one_at_a_time(connection)
    insert: Any = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    new = []
    for fact in facts:
        values = {**fact.to_dict(), "body": compact(fact.body)}
        added = connection.execute(
            insert(table)
            .values(**values)
            .on_conflict_do_nothing(index_elements=[table.c.id])
            .returning(table.c.sequence)
        )
        new.append(added.first() is not None)
    return new


def facts_after(
    connection: Connection, sequence: int, who: str | None = None, limit: int | None = None
) -> list[tuple[int, Fact]]:
    """Those with a larger number, perhaps only one person's, in order."""
    chosen = select(table).where(table.c.sequence > sequence).order_by(table.c.sequence)
    if who is not None:
        chosen = chosen.where(table.c.who == who)
    return _found(connection, chosen.limit(limit))


def latest_facts(connection: Connection, who: str, limit: int) -> list[tuple[int, Fact]]:
    """A person's last ones, the newest first."""
    chosen = select(table).where(table.c.who == who).order_by(table.c.sequence.desc())
    return _found(connection, chosen.limit(limit))


def fact_of_id(connection: Connection, id: str) -> tuple[int, Fact] | None:
    """One of them, with its number."""
    found = _found(connection, select(table).where(table.c.id == id))
    return found[0] if found else None


def last_number(connection: Connection) -> int:
    """That of the last fact; 0 where there is none."""
    return connection.execute(select(largest(table.c.sequence))).scalar() or 0


def _found(connection: Connection, chosen: Select[Any]) -> list[tuple[int, Fact]]:
    return [(row.sequence, _fact(row)) for row in connection.execute(chosen).all()]


def _fact(row: Any) -> Fact:
    # What is in the table was checked before it came there: checking it again would take most of
    # the time that reading takes.
    fact = object.__new__(Fact)
    values = (row.id, row.kind, row.who, row.when, json.loads(row.body))
    for name, value in zip(("id", "kind", "who", "when", "body"), values, strict=True):
        object.__setattr__(fact, name, value)
    return fact
