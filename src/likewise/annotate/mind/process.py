"""Thinking in a process of its own, of low priority: those who answer keep the interpreter.

That process runs :func:`main`. It is given everything over a socket, reads the facts from the
database itself, and ends when the desk does, however that ends.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any

import numpy as np

from likewise.annotate.mind.manner import Manner, Rows
from likewise.annotate.mind.thinking import Thinker
from likewise.annotate.mind.thoughts import Order, Swapped, Thought
from likewise.annotate.store import Store
from likewise.data.keys import Keyed

NICE = 10
"""How much lower its priority is."""

APART: dict[str, Any] = (
    {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
)
"""Ctrl-C on the terminal is for the server, which ends such a process itself. (In a session of its
own, Linux would give one of low priority as much of the processor as the server.)"""

# With `-m`, this module would be `__main__` there, and what it sends could not be read here.
# It finds modules where we do: `-c` alone would look into the current folder first.
BEGIN = (
    "import os, sys; sys.path[:] = sys.argv[2].split(os.pathsep); "
    f"from {__name__} import main; main(int(sys.argv[1]))"
)

POSSIBLE = os.name == "posix" and hasattr(os, "setpriority")
"""Whether there are such processes on this system."""


@dataclass(frozen=True)
class _Given:
    """What the process is given at the beginning."""

    keys: list[str]
    project: str
    manner: Manner


@dataclass(frozen=True)
class _NewRows:
    """Rows follow, as a file: this is what is in it."""

    dtype: str
    shape: tuple[int, int]


class _Enough:
    """Stop proposing: something happened."""


@dataclass(frozen=True)
class _Done:
    """The order of this number was carried out."""

    order: int


@dataclass(frozen=True)
class _Failed:
    """It could not be."""

    why: str


class Elsewhere:
    """A :class:`Thinker` in another process. One thread at a time may use it.

    Where the process dies, the next thought starts another one: all that it knows is derived.

    Args:
        items: the keys.
        X: (n, d) rows.
        store: of the facts.
        manner: how to think.
    """

    def __init__(self, items: Keyed, X: Rows, store: Store, manner: Manner) -> None:
        self._given = _Given(list(items.keys), store.url, manner)
        self._X = X
        self._refits = 0
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):  # it died at once: the first thought will tell
            self._start()

    def _start(self) -> None:
        line, theirs = Pipe()
        cores = str(max(1, _cores() - 1))
        settings = {"OMP_NUM_THREADS": cores, "OPENBLAS_NUM_THREADS": cores}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", BEGIN, str(theirs.fileno()), os.pathsep.join(sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**settings, **os.environ},
                **APART,
            )
        self._line, self._first, self._orders = line, self._refits, 0
        line.send(self._given)
        self._send_rows(self._X)

    def _send_rows(self, X: Rows) -> None:
        assert self._process is not None
        self._line.send(_NewRows(X.dtype.str, X.shape))
        with _without_a_name() as file:
            step = max(1, 10_000_000 // max(X.shape[1], 1))
            for start in range(0, len(X), step):
                file.write(np.ascontiguousarray(X[start : start + step]).data)
            file.flush()
            send_handle(self._line, file.fileno(), self._process.pid)

    def refit(self, X: Rows) -> None:
        """Other rows for the same items."""
        self._X = X
        self._refits += 1
        with suppress(OSError, RuntimeError):  # it is gone; the next one begins with these rows
            self._send_rows(X)

    def think(self, order: Order, enough: Callable[[], bool]) -> Iterator[Thought]:
        """As :meth:`Thinker.think`."""
        try:
            self._orders += 1
            self._line.send(order)
            told = False
            while True:
                while not told and not self._line.poll(0.05):
                    if enough():
                        told = True
                        self._line.send(_Enough())
                found = self._line.recv()
                if isinstance(found, _Done):
                    if found.order == self._orders:
                        return
                    continue  # of one whose thoughts were not heard to the end
                if isinstance(found, _Failed):
                    raise RuntimeError(found.why)
                if isinstance(found, Swapped):  # it counts from the rows that it began with
                    found = replace(found, rows=self._first + found.rows)
                yield found
        except (EOFError, OSError):
            self._end()
            self._start()
            raise

    def close(self) -> None:
        """End the process, and wait until it has let go of the database."""
        with suppress(OSError):
            self._line.send(None)
        self._end()

    def _end(self) -> None:
        self._line.close()
        if self._process is not None:
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _cores() -> int:
    """That this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 2


def _without_a_name() -> Any:
    """A file that is gone when nobody has it open, killed or not; in memory where that works."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("likewise-rows"), "wb")
    return tempfile.TemporaryFile()


def _received_rows(line: Connection, about: _NewRows) -> Rows:
    handle = recv_handle(line)
    try:
        mapped = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    rows: Rows = np.frombuffer(mapped, dtype=about.dtype).reshape(about.shape)
    return rows


def _carry_out(line: Connection, thinker: Thinker, order: Order, number: int) -> None:
    try:
        for thought in thinker.think(order, line.poll):
            line.send(thought)
    except OSError:
        raise
    except Exception:
        line.send(_Failed(traceback.format_exc()))
    else:
        line.send(_Done(number))


def _step_back() -> None:
    """Lower the priority; on Linux, every thread has its own."""
    tasks = Path("/proc/self/task")
    for task in tasks.iterdir() if tasks.is_dir() else [Path("0")]:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(task.name), NICE)


def main(descriptor: int) -> None:
    """Think until told to stop, or nobody is there any more."""
    line = Connection(descriptor)
    given: _Given = line.recv()
    rows = _received_rows(line, line.recv())
    with Store.open(given.project, begin=False) as store:
        thinker = Thinker(Keyed(given.keys), rows, store, given.manner)
        orders = 0
        with suppress(EOFError, OSError):
            while (told := line.recv()) is not None:
                if isinstance(told, _NewRows):
                    thinker.refit(_received_rows(line, told))
                elif isinstance(told, Order):
                    orders += 1
                    _carry_out(line, thinker, told, orders)
                    if orders == 1:  # until then, nobody has anything to answer
                        _step_back()
        thinker.close()
    os._exit(0)  # an index that is being built is of no use any more
