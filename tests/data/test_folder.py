"""A folder of images."""

import os

import numpy as np
import pytest

from likewise.data import BrokenImage, FolderSource, open_source
from likewise.data.folder import holds_images
from tests.data import contract
from tests.data.pictures import pixels, write

NAMES = ["cat/img2.png", "cat/img10.png", "dog/deep/a.bmp", "dog/b.PNG", "dog/c.tiff"]


class TestFolder(contract.SourceContract):
    def make(self, folder):
        for seed, name in enumerate(NAMES):
            write(folder / name, seed, height=4 + seed)
        return open_source(folder)

    def expected(self, index):
        key = ["cat/img2.png", "cat/img10.png", "dog/b.PNG", "dog/c.tiff", "dog/deep/a.bmp"][index]
        seed = NAMES.index(key)
        return pixels(seed, height=4 + seed)

    def test_keys_are_paths_in_natural_order(self, source):
        assert source.keys[:2] == ["cat/img2.png", "cat/img10.png"]
        assert source.keys[2:] == ["dog/b.PNG", "dog/c.tiff", "dog/deep/a.bmp"]

    def test_labels_are_the_first_folders(self, source):
        assert source.class_names == ["cat", "dog"]
        assert source.labels.tolist() == [0, 0, 1, 1, 1]

    def test_another_file_shifts_no_key(self, source, tmp_path):
        write(tmp_path / "ant/first.png")
        more = open_source(tmp_path)
        assert [key for key in more.keys if key != "ant/first.png"] == source.keys
        for key in source.keys:
            assert more.label_name(key) == source.label_name(key)
            assert (more.read(more.index_of(key)) == source.read(source.index_of(key))).all()


def test_passes_over_what_is_no_image(tmp_path):
    write(tmp_path / "a.png")
    write(tmp_path / ".hidden.png")
    write(tmp_path / ".thumbnails/b.png")
    (tmp_path / "notes.txt").write_text("no image")
    os.mkfifo(tmp_path / "pipe.png")  # to open it would wait for ever
    assert FolderSource(tmp_path).keys == ["a.png"]


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "tiff", "webp"])
def test_a_name_without_an_extension_says_nothing(kind, tmp_path):
    named = write(tmp_path / f"a.{kind}", 1)
    named.rename(tmp_path / "0f3a")
    write(tmp_path / "b.png", 2)
    (tmp_path / "README").write_text("RIFF, GIF and JPEG are formats")
    (tmp_path / "empty").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    source = FolderSource(tmp_path)
    assert source.keys == ["0f3a", "b.png"]
    assert source.read(0).shape == source.read(1).shape
    assert holds_images(tmp_path)


def test_counts_images_of_kinds_that_are_not_read(tmp_path):
    write(tmp_path / "cat/a.png")
    write(tmp_path / "dog/b.png")
    for name in ("cat/c.HEIC", "cat/d.heic", "e.svg", "notes.txt", "README", ".f.heic"):
        (tmp_path / name).write_bytes(b"of another kind")
    source = FolderSource(tmp_path)
    assert source.passed_over == {".heic": 2, ".svg": 1}
    assert source.description.endswith("(2 classes, 3 files not read: .heic, .svg)")
    assert source.with_labels(None, None).description.endswith(
        "(no labels, 3 files not read: .heic, .svg)"
    )


def test_links(tmp_path):
    photos = tmp_path / "photos"
    write(photos / "real/a.png", 1)
    write(tmp_path / "elsewhere/b.png", 2)
    (photos / "again").symlink_to(photos)
    (photos / "real/up").symlink_to("..")
    (photos / "alias").symlink_to(photos / "real")
    (photos / "linked").symlink_to(tmp_path / "elsewhere")
    (photos / "nowhere.png").symlink_to(tmp_path / "gone.png")
    source = FolderSource(photos)
    assert source.keys == ["linked/b.png", "nowhere.png", "real/a.png"]
    np.testing.assert_array_equal(source.read(0).permute(1, 2, 0).numpy(), pixels(2))
    with pytest.raises(BrokenImage, match="No such file"):
        source.read(1)


def test_names_that_are_no_text(tmp_path):
    write(tmp_path / "ü name.png", 1)
    odd = os.fsdecode(b"caf\xe9.png")
    write(tmp_path / "x.png", 2).rename(tmp_path / odd)
    source = FolderSource(tmp_path)
    assert source.keys == ["caf\\xe9.png", "ü name.png"]
    source.fingerprint()
    np.testing.assert_array_equal(source.read(0).permute(1, 2, 0).numpy(), pixels(2))


class TestFolderLabels:
    @pytest.mark.parametrize(
        "names",
        [
            ["a.png", "cat/b.png", "dog/c.png"],
            ["cat/a.png"],
            ["train/a.png"],
            ["a.png", "test/b.png"],
        ],
    )
    def test_auto_takes_none_where_folders_are_no_classes(self, tmp_path, names):
        for name in names:
            write(tmp_path / name)
        assert FolderSource(tmp_path).labels is None
        assert "(no labels" in FolderSource(tmp_path).description
        with pytest.raises(ValueError, match="folder_labels is True.*folder per class"):
            FolderSource(tmp_path, folder_labels=True)

    def test_no_labels_on_demand(self, tmp_path):
        for name in ("cat/a.png", "dog/b.png"):
            write(tmp_path / name)
        source = open_source(tmp_path, folder_labels=False)
        assert source.labels is None
        assert source.description.endswith("(no labels)")

    def test_parts_of_a_data_set_are_no_classes(self, tmp_path):
        for name in ("train/cat/a.png", "test/cat/b.png"):
            write(tmp_path / name)
        source = FolderSource(tmp_path)
        assert len(source) == 2 and source.labels is None
        why = "(no labels, since its folders test, train are parts of a data set)"
        assert source.description.endswith(why)
        with pytest.raises(ValueError, match=r"test, train, which.*: give .*/train, or folder_lab"):
            FolderSource(tmp_path, folder_labels=True)

    def test_labels_on_demand_need_no_reason(self, tmp_path):
        for name in ("train/cat/a.png", "val/cat/b.png"):
            write(tmp_path / name)
        assert FolderSource(tmp_path, folder_labels=False).description.endswith("(no labels)")
        source = open_source(tmp_path, labels=["cat", "dog"])
        assert source.description.endswith("(2 classes)")

    def test_a_folder_is_a_class_by_its_name(self, tmp_path):
        for name in ("None/a.png", "-1/b.png"):
            write(tmp_path / name)
        assert FolderSource(tmp_path).class_names == ["-1", "None"]

    def test_unknown_option(self, tmp_path):
        write(tmp_path / "a.png")
        with pytest.raises(ValueError, match="folder_labels is 'yes'"):
            FolderSource(tmp_path, folder_labels="yes")
        with pytest.raises(ValueError, match="folder_labels is array"):
            FolderSource(tmp_path, folder_labels=np.array([0, 1]))


class TestBadFolders:
    def test_empty(self, tmp_path):
        with pytest.raises(ValueError, match="has no images: give a folder with JPEG"):
            open_source(tmp_path)

    def test_other_files_only(self, tmp_path):
        (tmp_path / "a.txt").write_text("no image")
        with pytest.raises(ValueError, match="has no images among its 1 files: "):
            open_source(tmp_path)
        (tmp_path / "b.heic").write_bytes(b"a photo")
        with pytest.raises(ValueError, match=r"among its 2 files \(not read: \.heic\): give"):
            open_source(tmp_path)

    def test_may_not_be_read(self, tmp_path, monkeypatch):
        def refuse(path):
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(os, "scandir", refuse)
        with pytest.raises(ValueError, match="cannot be listed: you may not read it"):
            FolderSource(tmp_path)

    def test_no_folder(self, tmp_path):
        with pytest.raises(ValueError, match="is no folder"):
            FolderSource(tmp_path / "gone")


def test_loose_images_beside_folders_are_said_to_be_why_there_are_no_labels(tmp_path):
    for name in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, 1)
    assert FolderSource(tmp_path).labels is not None
    write(tmp_path / "stray.png", 1)
    source = FolderSource(tmp_path)
    assert source.labels is None
    why = "(no labels, since 1 of them lies in none of its folders, stray.png for one)"
    assert source.description.endswith(why)
    for number in range(6):
        write(tmp_path / f"{number}.png", 1)
    assert FolderSource(tmp_path).description.endswith("(no labels)")
