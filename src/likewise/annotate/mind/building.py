"""Builds the classifier's index while thinking goes on, and once more where that failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from likewise.annotate.mind.manner import Rows
from likewise.oracles.probe import Probe

AGAIN = 5.0
"""Seconds after which an index that could not be built is tried once more."""


@dataclass(frozen=True)
class Built:
    """An index that can be used.

    Attributes:
        rows: 0 for the first rows, 1 for those of the first refit, and so on.
        X: these rows.
        probe: the index.
    """

    rows: int
    X: Rows
    probe: Probe


class Building:
    """One index at a time; what was begun last counts.

    Args:
        at_once: build in the call that begins it, and not beside.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self._builder = None if at_once else ThreadPoolExecutor(1, "likewise-index")
        self._underway: Future[Built] | None = None
        self._again: float | None = None

    def close(self) -> None:
        """Begin nothing any more."""
        if self._builder is not None:
            self._builder.shutdown(wait=False, cancel_futures=True)

    def begin(self, rows: int, X: Rows, make: Callable[[], Probe]) -> None:
        """Build an index, with all of it that takes long.

        Args:
            rows: the number of the rows.
            X: the rows.
            make: what makes the index of them.
        """

        def build() -> Built:
            probe = make()
            for smoothness, _ in probe.ways:
                probe.kernel(smoothness)
            _ = probe.field
            return Built(rows, X, probe)

        self._job = rows, X, make
        if self._builder is not None:
            self._underway = self._builder.submit(build)
        else:
            self._underway = Future()
            self._underway.set_result(build())

    @property
    def underway(self) -> bool:
        """Whether an index is being built, or was and nobody has taken it."""
        return self._underway is not None

    def wait(self, seconds: float) -> None:
        """Until it is built, but not for long."""
        if self._underway is not None:
            wait([self._underway], timeout=seconds)

    def take(self) -> Built | None:
        """The index that was built since the last call, if any; where that failed, the error, and
        it is begun again after a while."""
        if self._underway is None and self._again is not None and time.monotonic() >= self._again:
            self._again = None
            self.begin(*self._job)
        if self._underway is None or not self._underway.done():
            return None
        done, self._underway = self._underway, None
        try:
            return done.result()
        except Exception:  # short of memory, for example
            self._again = time.monotonic() + AGAIN
            raise
