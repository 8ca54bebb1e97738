"""Classify: a label and an honest confidence for every image, from answers about some."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.library.calibration import (
    Expectation,
    calibration_error,
    expected_accuracy,
    fit_temperature,
    softmax,
)
from likewise.library.classifier import FewLabels, Mask
from likewise.library.exact import Rows

FOLDS = 5
MOST_HELD_OUT = 2000
"""Answers that are held out in turn; with more, these say enough about the temperature."""

CHOSEN_ODDS = 1.25
"""By how much the odds of being right may differ, at the same confidence, between images that a
sampler chose to ask about and others; see `docs/use.md`."""

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass
class Labelled:
    """Every image with a label.

    Attributes:
        classes: names of the classes.
        label: (n,) the likeliest class; that of the answer where there is one.
        confidence: (n,) its calibrated probability; 1 where it was answered.
        probabilities: (n, classes), calibrated.
        known: (n,) whether there is an answer.
        threshold: below this confidence it abstains.
        temperature: by which the scores were divided.
        accuracy: the share of the images without an answer that it should have right.
        kept_accuracy: the same, of those that it does not abstain from.
        held_out: accuracy and calibration error on the answers, each left out in turn.
        by_threshold: for several thresholds, the share kept and the accuracy to expect of it.
        next: places to ask about next, the most useful first.
        notes: what a reader should know.
    """

    classes: list[str]
    label: NDArray[np.int64]
    confidence: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    known: NDArray[np.bool_]
    threshold: float
    temperature: float
    accuracy: Expectation
    kept_accuracy: Expectation
    held_out: dict[str, float]
    by_threshold: list[tuple[float, float, Expectation]]
    next: list[int]
    notes: list[str] = field(default_factory=list)

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """(n,) where it is not sure enough."""
        return ~self.known & (self.confidence < self.threshold)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without the rows."""

        def plain(found: Expectation) -> dict[str, float]:
            return {name: round(value, 4) for name, value in vars(found).items()}

        return {
            "classes": self.classes,
            "answers": int(self.known.sum()),
            "images": len(self.label),
            "abstained": int(self.abstained.sum()),
            "threshold": self.threshold,
            "temperature": round(self.temperature, 4),
            "expected_accuracy": plain(self.accuracy),
            "expected_accuracy_of_kept": plain(self.kept_accuracy),
            "held_out": {name: round(value, 4) for name, value in self.held_out.items()},
            "by_threshold": [
                {"threshold": t, "kept": round(kept, 4), "expected_accuracy": plain(found)}
                for t, kept, found in self.by_threshold
            ],
            "notes": self.notes,
        }


def classify_rows(
    rows: Rows,
    labels: NDArray[np.int64],
    class_names: list[str],
    *,
    excluded: Mask | None = None,
    chosen: bool = False,
    threshold: float = 0.5,
    ask: int = 15,
    seed: int = 0,
) -> Labelled:
    """Label all rows from the known ones.

    The classifier (:class:`~likewise.library.classifier.FewLabels`) is fitted five times without a
    fifth of the answers; on these held-out answers the temperature is fitted, and its accuracy
    and calibration measured. Then it is fitted to all.

    Args:
        rows: (n, d) of length 1.
        labels: (n,) class indices of what is known, -1 elsewhere.
        class_names: of the classes.
        excluded: (n, classes) classes that an image is known not to be of, where only that is
            known of it.
        chosen: the known ones were chosen by what they look like, not drawn at random; the
            intervals are then wider.
        threshold: abstain below this confidence.
        ask: how many images to propose for the next questions.
        seed: of the folds.
    """
    n = len(rows)
    known = np.flatnonzero(labels >= 0)
    _check(labels, known, class_names, threshold)
    truth = labels[known]
    size = len(class_names)
    model = FewLabels(rows, known, excluded=excluded, seed=seed)
    odds = CHOSEN_ODDS if chosen else 1.0
    held, folds = _folds(truth, seed)
    held_logits = np.zeros((len(held), size))
    for fold in range(int(folds.max(initial=-1)) + 1):
        out = held[folds == fold]
        kept = np.setdiff1d(np.arange(len(known)), out)
        held_logits[folds == fold] = model.logits(known[kept], truth[kept], size, known[out])
    temperature = fit_temperature(held_logits, truth[held])
    held_sure = softmax(held_logits / temperature)
    right = held_sure.argmax(axis=1) == truth[held]
    sure = held_sure.max(axis=1)
    probabilities = softmax(model.logits(known, truth, size, np.arange(n)) / temperature)
    label, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    answered = labels >= 0
    label[answered], confidence[answered] = labels[answered], 1.0
    rest = ~answered
    table = []
    for at in sorted({*THRESHOLDS, threshold}):
        some, tried = rest & (confidence >= at), sure >= at
        expected = _expected(confidence[some], sure[tried], right[tried], odds)
        table.append((at, float(some.sum() / max(rest.sum(), 1)), expected))
    return Labelled(
        classes=class_names,
        label=label.astype(np.int64),
        confidence=confidence,
        probabilities=probabilities,
        known=answered,
        threshold=threshold,
        temperature=temperature,
        accuracy=_expected(confidence[rest], sure, right, odds),
        kept_accuracy=next(found for at, _, found in table if at == threshold),
        held_out={
            "answers": float(len(held)),
            "accuracy": float(right.mean()) if len(held) else float("nan"),
            "calibration_error": calibration_error(sure, right),
        },
        by_threshold=table,
        next=next_to_ask(model, confidence, rest, ask),
        notes=_notes(truth, class_names, held),
    )


def _expected(
    confidence: NDArray[np.float64],
    sure: NDArray[np.float64],
    right: NDArray[np.bool_],
    odds: float,
) -> Expectation:
    if not len(confidence) and not len(right):
        return Expectation(float("nan"), 0.0, 1.0)
    return expected_accuracy(confidence, sure, right, odds)


def _check(
    labels: NDArray[np.int64], known: NDArray[np.int64], names: list[str], threshold: float
) -> None:
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold}: give a confidence from 0 to 1")
    if len(known) == 0:
        raise ValueError(
            "there are no answers yet that name a class: answer some questions "
            "(`likewise ask`), or give labels of a few images (--labels FILE.csv)"
        )
    if len(np.unique(labels[known])) < 2:
        raise ValueError(
            f"all {len(known)} answers are of one class ({names[labels[known][0]]!r}): there is "
            "nothing to tell apart; answer until there are at least two"
        )


def _folds(truth: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places among the answers to hold out, and in which fifth; alike in every class.

    A class with one answer keeps it: without it the class would not exist.
    """
    rng = np.random.default_rng(seed)
    held, folds = [], []
    for c in np.unique(truth):
        places = rng.permutation(np.flatnonzero(truth == c))
        if len(places) < 2:
            continue
        held.append(places)
        folds.append((np.arange(len(places)) + rng.integers(FOLDS)) % min(FOLDS, len(places)))
    if not held:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    every, fold = np.concatenate(held), np.concatenate(folds)
    if len(every) > MOST_HELD_OUT:
        some = rng.permutation(len(every))[:MOST_HELD_OUT]
        every, fold = every[some], fold[some]
    return every, fold


def _notes(truth: NDArray[np.int64], names: list[str], held: NDArray[np.int64]) -> list[str]:
    notes = []
    counts = np.bincount(truth, minlength=len(names))
    if single := [name for name, count in zip(names, counts, strict=True) if count == 1]:
        notes.append(
            f"{len(single)} classes have one answer only ({', '.join(single[:5])}): how well they "
            "are told apart is not known"
        )
    if len(held) < 50:
        notes.append(
            f"{len(held)} answers could be held out: the temperature and the expected accuracy "
            "rest on little"
        )
    return notes


def next_to_ask(
    model: FewLabels, confidence: NDArray[np.float64], open_: NDArray[np.bool_], count: int
) -> list[int]:
    r"""Images whose answers should help most, each far from those before it.

    The worth of an image is the doubt that its neighbourhood shares with it,
    :math:`u_i ((I - aS)^{-1} u)_i` with :math:`u = 1 -` confidence and a = 0.9; once one is taken,
    the doubt of its neighbours is taken to be answered in part.
    """
    doubt = np.where(open_[model.pool], 1.0 - confidence[model.pool], 0.0)
    spread = model.graph.spread
    taken: list[int] = []
    worth = doubt * model.graph.propagate(doubt[:, None], 0.9)[:, 0]
    reach = np.zeros((len(doubt), 1))
    for _ in range(min(count, int((doubt > 0).sum()))):
        best = int(np.argmax(worth))
        if worth[best] <= 0:
            break
        taken.append(int(model.pool[best]))
        # A few steps along the graph are what one answer reaches.
        reach[:] = 0.0
        reach[best] = 1.0
        total = reach.copy()
        for _ in range(3):
            reach = 0.9 * (spread @ reach)
            total += reach
        worth *= 1.0 - np.minimum(total[:, 0] / max(float(total.max()), 1e-12), 1.0)
        worth[best] = 0.0
    return taken
