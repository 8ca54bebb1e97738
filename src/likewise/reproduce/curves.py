"""Errors against the number of queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.reproduce.findings import Figure
from likewise.reproduce.questions import TemplateQuestions

Curve = NDArray[Any]
"""(queries, 2): the paper's error and the honest one at each number of queries."""
PAPER, HONEST = 0, 1


def ask_and_measure(
    oracle: TemplateQuestions,
    grid: NDArray[np.integer[Any]],
    measure: Callable[[], NDArray[Any]],
    choose: Callable[[int], NDArray[np.intp]],
) -> Curve:
    """Ask until nothing is left to ask or the grid ends, and measure at each of its numbers.

    A number of queries at which no question ends has what was known before it: nobody could have
    known more. Once the graph is complete, nothing changes.

    Args:
        oracle: who answers.
        grid: ascending numbers of queries.
        measure: a fit to what is known now, and its errors.
        choose: the candidates for a class.
    """
    errors: list[NDArray[Any]] = []
    while len(errors) < len(grid):
        topic = oracle.topic()
        items = choose(topic) if topic is not None else np.zeros(0, dtype=np.intp)
        # Fits are what takes time: none where the next question begins before the next number.
        until = oracle.asked + len(items) if len(items) else np.inf
        due = int(np.sum(grid[len(errors) :] < until))
        if due:
            errors += due * [measure()]
        if topic is not None:
            oracle.ask(topic, items)
    return np.stack(errors)


def stays_below(grid: NDArray[Any], errors: NDArray[Any], level: float) -> float:
    """The number of queries from which on the error is at most `level`; NaN where there is none.

    >>> stays_below(np.array([0, 10, 20, 30]), np.array([0.1, 0.3, 0.2, 0.1]), 0.2)
    20.0
    """
    above = np.flatnonzero(errors > level)
    first = above[-1] + 1 if len(above) else 0
    return float(grid[first]) if first < len(grid) else float("nan")


def queries_needed(name: str, grid: NDArray[Any], errors: NDArray[Any], level: float) -> Figure:
    """From when on the mean error over the trials (the first axis) is at most at a level.

    The deviation is that of the numbers that single trials need (those which get there).
    """
    each = np.array([stays_below(grid, trial, level) for trial in errors])
    spread = float(np.nanstd(each)) if np.isfinite(each).sum() > 1 else None
    return Figure(
        f"{name}: queries to error {level:g}".replace("0.", "."),
        stays_below(grid, errors.mean(axis=0), level),
        spread,
    )
