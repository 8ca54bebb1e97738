"""Few labels: what is drawn, the three classifiers, mean and deviation, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likewise.evaluation import few_label_probe, knn_accuracy, linear_probe
from likewise.evaluation.draws import places_in_class
from tests.evaluation.blobs import blobs, cosine

Z, Y = blobs(200, spread=1.5, seed=1)
T, TY = blobs(80, spread=1.5, seed=2)


def drawn(labels, count, seed):
    """The rows of a draw, from what a place in a class means."""
    return np.flatnonzero(places_in_class(torch.tensor(labels), seed).numpy() < count)


# --- the draw


def test_places_number_the_rows_of_every_class():
    labels = torch.tensor([5, 2, 2, 5, 2, -1, 5, 2, -1])
    places = places_in_class(labels, seed=3)
    for c in (-1, 2, 5):
        assert sorted(places[labels == c].tolist()) == list(range(int((labels == c).sum())))


def test_every_row_is_as_likely_to_be_drawn():
    labels = torch.tensor([0] * 5 + [1] * 10)
    firsts = torch.stack([places_in_class(labels, seed) == 0 for seed in range(2000)])
    share = firsts.double().mean(dim=0)
    # Four standard deviations.
    assert (share[:5] - 0.2).abs().max() < 4 * math.sqrt(0.2 * 0.8 / 2000)
    assert (share[5:] - 0.1).abs().max() < 4 * math.sqrt(0.1 * 0.9 / 2000)


def test_draws_are_the_same_for_the_same_seed_and_differ_otherwise():
    first, second, other = (places_in_class(torch.tensor(Y), seed) for seed in (0, 0, 1))
    assert torch.equal(first, second) and not torch.equal(first, other)


# --- classifiers


def test_linear_is_the_linear_probe_on_the_drawn_rows():
    found = few_label_probe(Z, Y, T, TY, labels_per_class=5, draws=3, seed=4)
    expected = []
    for draw in range(3):
        rows = drawn(Y, 5, 4 + draw)
        assert np.bincount(Y[rows]).tolist() == [5] * 4
        expected.append(linear_probe(Z[rows], Y[rows], T, TY, seed=4 + draw).accuracy)
    assert found.accuracies == expected and len(set(expected)) > 1
    assert found.mean == pytest.approx(sum(expected) / 3)
    squares = sum((a - found.mean) ** 2 for a in expected)
    assert found.deviation == pytest.approx(math.sqrt(squares / 2))
    assert (found.n_labels, found.n_test) == (20, 80)


def test_knn_lets_all_labelled_rows_vote():
    found = few_label_probe(Z, Y, T, TY, labels_per_class=3, draws=2, classifier="knn")
    for draw in range(2):
        rows = drawn(Y, 3, draw)
        assert found.accuracies[draw] == knn_accuracy(Z[rows], Y[rows], T, TY, k=12)


def test_nearest_mean_by_loops():
    found = few_label_probe(Z, Y, T, TY, labels_per_class=7, draws=1, classifier="mean")
    rows = drawn(Y, 7, 0)
    unit = np.float64(Z[rows]) / np.linalg.norm(np.float64(Z[rows]), axis=1, keepdims=True)
    means = [unit[Y[rows] == c].mean(axis=0) for c in range(4)]
    right = [
        max(range(4), key=lambda c: cosine(z, means[c])) == y for z, y in zip(T, TY, strict=True)
    ]
    assert found.accuracies == [np.mean(right)] and found.deviation == 0.0


@pytest.mark.parametrize("classifier", ["linear", "knn", "mean"])
def test_one_label_a_class(classifier):
    found = few_label_probe(Z, Y, T, TY, labels_per_class=1, classifier=classifier)
    assert found.n_labels == 4 and len(found.accuracies) == 5
    assert 0.25 < found.mean < 1


def test_more_labels_are_better():
    few, many = (few_label_probe(Z, Y, T, TY, labels_per_class=n).mean for n in (1, 40))
    assert many > few + 0.1


# --- shares, missing labels, bad input


def test_share_of_every_class():
    y = np.where(np.arange(200) < 8, Y, 0)  # class 0: 194 rows, the others: 2 each
    found = few_label_probe(Z, y, T, TY, share=0.1, draws=1, classifier="mean")
    assert found.n_labels == 19 + 3  # at least one of each
    assert few_label_probe(Z, y, T, TY, share=1.0, draws=1, classifier="mean").n_labels == 200


def test_unlabelled_rows_are_not_drawn():
    y = np.where(np.arange(200) < 20, Y, -1)
    found = few_label_probe(Z, y, T, TY, labels_per_class=5, draws=1, classifier="knn")
    assert found.accuracies == [knn_accuracy(Z[:20], Y[:20], T, TY, k=20)]
    assert found.unlabelled == {"train": 180, "test": 0}
    assert found.notes == ["180 train rows have no label and are left out"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels_per_class": None}, "labels_per_class is None and share is None: give one"),
        ({"share": 0.1}, "labels_per_class is 5 and share is 0.1: give one"),
        ({"labels_per_class": 0}, "labels_per_class is 0"),
        ({"labels_per_class": 51}, "labels_per_class is 51, but class 0 has 50 labelled rows"),
        ({"labels_per_class": None, "share": 1.5}, "share is 1.5"),
        ({"labels_per_class": None, "share": 0}, "share is 0"),
        ({"draws": 0}, "draws is 0"),
        ({"classifier": "forest"}, "classifier is 'forest': give 'linear', 'knn' or 'mean'"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        few_label_probe(Z, Y, T, TY, **{"labels_per_class": 5, **changes})
