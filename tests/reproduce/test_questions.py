"""Algorithm 3 and random pairs: what they ask, and what they claim to know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.reproduce.questions import (
    GRID,
    RandomPairs,
    TemplateQuestions,
    predict_from_answers,
    predict_from_embedding,
)


def labels_of(n, classes, seed):
    generator = np.random.default_rng(seed)
    rest = generator.integers(classes, size=n - classes)
    return generator.permutation(np.concatenate([np.arange(classes), rest]))


def truth(labels):
    return np.where(labels[:, None] == labels, 1, -1)


@settings(max_examples=40)
@given(n=st.integers(8, 60), classes=st.integers(2, 6), seed=st.integers(0, 1000))
def test_pal_algorithm_3(n, classes, seed):
    """At most (N - C)(C - 1) queries, nothing deduced that is wrong, and the graph at the end."""
    labels = labels_of(n, classes, seed)
    oracle = TemplateQuestions(labels, np.random.default_rng(seed), classes)
    scores = np.random.default_rng(seed).standard_normal((n, classes))
    asked = set()
    while (topic := oracle.topic()) is not None:
        members = (oracle.answers == 1).sum(axis=0)
        open_classes = [c for c in range(classes) if (oracle.answers[:, c] == 0).any()]
        assert members[topic] == min(members[c] for c in open_classes)
        choose = oracle.random_candidates if seed % 2 else None
        items = choose(topic) if choose else oracle.guided_candidates(topic, scores)
        assert 1 <= len(items) <= GRID
        assert not (oracle.answers[items] == 1).any()
        assert not asked & {(topic, item) for item in items}
        asked |= {(topic, item) for item in items}
        oracle.ask(topic, items)
        known = oracle.graph()
        assert (known[known != 0] == truth(labels)[known != 0]).all()
        assert (oracle.graph(signed=False) == np.maximum(known, 0)).all()
    assert oracle.asked == len(asked) <= (n - classes) * (classes - 1)
    assert (oracle.graph() == truth(labels)).all()


def test_deduced_pairs_follow_from_the_answers():
    """By loops over the rules: two known classes, or a member and someone excluded."""
    labels = labels_of(30, 4, 3)
    oracle = TemplateQuestions(labels, np.random.default_rng(3))
    for _ in range(4):
        topic = oracle.topic()
        oracle.ask(topic, oracle.random_candidates(topic))
    expected = np.eye(30)
    for i in range(30):
        for j in range(30):
            for c in range(4):
                own, other = oracle.answers[i, c], oracle.answers[j, c]
                if i != j and own == other == 1:
                    expected[i, j] = 1
                if (own, other) in ((1, -1), (-1, 1)):
                    expected[i, j] = -1
    assert (oracle.graph() == expected).all()


def test_nothing_asked_is_the_identity():
    oracle = TemplateQuestions(labels_of(20, 4, 0), np.random.default_rng(0))
    assert (oracle.graph() == np.eye(20)).all()


def test_guided_candidates_are_those_predicted():
    labels = labels_of(40, 4, 1)
    oracle = TemplateQuestions(labels, np.random.default_rng(1))
    topic = oracle.topic()
    perfect = np.eye(4)[labels]
    items = oracle.guided_candidates(topic, perfect, size=3)
    assert (labels[items] == topic).all()


def test_guides_see_no_label_that_was_not_asked():
    """The same answers over other hidden labels give the same scores."""
    generator = np.random.default_rng(2)
    kernel = np.exp(-np.abs(np.subtract.outer(np.arange(9), np.arange(9))))
    answers = np.zeros((9, 3), dtype=np.int8)
    for c in range(3):
        answers[c] = -1
        answers[c, c] = 1
    scores = predict_from_answers(kernel, answers)
    known = np.flatnonzero(answers[:, 0])
    weights = np.linalg.inv(kernel[:3, :3] + 1e-3 * np.eye(3)) @ [1.0, -1.0, -1.0]
    assert known.tolist() == [0, 1, 2]
    np.testing.assert_allclose(scores[:, 0], kernel[:, :3] @ weights)
    z = generator.standard_normal((9, 2))
    np.testing.assert_allclose(predict_from_embedding(z, answers), z @ z[:3].T)


@pytest.mark.parametrize("signed", [True, False])
def test_passive_reveals_just_the_pairs_asked(signed):
    labels = labels_of(12, 4, 0)
    pairs = RandomPairs(labels, np.random.default_rng(0))
    total = 12 * 11 // 2
    before = np.eye(12)
    for asked in range(total + 1):
        graph = pairs.graph(asked)
        assert (graph == graph.T).all()
        assert np.count_nonzero(np.triu(graph, 1)) == asked
        assert (graph[graph != 0] == truth(labels)[graph != 0]).all()
        assert (graph[before != 0] == before[before != 0]).all()
        shown = graph if signed else np.maximum(graph, 0)
        assert (pairs.graph(asked, signed=signed) == shown).all()
        before = graph
    assert (before == truth(labels)).all()
