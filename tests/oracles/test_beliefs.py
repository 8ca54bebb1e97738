"""Exact beliefs against a naive closure, in any order, with contradictions and deduction."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.oracles.answers import Answer, read_answers, write_answers
from likewise.oracles.beliefs import ExactBeliefs

N = 9


def naive(n, answers):
    """The closure in loops: alike through a third, different through a third, until it rests."""
    alike = [[i == j for j in range(n)] for i in range(n)]
    different = [[False] * n for _ in range(n)]
    for answer in answers:
        if answer.value >= 0.5:
            alike[answer.a][answer.b] = alike[answer.b][answer.a] = True
        if answer.value <= -0.5:
            different[answer.a][answer.b] = different[answer.b][answer.a] = True
    for k in range(n):
        for i in range(n):
            for j in range(n):
                alike[i][j] |= alike[i][k] and alike[k][j]
    for _ in range(2):  # over one end, then over the other
        before = [row[:] for row in different]
        for i, j, k in itertools.product(range(n), repeat=3):
            if alike[i][k] and before[k][j]:
                different[i][j] = True
                different[j][i] = True
    return np.array(alike), np.array(different)


pairs = st.lists(st.integers(0, N - 1), min_size=2, max_size=2, unique=True)
values = st.sampled_from([1.0, -1.0, 0.0, 0.7, -0.7, 0.2, -0.2])
anything = st.lists(st.builds(lambda pair, v: Answer(*pair, v), pairs, values), max_size=14)
labelings = st.lists(st.integers(0, 2), min_size=N, max_size=N)


def truthful(labels, asked):
    return [Answer(a, b, 1.0 if labels[a] == labels[b] else -1.0) for a, b in asked]


def state(beliefs):
    relations = np.array([beliefs.relations(i, range(beliefs.n)) for i in range(beliefs.n)])
    exemplars = [beliefs.exemplars(c).tolist() for c in range(beliefs.n_classes)]
    return (
        relations.tolist(),
        beliefs.groups().tolist(),
        beliefs.classes.tolist(),
        beliefs.labels().tolist(),
        beliefs.excluded().tolist(),
        exemplars,
        np.round(beliefs.graph().dense(), 9).tolist(),
    )


@given(anything)
def test_closure_is_the_naive_one(answers):
    beliefs = ExactBeliefs(N).add(answers)
    alike, different = naive(N, answers)
    for i, j in itertools.product(range(N), repeat=2):
        expected = 1 if alike[i, j] else -1 if different[i, j] else 0
        assert beliefs.relation(i, j) == expected


@given(labelings, st.lists(pairs, max_size=20), st.randoms(), st.sampled_from([None, 3]))
def test_order_and_batches_do_not_matter(labels, asked, random, closed):
    answers = truthful(labels, asked)
    shuffled = answers[:]
    random.shuffle(shuffled)
    at_once = ExactBeliefs(N, closed_classes=closed).add(answers)
    one_by_one = ExactBeliefs(N, closed_classes=closed)
    for answer in shuffled:
        one_by_one.add([answer])
        one_by_one.groups()  # that somebody looked must not matter either
    assert state(at_once) == state(one_by_one)


@given(anything, st.sampled_from([None, 2, 3]))
def test_replay_gives_the_same_state(tmp_path_factory, answers, closed):
    beliefs = ExactBeliefs(N, closed_classes=closed)
    for start in range(0, len(answers), 3):
        beliefs.add(answers[start : start + 3])
    path = tmp_path_factory.mktemp("replay") / "answers.jsonl"
    write_answers(path, beliefs.answers)
    assert state(ExactBeliefs(N, closed_classes=closed).add(read_answers(path))) == state(beliefs)


@given(anything)
def test_contradictions_are_found_exactly_where_there_are_some(answers):
    beliefs = ExactBeliefs(N).add(answers)
    alike, _ = naive(N, answers)
    broken = {a.pair for a in answers if a.value <= -0.5 and alike[a.pair]}
    found = beliefs.contradictions()
    assert {contradiction.answers[0].pair for contradiction in found} == broken
    assert len(found) == len(broken)
    for contradiction in found:
        against, *chain = contradiction.answers
        assert against.value <= -0.5
        assert all(answer.value >= 0.5 for answer in chain)
        assert set(contradiction.answers) <= set(answers)
        place = against.pair[0]
        for answer in chain:  # a path from one end to the other
            assert place in answer.pair
            place = sum(answer.pair) - place
        assert place == against.pair[1]
        assert len(chain) == shortest(answers, *against.pair)
    assert len(beliefs.contradictions(limit=1)) == min(1, len(broken))


def shortest(answers, start, end):
    """Breadth first, over sets."""
    reached, steps = {start}, 0
    while end not in reached:
        reached |= {
            other
            for answer in answers
            if answer.value >= 0.5
            for one, other in (answer.pair, answer.pair[::-1])
            if one in reached
        }
        steps += 1
    return steps


@given(labelings, st.lists(pairs, max_size=20))
def test_truth_is_never_a_contradiction(labels, asked):
    answers = truthful(labels, asked)
    assert ExactBeliefs(N).add(answers).contradictions() == []
    assert ExactBeliefs(N, closed_classes=3).add(answers).contradictions() == []


@given(labelings, st.lists(pairs, max_size=24))
def test_deduction_is_right_and_does_not_forget(labels, asked):
    beliefs = ExactBeliefs(N, closed_classes=3)
    plain = ExactBeliefs(N)
    known = np.zeros((N, N))
    for answer in truthful(labels, asked):
        beliefs.add([answer])
        plain.add([answer])
        relations = np.array([beliefs.relations(i, range(N)) for i in range(N)])
        for i, j in itertools.product(range(N), repeat=2):
            truth = 1 if labels[i] == labels[j] else -1
            assert relations[i, j] in (0, truth)
            if plain.relation(i, j) or known[i, j]:
                assert relations[i, j] == truth
        known = relations


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.data())
def test_deduction_finds_what_its_rule_says(labels, data):
    asked = data.draw(st.lists(st.sampled_from(list(itertools.combinations(range(6), 2)))))
    beliefs = ExactBeliefs(6, closed_classes=3).add(truthful(labels, asked))
    table = np.array([beliefs.relations(i, range(6)) for i in range(6)])
    # At rest: two items that differ from the same two items, which differ, are alike.
    for a, b, i, j in itertools.product(range(6), repeat=4):
        if table[a, b] == table[a, i] == table[b, i] == table[a, j] == table[b, j] == -1:
            assert table[i, j] == 1


def test_not_a_not_b_so_c():
    apart = [Answer(0, 1, -1), Answer(0, 2, -1), Answer(1, 2, -1)]
    beliefs = ExactBeliefs(5, closed_classes=3).add([*apart, Answer(3, 0, -1), Answer(1, 3, -1)])
    assert beliefs.relation(3, 2) == 1
    assert beliefs.labels()[3] == beliefs.labels()[2]
    assert ExactBeliefs(5).add(beliefs.answers).relation(3, 2) == 0


def test_two_of_a_class_that_nobody_named_are_alike():
    beliefs = ExactBeliefs(4, closed_classes=2).add([Answer(0, 1, -1), Answer(0, 2, -1)])
    assert beliefs.relation(1, 2) == 1
    assert beliefs.relation(1, 3) == 0


def test_one_class_only():
    beliefs = ExactBeliefs(4, closed_classes=1).add([Answer(0, 1, 1), Answer(2, 3, 1)])
    assert beliefs.relation(0, 3) == 1


def test_more_kinds_than_declared_are_a_contradiction():
    answers = [Answer(i, j, -1) for i, j in itertools.combinations(range(4), 2)]
    assert ExactBeliefs(4, closed_classes=4).add(answers).contradictions() == []
    (contradiction,) = ExactBeliefs(4, closed_classes=3).add(answers).contradictions()
    assert set(contradiction.answers) == set(answers)
    assert contradiction.items == (0, 1, 2, 3)


@given(anything, st.sampled_from([None, 2, 3]))
def test_graph_agrees_with_relations(answers, closed):
    beliefs = ExactBeliefs(N, closed_classes=closed).add(answers)
    graph = beliefs.graph()
    dense, known = graph.dense(), graph.known().dense()
    for i, j in itertools.product(range(N), repeat=2):
        relation = beliefs.relation(i, j)
        said = [a.value for a in answers if a.value and a.pair == (min(i, j), max(i, j))]
        graded = any(abs(value) < 1 for value in said)
        mean = float(np.mean(said)) if said else 0.0
        if graded and (relation == 0 or np.sign(mean) == relation):
            # The graph is in float32, in which answers of both signs nearly cancel.
            assert dense[i, j] == pytest.approx(mean, abs=1e-6)
        else:
            assert dense[i, j] == relation
        if relation:
            assert known[i, j]
        if known[i, j]:
            assert relation or graded


@given(labelings, st.lists(pairs, max_size=20))
def test_a_graph_with_few_edges_keeps_classes_and_what_was_asked(labels, asked):
    beliefs = ExactBeliefs(N).add(truthful(labels, asked))
    dense, own = beliefs.graph(max_edges=0).dense(), beliefs.labels()
    for i, j in itertools.product(range(N), repeat=2):
        if (own[i] >= 0 and own[j] >= 0) or i == j or [i, j] in asked or [j, i] in asked:
            assert dense[i, j] == beliefs.relation(i, j)
        else:
            assert dense[i, j] in (0, beliefs.relation(i, j))


@given(anything)
def test_groups_and_classes(answers):
    beliefs = ExactBeliefs(N).add(answers)
    groups, labels = beliefs.groups(), beliefs.labels()
    said = {item for answer in answers if answer.value for item in answer.pair}
    assert {item for item in range(N) if groups[item] >= 0} == said
    first = [int(np.flatnonzero(groups == g)[0]) for g in range(beliefs.n_groups)]
    assert first == sorted(first)
    for i, j in itertools.combinations(sorted(said), 2):
        assert (groups[i] == groups[j]) == (beliefs.relation(i, j) == 1)
    for c, d in itertools.combinations(range(beliefs.n_classes), 2):
        assert beliefs.relation(beliefs.exemplars(c)[0], beliefs.exemplars(d)[0]) == -1
    for c in range(beliefs.n_classes):
        members = beliefs.exemplars(c)
        assert set(members) == set(np.flatnonzero(labels == c))
        assert set(members) == set(np.flatnonzero(groups == beliefs.classes[c]))
        for item in said:
            assert beliefs.excluded()[item, c] == (beliefs.relation(item, members[0]) == -1)
    # No group that differs from all classes is left out.
    for item in said:
        assert labels[item] >= 0 or not beliefs.excluded()[item].all()


def test_the_exemplar_compared_most_comes_first():
    beliefs = ExactBeliefs(5).add([Answer(3, 1, 1), Answer(3, 4, 1), Answer(2, 3, 1)])
    assert beliefs.exemplars(0).tolist() == [3, 1, 2, 4]


def test_an_answer_that_arrives_twice_counts_once():
    beliefs = ExactBeliefs(3).add([Answer(0, 1, 1, id="x"), Answer(0, 1, 1, id="x")])
    beliefs.add([Answer(0, 1, 1, id="x"), Answer(1, 2, -1, id="y")])
    assert beliefs.n_answers == 2
    assert [answer.id for answer in beliefs.answers] == ["x", "y"]


def test_unsure_and_weak_grades_decide_nothing():
    beliefs = ExactBeliefs(4).add([Answer(0, 1, 0.0), Answer(1, 2, 0.4), Answer(2, 3, -0.4)])
    assert [beliefs.relation(i, i + 1) for i in range(3)] == [0, 0, 0]
    assert beliefs.groups().tolist() == [-1, 0, 1, 2]
    assert beliefs.graph().entries(np.array([1, 2]), np.array([2, 3])) == pytest.approx([0.4, -0.4])
    strict = ExactBeliefs(3, threshold=0.3).add(beliefs.answers[1:2])
    assert strict.relation(1, 2) == 1


def test_attributes_are_kept_and_imply_nothing():
    fact = Answer(2, None, 1.0, attribute="fur")
    beliefs = ExactBeliefs(3).add([fact, Answer(0, 1, 1)])
    assert beliefs.answers == [fact, Answer(0, 1, 1)]
    assert beliefs.n_answers == 1
    assert beliefs.groups()[2] == -1


def test_nothing_known():
    beliefs = ExactBeliefs(3)
    assert beliefs.groups().tolist() == [-1, -1, -1]
    assert beliefs.n_classes == 0
    assert beliefs.contradictions() == []
    assert beliefs.graph().dense().tolist() == np.eye(3).tolist()


def test_many_answers_are_the_same_as_few():
    rng = np.random.default_rng(0)
    n, classes = 3000, 7
    labels = rng.integers(0, classes, n)
    a, b = rng.integers(0, n, (2, 8000))
    answers = truthful(labels, [(i, j) for i, j in zip(a, b, strict=True) if i != j])
    at_once = ExactBeliefs(n).add(answers)
    in_parts = ExactBeliefs(n)
    for start in range(0, len(answers), 500):
        in_parts.add(answers[start : start + 500])
    assert (at_once.groups() == in_parts.groups()).all()
    assert (at_once._closure.keys == in_parts._closure.keys).all()
    groups, own = at_once.groups(), at_once.labels()
    for c in range(at_once.n_classes):
        assert len(set(labels[own == c])) == 1
    assert len(set(zip(groups[groups >= 0], labels[groups >= 0], strict=True))) == at_once.n_groups


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExactBeliefs(0), "n is 0"),
        (lambda: ExactBeliefs(3, closed_classes=0), "closed_classes is 0"),
        (lambda: ExactBeliefs(3, threshold=0.0), "threshold is 0.0"),
        (lambda: ExactBeliefs(3).add([Answer(0, 3, 1)]), "item 3, but there are 3 items"),
        (lambda: ExactBeliefs(3).relation(0, 3), "item 3"),
        (lambda: ExactBeliefs(3).relation(-1, 2), "item -1"),
        (lambda: ExactBeliefs(3).exemplars(0), "0 classes are known"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()
