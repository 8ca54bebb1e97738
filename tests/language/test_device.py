"""The GPU kernels, in Triton's interpreter on the CPU, against float64 and the plain way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.language.interpreted import CASES


@pytest.fixture(scope="module")
def found():
    """What the kernels computed, in a process where Triton interprets them."""
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.language.interpreted"],
        cwd=root,
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_as_good_as_by_pytorch(found, name):
    errors = found["cases"][name]
    assert errors["value"] < 1.2 * errors["plain value"] + 5e-6
    assert errors["gradient"] < 1.2 * errors["plain gradient"] + 1e-3
    if "in pieces" not in name:  # four products are not enough there
        assert errors["value"] < 1e-3


def test_the_quadrature_is_that_of_the_small_matrices(found):
    value, error, own, factor = found["quadrature"]
    assert max(value, own) < 1e-9 and error < 1e-6 and factor < 1e-6


def test_selection_is_exact(found):
    assert found["selection"] == 0


def test_ignored_positions_and_masked_tokens(found):
    assert found["ignored"] < 1e-3


def test_a_step_that_diverged_is_seen(found):
    assert found["diverged"] == [[False, True]] * 4


def test_being_sure_of_a_wrong_token_is_no_nan(found):
    for error, *lengths in found["confident"]:
        assert error < 0.15
        assert all(0.5 < length < 2 for length in lengths)
