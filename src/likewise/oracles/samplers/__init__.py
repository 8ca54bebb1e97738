"""What to ask next: one rule a file, all with the same interface."""

from collections.abc import Mapping
from typing import Any

from likewise.oracles.samplers.base import Sampler, ScoringSampler
from likewise.oracles.samplers.captcha import Captcha
from likewise.oracles.samplers.classic import (
    Disagreement,
    ExpectedChange,
    Margin,
    Uncertainty,
)
from likewise.oracles.samplers.default import Default
from likewise.oracles.samplers.hierarchy import Hierarchy
from likewise.oracles.samplers.neighbors import NearestNeighbors
from likewise.oracles.samplers.outliers import OutlierGrids
from likewise.oracles.samplers.pruning import Pruning
from likewise.oracles.samplers.random_pairs import RandomPairs
from likewise.oracles.samplers.self_supervised import SelfSupervised
from likewise.oracles.samplers.state import State

SAMPLERS: Mapping[str, type[Sampler]] = {
    sampler.name: sampler
    for sampler in (
        Default,
        OutlierGrids,
        RandomPairs,
        SelfSupervised,
        Captcha,
        Hierarchy,
        NearestNeighbors,
        Pruning,
        Uncertainty,
        Margin,
        Disagreement,
        ExpectedChange,
    )
}
"""The samplers by name."""


def build_sampler(name: str, **options: Any) -> Sampler:
    """A sampler by its name.

    >>> build_sampler("captcha", guided=True).guided
    True
    """
    if name not in SAMPLERS:
        raise ValueError(f"sampler is {name!r}: give one of {', '.join(SAMPLERS)}")
    return SAMPLERS[name](**options)


__all__ = [
    "SAMPLERS",
    "Captcha",
    "Default",
    "Disagreement",
    "ExpectedChange",
    "Hierarchy",
    "Margin",
    "NearestNeighbors",
    "OutlierGrids",
    "Pruning",
    "RandomPairs",
    "Sampler",
    "ScoringSampler",
    "SelfSupervised",
    "State",
    "Uncertainty",
    "build_sampler",
]
