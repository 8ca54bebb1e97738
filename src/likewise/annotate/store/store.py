"""The store of a project: facts that are only ever added, leases and people, in one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from likewise.annotate.facts import Fact, Reading, Said, check_id, check_name
from likewise.annotate.store import leases, people
from likewise.annotate.store.connections import Connections
from likewise.annotate.store.engines import open_engine, which_database
from likewise.annotate.store.facts import (
    add_facts,
    fact_of_id,
    facts_after,
    last_number,
    latest_facts,
)
from likewise.annotate.store.leases import Lease
from likewise.annotate.store.people import Person
from likewise.annotate.store.tables import make_tables


@dataclass(frozen=True)
class Since:
    """What is new since a sequence number.

    Attributes:
        sequence: of the last fact that was read: ask from here next time.
        answers: the new answers about pairs.
        rewritten: something said before does not count any more (an undo, a split): read all
            answers again.
    """

    sequence: int
    answers: list[Said]
    rewritten: bool


class Store:
    """One project's facts, leases and people: on a laptop one SQLite file, on a server PostgreSQL.

    Any number of threads may use a store, and any number of processes the same database. What
    :meth:`append` has returned for is on the disk. Reading is from a snapshot and keeps nobody
    from writing.

    >>> from tempfile import mkdtemp
    >>> store = Store.open(Path(mkdtemp()) / "project.db")
    >>> fact = Fact("8f1e", "name", "ada", 0.0, {"item": "a.jpg", "name": "cats"})
    >>> store.append([fact]), store.append([fact])
    ([True], [False])
    >>> [(sequence, fact.who) for sequence, fact in store.facts()]
    [(1, 'ada')]
    >>> store.close()
    """

    def __init__(
        self, engine: Engine, place: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.place = place
        """Where it is, in words, without a password."""
        self.clock = clock
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        self.file = Path(file) if file else None
        """The file of an SQLite project; None where it is a PostgreSQL database."""
        self.database = file or which_database(engine.url)
        """Which one it is, without whoever opens it."""
        self.url = engine.url.render_as_string(hide_password=False)
        """What opens it again, with the password."""
        self._connections = Connections(engine, place)
        self._read, self._write = self._connections.read, self._connections.write

    @classmethod
    def open(
        cls, project: str | Path, *, clock: Callable[[], float] = time.time, begin: bool = True
    ) -> Store:
        """Open a project, or begin one.

        Args:
            project: a file ("project.db", SQLite), or the URL of a PostgreSQL database
                ("postgresql://user:password@host/name").
            clock: seconds since 1970.
            begin: make the tables where there are none; without, the project is there already.
        """
        engine, place = open_engine(project)
        store = cls(engine, place, clock=clock)
        try:
            if begin:
                with store._write() as connection:
                    make_tables(connection, place)
                    leases.forget(connection, clock())
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close all connections; what was appended is safe with or without."""
        self._connections.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- facts --------------------------------------------------------------------------------

    def append(self, facts: Sequence[Fact], *, release: Sequence[str] = ()) -> list[bool]:
        """Add facts; on return they are on the disk.

        Args:
            facts: all of them are saved, or none (:class:`NotSaved`).
            release: questions whose leases end with this.

        Returns:
            For every fact whether it is new; False: one with this id was there already.
        """
        if not facts:
            return []
        with self._write() as connection:
            new = add_facts(connection, facts)
            leases.release(connection, release)
        return new

    def facts(
        self, after: int = 0, who: str | None = None, limit: int | None = None
    ) -> list[tuple[int, Fact]]:
        """Facts with their sequence numbers, in the order in which they came.

        Args:
            after: only those with a larger number.
            who: only this person's.
            limit: at most so many.
        """
        with self._read() as connection:
            return facts_after(connection, after, who, limit)

    def latest(self, who: str, limit: int = 20) -> list[tuple[int, Fact]]:
        """A person's last facts, the newest first."""
        with self._read() as connection:
            return latest_facts(connection, who, limit)

    def fact(self, id: str) -> tuple[int, Fact] | None:
        """One fact by its id, with its number."""
        with self._read() as connection:
            return fact_of_id(connection, id)

    def last(self) -> int:
        """The number of the last fact; 0 where there is none."""
        with self._read() as connection:
            return last_number(connection)

    def answers(self) -> list[Said]:
        """All answers about pairs that count, by key: without what was undone, after splits."""
        return self.reading().answers

    def names(self) -> dict[str, str]:
        """What classes are called, each by one of its items."""
        return self.reading().names

    def reading(self) -> Reading:
        """Everything that counts, in one snapshot."""
        return Reading(self.facts())

    def answers_since(self, sequence: int) -> Since:
        """The answers that came after a sequence number.

        >>> from tempfile import mkdtemp
        >>> store = Store.open(Path(mkdtemp()) / "project.db")
        >>> store.answers_since(0)
        Since(sequence=0, answers=[], rewritten=False)
        >>> store.close()
        """
        reading = Reading()
        new = self.facts(after=sequence)
        rewritten = any(fact.kind in ("undo", "split") for _, fact in new)
        if rewritten:
            # What counts of the new facts may depend on the old ones.
            reading.add(self.facts())
            kept = [said for said in reading.answers if said.sequence > sequence]
            return Since(reading.sequence, kept, True)
        reading.add(new)
        return Since(max(reading.sequence, sequence), reading.answers, False)

    # --- leases -------------------------------------------------------------------------------

    def lease(
        self,
        question_id: str,
        who: str,
        items: Sequence[str],
        seconds: float = 300.0,
        *,
        pairs: Sequence[tuple[str, str]] = (),
        question: dict[str, Any] | None = None,
    ) -> bool:
        """Give an open question to one person.

        Args:
            question_id: new.
            who: gets it.
            items: the keys that nobody else is to be asked about in the meantime.
            seconds: after that, others may be asked. An answer that comes later still counts.
            pairs: that nobody else is to be asked about, in whichever order. (Of a pair with an
                item that nobody else is asked about, it follows; but what one server takes for a
                class of its own, another may have as an item to ask about.)
            question: kept with it.

        Returns:
            False where an item or a pair is with somebody, in a question that is open.
        """
        check_id(question_id)
        check_name("who", who)
        if not seconds > 0:
            raise ValueError(f"seconds is {seconds}: give a positive number")
        now = self.clock()
        lease = Lease(question_id, who, now, now + seconds, question or {})
        for again in (True, False):
            try:
                with self._write(durable=False) as connection:
                    leases.grant(connection, lease, items, pairs)
                return True
            except IntegrityError:
                if again:  # what is in the way may have expired
                    with self._write(durable=False) as connection:
                        leases.free(connection, now)
        return False

    def release(self, *question_ids: str) -> None:
        """Others may be asked what these questions ask."""
        with self._write(durable=False) as connection:
            leases.release(connection, question_ids)

    def leased(self, question_id: str) -> Lease | None:
        """The question of this id as it was handed out, open or not."""
        with self._read() as connection:
            return leases.found(connection, question_id)

    def open_leases(self, who: str | None = None) -> list[Lease]:
        """The leases that keep others away now, the oldest first."""
        with self._read() as connection:
            return leases.open_leases(connection, self.clock(), who)

    # --- people -------------------------------------------------------------------------------

    def add_person(self, name: str, admin: bool = False, expires: float | None = None) -> str:
        """Invite somebody.

        Args:
            name: unique among those who are invited.
            admin: may see and invite others.
            expires: seconds since 1970 from which on the token is worth nothing.

        Returns:
            The token, which is nowhere else: only its SHA-256 is kept.
        """
        with self._write() as connection:
            return people.add_person(connection, name, admin, expires, self.clock())

    def person_of(self, token: str) -> Person | None:
        """Whose token this is; None where it is nobody's, revoked or expired."""
        with self._read() as connection:
            return people.person_of(connection, token, self.clock())

    def revoke(self, name: str) -> bool:
        """Take an invitation back, from now on; False where nobody has that name."""
        with self._write() as connection:
            return people.revoke(connection, name)

    def people(self) -> list[Person]:
        """Everybody who was ever invited, by name."""
        with self._read() as connection:
            return people.listed(connection)
