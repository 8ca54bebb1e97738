"""Noisy beliefs: posteriors, rates, what to ask again, and a whole session on digits."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from likewise.oracles.answers import Answer
from likewise.oracles.beliefs import NoisyBeliefs
from likewise.oracles.beliefs.propagation import Network, Rates
from likewise.oracles.labelers import TruthLabeler
from likewise.oracles.questions import Grid


def said(pairs, value, people="abc"):
    return [Answer(a, b, value, who) for a, b in pairs for who in people]


def two_classes():
    return said([(0, 1), (2, 3)], 1.0) + said([(0, 2), (1, 3)], -1.0)


def test_messages_on_a_tree_are_exact():
    """Against all 3^4 assignments of classes, summed in loops."""
    a, b = np.array([0, 1, 1]), np.array([1, 2, 3])
    value, who = np.array([1.0, -1.0, 0.5]), np.array([0, 1, 0])
    rates = Rates(np.array([0.1, 0.2]), np.array([0.15, 0.05]))
    network = Network(a, b, value, who, 2)
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(3), 4)
    network._rates = lambda *_: rates  # rates are estimated elsewhere
    result = network.run(np.log(prior), [], rates, iterations=200, closed=True)
    expected = np.zeros((4, 3))
    for classes in itertools.product(range(3), repeat=4):
        weight = np.prod([prior[i, c] for i, c in enumerate(classes)])
        for i, j, v, w in zip(a, b, value, who, strict=True):
            if classes[i] == classes[j]:
                p = 1 - rates.no[w] if v > 0 else rates.no[w]
            else:
                p = rates.yes[w] if v > 0 else 1 - rates.yes[w]
            weight *= p ** abs(v)
        for i, c in enumerate(classes):
            expected[i, c] += weight
    expected /= expected.sum(axis=1, keepdims=True)
    assert result.belief[:, :3] == pytest.approx(expected, abs=1e-3)


def test_a_mistake_is_outvoted():
    beliefs = NoisyBeliefs(4).add([*two_classes(), Answer(0, 3, 1.0, "d")])
    assert beliefs.relation(0, 3) == -1
    assert beliefs.relation(0, 1) == beliefs.relation(2, 3) == 1
    assert beliefs.n_classes == 2
    assert len(beliefs.contradictions()) > 0


def test_the_same_person_twice_is_no_second_opinion():
    once = NoisyBeliefs(4).add([*two_classes(), Answer(0, 3, 1.0, "d")])
    often = NoisyBeliefs(4).add([*two_classes(), *[Answer(0, 3, 1.0, "d")] * 20])
    assert often.posterior() == pytest.approx(once.posterior())


def test_unsure_says_nothing_and_a_weak_grade_little():
    beliefs = NoisyBeliefs(6).add(two_classes())
    known = beliefs.posterior()
    beliefs.add([Answer(0, 4, 0.0, "a")])
    assert beliefs.posterior() == pytest.approx(known)
    assert not beliefs.asked()[4]
    weak = NoisyBeliefs(6).add([*two_classes(), Answer(0, 4, 0.2, "a")]).posterior()
    strong = NoisyBeliefs(6).add([*two_classes(), Answer(0, 4, 1.0, "a")]).posterior()
    own = int(known[0].argmax())
    assert known[4, own] < weak[4, own] < strong[4, own]


@settings(max_examples=30, deadline=None)
@given(st.randoms(), st.integers(0, 5))
def test_order_does_not_matter(random, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 15)
    labeler = TruthLabeler(labels, false_yes=0.1, false_no=0.1, annotators=2, seed=seed)
    answers = [
        answer
        for who in labeler.annotators
        for e in range(4)
        for answer in labeler.answer(Grid(e, tuple(range(4, 15))), who=who).answers
    ]
    shuffled = answers[:]
    random.shuffle(shuffled)
    one, other = NoisyBeliefs(15).add(answers), NoisyBeliefs(15)
    for start in range(0, len(shuffled), 7):
        other.add(shuffled[start : start + 7])
        other.posterior()
    assert one.posterior() == pytest.approx(other.posterior(), abs=1e-6)
    assert (one.labels() == other.labels()).all()
    assert (one.groups() == other.groups()).all()


def test_rates_are_estimated():
    labels = np.arange(300) % 3
    labeler = TruthLabeler(
        labels, false_yes=[0.02, 0.02, 0.15], false_no=[0.02, 0.25, 0.02], annotators=3
    )
    beliefs = NoisyBeliefs(300)
    for who in labeler.annotators:
        for exemplar in range(3):
            beliefs.add(labeler.answer(Grid(exemplar, tuple(range(3, 300))), who=who).answers)
    rates = beliefs.rates()
    assert rates["annotator-1"] == pytest.approx((0.02, 0.02), abs=0.03)
    assert rates["annotator-2"] == pytest.approx((0.02, 0.25), abs=0.08)
    assert rates["annotator-3"] == pytest.approx((0.15, 0.02), abs=0.05)
    assert beliefs.n_classes == 3
    assert (labels[beliefs.anchors][beliefs.predictions()] == labels).mean() > 0.98


def test_the_prior_counts_and_temperature_weakens_it():
    beliefs = NoisyBeliefs(6, closed_classes=2).add(two_classes())
    sure = np.full((6, 2), 0.5)
    sure[4] = [0.9, 0.1]
    beliefs.set_prior(sure, temperature=1.0)
    assert beliefs.posterior()[4] == pytest.approx([0.9, 0.1], abs=1e-6)
    assert beliefs.labels()[4] == -1  # nobody was asked
    beliefs.set_prior(sure, temperature=4.0)
    odds = (0.9 / 0.1) ** 0.25
    assert beliefs.posterior()[4] == pytest.approx([odds / (1 + odds), 1 / (1 + odds)], abs=1e-6)


def test_reasks_go_to_another_exemplar_or_another_annotator():
    beliefs = NoisyBeliefs(6, closed_classes=2).add([*two_classes(), Answer(0, 4, 1.0, "a")])
    (again,) = [reask for reask in beliefs.reasks(10) if reask.item == 4]
    assert again.exemplar not in (0, 4)
    assert again.not_by == ("a",)
    assert again.question.items == (again.exemplar, 4)
    everybody = [Answer(e, 4, v, "a") for e, v in ((0, 1), (1, -1), (2, 1), (3, -1))]
    beliefs = NoisyBeliefs(6, closed_classes=2).add([*two_classes(), *everybody])
    assert 4 in beliefs.uncertain()
    assert 4 not in [reask.item for reask in beliefs.reasks(10, annotators=["a"])]
    assert 4 in [reask.item for reask in beliefs.reasks(10, annotators=["a", "b"])]


def test_what_is_known_is_not_asked_and_nothing_twice():
    beliefs = NoisyBeliefs(9, closed_classes=2).add(two_classes())
    reasks = beliefs.reasks(100)
    assert sorted(reask.item for reask in reasks) == [4, 5, 6, 7, 8]
    for reask in reasks:
        assert beliefs.relation(reask.item, reask.exemplar) == 0


def test_groups_classes_graph_and_relations_agree():
    beliefs = NoisyBeliefs(6).add([*two_classes(), Answer(0, 4, 1.0, "d")])
    labels, groups = beliefs.labels(), beliefs.groups()
    assert groups[5] == -1
    assert labels[4] == -1
    assert (beliefs.classes == groups[beliefs.anchors]).all()
    dense = beliefs.graph().dense()
    known = beliefs.graph().known().dense()
    for i, j in itertools.product(range(6), repeat=2):
        relation = beliefs.relation(i, j)
        if relation:
            assert np.sign(dense[i, j]) == relation
            assert known[i, j]
        if i == j:
            assert dense[i, j] == pytest.approx(1.0)
    assert 0 < dense[0, 4] < dense[0, 1]
    assert dense[5, :5].tolist() == [0.0] * 5
    for c in range(beliefs.n_classes):
        assert set(beliefs.exemplars(c)) == set(np.flatnonzero(labels == c))


def test_nothing_known():
    beliefs = NoisyBeliefs(3)
    assert beliefs.n_classes == 0
    assert beliefs.labels().tolist() == beliefs.groups().tolist() == [-1, -1, -1]
    assert beliefs.relation(0, 1) == 0
    assert beliefs.graph().dense().tolist() == np.eye(3).tolist()
    assert [(r.item, r.exemplar) for r in beliefs.reasks(5)] == [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NoisyBeliefs(3, confidence=1.0), "confidence is 1.0"),
        (lambda: NoisyBeliefs(3, new_class=0.2), "new_class is 0.2"),
        (lambda: NoisyBeliefs(3).set_prior(np.ones((3, 2))), "one column for each of the 0"),
        (lambda: NoisyBeliefs(4).add(two_classes()).set_prior(-np.ones((4, 2))), "negative"),
        (lambda: NoisyBeliefs(3).exemplars(0), "0 classes are known"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def left_out_predictions(X, labels, classes):
    """Kernel ridge regression on what is labelled; each item predicted without its own label."""
    known = np.flatnonzero(labels >= 0)
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares[known] - 2 * X @ X[known].T
    kernel = np.exp(-np.maximum(distances, 0) / (0.3 * np.median(distances)))
    inverse = np.linalg.inv(kernel[known] + 0.05 * np.eye(len(known)))
    weights = inverse @ np.eye(classes)[labels[known]]
    scores = kernel @ weights
    scores[known] = np.eye(classes)[labels[known]] - weights / np.diag(inverse)[:, None]
    return np.maximum(scores, 0) + 0.02


def session(rate, seed, confidence=0.97):
    """Ask what `reasks` says, from nothing, until all is accepted or 2.2 answers an item are."""
    X, y = load_digits(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(X))[:1297]
    X, y = X[chosen] / 16, y[chosen]
    labeler = TruthLabeler(y, false_yes=rate, false_no=rate, seed=seed)
    beliefs = NoisyBeliefs(len(X), confidence=confidence)
    fitted = 0
    budget = int(2.2 * len(X))
    while beliefs.n_answers < budget:
        most = min(60 if fitted else 15, budget - beliefs.n_answers)
        reasks = beliefs.reasks(most, annotators=labeler.annotators)
        if not reasks:
            break
        beliefs.add([a for r in reasks for a in labeler.answer(r.question).answers])
        posterior = beliefs.posterior()
        likely = (posterior.max(axis=1) >= 0.9) & beliefs.asked()
        enough = beliefs.unseen < 0.06 and likely.sum() >= 6 * beliefs.n_classes
        if enough and beliefs.n_answers >= 1.1 * fitted:
            labels = np.where(likely, posterior.argmax(axis=1), -1)
            beliefs.set_prior(left_out_predictions(X, labels, beliefs.n_classes))
            fitted = beliefs.n_answers
    return beliefs, y


@pytest.mark.parametrize(("rate", "error"), [(0.05, 0.005), (0.10, 0.01)])
def test_digits_with_mistakes(rate, error):
    beliefs, y = session(rate, seed=0)
    predicted = beliefs.predictions()
    majority = [np.bincount(y[predicted == c]).argmax() for c in range(beliefs.n_classes)]
    assert sorted(majority) == list(range(10))
    assert (np.array(majority)[predicted] != y).mean() <= error
    assert beliefs.n_answers <= 2.2 * len(y)
    assert np.array(beliefs.rates()["annotator-1"]) == pytest.approx(rate, abs=0.03)
