"""The index of a folder that changes: what is embedded, dropped, recognised, and said."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.data import open_source
from likewise.library import Embedder, Index, embedder_by_name, storage
from likewise.library import index as module
from tests.library.pictures import folder_of, picture


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return embedder_by_name("tiny", device="cpu")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = folder_of(tmp_path / "photos", each=3)
    for path in folder.iterdir():  # as if they had lain there for a day
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


def updated(tmp_path: Path, photos: Path, embedder: Embedder):
    index = Index(tmp_path / "index", embedder)
    return index, index.update(open_source(photos))


def check_rows(index: Index, photos: Path, embedder: Embedder) -> None:
    """Every key has the row that embedding it now would give."""
    source = open_source(photos)
    keys, rows, broken = embedder.rows_of(source)
    assert index.keys == keys
    assert np.allclose(index.rows(), rows, atol=1e-5)
    near, places = index.search(rows, 1)
    assert [index.keys[place] for place in places[:, 0]] == keys
    assert np.allclose(near, 1, atol=1e-5)


class TestFolderThatChanges:
    def test_first_call_embeds_all_and_the_second_none(self, tmp_path, photos, embedder):
        index, changes = updated(tmp_path, photos, embedder)
        assert changes.first and changes.embedded == 9 and len(changes.added) == 9
        check_rows(index, photos, embedder)
        index, changes = updated(tmp_path, photos, embedder)
        assert not changes and changes.embedded == 0 and changes.unchanged == 9
        assert "nothing changed" in changes.text()
        check_rows(index, photos, embedder)

    def test_unchanged_files_are_not_even_read(self, tmp_path, photos, embedder, monkeypatch):
        updated(tmp_path, photos, embedder)
        read = []
        original = module.digest
        monkeypatch.setattr(module, "digest", lambda s, p: read.append(s.keys[p]) or original(s, p))
        Image.fromarray(picture(0, 77)).save(photos / "new.png")
        changes = updated(tmp_path, photos, embedder)[1]
        assert read == ["new.png"]
        assert changes.added == ["new.png"] and changes.embedded == 1

    def test_added_removed_renamed_and_changed_at_once(self, tmp_path, photos, embedder):
        updated(tmp_path, photos, embedder)
        Image.fromarray(picture(1, 50)).save(photos / "added.png")
        (photos / "circle0.png").unlink()
        (photos / "sub").mkdir()
        (photos / "circle1.png").rename(photos / "sub" / "moved.png")
        Image.fromarray(picture(2, 51)).save(photos / "circle2.png")
        shutil.copy(photos / "square0.png", photos / "copy.png")
        index, changes = updated(tmp_path, photos, embedder)
        assert sorted(changes.added) == ["added.png", "copy.png"]
        assert changes.removed == ["circle0.png"]
        assert changes.renamed == [("circle1.png", "sub/moved.png")]
        assert changes.changed == ["circle2.png"]
        assert changes.embedded == 2 and changes.copies == 1 and changes.unchanged == 6
        text = changes.text()
        assert "1 renamed (circle1.png to sub/moved.png)" in text and "1 removed" in text
        check_rows_with_copies(index, photos, embedder)
        assert not updated(tmp_path, photos, embedder)[1]

    def test_a_touched_file_with_the_same_content_is_unchanged(self, tmp_path, photos, embedder):
        updated(tmp_path, photos, embedder)
        os.utime(photos / "circle0.png", (1_700_000_500, 1_700_000_500))
        changes = updated(tmp_path, photos, embedder)[1]
        assert not changes and changes.embedded == 0 and changes.unchanged == 9

    def test_a_change_within_the_grain_of_the_clock_is_seen(self, tmp_path, photos, embedder):
        Image.fromarray(picture(0, 60)).save(photos / "now.bmp")
        updated(tmp_path, photos, embedder)
        before = os.stat(photos / "now.bmp")
        Image.fromarray(picture(0, 61)).save(photos / "now.bmp")
        os.utime(photos / "now.bmp", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert os.stat(photos / "now.bmp").st_size == before.st_size
        assert updated(tmp_path, photos, embedder)[1].changed == ["now.bmp"]

    def test_broken_files_are_named_and_read_again_only_when_they_change(
        self, tmp_path, photos, embedder
    ):
        (photos / "broken.png").write_bytes(b"no image")
        os.utime(photos / "broken.png", (1_700_000_000, 1_700_000_000))
        index, changes = updated(tmp_path, photos, embedder)
        assert list(changes.broken) == ["broken.png"] and "broken.png" not in index.keys
        assert len(index) == 9
        index, changes = updated(tmp_path, photos, embedder)
        assert not changes and list(changes.broken) == ["broken.png"]
        Image.fromarray(picture(1, 90)).save(photos / "broken.png")
        index, changes = updated(tmp_path, photos, embedder)
        assert changes.changed == ["broken.png"] and not changes.broken
        check_rows(index, photos, embedder)


def check_rows_with_copies(index: Index, photos: Path, embedder: Embedder) -> None:
    keys, rows, _ = embedder.rows_of(open_source(photos))
    assert index.keys == keys
    assert np.allclose(index.rows(), rows, atol=1e-5)
    near, places = index.search(rows[[keys.index("copy.png")]], 2)
    assert {keys[place] for place in places[0]} == {"copy.png", "square0.png"}
    assert places.shape == near.shape == (1, 2)


class TestOnDisk:
    def test_refuses_rows_of_another_encoder_until_told_to_rebuild(
        self, tmp_path, photos, embedder
    ):
        updated(tmp_path, photos, embedder)
        other = embedder_by_name("tiny", image_size=24, device="cpu")
        with pytest.raises(ValueError, match="another encoder.*--rebuild"):
            Index(tmp_path / "index", other)
        index = Index(tmp_path / "index", other, rebuild=True)
        assert index.update(open_source(photos)).embedded == 9
        assert len(list((tmp_path / "index").glob("rows-*.npy"))) == 1

    def test_refuses_a_folder_of_something_else(self, tmp_path, photos, embedder):
        with pytest.raises(ValueError, match="something else"):
            Index(photos, embedder)

    def test_a_damaged_list_is_named(self, tmp_path, photos, embedder):
        updated(tmp_path, photos, embedder)
        (tmp_path / "index" / storage.ITEMS).write_bytes(b"half")
        with pytest.raises(ValueError, match="--rebuild"):
            Index(tmp_path / "index", embedder)

    def test_goes_on_where_it_was_stopped(self, tmp_path, photos, embedder, monkeypatch):
        monkeypatch.setattr(module, "CHUNK", 4)
        original, calls = embedder.rows_of, []

        def fails_later(source, progress=None):
            calls.append(len(source))
            if len(calls) == 3:
                raise KeyboardInterrupt
            return original(source, progress)

        object.__setattr__(embedder, "rows_of", fails_later)
        try:
            with pytest.raises(KeyboardInterrupt):
                updated(tmp_path, photos, embedder)
        finally:
            object.__delattr__(embedder, "rows_of")
        index, changes = updated(tmp_path, photos, embedder)
        assert calls == [4, 4, 1] and changes.embedded == 1 and changes.unchanged == 8
        check_rows(index, photos, embedder)

    def test_many_small_files_are_merged_and_dead_rows_left_out(
        self, tmp_path, photos, embedder, monkeypatch
    ):
        monkeypatch.setattr(module, "FILES", 2)
        updated(tmp_path, photos, embedder)
        for number in range(4):
            Image.fromarray(picture(0, 200 + number)).save(photos / f"more{number}.png")
            (photos / f"circle{number}.png").unlink(missing_ok=True)
            index, changes = updated(tmp_path, photos, embedder)
            assert changes.embedded == 1
            check_rows(index, photos, embedder)
        assert len(list((tmp_path / "index").glob("rows-*.npy"))) <= 3

    def test_adding_images_leaves_the_old_rows_file_as_it_was(self, tmp_path, photos, embedder):
        updated(tmp_path, photos, embedder)
        (old,) = (tmp_path / "index").glob("rows-*.npy")
        before = old.stat()
        Image.fromarray(picture(0, 300)).save(photos / "new.png")
        updated(tmp_path, photos, embedder)
        assert (old.stat().st_ino, old.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_array_is_known_by_its_pixels(tmp_path, embedder):
    images = np.stack([picture(kind, number) for kind in range(3) for number in range(3)])
    index = Index(tmp_path / "index", embedder)
    assert index.update(open_source(images)).embedded == 9
    other = images.copy()
    other[4] = picture(0, 99)
    changes = Index(tmp_path / "index", embedder).update(open_source(other))
    assert changes.changed == ["4"] and changes.embedded == 1 and changes.unchanged == 8
