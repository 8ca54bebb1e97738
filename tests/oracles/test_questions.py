"""Questions hold numbers of items, refuse nonsense, and survive JSON."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.oracles.questions import Attribute, Grid, Outliers, Pair, question_from_dict

items = st.integers(0, 10_000)
several = st.lists(items, min_size=2, max_size=20, unique=True)
questions = st.one_of(
    several.map(lambda some: Pair(some[0], some[1])),
    several.map(lambda some: Grid(some[0], tuple(some[1:]))),
    several.map(lambda some: Outliers(tuple(some))),
    st.builds(lambda name, some: Attribute(name, tuple(some)), st.just("has fur"), several),
)


@given(questions)
def test_json_and_back(question):
    again = question_from_dict(json.loads(json.dumps(question.to_dict())))
    assert again == question
    assert hash(again) == hash(question)
    assert len({question, again}) == 1


@given(questions)
def test_pairs_are_of_shown_items(question):
    for a, b in question.pairs():
        assert a != b
        assert {a, b} <= set(question.items)


def test_pairs_of_each_kind():
    assert Pair(5, 2).pairs() == [(5, 2)]
    assert Grid(9, (1, 4)).pairs() == [(9, 1), (9, 4)]
    assert Outliers((1, 2, 3)).pairs() == []
    assert Attribute("red", (1, 2)).pairs() == []


def test_numpy_numbers_become_plain_ones():
    grid = Grid(np.int64(3), np.array([1, 2]))
    assert grid == Grid(3, (1, 2))
    json.dumps(grid.to_dict())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pair(3, 3), "two different items"),
        (lambda: Pair(-1, 3), "a is -1"),
        (lambda: Pair(1.5, 3), "a is 1.5"),
        (lambda: Grid(0, ()), "at least one item"),
        (lambda: Grid(0, (1, 1)), r"\[1\] more than once"),
        (lambda: Grid(0, (1, 0)), "exemplar 0 is among the candidates"),
        (lambda: Outliers((4,)), "at least one other item"),
        (lambda: Attribute(" ", (1,)), "say what to look for"),
        (lambda: question_from_dict({"kind": "essay"}), "pair, grid, outliers, attribute"),
        (lambda: question_from_dict({"kind": "pair", "a": 1}), "not a pair question"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()
