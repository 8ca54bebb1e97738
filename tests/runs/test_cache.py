"""The user's cache folder, and names in it."""

import stat
from pathlib import Path

import pytest

from likewise.runs import cache_folder, distinct_name


@pytest.mark.parametrize("given", [None, "", "relative/folder"])
def test_without_a_folder_that_counts_it_is_in_the_home(given, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if given is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert cache_folder("index") == tmp_path / ".cache" / "likewise" / "index"
    assert not (tmp_path / "relative").exists()


def test_it_is_its_owner_s_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new" / "cache"))
    folder = cache_folder("annotate")
    assert folder == tmp_path / "new" / "cache" / "likewise" / "annotate"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o750)  # whoever wants to share it may
    assert stat.S_IMODE(cache_folder("annotate").stat().st_mode) == 0o750


def test_a_name_is_that_of_the_folder_however_it_is_written(tmp_path, monkeypatch):
    photos = tmp_path / "My Photos"
    photos.mkdir()
    monkeypatch.chdir(tmp_path)
    name = distinct_name("My Photos", "My Photos")
    assert (
        name
        == distinct_name("My Photos", str(photos))
        == distinct_name("my/photos", "./My Photos/")
    )
    assert name.startswith("my-photos-")
    (tmp_path / "other" / "My Photos").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "other")
    assert distinct_name("My Photos", "My Photos") != name


def test_all_places_count_and_any_text_can_be_named():
    assert distinct_name("x", "db", "photos") != distinct_name("x", "db2", "photos")
    assert distinct_name("x", "db", "photos") != distinct_name("x", "db", "photos2")
    assert distinct_name("猫/..", "猫").startswith("images-")
    name = distinct_name("a" * 10, "long " * 2000 + "\udc80")
    assert Path(name).name == name
