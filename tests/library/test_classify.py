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
from likewise.library.regression import Landmarks, Ridge, Whitening
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

    def test_a_class_that_is_excluded_is_never_given(self):
        rows, labels = hard(3)
        some = known(labels, 80)
        plain = classify_rows(rows, some, NAMES)
        # What was said not to be of its likeliest class, rightly.
        wrong = np.flatnonzero(~plain.known & (plain.label != labels))
        assert len(wrong) > 20
        excluded = np.zeros((len(rows), 4), dtype=bool)
        excluded[wrong, plain.label[wrong]] = True
        found = classify_rows(rows, some, NAMES, excluded=excluded)
        assert not excluded[np.arange(len(rows)), found.label].any()
        assert (found.label == labels)[wrong].mean() > 0.5
        rest = np.setdiff1d(np.flatnonzero(~plain.known), wrong)
        assert (found.label == labels)[rest].mean() > 0.95
        nothing_left = classify_rows(rows, some, NAMES, excluded=np.ones((900, 4), dtype=bool))
        assert (nothing_left.confidence[~plain.known] < 0.3).all()

    def test_chosen_answers_promise_less(self):
        rows, labels = hard(1)
        drawn = classify_rows(rows, known(labels, 80), NAMES).accuracy
        chosen = classify_rows(rows, known(labels, 80), NAMES, chosen=True).accuracy
        assert chosen.value == drawn.value
        assert chosen.low < drawn.low and chosen.high > drawn.high

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

        def loss(t, usual):
            each = [
                -np.log(softmax(row[None] / t)[0, y]) for row, y in zip(logits, labels, strict=True)
            ]
            return sum(each) + (np.log(t) / usual) ** 2 / 2

        for usual in (np.inf, 0.3, 0.05):
            found = fit_temperature(logits, labels, usual)
            near = [loss(factor * found, usual) for factor in (0.98, 1.02)]
            assert loss(found, usual) <= min(near) + 1e-9
        assert 2.1 < fit_temperature(logits, labels, np.inf) < 3.0
        assert 1.0 < fit_temperature(logits, labels, 0.05) < 1.7  # held by what is usual

    def test_few_answers_that_are_all_right_are_no_certainty(self):
        logits = np.tile([3.0, 0.0, 0.0], (10, 1))
        assert 0.4 < fit_temperature(logits, np.zeros(10, dtype=np.int64)) < 1.0

    def test_odds_move_both_ends_of_the_interval(self):
        rng = np.random.default_rng(3)
        sure = rng.uniform(0.5, 1, 300)
        right = rng.random(300) < sure
        drawn = expected_accuracy(sure, sure, right)
        chosen = expected_accuracy(sure, sure, right, odds=1.5)
        assert chosen.value == drawn.value
        for wide, narrow, factor in (
            (chosen.low, drawn.low, 1 / 1.5),
            (chosen.high, drawn.high, 1.5),
        ):
            assert wide / (1 - wide) == pytest.approx(factor * narrow / (1 - narrow))

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


class TestRegression:
    def test_whitened_rows_have_like_variances(self):
        rng = np.random.default_rng(0)
        rows = (rng.standard_normal((5000, 4)) * [10, 3, 1, 1] + 5).astype(np.float32)
        found = Whitening(rows, floor=0.0)(rows)
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        assert np.allclose(np.cov(found.T), np.eye(4) / 4, atol=0.02)

    def test_landmarks_are_the_kernel_where_all_rows_are_landmarks(self):
        rng = np.random.default_rng(1)
        rows = rng.standard_normal((40, 6)).astype(np.float32)
        features = Landmarks(rows)(rows)
        away = ((rows[:, None] - rows) ** 2).sum(axis=2)
        kernel = np.exp(-away / (2 * np.median(away)))
        assert np.allclose(features @ features.T, kernel, atol=1e-3)

    def test_ridge_is_that_of_scikit_learn(self):
        from sklearn.linear_model import Ridge as Theirs

        rng = np.random.default_rng(2)
        rows, targets = rng.standard_normal((60, 5)), rng.random((60, 3))
        weights = rng.uniform(0.5, 3, 60)
        share = weights / weights.sum()
        centred = rows - share @ rows
        size = np.trace(centred.T @ (centred * share[:, None])) / 5
        theirs = Theirs(alpha=0.2 * size).fit(rows, targets, sample_weight=share)
        found = Ridge(rows, targets, weights, strength=0.2).predict(rows[:7])
        assert np.allclose(found, theirs.predict(rows[:7]))
