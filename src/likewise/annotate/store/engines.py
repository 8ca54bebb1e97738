"""How a database is opened: SQLite so that nothing is lost and nobody is locked out, PostgreSQL."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

PATIENCE = 30.0
"""Seconds to wait for another process that writes into the same SQLite file."""

SECRETS = ("password", "sslpassword")
"""What a URL may have behind its question mark and nobody is to see."""

LOG_PAGES = 10_000
"""Pages of SQLite's log from which on whoever commits tidies it up. It does not come to that: a
thread does it before (:mod:`likewise.annotate.store.connections`)."""


class NotSaved(OSError):  # noqa: N818 (what happened, in the words of the page)
    """The database cannot be written or read: what was sent is not saved, and may be sent again."""

    @classmethod
    def because(cls, place: str, error: Exception) -> NotSaved:
        """The error, in words that help."""
        cause = str(getattr(error, "orig", None) or error).split("\n")[0]
        if "disk is full" in cause or "No space left" in cause:
            return cls(f"nothing was saved in {place}: the disk is full; make room and send again")
        return cls(f"nothing was saved in {place}: {cause}")


def open_engine(project: str | Path) -> tuple[Engine, str]:
    """An engine, and where it is in words."""
    text = str(project)
    if "://" not in text:
        return _sqlite(Path(project)), text
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise ValueError(
            "the project's URL cannot be read: give postgresql://user:password@host/name, or a file"
        ) from error
    backend = url.get_backend_name()
    if backend == "sqlite":
        if not url.database or url.database == ":memory:":
            raise ValueError("the project has no file: give a path, such as project.db")
        return _sqlite(Path(url.database)), url.database
    if backend not in ("postgresql", "postgres"):
        raise ValueError(
            f"the project's database is {backend!r}: give a file (SQLite) or postgresql://..."
        )
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_size=20,
            max_overflow=30,
            pool_pre_ping=True,  # a database that was restarted costs nobody an error
        )
    except ImportError as error:
        raise ImportError(
            "PostgreSQL needs psycopg: pip install '.[postgresql]' in the checkout"
        ) from error
    shown = url.difference_update_query(SECRETS)
    return engine, shown.render_as_string(hide_password=True)


def which_database(url: URL) -> str:
    """The host, port and name of a database, whoever opens it and by whatever password.

    >>> which_database(make_url("postgresql://ada:secret@db/photos?sslmode=require"))
    'db:5432/photos'
    >>> which_database(make_url("postgresql+psycopg://bob@/photos?host=/run/postgresql"))
    '/run/postgresql:5432/photos'
    """
    host = url.query.get("host", url.host) or "localhost"
    port = url.query.get("port", url.port) or 5432
    return f"{host}:{port}/{url.database or url.username}"


def _sqlite(path: Path) -> Engine:
    if path.is_dir():
        raise ValueError(f"the project {path} is a folder: give a file in it, such as project.db")
    path.parent.mkdir(parents=True, exist_ok=True)
    _check_file(path)
    engine = create_engine(
        f"sqlite+pysqlite:///{path}",
        poolclass=QueuePool,
        pool_size=20,
        max_overflow=100,
        connect_args={"timeout": PATIENCE, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        # Transactions are begun by hand: the driver's own begin late, which is how writers meet.
        connection.isolation_level = None
        cursor = connection.cursor()
        # Readers see a snapshot and wait for nobody.
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA busy_timeout={int(PATIENCE * 1000)}")
        cursor.close()

    try:
        engine.connect().close()
    except (DBAPIError, SQLAlchemyError) as error:
        engine.dispose()
        raise NotSaved.because(str(path), error) from error
    return engine


def _check_file(path: Path) -> None:
    """Refuse what is no SQLite file, before it is touched."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    # Through SQLite, never by opening the file: closing it would drop this process's locks on it,
    # also those of another Store, and with them answers ("How To Corrupt", section 2.2).
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.DatabaseError as error:
        if "not a database" not in str(error):
            raise
        raise ValueError(
            f"{path} is not a project (not an SQLite file): give one that `likewise ask` made, or "
            "a new name for it to make one"
        ) from None
    finally:
        connection.close()


if sqlite3.sqlite_version_info < (3, 35):  # INSERT ... RETURNING
    raise ImportError(f"SQLite is {sqlite3.sqlite_version}: install 3.35 or newer, or PostgreSQL")
