"""Click those that do not belong: cheap where nearly all belong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likewise.oracles.propagation import diverse
from likewise.oracles.questions import Outliers, Question
from likewise.oracles.samplers.default import (
    Default,
    Proposal,
    binary_entropy,
    reach,
    sums,
    worth_of,
)
from likewise.oracles.samplers.state import Index, State


@dataclass(frozen=True)
class _Odd(Proposal):
    """To be asked as outliers: the clicks are those that do not belong."""


class OutlierGrids(Default):
    """:class:`Default`, with outlier grids where they are cheaper (``pal`` section 4.1).

    "Click those of the same kind" costs a click for every hit. Where the classifier thinks that
    most candidates are of one class, "click those that do not belong" gets the same facts with
    fewer clicks. So for every known class there is one more proposal: an exemplar with candidates
    that are more probably of the class than not, in the order of :class:`Default`, with expected
    clicks sum (1 - p_ic). As ever, what has the largest worth by expected second is asked. Of any
    two items shown, nobody knows whether they are alike.

    Args:
        likely: candidates of an outlier grid are of the class with at least this probability.
        options: those of :class:`Default`.
    """

    name = "outliers"

    def __init__(self, *, likely: float = 0.6, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        if not 0.5 < likely < 1:
            raise ValueError(f"likely is {likely}: give a probability above 0.5 and below 1")
        self.likely = likely

    def _proposals(self, state: State) -> Iterator[Proposal]:
        yield from super()._proposals(state)
        if state.grid < 2:  # two items are a pair
            return
        far = reach(state)
        for c in range(state.n_classes):
            alike = state.with_new[:, c]
            may = state.open & ~state.closed[:, c] & (alike >= self.likely)
            gains = np.where(may, binary_entropy(alike) * far, 0.0)
            taken = diverse(gains, state.covariance, state.grid)
            if len(taken) >= 2:
                items = state.probe.items[taken]
                yield _Odd(
                    state.exemplar(c, items),
                    items[:0],
                    items,
                    worth_of(gains, taken, state),
                    sums(1.0 - alike[taken]),
                )

    def _put(self, state: State, proposal: Proposal, shown: Index) -> Question | None:
        if not isinstance(proposal, _Odd):
            return super()._put(state, proposal, shown)
        chosen = [proposal.exemplar]
        for item in shown.tolist():
            others = np.array(chosen)
            if item in chosen or state.met(item, others).any():
                continue
            if not state.beliefs.relations(item, others).any():
                chosen.append(item)
        if len(chosen) < 3:
            return state.ask(proposal.exemplar, shown)
        return Outliers(tuple(chosen))
