"""All scores at once: each is what its own function gives; JSON, table, missing labels, names."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from rich.console import Console

from likewise.evaluation import (
    Embeddings,
    clustering_scores,
    evaluate_embeddings,
    few_label_probe,
    knn_probe,
    linear_probe,
)
from likewise.information import effective_rank, rank_me
from tests.evaluation.blobs import blobs

Z, Y = blobs(160, classes=8, dim=10, seed=1)
T, TY = blobs(80, classes=8, dim=10, seed=2)
NAMES = [f"class {c}" for c in range(8)]


def embeddings(rows, labels, prefix, names=NAMES):
    return Embeddings([f"{prefix}/{i}" for i in range(len(rows))], rows, labels, names)


@pytest.fixture(scope="module")
def found():
    return evaluate_embeddings(Z, Y, T, TY, k=(20, 1), labels_per_class=(1, 10), draws=2)


def test_every_score_is_that_of_its_own_function(found):
    for k in (20, 1):
        assert found.knn[k].accuracy == knn_probe(Z, Y, T, TY, k=k).accuracy
    assert list(found.knn) == [20, 1]
    expected = linear_probe(Z, Y, T, TY)
    assert found.linear.accuracy == expected.accuracy
    np.testing.assert_array_equal(found.linear.weight, expected.weight)
    for count in (1, 10):
        few = few_label_probe(Z, Y, T, TY, labels_per_class=count, draws=2)
        assert found.few_labels[count].accuracies == few.accuracies
    assert found.clustering.nmi == clustering_scores(T, TY).nmi
    rows = torch.tensor(Z)
    centred = rows - rows.mean(dim=0)
    assert found.rank["rank_me"] == pytest.approx(float(rank_me(rows)))
    covariance = centred.T @ centred
    assert found.rank["effective_rank"] == pytest.approx(
        float(effective_rank(covariance)), rel=1e-4
    )
    assert found.notes == []


def test_summary_has_one_number_a_score(found):
    assert found.summary() == {
        "knn-20": found.knn[20].accuracy,
        "knn-1": found.knn[1].accuracy,
        "linear": found.linear.accuracy,
        "few-labels-1": found.few_labels[1].mean,
        "few-labels-10": found.few_labels[10].mean,
        "nmi": found.clustering.nmi,
        "ari": found.clustering.ari,
        "cluster-accuracy": found.clustering.accuracy,
        "rank-me": found.rank["rank_me"],
        "effective-rank": found.rank["effective_rank"],
    }


def test_json_holds_everything(found):
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["summary"] == found.summary()
    assert plain["linear"]["confusion"] == found.linear.confusion.tolist()
    assert plain["linear"]["settings"]["penalty"] == found.linear.settings["penalty"]
    assert plain["few_labels"]["10"]["accuracies"] == found.few_labels[10].accuracies
    assert plain["knn"]["20"]["per_class"]["3"] == found.knn[20].per_class[3]
    assert plain["settings"]["n_train"] == 160 and plain["settings"]["n_test"] == 80


def test_table_shows_the_numbers(found):
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(found.table())
    text = console.export_text()
    for share in (found.knn[20].accuracy, found.linear.accuracy, found.linear.top5):
        assert f"{100 * share:.2f} %" in text
    assert f"NMI {found.clustering.nmi:.3f}" in text and "10 labels a class" in text


def test_only_what_is_asked_for():
    found = evaluate_embeddings(Z, Y, T, TY, methods=("knn",), k=3)
    assert list(found.knn) == [3]
    assert found.linear is found.clustering is None and found.few_labels == {}
    assert list(found.summary()) == ["knn-3", "rank-me", "effective-rank"]
    assert json.dumps(found.to_dict()) and found.table().row_count == 3


def test_options_reach_the_probe():
    found = evaluate_embeddings(
        Z, Y, T, TY, methods=["linear"], probe="sgd", probe_options={"epochs": 2}, seed=3
    )
    expected = linear_probe(Z, Y, T, TY, method="sgd", epochs=2, seed=3)
    np.testing.assert_array_equal(found.linear.weight, expected.weight)


def test_tensors():
    found = evaluate_embeddings(torch.tensor(Z), torch.tensor(Y), torch.tensor(T), TY, k=5)
    assert isinstance(found.linear.weight, torch.Tensor)


# --- embeddings, by name


def test_classes_are_matched_by_name(found):
    order = np.random.default_rng(0).permutation(8)
    shuffled = [NAMES[c] for c in order]  # index i now means class order[i]
    labels = np.argsort(order)[TY]
    other = evaluate_embeddings(
        embeddings(Z, Y, "train"),
        embeddings(T, labels, "test", shuffled),
        k=(20, 1),
        labels_per_class=(1, 10),
        draws=2,
    )
    assert other.summary() == found.summary() and other.class_names == NAMES
    assert other.notes == []


def test_keywords_and_names_that_only_the_test_set_has():
    test = embeddings(T, np.where(TY == 0, 1, 0), "test", ["unheard of", "class 0"])
    found = evaluate_embeddings(embeddings(Z, Y, "a"), test=test, methods=["knn"], k=1)
    assert found.class_names == [*NAMES, "unheard of"]
    assert found.notes == [
        "70 test rows are of a class that training never saw (8); they count as wrong"
    ]


def test_names_on_one_side_only():
    found = evaluate_embeddings(
        embeddings(Z, Y, "a"), embeddings(T, TY, "b", None), methods=["knn"], k=1
    )
    assert found.knn[1].accuracy == knn_probe(Z, Y, T, TY, k=1).accuracy
    assert found.notes == [
        "only one of train and test has class names: classes are matched by index"
    ]


def test_items_in_both_sets_are_told():
    both = embeddings(Z, Y, "same")
    notes = evaluate_embeddings(both, both, methods=["knn"], k=1).notes
    assert notes == [
        "160 test items are in train with the same key and the same embedding: the scores flatter"
    ]
    # The same images under other names, and what rounding makes of them in another batch.
    renamed = embeddings(Z[:50] * (1 + 1e-6), Y[:50], "other")
    assert evaluate_embeddings(both, renamed, methods=["knn"], k=1).notes == [
        "50 test items have the embedding of a training item with another key: copies of one image "
        "flatter the scores"
    ]
    # Row numbers as keys say nothing.
    assert evaluate_embeddings(both, embeddings(T, TY, "same"), methods=["knn"], k=1).notes == []


def test_a_collapsed_encoder_is_told_and_no_copies_are_seen():
    point = np.full_like(Z[:1], 3.0)
    train, test = (embeddings(point + 1e-5 * rows, y, "a") for rows, y in ((Z, Y), (T, TY)))
    notes = evaluate_embeddings(train, test, methods=["knn"], k=1).notes
    assert notes == ["all items have nearly the same embedding: the encoder has collapsed"]


def test_without_a_test_set_a_fifth_is_held_out():
    found = evaluate_embeddings(embeddings(Z, Y, "a"), methods=["knn"], k=5)
    assert found.knn[5].n_test == 32 and found.knn[5].n_train == 128
    assert set(found.knn[5].confusion.sum(axis=1)) == {4}
    assert found.notes == ["no test rows are given: 32 training rows were held out for it"]
    again = evaluate_embeddings(Z, Y, methods=["knn"], k=5)
    assert again.knn[5].accuracy == found.knn[5].accuracy
    assert 0.3 < again.knn[5].accuracy < 1


# --- notes


def test_small_data_is_scored_as_far_as_it_goes():
    found = evaluate_embeddings(Z[:24], Y[:24], T, TY, draws=1)
    assert list(found.knn) == [24, 1] and list(found.few_labels) == [1]
    assert found.notes == [
        "k is 200, but only 24 labelled rows can vote",
        "the smallest class has 3 labelled rows: no few-label score with 10, 100 labels a class",
    ]


def test_unlabelled_rows_are_counted_once():
    y = np.where(np.arange(160) < 100, Y, -1)
    found = evaluate_embeddings(Z, y, T, TY, k=5, labels_per_class=(1,))
    assert found.notes == ["60 train rows have no label and are left out"]
    assert found.settings["unlabelled"] == {"train": 60, "test": 0}


def test_one_class_in_the_test_set():
    found = evaluate_embeddings(Z, Y, T[TY == 2], TY[TY == 2], methods=["knn", "clustering"], k=3)
    assert found.clustering is None
    assert found.notes == ["the test rows are of one class only: no clustering scores"]


def test_notes_of_the_probe_arrive():
    options = {"methods": ["linear"], "probe_options": {"iterations": 1, "penalty": 1e-5}}
    notes = evaluate_embeddings(Z, Y, T, TY, **options).notes
    assert len(notes) == 1 and "had not converged after 1 iterations" in notes[0]


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((Z, Y, T, TY), {"methods": ["guess"]}, "methods is .'guess'.: give some of 'knn'"),
        ((Z, Y, T, TY), {"methods": "knn"}, "methods is 'knn'"),
        ((Z, Y, T, TY), {"methods": []}, r"methods is \[\]"),
        ((Z, Y, T, TY), {"k": 0}, "k is 0"),
        ((Z, Y, T, TY), {"vote": "no"}, "vote is 'no'"),
        ((Z, Y, T, TY), {"probe": "adam"}, "method is 'adam'"),
        ((Z, Y, T, TY), {"classifier": "tree"}, "classifier is 'tree'"),
        ((Z, Y, T, TY), {"draws": 0}, "draws is 0"),
        ((Z, Y, T, TY), {"labels_per_class": (0,)}, "labels_per_class is 0"),
        ((Z, Y, T[:, :4], TY), {}, "train has rows of 10 numbers and test of 4"),
        ((Z, None, T, TY), {}, "train_labels is None"),
        ((Z, Y, T, None), {}, "test_labels is None"),
        ((Z, Y, None, TY), {}, "test_labels are given and test is None"),
        ((Z[:8], Y[:8]), {}, "no class has 5 labelled rows"),
        ((embeddings(Z, None, "a", None), embeddings(T, TY, "b")), {}, "train has no labels"),
        ((embeddings(Z, Y, "a"), embeddings(T, None, "b", None)), {}, "test has no labels"),
        ((embeddings(Z, Y, "a"), T), {}, "test is ndarray: give Embeddings"),
        ((Z, Y, embeddings(T, TY, "b"), TY), {}, "train is an array and test is Embeddings"),
        ((embeddings(Z, Y, "a"), Y, T, TY), {}, "have their own labels"),
    ],
)
def test_bad_input(given, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate_embeddings(*given, **options)


@pytest.mark.gpu
def test_cuda_agrees_with_the_cpu(found):
    there = evaluate_embeddings(
        Z, Y, T, TY, k=(20, 1), labels_per_class=(1, 10), draws=2, device="cuda"
    )
    assert there.summary() == pytest.approx(found.summary(), abs=0.02)
