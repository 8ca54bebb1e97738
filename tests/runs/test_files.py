"""Files are there as a whole, or not at all."""

import os
from pathlib import Path

import pytest

from likewise.runs import write_atomically


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    path.write_text("old")
    with pytest.raises(OSError, match="no space"), write_atomically(path) as aside:
        aside.write_text("half")
        raise OSError("no space")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_name_comes_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "found.json"
    with write_atomically(path) as aside:
        aside.write_text("all")
        assert aside.parent == path.parent
        assert not path.exists()
    assert path.read_text() == "all"
    assert list(path.parent.iterdir()) == [path]


def test_it_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    with write_atomically(tmp_path / "ours") as aside:
        aside.write_text("")
    assert os.stat(tmp_path / "ours").st_mode == os.stat(plain).st_mode


def test_writers_that_replace_the_file_are_followed(tmp_path: Path) -> None:
    with write_atomically(tmp_path / "ours") as aside:
        aside.unlink()
        aside.write_text("again")
    assert (tmp_path / "ours").read_text() == "again"


def test_a_full_disk_is_an_oserror_whatever_a_library_makes_of_it(tmp_path: Path) -> None:
    """By then the write may have given its space back: there is room."""
    path = tmp_path / "encoder.safetensors"
    with (
        pytest.raises(OSError, match="No space left on device: .*encoder.safetensors"),
        write_atomically(path) as aside,
    ):
        aside.write_bytes(b"half")
        raise RuntimeError("I/O error: No space left on device (os error 28)")
    with pytest.raises(RuntimeError, match="something else"), write_atomically(path):
        raise RuntimeError("something else")
    assert list(tmp_path.iterdir()) == []
