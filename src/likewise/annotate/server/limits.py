"""How much, and how often: limits on the size of a request and on the requests of one visitor."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

BODY = 256 * 1024
"""Bytes of a request's body; a grid's answer has some 2,000."""

BODY_SECONDS = 20.0
"""Seconds in which a body has to be here."""

MOST_VISITORS = 10_000
"""How many visitors are remembered: who was not here for long comes with a fresh allowance."""


class Allowance:
    """A bucket of requests for every visitor, which fills up again: `rate` a second, `burst` full.

    >>> clock = iter([0.0, 0.0, 0.0, 1.0]).__next__
    >>> allowance = Allowance(rate=1, burst=2, clock=clock)
    >>> [allowance.take("ann") for _ in range(4)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(
        self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, visitor: str, cost: float = 1.0) -> float:
        """Take one request; 0, or the seconds after which to ask again."""
        with self._lock:
            now = self._clock()
            level, then = self._buckets.pop(visitor, (self.burst, now))
            level = min(self.burst, level + self.rate * (now - then))
            wait = 0.0 if level >= cost else (cost - level) / self.rate
            self._buckets[visitor] = (level if wait else level - cost, now)
            while len(self._buckets) > MOST_VISITORS:
                self._buckets.popitem(last=False)
            return wait
