"""How strong the penalty of a linear probe should be: what rows held out of training say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from likewise.evaluation.draws import places_in_class
from likewise.evaluation.logistic import LogisticRegression, principal_axes
from likewise.pairwise.products import product

PENALTIES = tuple(10.0 ** (-power / 2) for power in range(-2, 13))
"""10, 3.2, 1, ... 1e-6: from a classifier by class means to hardly any penalty."""

MANY_ROWS = 5000
"""From here on a tenth of the rows is enough to choose a penalty by."""

FEW_ROWS = 1000
"""Below, all penalties are tried: mistakes on a few held-out rows go up and down by chance."""

PATIENCE = 3


def fit_logistic(
    rows: Tensor, labels: Tensor, n_classes: int, seed: int, options: dict[str, Any]
) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Logistic regression on standardised rows, with the best of ``options["penalty"]``.

    Returns:
        weight (n_classes, d), offset (n_classes,), and what was found on the way.
    """
    axes = principal_axes(rows)
    penalties = options["penalty"]
    found: dict[str, Any] = {}
    begin = None
    if len(penalties) > 1:
        parts = 10 if len(rows) >= MANY_ROWS else 5
        folds = (places_in_class(labels, seed) + labels) % parts
        held_out = [folds == part for part in range(1 if parts == 10 else parts)]
        penalty, errors, begin = _choose(axes.rows, labels, n_classes, penalties, held_out)
        found["held_out_errors"] = errors
    else:
        (penalty,) = penalties
    found["penalty"] = penalty
    limits = {"tolerance": options["tolerance"], "iterations": options["iterations"]}
    end = LogisticRegression(axes.rows, labels, n_classes).minimise(penalty, begin, **limits)
    found.update(gap=end.gap, steps=end.iterations, converged=end.converged)
    return axes.back(end.weight[:, :-1]), end.weight[:, -1], found


def _choose(
    rows: Tensor,
    labels: Tensor,
    n_classes: int,
    penalties: Sequence[float],
    held_out: Sequence[Tensor],
) -> tuple[float, dict[str, float], Tensor | None]:
    """The penalty with the fewest mistakes on held-out rows, the shares of mistakes, its weights.

    From the largest penalty down, each fit starting from the last one. Where several penalties in
    a row have brought nothing, smaller ones are not tried, unless there are so few rows that this
    would be chance.
    """
    fits = [LogisticRegression(rows[~out], labels[~out], n_classes) for out in held_out]
    tested = [(rows[out], labels[out]) for out in held_out]
    total = sum(len(truth) for _, truth in tested)
    weights: list[Tensor | None] = [None] * len(fits)
    errors: dict[float, int] = {}
    best, best_weight = penalties[0], None
    for number_tried, penalty in enumerate(penalties):
        wrong = 0
        for fold, (fit, (held, truth)) in enumerate(zip(fits, tested, strict=True)):
            weight = fit.minimise(penalty, weights[fold], tolerance=1e-5, iterations=100).weight
            weights[fold] = weight
            predicted = (product(held, weight[:, :-1]) + weight[:, -1]).argmax(dim=1)
            wrong += int((predicted != truth).sum())
        errors[penalty] = wrong
        if wrong < errors[best] or number_tried == 0:
            best, best_weight = penalty, weights[0]
        elif len(rows) >= FEW_ROWS and penalties.index(best) <= number_tried - PATIENCE:
            break
    shares = {f"{penalty:.3g}": count / total for penalty, count in errors.items()}
    return best, shares, best_weight
