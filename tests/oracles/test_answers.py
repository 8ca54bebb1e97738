"""Clicks become facts; facts survive a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.oracles.answers import (
    Answer,
    answers_of,
    append_answers,
    read_answers,
    stamped,
    write_answers,
)
from likewise.oracles.questions import Attribute, Grid, Outliers, Pair


def facts(answers):
    return [(answer.a, answer.b, answer.value) for answer in answers]


def test_pair():
    assert facts(answers_of(Pair(1, 2), [2])) == [(1, 2, 1.0)]
    assert facts(answers_of(Pair(1, 2))) == [(1, 2, -1.0)]
    assert facts(answers_of(Pair(1, 2), unsure=[2])) == [(1, 2, 0.0)]
    assert facts(answers_of(Pair(1, 2), graded={2: 0.3})) == [(1, 2, 0.3)]


def test_grid():
    answers = answers_of(Grid(9, (1, 2, 3)), [2], unsure=[3], who="ada", when=5.0, id="s")
    assert facts(answers) == [(9, 1, -1.0), (9, 2, 1.0), (9, 3, 0.0)]
    assert [answer.id for answer in answers] == ["s-0", "s-1", "s-2"]
    assert {(answer.who, answer.when, answer.question) for answer in answers} == {
        ("ada", 5.0, "grid")
    }


def test_outliers_compare_with_the_first_that_belongs():
    assert facts(answers_of(Outliers((4, 7, 9, 2)), [4, 9])) == [
        (7, 4, -1.0),
        (7, 9, -1.0),
        (7, 2, 1.0),
    ]
    assert facts(answers_of(Outliers((4, 7)), unsure=[4])) == [(7, 4, 0.0)]


def test_where_nothing_belongs_nothing_is_said():
    assert answers_of(Outliers((4, 7)), [4, 7]) == []


def test_attribute():
    answers = answers_of(Attribute("fur", (3, 5)), [5])
    assert [(answer.a, answer.b, answer.attribute, answer.value) for answer in answers] == [
        (3, None, "fur", -1.0),
        (5, None, "fur", 1.0),
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: answers_of(Grid(0, (1,)), [2]), "does not show"),
        (lambda: answers_of(Grid(0, (1,)), [0]), "compared with"),
        (lambda: answers_of(Grid(0, (1,)), [1], unsure=[1]), "two ways"),
        (lambda: Answer(0, 1, 1.5), "value is 1.5"),
        (lambda: Answer(0, 1, float("nan")), "value is nan"),
        (lambda: Answer(0, 0, 1), "two items"),
        (lambda: Answer(0, None, 1), "name the attribute"),
        (lambda: Answer(0, 1, 1, attribute="fur"), "not both"),
        (lambda: Answer(-1, 1, 1), "from 0 on"),
        (lambda: Answer(0, None, 1, attribute="fur").pair, "no pair"),
        (lambda: Answer.from_dict({"a": 1}), "not an answer"),
        (lambda: stamped([], who="ada", when=float("inf")), "when is inf"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


answer_lists = st.lists(
    st.builds(
        lambda pair, value, who, id: Answer(*pair, value, who=who, id=id),
        st.lists(st.integers(0, 99), min_size=2, max_size=2, unique=True),
        st.floats(-1, 1),
        st.text(max_size=4),
        st.text(max_size=4),
    ),
    max_size=10,
)


@given(answer_lists)
def test_file_and_back(tmp_path_factory, answers):
    path = tmp_path_factory.mktemp("answers") / "answers.jsonl"
    write_answers(path, answers)
    assert read_answers(path) == answers
    append_answers(path, answers)
    assert read_answers(path) == answers + answers


def test_a_half_written_last_line_is_left_out_and_later_ones_are_not(tmp_path):
    path = tmp_path / "answers.jsonl"
    write_answers(path, [Answer(0, 1, 1.0)])
    with path.open("a") as file:
        file.write('{"a": 3, "val')
    assert read_answers(path) == [Answer(0, 1, 1.0)]
    append_answers(path, [Answer(5, 6, -1.0)])
    assert read_answers(path) == [Answer(0, 1, 1.0), Answer(5, 6, -1.0)]


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"a": 1, "b": 2, "value": 1}\n{"a": 1, "b": 2, "value": 9}\n')
    with pytest.raises(ValueError, match="line 2: value is 9"):
        read_answers(path)


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "answers.jsonl"
    write_answers(path, [Answer(0, 1, 1.0)])

    def broken():
        yield Answer(2, 3, 1.0)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_answers(path, broken())
    assert read_answers(path) == [Answer(0, 1, 1.0)]
    assert [file.name for file in tmp_path.iterdir()] == ["answers.jsonl"]
