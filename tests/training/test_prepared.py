"""From the arguments to what trains: each choice reaches the part that it is about."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import likewise
from likewise.data import StreamedImages, channel_statistics, open_source
from likewise.training.choices import choose_canvas
from likewise.training.module import OwnImages
from likewise.training.session import prepare
from tests.training.driver import pictures


def prepared(data: Any, out: Path, **changes: Any) -> Any:
    parameters = inspect.signature(likewise.train).parameters.values()
    options = {one.name: one.default for one in parameters}
    options |= {"data": data, "out": out, "encoder": "tiny", "projector": [16, 8]}
    options |= {"batch_size": 8, "device": "cpu", **changes}
    return prepare(**options)


def folder(path: Path, side: int = 16) -> Path:
    """A folder a class; the first image of all cannot be read."""
    for i, picture in enumerate(pictures(24, side)):
        place = path / ("cat" if i < 12 else "dog")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(place / f"{i:02}.png")
    (path / "cat" / "00.png").write_bytes(b"no image")
    return path


def test_a_batch_that_is_cut_has_the_learning_rate_of_its_size(tmp_path: Path) -> None:
    ready = prepared(pictures(16), tmp_path / "run", batch_size=256)
    assert ready.plan.batch_size == 16
    assert ready.optimization.lr == pytest.approx(0.3 * 16 / 256)


def test_the_seed_draws_the_share_of_labels_and_what_a_queue_starts_with(tmp_path: Path) -> None:
    source = open_source(pictures(40), labels=np.arange(40) % 2)
    options: dict[str, Any] = {"labels": "source", "label_share": 0.5, "recipe": "nnclr"}
    one, same, other = (
        prepared(source, tmp_path / str(place), seed=seed, **options)
        for place, seed in enumerate((0, 0, 1))
    )
    for found, equal in ((same, True), (other, False)):
        assert np.array_equal(one.known.labels, found.known.labels) is equal
        assert torch.equal(one.learner.queue.buffer, found.learner.queue.buffer) is equal


def test_labels_stay_with_their_images_where_some_are_broken(tmp_path: Path) -> None:
    ready = prepared(str(folder(tmp_path / "photos")), tmp_path / "run", labels="source")
    assert [key.split("/")[0] for key in ready.images.keys] == ["cat"] * 11 + ["dog"] * 12
    assert ready.known.labels.tolist() == [0] * 11 + [1] * 12


def test_a_streamed_image_that_replaces_a_broken_one_brings_its_own_number(tmp_path: Path) -> None:
    images = StreamedImages(open_source(str(folder(tmp_path / "photos"))), 16)
    index, pixels = OwnImages(images, rank=0, world_size=1)[torch.tensor([3, 0, 1])]
    assert index.tolist()[::2] == [3, 1] and index[1] not in (0, 1, 3)
    assert torch.equal(pixels, images[index.tolist()][0])


def test_views_and_evaluation_have_the_statistics_of_the_images(tmp_path: Path) -> None:
    ready = prepared(pictures(24), tmp_path / "run")
    mean, std = channel_statistics(torch.from_numpy(pictures(24)).permute(0, 3, 1, 2))
    assert (ready.views.mean, ready.views.std) == (mean, std)
    assert (ready.preparation.mean, ready.preparation.std) == (mean, std)


def test_large_images_keep_a_margin() -> None:
    large = open_source(np.zeros((2, 300, 300, 3), np.uint8))
    assert choose_canvas(large, 224) == 256
    assert choose_canvas(open_source(pictures(4)), 16) == 16


def test_labels_of_a_file_are_those_that_neighbours_are_judged_by(tmp_path: Path) -> None:
    """Folders say something else here: years, say."""
    photos = folder(tmp_path / "photos")
    keys = [f"cat/{i:02}.png" for i in range(1, 12)]
    lines = [f"{key},{'even' if i % 2 else 'odd'}" for i, key in enumerate(keys)]
    (tmp_path / "labels.csv").write_text("\n".join(["key,label", *lines]))
    ready = prepared(str(photos), tmp_path / "run", labels=str(tmp_path / "labels.csv"))
    judged = dict(zip(ready.sample.keys, ready.sample.labels.tolist(), strict=True))
    assert [judged[key] for key in keys] == ready.known.labels[:11].tolist()
    assert len({judged[key] for key in keys}) == 2
    assert {judged[f"dog/{i}.png"] for i in range(12, 24)} == {-1}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("missing.csv", "labels is 'missing.csv', which is no file.*or 'source'"),
        (".", "labels is '.', which is a folder"),
    ],
)
def test_labels_are_looked_at_before_images_are_decoded(
    labels: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoded(*_: Any) -> None:
        raise AssertionError("the images were opened")

    monkeypatch.setattr("likewise.training.session.open_images", decoded)
    with pytest.raises(ValueError, match=expected):
        prepared(pictures(16), tmp_path / "run", labels=labels)


def test_a_share_of_labels_that_are_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="label_share is given without labels: add --labels"):
        prepared(pictures(16), tmp_path / "run", label_share=0.5)


def test_fields_without_a_base_are_over_the_views_of_the_recipe(tmp_path: Path) -> None:
    one, two = (
        prepared(pictures(16), tmp_path / "run", recipe="byol", views=views).views.policy
        for views in ({"rotation": 10}, {"base": "byol", "rotation": 10})
    )
    assert one == two and one.uses("blur") and one.rotation == 10


@pytest.mark.parametrize("compiles", [True, False])
def test_that_compiling_is_not_in_the_estimate_is_said(
    compiles: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared(pictures(16), tmp_path / "run", compile=compiles)
    assert ("Compiling, before the first step, comes on top" in capsys.readouterr().err) is compiles
