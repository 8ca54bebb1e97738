"""Representations that learn from answers, inside the loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.oracles import Answer, ExactBeliefs, TruthLabeler
from likewise.oracles.pal import PAL
from likewise.oracles.updates import FineTune, KernelUpdate, Update


def buried(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes in two columns, under ten columns of louder noise that say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    X = np.concatenate([centers[y] + rng.normal(size=(n, 2)), 5 * rng.normal(size=(n, 10))], axis=1)
    return X.astype(np.float32), y


def run(update: Update | None, budget: int = 30) -> PAL:
    X, y = buried(400, 0)
    test = buried(300, 1)
    loop = PAL(X, "default", TruthLabeler(y), grid=10, test=test, truth=y, update=update, every=10)
    loop.run(budget, progress=False)
    return loop


def test_a_kernel_machine_that_learns_sees_more():
    plain, learned = run(None), run(KernelUpdate(weight=3.0, kernel="linear"))
    assert learned.accuracy() > plain.accuracy() + 0.05
    # Rows to predict are inputs, as X was.
    X, y = buried(50, 2)
    names = {c: y_ for c, y_ in enumerate(_names(learned))}
    assert np.mean([names[c] == k for c, k in zip(learned.predict(X), y, strict=True)]) > 0.6


def _names(loop: PAL) -> list[int]:
    labels = loop.beliefs.labels()
    return [int(np.bincount(loop.truth[labels == c]).argmax()) for c in range(3)]


def test_an_encoder_that_learns_sees_more():
    def encoder():
        torch.manual_seed(0)
        return torch.nn.Linear(12, 6)

    frozen = run(FineTune(encoder(), steps=1, lr=0.0))
    tuned = run(FineTune(encoder(), steps=150, lr=1e-2, known_weight=0.9))
    assert tuned.accuracy() > frozen.accuracy() + 0.1


def test_what_changes_and_when():
    class Counting(Update):
        def __init__(self):
            self.known = []

        def rows(self, inputs):
            return np.asarray(inputs) * (1 + len(self.known))

        def learn(self, inputs, beliefs):
            self.known.append(beliefs.n_answers)

    X, y = buried(60, 3)
    update = Counting()
    loop = PAL(X, "default", TruthLabeler(y), grid=5, update=update, every=4)
    items = loop.probe.items
    history = loop.run(9, progress=False)
    assert update.known == [history.answers_given()[3], history.answers_given()[7]]
    np.testing.assert_array_equal(loop.X, 3 * X)
    np.testing.assert_array_equal(loop.probe.X, loop.X)
    np.testing.assert_array_equal(loop.probe.items, items)


def test_nothing_is_learned_from_nothing():
    X, _ = buried(30, 0)
    update = KernelUpdate()
    update.learn(X, ExactBeliefs(30).add([Answer(0, 1, 1.0)]))
    np.testing.assert_array_equal(update.rows(X), X)


def test_bad_arguments():
    with pytest.raises(ValueError, match="weight is -1"):
        KernelUpdate(weight=-1)
    with pytest.raises(ValueError, match="steps is 0"):
        FineTune(torch.nn.Linear(2, 2), steps=0)
    with pytest.raises(ValueError, match="known_weight is 0"):
        FineTune(torch.nn.Linear(2, 2), known_weight=0)
    with pytest.raises(ValueError, match="every is 0"):
        PAL(np.zeros((4, 2)), "default", TruthLabeler([0, 0, 1, 1]), every=0)
