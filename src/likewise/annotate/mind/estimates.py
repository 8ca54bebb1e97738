"""How good the classifier is, and how many questions are left: estimates from what is known."""

from __future__ import annotations

import math

import numpy as np

from likewise.oracles.samplers import State

FEWEST = 20
"""Known items from which on an accuracy is estimated."""


def estimated_accuracy(state: State) -> float | None:
    """The share of known items that the classifier gets right, each left out of its own.

    Only items of classes with another known item count. It is rather too low: what was asked
    about is what was hard. None while fewer than 20 items are known.
    """
    right = _left_out(state)
    return None if right is None else float(right.mean())


def _left_out(state: State) -> np.ndarray | None:
    if state.n_classes < 2:
        return None
    labels = state.labels[state.probe.items]
    counts = np.bincount(labels[labels >= 0], minlength=state.n_classes)
    scored = (labels >= 0) & (counts[labels] > 1)
    if scored.sum() < FEWEST:
        return None
    guess = state.fitted.without_own[scored].argmax(axis=1)
    return guess == labels[scored]


def questions_left(
    state: State, accuracy: float | None, target: float, questions: int, grid: int
) -> int | None:
    """About how many more questions reach the target; None where nothing can be said.

    Errors fall as a power of what is known, e = c q^-b. The exponent comes from the error with
    half of the known items, on the other half: b = log2(e_half / e); so q grows to
    q (e / (1 - target))^(1 / b). To place every item is enough in any case, and bounds it.
    """
    if accuracy is None or not questions:
        return None
    if accuracy >= target:
        return 0
    error, wanted = max(1.0 - accuracy, 1e-3), max(1.0 - target, 1e-3)
    half = _error_with_half(state)
    most = _to_place_all(state, grid)
    if half is None:
        return most
    exponent = min(max(math.log2(max(half, error) / error), 0.1), 2.0)
    needed = questions * ((error / wanted) ** (1.0 / exponent) - 1.0)
    return max(1, int(min(math.ceil(min(needed, 1e12)), most)))


def _error_with_half(state: State) -> float | None:
    known = state.probe.items[state.labels[state.probe.items] >= 0]
    rng = np.random.default_rng(len(known))
    hidden = known[rng.permutation(len(known))[: len(known) // 2]]
    labels = state.labels.copy()
    labels[hidden] = -1
    left = np.bincount(labels[labels >= 0], minlength=state.n_classes)
    scored = hidden[left[state.labels[hidden]] > 0]
    if len(scored) < FEWEST // 2:
        return None
    guess = state.probe.fit(labels, state.n_classes).pool[state.probe.place[scored]].argmax(axis=1)
    return float(np.mean(guess != state.labels[scored]))


def _to_place_all(state: State, grid: int) -> int:
    """Questions until every item is placed, asked class by class, the likeliest first."""
    share = len(state.probe.items) / state.n
    answers = float(state.expected_answers()[state.labels[state.probe.items] < 0].sum()) / share
    return max(1, math.ceil(answers / grid))
