"""Connections to a project's database: many may read, and whoever writes waits for its turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from likewise.annotate.store.engines import NotSaved

ORDER_LOCK = 0x6C696B65
"""The advisory lock of PostgreSQL under which tables are made and facts get their numbers."""

TIDY = 1.0
"""Seconds between two times that SQLite's log is brought into its file."""


class Connections:
    """Transactions of one process.

    Args:
        engine: of the database.
        place: where it is, in words, for errors.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self.place = place
        self._engine = engine
        self._sqlite = engine.dialect.name == "sqlite"
        # SQLite has one writer at a time anyway: to wait here is fair, and quicker than to try.
        self._writing = threading.Lock()
        self._writers: dict[bool, Connection] = {}
        self._closed = threading.Event()
        self._written = threading.Event()
        self._tidying: threading.Thread | None = None

    def close(self) -> None:
        """Close all of them."""
        self._closed.set()
        self._written.set()
        if self._tidying is not None:
            self._tidying.join()
        with self._writing:
            for connection in self._writers.values():
                connection.close()
            self._writers.clear()
            self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A snapshot; it keeps nobody from writing."""
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction: committed when the block ends well, gone when not.

        Args:
            durable: wait until it is on the disk. Leases need not be: they are back after a crash
                of the server, and after a power cut nobody has a page open.
        """
        try:
            if self._sqlite:
                with self._writing, self._immediately(durable) as connection:
                    yield connection
            else:
                with self._engine.begin() as connection:
                    if not durable:
                        connection.execute(text("SET LOCAL synchronous_commit TO off"))
                    yield connection
        except IntegrityError:
            raise
        except (DBAPIError, SQLAlchemyError) as error:
            raise NotSaved.because(self.place, error) from error

    @contextmanager
    def _immediately(self, durable: bool) -> Iterator[Connection]:
        if self._closed.is_set():
            raise NotSaved(f"{self.place} is closed: nothing was saved")
        connection = self._writers.get(durable)
        if connection is None:
            connection = self._engine.connect()
            level = "FULL" if durable else "NORMAL"
            connection.exec_driver_sql(f"PRAGMA synchronous={level}")
            connection.rollback()
            self._writers[durable] = connection
            if self._tidying is None:
                self._tidying = threading.Thread(
                    target=self._tidy, name="likewise-checkpoint", daemon=True
                )
                self._tidying.start()
        try:
            # The right to write is taken at once: to read first and then to want to write is how
            # two of them come to wait for one another ("database is locked").
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()
            self._written.set()
        except BaseException:
            try:
                connection.rollback()
            except SQLAlchemyError:
                self._writers.pop(durable).invalidate()
            raise

    def _tidy(self) -> None:
        """Bring what was written from SQLite's log into its file, while others go on writing.

        SQLite would do that by itself, within a commit: then everybody waits for the disk."""
        while not self._closed.wait(TIDY):
            self._written.wait()
            self._written.clear()
            if self._closed.is_set():
                return
            # A full disk, say: whoever writes next is told, and it is tried again.
            with suppress(SQLAlchemyError), self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")


def one_at_a_time(connection: Connection) -> None:
    """Wait until nobody else is in a transaction that called this. (On SQLite, nobody else is in
    one that writes.)"""
    if connection.dialect.name != "sqlite":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({ORDER_LOCK})"))
