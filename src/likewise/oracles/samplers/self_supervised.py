"""Nobody is asked: every item is alike to its own views."""

from __future__ import annotations

from likewise.oracles.questions import Question
from likewise.oracles.samplers.base import Sampler
from likewise.oracles.samplers.state import State


class SelfSupervised(Sampler):
    """The self-supervised oracle (``pal`` algorithm 2): pairs of views, which need no person.

    Its graph is ``Graph.identity(n).views(v)``. As a sampler of questions it has none to ask, and
    so it is what the others are to be compared with.
    """

    name = "self-supervised"
    asks = False

    def propose(self, state: State) -> Question | None:
        """None, always."""
        return None
