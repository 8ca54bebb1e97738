"""Search for images: one, several, more like these and less like those; bad queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.evaluation import Embeddings, write_embeddings
from likewise.library import Collection, open_collection, search_images
from tests.library.pictures import folder_of, picture


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("photos"), each=5, classes=True)


@pytest.fixture(scope="module")
def collection(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    index = tmp_path_factory.mktemp("index") / "a"
    return open_collection(str(photos), encoder="tiny", index=index, device="cpu")


def naive_hits(collection: Collection, query: np.ndarray, without: set[str]) -> list[str]:
    scored = []
    for key, row in zip(collection.keys, collection.rows.astype(np.float64), strict=True):
        if key not in without:
            cosine = sum(a * b for a, b in zip(row, query, strict=True)) / np.linalg.norm(query)
            scored.append((-cosine, key))
    return [key for _, key in sorted(scored)]


def test_hits_are_those_of_a_loop_without_the_query_itself(collection):
    key = "circle/circle0.png"
    (found,) = search_images(collection, [key], top=4)
    query = collection.rows[collection.place_of[key]]
    assert [hit.key for hit in found.hits] == naive_hits(collection, query, {key})[:4]
    assert found.hits[0].label in ("circle", "square", "stripes")


def test_a_file_that_shows_an_item_finds_it(collection, tmp_path):
    path = tmp_path / "elsewhere.png"
    Image.fromarray(picture(1, 2)).save(path)
    (found,) = search_images(collection, [str(path)], top=1)
    assert found.hits[0].key == "square/square2.png"
    assert found.hits[0].similarity == pytest.approx(1, abs=1e-4)


def test_several_queries_have_hits_of_their_own(collection):
    keys = ["circle/circle0.png", "stripes/stripes1.png"]
    together = search_images(collection, keys, top=3)
    alone = [search_images(collection, [key], top=3)[0] for key in keys]
    assert [[h.key for h in f.hits] for f in together] == [[h.key for h in f.hits] for f in alone]


def test_more_like_these_and_less_like_those(collection):
    like, unlike = ["circle/circle0.png", "circle/circle1.png"], ["stripes/stripes0.png"]
    (found,) = search_images(collection, like=like, unlike=unlike, top=5, unlike_weight=0.7)
    rows = {key: collection.rows[collection.place_of[key]].astype(float) for key in like + unlike}
    query = (rows[like[0]] + rows[like[1]]) / 2 - 0.7 * rows[unlike[0]]
    assert [hit.key for hit in found.hits] == naive_hits(collection, query, {*like, *unlike})[:5]


def test_more_hits_than_images_gives_all(collection):
    (found,) = search_images(collection, ["circle/circle0.png"], top=100)
    assert len(found.hits) == len(collection) - 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"queries": ["nowhere.png"]}, "neither a key"),
        ({"queries": []}, "--query"),
        ({"unlike": ["circle/circle0.png"], "queries": ["circle/circle1.png"]}, "--like"),
        ({"queries": ["circle/circle0.png"], "top": 0}, "top is 0"),
        ({"queries": ["circle/circle0.png"], "method": "fast"}, "method is 'fast'"),
        (
            {
                "like": ["circle/circle0.png"],
                "unlike": ["circle/circle0.png"],
                "unlike_weight": 1.0,
            },
            "cancel",
        ),
    ],
)
def test_refuses(collection, arguments, said):
    with pytest.raises(ValueError, match=said):
        search_images(collection, **arguments)


def test_a_query_that_is_no_image_is_named(collection, tmp_path):
    path = tmp_path / "notes.jpg"
    path.write_text("no image")
    with pytest.raises(ValueError, match="notes.jpg.*no image"):
        search_images(collection, [str(path)])


class TestEmbeddingsFile:
    @pytest.fixture
    def file(self, collection, tmp_path) -> Path:
        path = tmp_path / "e.parquet"
        write_embeddings(path, Embeddings(collection.keys, 3 * collection.rows))
        return path

    def test_gives_the_hits_of_the_encoder(self, collection, file):
        of_file = open_collection(file)
        key = "square/square1.png"
        found, expected = (search_images(c, [key], top=4)[0] for c in (of_file, collection))
        assert [h.key for h in found.hits] == [h.key for h in expected.hits]

    def test_knows_keys_only(self, file, photos):
        with pytest.raises(ValueError, match="no key of the embeddings file"):
            search_images(open_collection(file), [str(photos / "circle" / "circle0.png")])

    def test_says_what_is_not_in_it(self, file, photos, tmp_path, capsys):
        other = folder_of(tmp_path / "more", each=6, classes=True)
        open_collection(file, str(other))
        said = " ".join(capsys.readouterr().err.split())
        assert "3 images" in said and "0 of its items are gone" in said

    def test_refuses_other_images(self, file, tmp_path):
        with pytest.raises(ValueError, match="no key of"):
            open_collection(file, str(folder_of(tmp_path / "flat", each=2)))


def test_a_run_and_an_encoder_are_one_too_many(photos):
    with pytest.raises(ValueError, match="give one of them"):
        open_collection("runs/a", str(photos), encoder="tiny")


def test_images_are_asked_for():
    with pytest.raises(ValueError, match="images are missing"):
        open_collection("runs/a")
