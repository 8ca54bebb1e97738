"""What benchmarks conclude from their results; the results themselves take an accelerator."""

import shutil
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import cifar10_screen

    return cifar10_screen


def test_every_two_changes_meet_in_all_combinations_equally_often(screen):
    rows = screen.pattern()
    for one, other in combinations(range(len(screen.CHANGES)), 2):
        met = [(row[one], row[other]) for row in rows]
        assert [met.count(pair) for pair in product((0, 1), repeat=2)] == [3, 3, 3, 3]


def test_effects_are_those_of_least_squares(screen):
    values = np.random.default_rng(0).normal(size=len(screen.pattern()))
    design = np.column_stack([np.ones(len(values)), np.array(screen.pattern())])
    expected = np.linalg.lstsq(design, values, rcond=None)[0][1:]
    assert [*screen.effects([*values])] == [*screen.CHANGES]
    np.testing.assert_allclose([*screen.effects([*values]).values()], expected, atol=1e-12)


def test_a_row_of_the_screening_has_its_changes_and_no_others(screen, monkeypatch):
    monkeypatch.setattr(screen, "RECIPES", dict(screen.RECIPES))
    plain = screen.training(screen.pattern()[-1])[1]
    for column, change in enumerate(screen.CHANGES):
        row = tuple(int(at == column) for at in range(len(screen.CHANGES)))
        name, options = screen.training(row)
        assert ("LARS" in name) == (change == "LARS")
        recipe = screen.RECIPES[name]
        assert recipe.projector_ends_normalized == (change == "batch norm after the projector")
        assert (options == plain) == (
            change in ("LARS", "batch norm after the projector", "noise", "noise again")
        )


@pytest.mark.parametrize(
    ("name", "options"),
    [("cifar10", ["--out=none", "--page"]), ("throughput", ["--skip", "--out"])],
)
def test_the_page_is_what_the_kept_results_say(name, options, tmp_path):
    page = ROOT / "docs" / "benchmarks" / f"{name}.md"
    kept = page.with_suffix(".json")
    shutil.copy(kept, tmp_path)
    command = [sys.executable, ROOT / "benchmarks" / f"{name}.py", *options, page.name]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert (tmp_path / page.name).read_text() == page.read_text()
    assert (tmp_path / kept.name).read_text() == kept.read_text()
