"""The parts of a report against references that share no code with them."""

from __future__ import annotations

import base64
import io
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import confusion_matrix, precision_score, recall_score
from sklearn.neighbors import KNeighborsClassifier

from likewise.reports.classes import class_figures
from likewise.reports.curves import read_curves
from likewise.reports.drawing import Axis, Line, chart
from likewise.reports.flat import flat_map
from likewise.reports.neighbors import neighbor_sheets
from likewise.reports.pictures import sprite
from likewise.reports.subject import Sample
from tests.reports.folders import write_pictures, write_run


def blobs(n: int = 90, classes: int = 3, spread: float = 0.5, seed: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    rows = np.eye(classes, 6)[labels] + spread * rng.normal(size=(n, 6))
    keys = [f"{i}.png" for i in range(n)]
    names = ["a", "b", "c", "d"][:classes]
    return Sample(keys, rows.astype(np.float32), labels, names, None, n, "blobs")


def test_confusion_is_that_of_scikit_learn() -> None:
    sample = blobs()
    found = class_figures(sample)
    assert found is not None and found.neighbors == 20
    unit = sample.rows / np.linalg.norm(sample.rows, axis=1, keepdims=True)
    said = []
    for i in range(len(unit)):
        others = np.arange(len(unit)) != i
        knn = KNeighborsClassifier(
            20, metric="cosine", weights=lambda d: np.exp((1 - d) / 0.1), algorithm="brute"
        )
        knn.fit(unit[others], sample.labels[others])
        said.append(knn.predict(unit[i : i + 1])[0])
    assert 0.5 < found.accuracy < 1
    np.testing.assert_array_equal(found.confusion, confusion_matrix(sample.labels, said))
    np.testing.assert_array_equal(found.predicted, said)
    recall = recall_score(sample.labels, said, average=None)
    np.testing.assert_allclose(found.recall, recall)
    np.testing.assert_allclose(found.precision, precision_score(sample.labels, said, average=None))
    assert found.balanced == pytest.approx(recall.mean())
    for place in range(3):
        row = found.confusion[place].copy()
        row[place] = 0
        taken = found.mistaken_for(place)
        assert taken is not None and taken[1] == row.max() and row[taken[0]] == row.max()


def test_cohesion_by_loops() -> None:
    sample = blobs(30)
    found = class_figures(sample)
    assert found is not None and sample.labels is not None
    for place, label in enumerate(found.present):
        members = [row / np.linalg.norm(row) for row in sample.rows[sample.labels == label]]
        mean = np.mean(members, axis=0)
        cosines = [float(row @ mean / np.linalg.norm(mean)) for row in members]
        assert found.cohesion[place] == pytest.approx(np.mean(cosines), rel=1e-5)


def test_unknown_labels_are_left_out_and_one_class_has_no_confusion() -> None:
    sample = blobs()
    assert sample.labels is not None
    sample.labels[::2] = -1
    found = class_figures(sample)
    assert found is not None and found.confusion.sum() == 45
    assert (found.predicted[::2] == -1).all() and (found.predicted[1::2] >= 0).all()
    sample.labels[:] = 1
    assert class_figures(sample) is None
    sample.labels = None
    assert class_figures(sample) is None


def test_the_best_and_the_worst_queries() -> None:
    sample = blobs(spread=0.15)
    assert sample.labels is not None
    # One item of class 0 in the midst of class 1: the surest mistake.
    sample.rows[0] = sample.rows[sample.labels == 1].mean(axis=0)
    best, worst = neighbor_sheets(sample)
    assert worst[0].item == 0 and worst[0].agreement == 0
    agreements = [query.agreement or 0.0 for query in best]
    assert agreements[0] == 1 and min(agreements) >= 0.875
    assert agreements == sorted(agreements, reverse=True)
    assert {int(sample.labels[query.item]) for query in best} == {0, 1, 2}
    unit = sample.rows / np.linalg.norm(sample.rows, axis=1, keepdims=True)
    for query in [*best, *worst]:
        cosines = unit @ unit[query.item]
        cosines[query.item] = -2
        assert query.neighbors.tolist() == np.argsort(-cosines, kind="stable")[:8].tolist()
        np.testing.assert_allclose(query.similarities, cosines[query.neighbors], atol=1e-6)
        same = sample.labels[query.neighbors] == sample.labels[query.item]
        assert query.agreement == pytest.approx(same.mean())


def test_without_labels_the_closest_and_the_loners() -> None:
    sample = blobs(spread=0.2)
    sample.labels = None
    sample.rows[7] = -sample.rows.mean(axis=0)
    best, worst = neighbor_sheets(sample)
    assert worst[0].item == 7 and worst[0].agreement is None
    means = [query.similarities.mean() for query in best]
    assert means == sorted(means, reverse=True) and means[-1] > worst[0].similarities.mean()


def test_a_map_keeps_groups_together() -> None:
    sample = blobs(150, spread=0.1)
    assert sample.labels is not None
    places, how = flat_map(sample.rows, seed=1)
    assert "t-SNE" in how and places.min() >= 0 and places[:, 0].max() == pytest.approx(1)
    knn = KNeighborsClassifier(5).fit(places[::2], sample.labels[::2])
    assert knn.score(places[1::2], sample.labels[1::2]) == 1
    np.testing.assert_array_equal(places, flat_map(sample.rows, seed=1)[0])


@pytest.mark.parametrize("rows", [np.ones((30, 4)), np.zeros((5, 3)), np.ones((4, 1))])
def test_a_map_of_a_full_collapse_is_a_point(rows: np.ndarray) -> None:
    places, _ = flat_map(rows.astype(np.float32))
    assert np.isfinite(places).all() and np.ptp(places) < 1e-6


def test_thumbnails_are_where_the_style_says() -> None:
    pixels = torch.zeros(7, 3, 16, 16, dtype=torch.uint8)
    for i in range(7):
        pixels[i] = torch.tensor([30 * i, 255 - 30 * i, 90])[:, None, None]
    found = sprite(pixels, quality=100)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(found.url.split(",")[1]))))
    assert sheet.shape[:2] == (found.rows * 16, found.columns * 16)
    for i in range(7):
        across, down = (float(part[:-1]) / 100 for part in found.place(i).split())
        # CSS: a percentage p of a background of size s in a box of size b lies at p (b - s).
        left = round(across * (sheet.shape[1] - 16))
        top = round(down * (sheet.shape[0] - 16))
        middle = sheet[top + 8, left + 8].astype(int)
        np.testing.assert_allclose(middle, pixels[i, :, 8, 8].numpy().astype(int), atol=6)
    large = sprite(torch.zeros(3, 3, 224, 224, dtype=torch.uint8))
    assert large.side == 48


@pytest.mark.parametrize(
    "values", [[0, 1], [3.2, 977.0], [-5, -4.99], [0.001, 0.0012], [7, 7], [0, 0], [-1, 1e6]]
)
def test_ticks_are_round_few_and_inside(values: list[float]) -> None:
    axis = Axis(np.array(values, dtype=float), False, 0, 100)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 8 and ticks == sorted(ticks)
    places = axis.place(np.array(ticks))
    assert places.min() >= -1e-6 and places.max() <= 100 + 1e-6


def test_a_logarithmic_axis_has_powers_of_ten() -> None:
    axis = Axis(np.array([1e-3, 50.0]), True, 0, 100)
    assert axis.ticks() == pytest.approx([1e-3, 1e-2, 0.1, 1, 10])
    assert axis.place(np.array([1e-3, 50.0])) == pytest.approx([0, 100])


def test_a_chart_draws_what_it_is_given() -> None:
    lines = [
        Line("up & <away>", [0, 1, 2], [1.0, 2.0, float("nan")]),
        Line("down", [0, 1, 2], [3.0, 2.0, 1.0], colour=1, dash=1),
    ]
    figure = ElementTree.fromstring(chart(lines, title="A < B", x_label="epoch"))
    drawn = [p for p in figure.findall("svg/polyline")]
    points = [[tuple(map(float, p.split(","))) for p in line.get("points", "").split()]
              for line in drawn]  # fmt: skip
    assert [len(p) for p in points] == [2, 3]
    assert points[0][0][1] > points[0][1][1]  # upwards: y goes down on paper
    assert points[1][0][1] < points[1][2][1]
    assert points[0][0][0] == points[1][0][0]
    assert [item.text or "".join(item.itertext()) for item in figure.findall("ul/li")] == [
        "up & <away>",
        "down",
    ]
    assert chart([Line("alone", [1], [1.0])], title="", x_label="") == ""
    assert chart([Line("none", [0, 1], [-1.0, 0.0])], title="", x_label="", log_y=True) == ""


def test_a_long_line_keeps_its_mean() -> None:
    y = np.sin(np.arange(10_000) / 500)
    x, drawn = Line("long", np.arange(10_000.0), y).points(False, False)
    assert len(x) == 240 and (np.diff(x) > 0).all()
    assert drawn.mean() == pytest.approx(y.mean(), abs=1e-3)


def test_curves_are_over_epochs(tmp_path: Path) -> None:
    from likewise.training.records import read_records

    run = write_run(tmp_path / "run", write_pictures(tmp_path / "photos"))
    curves = read_curves(run, read_records(run))
    assert curves.x_label == "epoch" and curves.steps_per_epoch == 3
    x, y = curves.column("train/loss")
    assert x.tolist() == pytest.approx([k / 3 for k in range(12)])
    assert y.tolist() == pytest.approx([5 - 0.2 * k for k in range(12)])
    assert sorted(curves.terms()) == ["train/attraction", "train/repulsion"]
    looks, ranks = curves.look("encoder", "centered_effective_rank")
    assert looks.tolist() == [0, 1, 2, 3, 4] and (ranks > 1).all()
    assert len(curves.look("evidence", "label_lift")[0]) == 0  # undefined everywhere
    nothing = read_curves(tmp_path / "photos", [])
    assert nothing.x_label == "step" and len(nothing.column("train/loss")[0]) == 0
