"""Every reproduction runs with a few trials and leaves its files; the safe thresholds hold."""

import json
from functools import cache

import numpy as np
import pytest

from likewise.reproduce import REPRODUCTIONS, Reproduction, reproduction
from likewise.reproduce.page import page_text
from likewise.reproduce.report import record, save, table
from likewise.reproduce.supervised_theory.duplicates import BALANCED, CONCENTRATED, DIFFERENT
from likewise.reproduce.supervised_theory.losses import theorem_2_gradient
from likewise.reproduce.supervised_theory.tasks import task_errors
from likewise.reproduce.trials import run_trials

TRIALS = 2
# Thresholds that two trials meet by a wide margin; the others are for 100 trials.
SAFE = [
    "pal-6",
    "pal-7",
    "pal-8",
    "pal-9",
    "pal-theorem-2",
    "pal-masked",
    "supervised-theory-1",
    "supervised-theory-2",
]


# Those that train are in test_geometry, test_matrix_ssl and test_balanced.
CONTROLLED = [name for name, entry in REPRODUCTIONS.items() if isinstance(entry, Reproduction)]


@cache
def samples_of(name):
    return run_trials(reproduction(name).trial, TRIALS)


def found_by(name):
    entry, samples = reproduction(name), samples_of(name)
    findings = entry.conclude(samples)
    return record(entry, findings, samples, trials=TRIALS, seed=0, seconds=1.0)


@pytest.mark.parametrize("name", CONTROLLED)
def test_runs_and_writes_its_files(name, tmp_path):
    found = found_by(name)
    paths = save(reproduction(name), samples_of(name), found, tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert [path.name for path in paths] == [f"{name}.png", f"{name}.svg", f"{name}.json"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert paths[0].stat().st_size < 160_000
    assert b"</svg>" in paths[1].read_bytes()
    back = json.loads(paths[2].read_text())
    assert back["trials"] == TRIALS and back["seed"] == 0
    assert back["checks"] and back["figures"] and back["settings"]
    assert all(figure["name"] and "value" in figure for figure in back["figures"])
    assert name in page_text([back], "command")
    assert table(back).row_count == len(back["checks"]) + len(back["figures"])


@pytest.mark.parametrize("name", SAFE)
def test_safe_thresholds(name):
    assert found_by(name)["verdict"] == "holds"


def test_honest_errors_stand_beside_the_others():
    for name in ("pal-3", "pal-4", "pal-7", "pal-8", "pal-9", "pal-10", "pal-theorem-2"):
        assert any("honest" in figure["name"] for figure in found_by(name)["figures"]), name


def test_names_are_those_of_the_papers():
    figures = {f"pal-{number}" for number in (3, 4, 6, 7, 8, 9, 10)}
    assert figures <= set(REPRODUCTIONS)
    assert all(entry.name == name and entry.claim for name, entry in REPRODUCTIONS.items())


def test_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match="'pal-5'.*pal-3, pal-4.*or all"):
        reproduction("pal-5")


def test_same_samples_same_files(tmp_path):
    for folder in ("a", "b"):
        save(reproduction("pal-9"), samples_of("pal-9"), found_by("pal-9"), tmp_path / folder)
    for kind in ("png", "svg", "json"):
        first, second = (tmp_path / folder / f"pal-9.{kind}" for folder in "ab")
        assert first.read_bytes() == second.read_bytes()


def test_supervised_theory_theorem_2_by_differences():
    sigma, step = np.array([0.3, 2.0]), 1e-6

    def loss(s):
        return -(s**2) / (s**2 + 0.1 * 20) / 20

    slope = (loss(sigma + step) - loss(sigma - step)) / (2 * step)
    np.testing.assert_allclose(theorem_2_gradient(sigma, 0.1, 20), slope, rtol=1e-6)


def test_task_errors_are_those_of_ridge_regression_with_a_bias():
    generator = np.random.default_rng(0)
    z, new_z = generator.standard_normal((30, 4)), generator.standard_normal((50, 4))
    targets, new_targets = (np.sign(generator.standard_normal((n, 3))) for n in (30, 50))
    ones = np.hstack([z, np.ones((30, 1))])
    penalty = np.diag([0.2 * 30] * 4 + [0.0])
    head = np.linalg.inv(ones.T @ ones + penalty) @ ones.T @ targets
    predicted = np.hstack([new_z, np.ones((50, 1))]) @ head
    expected = [np.mean(np.sign(predicted[:, k]) != new_targets[:, k]) for k in range(3)]
    np.testing.assert_allclose(task_errors(z, targets, new_z, new_targets, 0.2), expected)


def test_balanced_merging_is_a_class_a_copy():
    """Y diag(1 / n_c) Y^T and the identity agree on functions of x: copies have one value."""
    samples = samples_of("supervised-theory-duplicates")
    one, other = (samples[f"{CONCENTRATED}, {name}"] for name in (DIFFERENT, BALANCED))
    assert np.abs(one - other).max() < 0.005
