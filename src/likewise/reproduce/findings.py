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
    """A measured number: its mean and standard deviation over the trials."""

    name: str
    value: float
    deviation: float | None = None

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> Figure:
        """The mean and the standard deviation of one number a trial.

        >>> print(Figure.of("error", np.array([0.1, 0.3])))
        0.2 ± 0.1
        """
        return cls(name, float(np.mean(values)), float(np.std(values)))

    def __str__(self) -> str:
        if self.deviation is None:
            return _short(self.value)
        return f"{_short(self.value)} ± {_short(self.deviation)}"


@dataclass(frozen=True)
class Check:
    """A number that has to stay on one side of a limit.

    >>> Check("error with all labels", 0.05, "at most", 0.085).met
    True
    """

    name: str
    value: float
    sense: Literal["at most", "at least"]
    limit: float

    @property
    def met(self) -> bool:
        """Whether it does. A number that is not there (NaN) does not."""
        if self.sense == "at most":
            return bool(self.value <= self.limit)
        return bool(self.value >= self.limit)

    def __str__(self) -> str:
        return f"{self.name}: {_short(self.value)} ({self.sense} {_short(self.limit)})"


@dataclass(frozen=True)
class Findings:
    """What came out of all trials."""

    figures: Sequence[Figure]
    checks: Sequence[Check]
    remark: str = ""
    """What the checks alone do not say, in one sentence; made from the numbers."""

    @property
    def verdict(self) -> str:
        """ "holds", "holds up to ..." with the checks that failed, or "does not hold here"."""
        failed = [check for check in self.checks if not check.met]
        if not failed:
            return "holds"
        if len(failed) == len(self.checks):
            return "does not hold here"
        return "holds up to " + "; ".join(map(str, failed))


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
