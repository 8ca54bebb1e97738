"""Probabilities that mean what they say: temperature scaling, and how far off they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


def softmax(logits: Matrix) -> Matrix:
    """Rows that add up to 1."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


USUAL = 0.3
"""The deviation of log T that is expected before any answer is seen."""


def fit_temperature(logits: Matrix, labels: NDArray[np.int64], usual: float = USUAL) -> float:
    r"""The T that minimises :math:`\sum_i -\log \mathrm{softmax}(l_i / T)_{y_i} + \log^2 T / 2u^2`.

    On items that the classifier has not seen (Guo et al. 2017). It changes no prediction, only
    how sure it is. The second term is the prior that log T is 0 give or take u: a few dozen items
    tell T to a fifth at best, and with all of them right, or wrong, the minimum would lie at 0 or
    at infinity.

    Args:
        logits: (m, classes).
        labels: (m,).
        usual: u; infinity for none.

    >>> logits = np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    >>> found = fit_temperature(logits, np.array([0, 0, 0, 1]), usual=float("inf"))
    >>> float(softmax(logits / found)[0, 0].round(3))
    0.75
    """
    if not len(labels):
        return 1.0
    from scipy.optimize import minimize_scalar

    at = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        scaled = logits / math.exp(log_temperature)
        top = scaled.max(axis=1)
        total = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
        return float((total - scaled[at, labels]).sum()) + (log_temperature / usual) ** 2 / 2

    limit = math.log(20.0)
    found = minimize_scalar(loss, bounds=(-limit, limit), method="bounded")
    return math.exp(float(found.x))


def calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = 15) -> float:
    r"""The expected calibration error: :math:`\sum_b \frac{n_b}{n} |conf_b - acc_b|`.

    Over `bins` of equal width (Naeini et al. 2015; Guo et al. 2017).

    >>> calibration_error([0.8, 0.8, 0.8, 0.8, 0.8], [1, 1, 1, 1, 0])
    0.0
    """
    sure, correct = np.asarray(confidence, dtype=float), np.asarray(right, dtype=float)
    if not len(sure):
        return 0.0
    # Round-off must not turn 0.8 into 0.7999.
    bin_of = np.clip(np.ceil(np.round(sure * bins, 9)).astype(int) - 1, 0, bins - 1)
    sizes = np.bincount(bin_of, minlength=bins)
    gaps = np.bincount(bin_of, weights=sure - correct, minlength=bins)
    return float(np.round(np.abs(gaps).sum() / sizes.sum(), 12))


@dataclass(frozen=True)
class Expectation:
    """An expected share with a 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def expected_accuracy(
    confidence: NDArray[np.float64],
    held_confidence: NDArray[np.float64],
    held_right: NDArray[np.bool_],
    odds: float = 1.0,
) -> Expectation:
    r"""The share of items that will turn out right, with a 95 % interval.

    .. math::
        \frac1N \sum_i c_i + \frac1m \sum_j (r_j - c_j)

    The mean confidence over all items, corrected by how far confidence was off on the m held-out
    answers (Angelopoulos et al. 2023, prediction-powered inference, for a mean). Its variance is
    var(c) / N + var(r - c) / m. With few answers, or all of them right, the second is never taken
    to be less than Wilson's interval of the held-out share would give.

    It holds for answers about items drawn at random. Where they were chosen, `odds` is by how much
    the odds of being right may differ, at the same confidence, between them and the others: the
    ends of the interval are moved by that factor (a sensitivity analysis, Rosenbaum 1987).
    """
    n, m = len(confidence), len(held_right)
    if n == 0:
        # Nothing to predict: what the held-out answers say, as they are.
        confidence, n = held_confidence, max(m, 1)
    if m == 0:
        return Expectation(float(confidence.mean()) if len(confidence) else 0.0, 0.0, 1.0)
    mean, spread = float(confidence.mean()), float(confidence.var() / n)
    off = held_right.astype(float) - held_confidence
    value = mean + float(off.mean())
    share = float(held_right.mean())
    z = 1.959963984540054
    # Half of the width of Wilson's interval, as a deviation, guards against a variance of 0.
    wilson = math.sqrt(share * (1 - share) / m + z * z / (4 * m * m)) / (1 + z * z / m)
    deviation = math.sqrt(spread + max(float(off.var()) / m, 0.25 * wilson**2))
    low, high = value - z * deviation, value + z * deviation
    low, value, high = (min(max(x, 0.0), 1.0) for x in (low, value, high))
    return Expectation(value, _with_odds(low, 1 / odds), _with_odds(high, odds))


def _with_odds(share: float, factor: float) -> float:
    """The share whose odds are `factor` times those of another."""
    return factor * share / (1 - share + factor * share)
