"""Whatever holds images is opened; what does not is refused with a remedy."""

import subprocess
import sys

import numpy as np
import pytest

from likewise.data import FolderSource, open_source
from tests.data.pictures import pixels, write


def test_home_folder(tmp_path, monkeypatch):
    write(tmp_path / "photos/a.png")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_source("~/photos").keys == ["a.png"]


def test_a_folder_called_digits(tmp_path, monkeypatch):
    write(tmp_path / "digits/a.png")
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_source("./digits"), FolderSource)
    assert open_source("digits").place == "digits"


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ("no/such/folder", "'no/such/folder', which is not there: give a folder of images"),
        ("no/such-*.parquet", "which is not there"),
        ("digits:dev", "give 'digits' or 'digits:test'"),
        (7, "data is a int: give a folder of images"),
        (None, "data is a NoneType"),
        ([], "data is a list"),
        ([pixels(0)], "data is a list"),
        (["a.parquet", "b.png"], r"data has 'a.parquet': several files"),
    ],
)
def test_refuses(data, match):
    with pytest.raises(ValueError, match=match):
        open_source(data)


def test_refuses_a_file_of_another_kind(tmp_path):
    path = write(tmp_path / "a.png")
    with pytest.raises(ValueError, match="a file of no kind that is read here"):
        open_source(path)
    with pytest.raises(ValueError, match="a pattern has to match Parquet files only"):
        open_source(str(tmp_path / "*.png"))


@pytest.mark.parametrize("option", ["image_column", "label_column", "key_column"])
def test_refuses_columns_where_there_are_none(option, tmp_path):
    write(tmp_path / "photos/a.png")
    np.save(tmp_path / "x.npy", np.zeros((2, 8, 8), np.uint8))
    sources = ["digits", tmp_path / "photos", np.zeros((2, 8, 8)), open_source("digits")]
    for data in sources:
        with pytest.raises(ValueError, match=f"{option} is 'x', and .* has no columns"):
            open_source(data, **{option: "x"})
    with pytest.raises(ValueError, match="no columns|no names"):
        open_source(tmp_path / "x.npy", **{option: "x"})


@pytest.mark.parametrize("option", ["image_column", "label_column", "key_column"])
def test_refuses_an_array_for_a_column(option, tmp_path):
    np.savez(tmp_path / "x.npz", images=np.zeros((2, 8, 8), np.uint8), label=[0, 1])
    with pytest.raises(ValueError, match=f"{option} is a ndarray: give the name of a column"):
        open_source(tmp_path / "x.npz", **{option: np.array([0, 1])})


def test_import_is_light():
    code = (
        "import sys, likewise.data;"
        "print([m for m in ('PIL', 'pyarrow', 'datasets', 'sklearn', 'pandas', 'torchvision')"
        " if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
