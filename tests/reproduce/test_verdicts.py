"""Verdicts say what the figures support: ties, and what one trial cannot tell."""

import numpy as np
import pytest

from likewise.reproduce import Check, Figure, Findings, reproduction
from likewise.reproduce.page import page_text
from likewise.reproduce.report import record


def test_verdicts_follow_from_the_checks():
    good, bad = Check("a", 1.0, "at most", 2.0), Check("b", float("nan"), "at least", 0.0)
    assert good.met and not bad.met
    assert Findings([], [good]).verdict == "holds"
    assert Findings([], [good, bad]).verdict == "holds up to b: never (at least 0)"
    assert Findings([], [bad]).verdict == "does not hold here"
    assert str(Figure.of("x", np.array([0.1, 0.3]))) == "0.2 ± 0.1"


def test_better_than_is_not_met_by_a_tie():
    ahead, even, behind = (Check("a less b", x, "more than", 0.0) for x in (0.1, 0.0, -0.1))
    assert [check.outcome for check in (ahead, even, behind)] == ["met", "tie", "not met"]
    below, same, above = (Check("a / b", x, "less than", 1.0) for x in (0.9, 1.0, 1.1))
    assert [check.outcome for check in (below, same, above)] == ["met", "tie", "not met"]
    # Means over trials are rounded: 0.1 + 0.2 is no lead over 0.3.
    assert Check("a less b", 0.1 + 0.2 - 0.3, "more than", 0.0).outcome == "tie"
    assert Check("wrong pairs", 0.0, "at most", 0.0).met and Check("x", 0.0, "at least", 0.0).met
    assert Check("a less b", float("nan"), "more than", 0.0).outcome == "not met"
    assert Findings([], [even]).verdict == "a tie"
    assert Findings([], [even, behind]).verdict == "does not hold here"
    assert Findings([], [ahead, even]).verdict == "holds up to a less b: 0 (more than 0)"


def test_what_was_not_tested_is_neither_met_nor_failed():
    ahead = Check("a less b", 0.1, "more than", 0.0)
    steady = Check("deviation", 0.0, "at most", 0.02, tested=False)
    assert steady.outcome == "not tested" and not steady.met
    assert str(steady) == "deviation (at most 0.02)"
    assert Findings([], [ahead, steady]).verdict == "holds; not tested: deviation"
    assert Findings([], [steady]).verdict == "not tested"


def test_one_trial_has_no_deviation():
    assert str(Figure.of("x", np.array([0.1]))) == "0.1"
    samples = {"accuracy": np.array([[0.7, 0.8]])}
    findings = reproduction("balanced-table-4").conclude(samples)
    assert [check.outcome for check in findings.checks] == ["met", "not tested"]
    assert findings.verdict == "holds; not tested: standard deviation over seeds"
    twice = reproduction("balanced-table-4").conclude(
        {"accuracy": np.array([[0.7, 0.8], [0.7, 0.81]])}
    )
    assert twice.verdict == "holds"
    found = record(
        reproduction("balanced-table-4"), findings, samples, trials=1, seed=0, seconds=1.0
    )
    text = page_text([found], "command")
    assert "standard deviation over seeds (at most 0.02) **not tested** | holds as far" in text
    assert "| nearest neighbour | 0.7 |" in text
    assert found["means"]["accuracy"]["deviation"] is None


@pytest.mark.parametrize(
    ("name", "samples", "verdict"),
    [
        (
            "balanced-table-4",
            {"accuracy": np.full((2, 2), 0.787)},
            "holds up to linear probe less nearest neighbour: 0 (more than 0)",
        ),
        (
            "balanced-table-2",
            {"accuracy": np.array([[[0.7, 0.8], [0.6, 0.8]]])},
            "holds up to uniform less long-tail, probe on all labels: 0 (more than 0)",
        ),
    ],
)
def test_equal_accuracies_support_no_claim(name, samples, verdict):
    findings = reproduction(name).conclude(samples)
    assert findings.verdict == verdict
    found = record(reproduction(name), findings, samples, trials=2, seed=0, seconds=1.0)
    text = page_text([found], "command")
    assert "(more than 0) **tie**" in text and "| holds in part |" in text


def test_geometry_projector_needs_a_better_encoder():
    values = np.zeros((1, 6, 5))
    values[..., 0], values[0, :, 4] = 0.8, np.linspace(0.9, 0.7, 6)
    values[0, 5, 3] = 0.1
    findings = reproduction("geometry-projector").conclude({"found": values})
    assert [check.outcome for check in findings.checks] == ["tie", "met", "met", "met"]
