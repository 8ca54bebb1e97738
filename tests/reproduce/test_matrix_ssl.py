"""The reproductions of matrix-ssl at a smoke setting: a claim of each, where seconds suffice."""

import numpy as np

from likewise.reproduce import reproduction
from likewise.reproduce.matrix_ssl.methods import TITLES
from tests.reproduce.smoke import SMOKE, check, found, values


def test_figure_2_simsiam_without_stop_gradient_collapses():
    assert check("matrix-ssl-2", "spread without stop-gradient") < 0.2
    assert check("matrix-ssl-2", "NC1, Barlow Twins / SimCLR") > 1
    assert check("matrix-ssl-2", "silhouette of the map, SimCLR less") > 0
    samples, _ = found("matrix-ssl-2")
    assert samples["map"].shape == (1, 5, samples["labels"].shape[1], 2)
    assert set(samples["labels"][0]) == set(range(5))


def test_figure_3_ranks_fall_from_those_of_random_weights():
    """At this size training takes ranks away within classes; what grows takes longer."""
    samples, findings = found("matrix-ssl-3")
    intra, inter = np.moveaxis(samples["encoder"][0], -1, 0)
    assert (intra[:, -1] < intra[:, 0]).all()
    assert (intra >= 1).all() and (intra <= 128).all()
    assert (inter >= 1).all() and (inter <= 9 + 1e-9).all()  # ten classes have nine directions
    assert len(findings.checks) == 7


def test_figure_5_has_a_map_of_ten_classes():
    samples, findings = found("matrix-ssl-5")
    assert set(samples["labels"][0]) == set(range(10))
    assert check("matrix-ssl-5", "silhouettes of the maps") >= 0
    figures = values("matrix-ssl-5")
    for title in ("SimCLR", "BYOL", "Barlow Twins"):
        assert -1 <= figures[f"{title}: silhouette of the map"] <= 1
    assert len(findings.checks) == 1


def test_table_1_names_an_order_of_nine_methods():
    _, findings = found("matrix-ssl-table-1")
    figures = values("matrix-ssl-table-1")
    order = findings.remark.removeprefix("From the best: ").removesuffix(".").split(", ")
    assert sorted(order) == sorted(title for name, title in TITLES.items() if name != "collapsed")
    probes = [figures[f"{title}: linear probe"] for title in order]
    assert probes == sorted(probes, reverse=True)
    assert min(probes) > 0.3  # chance is a tenth
    lead = check("matrix-ssl-table-1", "Matrix-SSL less the best other")
    assert (order[0] == "Matrix-SSL") == (lead >= 0)


def test_table_4_alignment_weight_matters_less_than_the_method():
    probes = found("matrix-ssl-table-4")[0]["accuracy"][0, :, 0]
    assert len(probes) == 7 and probes.min() > 0.3
    assert check("matrix-ssl-table-4", "best less worst") < 0.2


def test_table_5_order_of_the_series_matters_little():
    assert check("matrix-ssl-table-5", "best less worst") < 0.15
    gamma, order = (found(f"matrix-ssl-table-{number}")[0]["accuracy"] for number in (4, 5))
    assert np.array_equal(gamma[0, 4], order[0, 1])  # gamma 1, order 4: the same training


def test_narrower_heads_leave_the_recipes_own_dimensions_and_options():
    from likewise.reproduce.setting import FAST
    from likewise.reproduce.trainings import _learner
    from likewise.training import recipe

    trainings = {one.recipe: one for one in reproduction("matrix-ssl-table-1").trainings(FAST, 0)}
    assert trainings["matrix-ssl"].method.projector == (128, 128, 16)
    assert trainings["mec"].method.projector == (128, 128, 128)
    for name in ("matrix-ssl", "mec"):
        method = trainings[name].method
        assert (method.teacher, method.predictor) == ("none", None)
        assert method.options == recipe(name).options
    assert _learner(trainings["mec"], FAST).objective.distortion == 0.25
    variants = [
        one
        for number in (4, 5)
        for one in reproduction(f"matrix-ssl-table-{number}").trainings(FAST, 0)
    ]
    assert {one.method.projector[-1] for one in variants} == {16}


def test_methods_are_compared_on_one_budget():
    trainings = reproduction("matrix-ssl-table-1").trainings(SMOKE, 0)
    assert {one.epochs for one in trainings} == {SMOKE.epochs}
    assert {one.method.optimizer for one in trainings} == {"adamw"}
    assert len({str(one.views) for one in trainings}) == 1
