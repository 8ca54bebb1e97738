"""The same seed gives the same figures, whatever the number of processes."""

import numpy as np
import pytest

from likewise.reproduce import reproduction
from likewise.reproduce.curves import ask_and_measure, queries_needed, stays_below
from likewise.reproduce.questions import TemplateQuestions
from likewise.reproduce.trials import run_trials


def test_same_seed_same_figures_with_one_and_two_processes():
    trial = reproduction("pal-9").trial
    one, two = run_trials(trial, 3, seed=5, jobs=1), run_trials(trial, 3, seed=5, jobs=2)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    other = run_trials(trial, 3, seed=6)
    assert any((one[name] != other[name]).any() for name in one)


def test_more_trials_begin_with_the_same_ones():
    trial = reproduction("pal-6").trial
    few, many = run_trials(trial, 2), run_trials(trial, 4)
    for name in few:
        np.testing.assert_array_equal(few[name], many[name][:2])


def test_progress_counts_trials():
    counted = []
    run_trials(lambda generator: {"x": np.zeros(1)}, 5, advance=lambda: counted.append(1))
    assert len(counted) == 5


@pytest.mark.parametrize("argument", ["trials", "jobs"])
def test_less_than_one_is_refused(argument):
    options = {"trials": 2, "jobs": 1, argument: 0}
    with pytest.raises(ValueError, match=f"{argument} is 0"):
        run_trials(lambda generator: {"x": np.zeros(1)}, **options)


def test_a_number_of_queries_has_what_was_known_before_it():
    labels = np.repeat(np.arange(4), 6)
    oracle = TemplateQuestions(labels, np.random.default_rng(0))
    grid = np.arange(0, 100, 5)
    seen = ask_and_measure(
        oracle, grid, lambda: np.array([oracle.asked]), oracle.random_candidates
    )[:, 0]
    assert seen[0] == 0
    assert (seen <= grid).all()
    assert (np.diff(seen) >= 0).all()
    assert seen[-1] == oracle.asked


def test_stays_below():
    grid = np.array([0, 10, 20, 30])
    assert stays_below(grid, np.array([0.0, 0.3, 0.1, 0.1]), 0.1) == 20
    assert stays_below(grid, np.array([0.0, 0.0, 0.0, 0.0]), 0.1) == 0
    assert np.isnan(stays_below(grid, np.array([0.0, 0.0, 0.0, 0.3]), 0.1))
    errors = np.array([[0.3, 0.1, 0.1, 0.1], [0.3, 0.3, 0.1, 0.1]])
    figure = queries_needed("x", grid, errors, 0.1)
    assert (figure.value, figure.deviation) == (20, 5)
