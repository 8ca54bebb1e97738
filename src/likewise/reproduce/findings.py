"""What a reproduction is, and what it finds: figures, checks and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from likewise.reproduce.encoders import Encoders
    from likewise.reproduce.setting import Setting
    from likewise.reproduce.trainings import Training

Samples = dict[str, NDArray[Any]]
"""What was measured, by name; the first axis runs over trials."""
Trial = Callable[[np.random.Generator], Samples]


@dataclass(frozen=True)
class Figure:
    """A measured number: its mean over the trials and, where there are several, its deviation."""

    name: str
    value: float
    deviation: float | None = None

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> Figure:
        """The mean and the standard deviation of one number a trial; one trial has none.

        >>> print(Figure.of("error", np.array([0.1, 0.3])), Figure.of("error", np.array([0.1])))
        0.2 ± 0.1 0.1
        """
        deviation = float(np.std(values)) if len(values) > 1 else None
        return cls(name, float(np.mean(values)), deviation)

    def __str__(self) -> str:
        if self.deviation is None:
            return _short(self.value)
        return f"{_short(self.value)} ± {_short(self.deviation)}"


Sense = Literal["at most", "at least", "less than", "more than"]
Outcome = Literal["met", "tie", "not met", "not tested"]
TIE = 1e-9
"""Numbers that are as near as this are equal: means over trials are rounded."""


@dataclass(frozen=True)
class Check:
    """A number that has to stay on one side of a limit.

    A claim that one thing is better than another needs "more than" or "less than": at a tie it is
    not met.

    >>> Check("error with all labels", 0.05, "at most", 0.085).outcome
    'met'
    >>> Check("linear probe, ours less theirs", 0.0, "more than", 0.0).outcome
    'tie'
    """

    name: str
    value: float
    sense: Sense
    limit: float
    tested: bool = True
    """False where the trials cannot tell, such as a deviation over one trial."""

    @property
    def outcome(self) -> Outcome:
        """What came out. A number that is not there (NaN) does not meet anything."""
        if not self.tested:
            return "not tested"
        if self.sense in ("less than", "more than") and abs(self.value - self.limit) <= TIE:
            return "tie"
        above = self.sense in ("at least", "more than")
        met = self.value >= self.limit if above else self.value <= self.limit
        return "met" if met else "not met"

    @property
    def met(self) -> bool:
        """Whether the number is where it has to be."""
        return self.outcome == "met"

    def __str__(self) -> str:
        value = f": {_short(self.value)}" if self.tested else ""
        return f"{self.name}{value} ({self.sense} {_short(self.limit)})"


@dataclass(frozen=True)
class Findings:
    """What came out of all trials."""

    figures: Sequence[Figure]
    checks: Sequence[Check]
    remark: str = ""
    """What the checks alone do not say, in one sentence; made from the numbers."""

    @property
    def verdict(self) -> str:
        """What the checks say together.

        "holds", "holds up to ..." with the checks that failed, "does not hold here", or "a tie"
        where all of them are ties; what was not tested is named behind it.

        >>> ahead = Check("ours less theirs", 0.1, "more than", 0.0)
        >>> steady = Check("deviation", float("nan"), "at most", 0.02, tested=False)
        >>> Findings([], [ahead, steady]).verdict
        'holds; not tested: deviation'
        """
        tested = [check for check in self.checks if check.tested]
        failed = [check for check in tested if not check.met]
        if not tested:
            return "not tested"
        if not failed:
            said = "holds"
        elif len(failed) == len(tested):
            ties = all(check.outcome == "tie" for check in failed)
            said = "a tie" if ties else "does not hold here"
        else:
            said = "holds up to " + "; ".join(map(str, failed))
        untested = [check.name for check in self.checks if not check.tested]
        return f"{said}; not tested: {', '.join(untested)}" if untested else said


@dataclass(frozen=True)
class Reproduction:
    """A claim of a paper, and the experiment that puts it to the test.

    A trial draws its own data and gives arrays whose shapes do not depend on the draw; `conclude`
    and `draw` receive them stacked over the trials.
    """

    name: str
    """As in ``likewise reproduce NAME``."""
    claim: str
    """The paper's claim, with its place there."""
    settings: dict[str, Any]
    """What a reader needs in order to repeat it."""
    trial: Trial = field(repr=False)
    conclude: Callable[[Samples], Findings] = field(repr=False)
    draw: Callable[[Samples], Picture] = field(repr=False)


@dataclass(frozen=True)
class TrainedReproduction:
    """A claim about trained encoders, and what is measured on them.

    A trial is a seed: `trainings` names what is trained with it, at a setting, and `measure`
    looks at the trained networks. Figures that name the same trainings share them in a session.
    """

    name: str
    claim: str
    trainings: Callable[[Setting, int], Sequence[Training]] = field(repr=False)
    measure: Callable[[Encoders, int], Samples] = field(repr=False)
    conclude: Callable[[Samples], Findings] = field(repr=False)
    draw: Callable[[Samples], Picture] = field(repr=False)
    settings: dict[str, Any] = field(default_factory=dict)
    """What a reader needs beside the setting."""


AnyReproduction = Reproduction | TrainedReproduction


def _short(value: float) -> str:
    if not np.isfinite(value):
        return "never" if np.isnan(value) else str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.0f}"
    return f"{value:.1e}"
