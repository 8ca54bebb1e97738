"""The loop: what it learns, when it stops, and what it says about that."""

from __future__ import annotations

import json

import numpy as np
import pytest

from likewise.oracles import Answer, ExactBeliefs, Grid, TruthLabeler
from likewise.oracles.curves import drawing, line_over, page, questions_needed
from likewise.oracles.pal import PAL, match_classes
from likewise.oracles.samplers import Default
from likewise.oracles.splits import full_label_accuracy, labelled_split
from tests.oracles.contract import blobs


@pytest.fixture(scope="module")
def data():
    return blobs(150, 4, 3)


def loop(data, **options):
    X, y = data
    settings = {"grid": 8, "test": (X, y), "truth": y} | options
    return PAL(X, settings.pop("sampler", "default"), TruthLabeler(y), **settings)


def test_every_step_can_be_looked_at(data):
    pal = loop(data)
    step = pal.step()
    assert isinstance(step.question, Grid) and 1 <= len(step.answers) <= 8
    assert step.seconds == TruthLabeler(data[1]).answer(step.question).seconds
    assert step.placed == (pal.beliefs.labels() >= 0).sum()
    assert pal.history.steps == [step] and pal.stopped == ""


def test_the_budget_is_kept_and_said(data):
    pal = loop(data)
    assert len(pal.run(3, progress=False)) == 3
    assert pal.stopped == "the budget of 3 questions is spent"
    assert len(pal.run(2, progress=False)) == 5


def test_it_stops_when_little_is_expected_to_change(data):
    pal = loop(data, enough=0.1)
    history = pal.run(200, progress=False)
    assert history.steps[-1].expected_change < 0.1 <= history.steps[-2].expected_change
    assert pal.stopped.startswith("enough is known: ") and "below 10.00%" in pal.stopped
    assert history.steps[-1].accuracy > 0.95


def test_it_stops_when_nothing_is_left(data):
    pal = loop(data)
    history = pal.run(1000, progress=False)
    assert pal.stopped == "nothing is left to ask: every item is placed"
    labels = pal.beliefs.labels()
    X, y = data
    assert np.array_equal(labels[:, None] == labels, y[:, None] == y)
    assert history.steps[-1].accuracy > 0.97 and pal.questions_left() == 0


def test_the_estimate_of_what_is_left_is_of_the_right_size(data):
    pal = loop(data)
    pal.run(12, progress=False)
    expected = pal.questions_left()
    taken = len(pal.run(1000, progress=False)) - 12
    assert 0.4 * taken <= expected <= 2.5 * taken


def test_it_goes_on_from_answers_alone(data):
    whole = loop(data)
    whole.run(10, progress=False)
    halves = loop(data)
    halves.run(4, progress=False)
    again = loop(data, beliefs=ExactBeliefs(150).add(halves.beliefs.answers))
    again.run(6, progress=False)
    assert again.beliefs.answers == whole.beliefs.answers


def test_truth_is_for_scoring_only(data):
    X, y = data
    open_, blind = loop(data), loop(data, test=None, truth=None)
    asked = [pal.run(8, progress=False).steps for pal in (open_, blind)]
    assert [s.question for s in asked[0]] == [s.question for s in asked[1]]
    assert all(step.accuracy is None for step in asked[1])


def test_accuracy_does_not_pay_for_split_classes():
    # Everybody in a class of their own: one class of each kind is right, no more.
    assert match_classes(range(4), ["a", "a", "b", "b"], 4) in (
        {0: "a", 2: "b"},
        {0: "a", 3: "b"},
        {1: "a", 2: "b"},
        {1: "a", 3: "b"},
    )


def test_before_the_first_answer(data):
    pal = loop(data)
    assert pal.accuracy() == 0.0
    assert pal.predict(data[0][:3]).tolist() == [-1, -1, -1]
    assert pal.questions_left() > 0


def test_people_who_err(data):
    X, y = data
    labeler = TruthLabeler(y, false_yes=0.05, false_no=0.05, annotators=3)
    pal = PAL(X, "default", labeler, beliefs="noisy", grid=8, test=(X, y), truth=y)
    pal.run(15, progress=False)
    assert pal.accuracy() > 0.9


def test_bad_arguments(data):
    X, y = data
    with pytest.raises(ValueError, match="beliefs is 'sure': give 'exact', 'noisy' or beliefs"):
        loop(data, beliefs="sure")
    with pytest.raises(ValueError, match="enough is 1.5"):
        loop(data, enough=1.5)
    with pytest.raises(ValueError, match="test is given without truth"):
        loop(data, truth=None)
    with pytest.raises(ValueError, match="budget is 0"):
        loop(data).run(0)


def test_a_bar_is_shown(data, capsys):
    loop(data).run(2)
    assert "default" in capsys.readouterr().out


def test_the_history_is_plain_values(data):
    pal = loop(data, sampler=Default(fill=True))
    found = json.loads(json.dumps(pal.run(4, progress=False).to_dict()))
    assert found["answers"] == [8, 16, 24, 32] and len(found["accuracy"]) == 4
    assert found["seconds"] == sorted(found["seconds"])


def test_a_line_keeps_the_last_value():
    line = line_over("a", [[1, 2], [1, 2, 3]], [[0.2, 0.4], [0.2, 0.4, 0.8]])
    assert line.x.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(line.mean, [0, 0.2, 0.4, 0.6])
    other = line_over("b", [[2.5, 7.0]], [[0.5, 1.0]], points=8)
    np.testing.assert_allclose(other.mean, [0, 0, 0, 0.5, 0.5, 0.5, 0.5, 1.0])


def test_the_page_needs_nothing_else(data):
    histories = {
        "default": [loop(data).run(4, progress=False)],
        "self-supervised": [loop(data, sampler="self-supervised").run(4, progress=False)],
    }
    text = page(histories, title="a < b", level=0.5)
    assert "a &lt; b" in text and text.count("<svg") == 2
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "asks nobody" in text
    reached = questions_needed(histories["default"][0], 0.5)
    assert reached is None or f"<td>{reached:.1f}</td>" in text


def test_a_drawing_puts_values_where_they_belong():
    import xml.etree.ElementTree as ElementTree

    line = line_over("a", [[1, 2]], [[0.0, 1.0]])
    tree = ElementTree.fromstring(drawing([line], "x", "y", level=1.0))
    space = "{http://www.w3.org/2000/svg}"
    points = tree.find(f"{space}polyline").get("points").split()
    dashed = [e for e in tree.iter(f"{space}line") if e.get("stroke-dasharray")][0]
    assert points[-1].split(",")[1] == dashed.get("y1")  # 1.0 lies on the level 1.0


def test_digits_are_split_anew_by_every_seed():
    one, other = labelled_split("digits", seed=0), labelled_split("digits", seed=1)
    assert not np.array_equal(one.test_labels, other.test_labels)
    assert 0.9 < full_label_accuracy(one) < 1.0
    with pytest.raises(ValueError, match="data is 'nothing.parquet': give 'digits', or a file"):
        labelled_split("nothing.parquet")


def test_answers_of_people_and_of_the_loop_mix(data):
    pal = loop(data)
    pal.beliefs.add([Answer(0, 1, 1.0 if data[1][0] == data[1][1] else -1.0, "ada")])
    assert pal.step().question is not None
