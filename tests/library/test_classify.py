"""Classify: accuracy, calibration, what to expect, what to ask; bad input."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.library import (
    calibration_error,
    classify_rows,
    expected_accuracy,
    fit_temperature,
)
from likewise.library.calibration import softmax
from tests.library.test_clusters import blobs


def hard(seed: int = 0, n: int = 900, each: float = 2.2):
    """Classes that overlap: nobody is right on all of them."""
    rows, labels = blobs(4, n // 4, spread=each, seed=seed)
    order = np.random.default_rng(seed).permutation(n)
    return rows[order], labels[order]


NAMES = ["a", "b", "c", "d"]


def known(labels: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    some = np.full(len(labels), -1)
    chosen = np.random.default_rng(seed).permutation(len(labels))[:count]
    some[chosen] = labels[chosen]
    return some


class TestLabels:
    def test_easy_classes_are_told_apart_from_few_answers(self):
        rows, labels = blobs(4, 60)
        found = classify_rows(rows, known(labels, 16), NAMES)
        assert (found.label == labels).mean() > 0.97
        assert (found.label[found.known] == labels[found.known]).all()
        assert (found.confidence[found.known] == 1).all()

    def test_confidence_and_expected_accuracy_mean_what_they_say(self):
        errors, inside, gaps = [], 0, []
        for seed in range(4):
            rows, labels = hard(seed)
            found = classify_rows(rows, known(labels, 200, seed), NAMES, seed=seed)
            rest = ~found.known
            right = (found.label == labels)[rest]
            errors.append(calibration_error(found.confidence[rest], right))
            inside += found.accuracy.low <= right.mean() <= found.accuracy.high
            gaps.append(abs(found.accuracy.value - right.mean()))
            assert 0.5 < right.mean() < 0.97  # neither trivial nor hopeless
        assert np.mean(errors) < 0.08
        assert inside >= 3 and np.mean(gaps) < 0.05

    def test_what_it_keeps_is_more_accurate_than_all(self):
        rows, labels = hard(1)
        found = classify_rows(rows, known(labels, 120), NAMES, threshold=0.9)
        right = found.label == labels
        kept = ~found.known & ~found.abstained
        assert 0 < kept.sum() < (~found.known).sum()
        assert right[kept].mean() > right[~found.known].mean()
        assert found.kept_accuracy.value > found.accuracy.value

    def test_what_to_ask_next_is_open_unsure_and_apart(self):
        rows, labels = hard(2)
        found = classify_rows(rows, known(labels, 60), NAMES, ask=10)
        assert len(set(found.next)) == 10
        assert not found.known[found.next].any()
        doubt = 1 - found.confidence[~found.known]
        assert (1 - found.confidence[found.next]).mean() > 1.2 * doubt.mean()

    def test_rows_outside_the_graph_are_labelled_too(self, monkeypatch):
        import likewise.library.classifier as module
        from likewise.library import neighborhood

        def small(n, needed, seed):
            return neighborhood.pool_of(n, needed, seed, size=100)

        monkeypatch.setattr(module, "pool_of", small)
        rows, labels = blobs(4, 100)
        found = classify_rows(rows, known(labels, 40), NAMES)
        assert (found.label == labels).mean() > 0.97

    def test_a_class_with_one_answer_is_noted(self):
        rows, labels = blobs(3, 30)
        some = np.full(90, -1)
        some[[0, 1, 2, 3, 30, 31, 32, 33, 60]] = labels[[0, 1, 2, 3, 30, 31, 32, 33, 60]]
        found = classify_rows(rows, some, NAMES[:3])
        assert any("one answer only (c)" in note for note in found.notes)
        assert (found.label == labels).mean() > 0.9

    @pytest.mark.parametrize(
        ("labels", "said"),
        [([-1] * 12, "no answers yet"), ([1] * 3 + [-1] * 9, "one class \\('b'\\)")],
    )
    def test_refuses_nothing_to_learn_from(self, labels, said):
        with pytest.raises(ValueError, match=said):
            classify_rows(np.eye(12, dtype=np.float32), np.array(labels), NAMES)

    def test_refuses_a_threshold_that_is_no_probability(self):
        rows, labels = blobs(2, 6)
        with pytest.raises(ValueError, match="threshold is 2"):
            classify_rows(rows, labels, NAMES[:2], threshold=2)


class TestCalibration:
    def test_temperature_is_the_minimum_of_the_loss(self):
        rng = np.random.default_rng(0)
        logits = 3 * rng.standard_normal((400, 5))
        labels = np.array([rng.choice(5, p=p) for p in softmax(logits / 2.5)])
        found = fit_temperature(logits, labels)

        def loss(t):
            return -np.mean(
                [
                    np.log(softmax(row[None] / t)[0, y])
                    for row, y in zip(logits, labels, strict=True)
                ]
            )

        assert 1.8 < found < 3.5
        assert loss(found) <= min(loss(0.98 * found), loss(1.02 * found)) + 1e-9

    def test_calibration_error_is_that_of_a_loop(self):
        rng = np.random.default_rng(1)
        sure, right = rng.uniform(0.2, 1, 300), rng.random(300) < 0.6
        total = 0.0
        for b in range(15):
            inside = [i for i in range(300) if b / 15 < sure[i] <= (b + 1) / 15]
            if inside:
                gap = abs(np.mean(sure[inside]) - np.mean(right[inside]))
                total += len(inside) / 300 * gap
        assert calibration_error(sure, right) == pytest.approx(total, abs=1e-9)

    def test_interval_covers_the_truth_as_often_as_it_says(self):
        rng = np.random.default_rng(2)
        inside = 0
        for _ in range(400):
            sure = rng.uniform(0.3, 1, 2080)
            right = rng.random(2080) < sure**1.3  # too sure of itself
            found = expected_accuracy(sure[80:], sure[:80], right[:80])
            inside += found.low <= right[80:].mean() <= found.high
        assert 0.91 <= inside / 400 <= 0.99

    def test_all_right_is_no_certainty(self):
        found = expected_accuracy(np.full(50, 0.99), np.full(10, 0.99), np.ones(10, dtype=bool))
        assert found.low < 0.97
