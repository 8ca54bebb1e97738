"""Whatever holds images, as a source."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from likewise.data.array_files import open_array_file
from likewise.data.arrays import ArraySource
from likewise.data.built_in import digits
from likewise.data.fashion_mnist import fashion_mnist
from likewise.data.folder import FolderSource
from likewise.data.hugging_face import HuggingFaceSource, is_saved_dataset
from likewise.data.labels import labelled
from likewise.data.parquet import ParquetSource, shards
from likewise.data.source import Source

ARRAY_FILES = (".npy", ".npz", ".pt", ".pth")

BUILT_IN: dict[str, Callable[[Literal["train", "test"]], Source]] = {
    "digits": digits,
    "fashion-mnist": fashion_mnist,
}
"""Sources that have a name; "NAME:test" is the other half."""

WHAT_IT_MAY_BE = (
    "give a folder of images, Parquet files, a .npy, .npz or .pt file, a saved Hugging Face "
    "dataset, an array, 'digits' or 'fashion-mnist'"
)


def open_source(
    data: Any,
    *,
    image_column: str | None = None,
    label_column: str | None = None,
    key_column: str | None = None,
    labels: Path | str | Mapping[str, Any] | ArrayLike | Tensor | None = None,
    folder_labels: bool | Literal["auto"] = "auto",
) -> Source:
    """Images by stable key, from whatever holds them.

    data: "digits" or "digits:test" (built in; "./digits" is a folder); "fashion-mnist" or
    "fashion-mnist:test" (Debian's package dataset-fashion-mnist); a folder of images; a Parquet
    file, several, a folder or a pattern ("train-*.parquet") of them; a .npy, .npz or .pt file; a
    NumPy array or torch tensor; a `datasets.Dataset` or the folder of a saved one; or a Source.
    image_column, label_column: found by themselves in tables; "none" as label_column reads none.
    key_column: the column of a table that names its rows, in place of the row number.
    labels: a CSV file (key,label), a mapping from keys, or one label per image; these go before
    labels that the data bring along. -1, None, NaN (also as text) or an empty cell is unknown.
    folder_labels: whether the first folder of a path is its label, see
    :class:`~likewise.data.FolderSource`; "auto" takes train, val and test for no classes.

    >>> open_source("digits:test").description
    '720 images in digits:test (10 classes)'
    >>> open_source(np.zeros((3, 8, 8, 3)), labels=["cat", "dog", ""]).labels
    array([ 0,  1, -1])
    """
    columns = {
        "image_column": image_column,
        "label_column": label_column,
        "key_column": key_column,
    }
    for name, column in columns.items():
        if column is not None and not isinstance(column, str):
            raise ValueError(
                f"{name} is a {type(column).__name__}: give the name of a column (labels, one for "
                "each image, are given as labels)"
            )
    source = _open(data, columns, folder_labels)
    if len(source) == 0:
        raise ValueError(f"{source.place} has no images: {WHAT_IT_MAY_BE}")
    return source if labels is None else labelled(source, labels)


def _open(
    data: Any, columns: dict[str, str | None], folder_labels: bool | Literal["auto"]
) -> Source:
    given = {name: value for name, value in columns.items() if value is not None}
    if isinstance(data, Source):
        _refuse(given, "a Source")
        return data
    if isinstance(data, (np.ndarray, Tensor)):
        _refuse(given, "an array")
        return ArraySource(data)
    if type(data).__module__.split(".")[0] == "datasets":
        return HuggingFaceSource(data, **columns)
    if isinstance(data, (str, Path)):
        return _open_path(str(data), columns, given, folder_labels)
    if isinstance(data, Sequence) and data and all(isinstance(d, (str, Path)) for d in data):
        files = [Path(item).expanduser() for item in data]
        wrong = [path for path in files if path.suffix.lower() != ".parquet" or not path.is_file()]
        if wrong:
            raise ValueError(f"data has {str(wrong[0])!r}: several files have to be Parquet files")
        return ParquetSource(files, **columns)
    raise ValueError(f"data is a {type(data).__name__}: {WHAT_IT_MAY_BE}")


def _open_path(
    data: str,
    columns: dict[str, str | None],
    given: dict[str, str],
    folder_labels: bool | Literal["auto"],
) -> Source:
    name, _, split = data.partition(":")
    if name in BUILT_IN:
        _refuse(given, data)
        if split not in ("", "train", "test"):
            raise ValueError(f"data is {data!r}: give {name!r} or '{name}:test'")
        return BUILT_IN[name]("test" if split == "test" else "train")
    path = Path(data).expanduser()
    if path.is_dir():
        return _open_folder(path, columns, given, folder_labels)
    if path.is_file():
        suffix = path.suffix.lower()
        if suffix in ARRAY_FILES:
            _refuse({k: v for k, v in given.items() if k == "key_column"}, data)
            return open_array_file(
                path, image_column=columns["image_column"], label_column=columns["label_column"]
            )
        if suffix == ".parquet":
            return ParquetSource(path, **columns)
        raise ValueError(f"data is {data!r}, a file of no kind that is read here: {WHAT_IT_MAY_BE}")
    matches = sorted(glob.glob(str(path))) if glob.has_magic(data) else []
    if matches:
        if not all(match.lower().endswith(".parquet") for match in matches):
            raise ValueError(f"data is {data!r}: a pattern has to match Parquet files only")
        return ParquetSource(matches, place=data, **columns)
    raise ValueError(f"data is {data!r}, which is not there: {WHAT_IT_MAY_BE}")


def _open_folder(
    path: Path,
    columns: dict[str, str | None],
    given: dict[str, str],
    folder_labels: bool | Literal["auto"],
) -> Source:
    if is_saved_dataset(path):
        return HuggingFaceSource(path, **columns)
    files = shards(path)
    if files:
        return ParquetSource(files, place=str(path), **columns)
    _refuse(given, f"a folder of images ({path})")
    return FolderSource(path, folder_labels=folder_labels)


def _refuse(given: Mapping[str, str], what: str) -> None:
    for name, value in given.items():
        raise ValueError(f"{name} is {value!r}, and {what} has no columns: leave it out")
