"""Clustering scores against scikit-learn and by enumeration; invariances and bad input."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from likewise.evaluation import clustering_scores
from likewise.evaluation.clustering import matched_accuracy
from tests.evaluation.blobs import blobs, rotation

Z, Y = blobs(120, spread=0.8)


def test_scikit_learn():
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    clusters = KMeans(4, n_init=5, random_state=0).fit_predict(unit)
    found = clustering_scores(Z, Y, silhouette_rows=120)
    assert found.nmi == pytest.approx(normalized_mutual_info_score(Y, clusters))
    assert found.ari == pytest.approx(adjusted_rand_score(Y, clusters))
    assert found.silhouette == pytest.approx(silhouette_score(unit, Y, metric="cosine"), abs=1e-5)
    assert 0.3 < found.nmi < 1 and found.clusters == 4 and found.n == 120


@pytest.mark.parametrize("clusters", [2, 3, 4, 5])
def test_best_names_by_enumeration(clusters):
    rng = np.random.default_rng(clusters)
    truth, found = rng.integers(0, 4, 50), rng.integers(0, clusters, 50)
    size = max(4, clusters)
    best = max(np.mean(np.array(names)[found] == truth) for names in permutations(range(size)))
    assert matched_accuracy(truth, found) == pytest.approx(best)


def test_names_of_classes_and_rotation_change_nothing():
    expected = clustering_scores(Z, Y)
    for z, y in ((Z, 7 * (3 - Y)), (Z @ rotation(6), Y), (100 * Z, Y)):
        found = clustering_scores(z, y)
        assert found.nmi == pytest.approx(expected.nmi, abs=0.03)
        assert found.accuracy == pytest.approx(expected.accuracy, abs=0.03)


def test_length_of_rows_does_not_matter():
    factor = np.random.default_rng(0).uniform(0.01, 100, size=(120, 1))
    assert clustering_scores(Z * factor, Y).nmi == pytest.approx(clustering_scores(Z, Y).nmi)


def test_labels_at_random_score_nothing():
    y = np.random.default_rng(0).integers(0, 4, 120)
    found = clustering_scores(Z, y)
    assert found.nmi < 0.1 and abs(found.ari) < 0.05


def test_unlabelled_rows_are_left_out_and_counted():
    y = np.where(np.arange(120) < 80, Y, -1)
    found, expected = clustering_scores(Z, y), clustering_scores(Z[:80], Y[:80])
    assert (found.nmi, found.n, found.unlabelled) == (expected.nmi, 80, 40)
    assert found.notes == ["40 rows have no label and are left out"]


def test_collapsed_rows_say_so():
    found = clustering_scores(np.ones((40, 3)), np.arange(40) % 4)
    assert found.nmi == 0 and found.accuracy == pytest.approx(0.25)
    assert found.notes == ["k-means found 1 of 4 clusters: many rows are the same"]


def test_tensors_and_another_number_of_clusters():
    found = clustering_scores(torch.tensor(Z), torch.tensor(Y), clusters=9, silhouette_rows=30)
    again = clustering_scores(Z, Y, clusters=9, silhouette_rows=30)
    assert (found.nmi, found.silhouette) == (again.nmi, again.silhouette)
    assert found.clusters == 9 and found.nmi != clustering_scores(Z, Y).nmi
    assert clustering_scores(Z, Y).silhouette is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.zeros(120, dtype=int)}, "labels hold one class only"),
        ({"labels": np.full(120, -1)}, "labels hold no label"),
        ({"clusters": 0}, "clusters is 0"),
        ({"clusters": 121}, "clusters is 121, but there are 120 labelled rows"),
        ({"restarts": 0}, "restarts is 0"),
        ({"silhouette_rows": -3}, "silhouette_rows is -3"),
        ({"embeddings": Z * np.inf}, "embeddings holds NaN or infinity"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        clustering_scores(**{"embeddings": Z, "labels": Y, **changes})
