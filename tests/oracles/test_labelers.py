"""Simulated labelers say the truth, err at their rates, and take their time."""

import numpy as np
import pytest

from likewise.oracles.labelers import AnswerTime, TruthLabeler
from likewise.oracles.questions import Attribute, Grid, Outliers, Pair

LABELS = np.arange(4000) % 2


def wrong(answers):
    return np.array(
        [(answer.value > 0) != (LABELS[answer.a] == LABELS[answer.b]) for answer in answers]
    )


def grid(candidates):
    return Grid(0, tuple(candidates))


def test_without_noise_it_is_the_truth():
    labeler = TruthLabeler(LABELS)
    assert not wrong(labeler.answer(grid(range(1, 400))).answers).any()
    assert [answer.value for answer in labeler.answer(Pair(0, 2)).answers] == [1.0]


def test_rates_of_mistakes():
    labeler = TruthLabeler(LABELS, false_yes=0.1, false_no=0.3, seed=1)
    said = labeler.answer(grid(range(1, 4000))).answers
    alike = np.array([LABELS[answer.b] == 0 for answer in said])
    assert wrong(said)[~alike].mean() == pytest.approx(0.1, abs=0.025)
    assert wrong(said)[alike].mean() == pytest.approx(0.3, abs=0.04)


def test_each_annotator_has_their_own_mistakes_and_keeps_to_them():
    labeler = TruthLabeler(LABELS, false_yes=[0.0, 0.2], false_no=[0.0, 0.2], annotators=2)
    first, second = labeler.annotators
    question = grid(range(1, 1000))
    assert not wrong(labeler.answer(question, who=first).answers).any()
    once = labeler.answer(question, who=second).answers
    assert 0.1 < wrong(once).mean() < 0.3
    assert labeler.answer(question, who=second).answers == once
    # The same pairs one at a time, in another order, from the other side: the same mistakes.
    for answer in once[::-37]:
        again = labeler.answer(Pair(answer.b, answer.a), who=second).answers[0]
        assert again.value == answer.value


def test_mistakes_of_two_annotators_are_independent():
    labeler = TruthLabeler(LABELS, false_yes=0.2, false_no=0.2, annotators=2)
    question = grid(range(1, 4000))
    both = [wrong(labeler.answer(question, who=who).answers) for who in labeler.annotators]
    assert (both[0] & both[1]).mean() == pytest.approx(0.04, abs=0.012)


def test_annotators_take_turns():
    labeler = TruthLabeler(LABELS, annotators=3)
    said = [labeler.answer(Pair(0, 1)).answers[0].who for _ in range(4)]
    assert said == ["annotator-1", "annotator-2", "annotator-3", "annotator-1"]


def test_another_seed_makes_other_mistakes():
    question = grid(range(1, 1000))
    values = [
        [a.value for a in TruthLabeler(LABELS, false_yes=0.2, seed=seed).answer(question).answers]
        for seed in (0, 0, 1)
    ]
    assert values[0] == values[1] != values[2]


def test_outliers():
    labeler = TruthLabeler([0, 1, 0, 0, 2])
    answered = labeler.answer(Outliers((1, 0, 2, 4, 3)))
    assert [(a.a, a.b, a.value) for a in answered.answers] == [
        (0, 1, -1.0),
        (0, 2, 1.0),
        (0, 4, -1.0),
        (0, 3, 1.0),
    ]


def test_attributes():
    labeler = TruthLabeler([0, 1, 0], attributes={"fur": [True, False, False]})
    values = [a.value for a in labeler.answer(Attribute("fur", (0, 1, 2))).answers]
    assert values == [1.0, -1.0, -1.0]
    with pytest.raises(ValueError, match="attribute 'wings' is unknown"):
        labeler.answer(Attribute("wings", (0,)))


def test_time():
    time = AnswerTime(base=10.0, tile=1.0, click=100.0, pair=1000.0)
    labeler = TruthLabeler([0, 0, 1, 0], seconds=time)
    assert labeler.answer(Grid(0, (1, 2, 3))).seconds == 10 + 4 + 200
    assert labeler.answer(Pair(0, 1)).seconds == 1002
    assert labeler.answer(Outliers((0, 1, 2))).seconds == 10 + 3 + 100


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TruthLabeler([[0]]), "one class for each item"),
        (lambda: TruthLabeler([0], annotators=0), "somebody has to answer"),
        (lambda: TruthLabeler([0], false_yes=1.0), "between 0 and 1"),
        (lambda: TruthLabeler([0], false_no=[0.1, 0.2]), "2 rates for 1 annotators"),
        (lambda: TruthLabeler([0, 1]).answer(Pair(0, 5)), "item 5"),
        (lambda: TruthLabeler([0, 1]).answer(Pair(0, 1), who="eve"), "who is 'eve'"),
        (lambda: AnswerTime(base=-1), "base is -1"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()
