"""The reproductions of balanced at a smoke setting: a claim of each, where seconds suffice."""

from dataclasses import replace

import numpy as np

from likewise.reproduce import reproduction
from likewise.reproduce.balanced.augmentations import NAMES, policies
from tests.reproduce.smoke import SMOKE, check, found, values

SHORT = replace(SMOKE, epochs=2, samples=360)
"""For the grid of 32 trainings."""


def test_figure_3_without_colour_the_accuracy_is_lowest_and_51_is_above_16():
    figures = values("balanced-3")
    for name in NAMES:
        # Equation 51 is an upper bound of equation 16.
        assert figures[f"{name}: bias, equation 51"] > figures[f"{name}: bias, equation 16"]
    plain = figures["- colour distortion: nearest neighbours"]
    assert plain < figures["base: nearest neighbours"]
    assert -1 <= check("balanced-3", "correlation of accuracy and bias (equation 16)") <= 1


def test_simclr_has_the_temperature_of_the_paper_whatever_the_recipe_has():
    from likewise.reproduce.trainings import _learner

    for name in ("balanced-3", "balanced-6", "balanced-table-1", "balanced-table-2"):
        for one in reproduction(name).trainings(SMOKE, 0):
            assert one.recipe == "simclr" and dict(one.options)["temperature"] == 0.5
    cosine, dot, _ = reproduction("balanced-table-1").trainings(SMOKE, 0)
    assert dict(cosine.options) == {"temperature": 0.5}
    assert dict(dot.options) == {"temperature": 0.5, "similarity": "dot"}
    assert _learner(cosine, SMOKE).objective.inverse_temperature == 2.0


def test_the_six_policies_differ_in_one_thing():
    found = policies(SMOKE)
    assert list(found) == list(NAMES) and len(set(found.values())) == 6
    base = found["base"].to_dict()
    for name, policy in found.items():
        changed = {key for key, value in policy.to_dict().items() if value != base[key]}
        assert len(changed) <= 4 and (changed or name == "base")


def test_figure_5_the_parameters_matter():
    samples, findings = found("balanced-5", SHORT)
    assert samples["accuracy"].shape == (1, 2, 4, 4)
    assert check("balanced-5", "largest less least accuracy", SHORT) > 0.02
    assert samples["accuracy"].min() > 0.2
    assert "balanced is best at alpha" in findings.remark.lower()


def test_figure_6_the_repelling_gap_is_the_larger_one():
    assert check("balanced-6", "repelling / attracting gap") > 1
    gaps = found("balanced-6")[0]["gaps"][0]
    assert (gaps[:, :2] > 0).all()
    assert check("balanced-6", "attracting gap, end / start") < 1.0
    assert (gaps[:, 3] >= 0).all() and (gaps[:, 3] <= 1).all()


def test_table_1_cosine_is_best():
    assert check("balanced-table-1", "cosine less the best other") > 0
    figures = values("balanced-table-1")
    assert figures["cosine, normalised: linear probe"] > figures["dot product: linear probe"]


def test_tables_2_and_5_share_their_trainings():
    two, five = (found(f"balanced-table-{number}")[0]["accuracy"] for number in (2, 5))
    assert np.array_equal(two[0], five[0, 0])
    assert (five > 0.2).all()
    # On all labels a probe is better than on those of the subset; which subset is better takes
    # more than one trial to see.
    assert (five[..., 1] > five[..., 0]).all()
    gaps = five[0, :, 0, 0] - five[0, :, 1, 0]
    assert check("balanced-table-5", "balanced: uniform less long-tail, probe on the sub") in gaps


def test_table_4_reports_both_protocols():
    figures = values("balanced-table-4")
    assert set(figures) == {"nearest neighbour", "linear probe"}
    assert min(figures.values()) > 0.3
    (one,) = reproduction("balanced-table-4").trainings(SMOKE, 0)
    assert dict(one.options) == {"alpha": 2.0, "weight": 4.0}
