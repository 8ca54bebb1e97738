"""Arrays of images in files: .npy, .npz and .pt."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.data.arrays import ArraySource
from likewise.data.labels import class_indices

LABEL_NAMES = ("label", "labels", "y", "target", "targets", "class", "classes")
"""Names under which labels are looked for, in this order."""


UNREADABLE = (
    *(ValueError, EOFError, RuntimeError, OSError, KeyError),
    *(pickle.UnpicklingError, zipfile.BadZipFile),
)
"""What NumPy and torch raise where a file is damaged, or holds Python objects."""


def open_array_file(
    path: Path, *, image_column: str | None = None, label_column: str | None = None
) -> ArraySource:
    """The images in a .npy, .npz or .pt file, with their labels where it holds some.

    A .npz file, and a .pt file with a dictionary, hold several arrays: the images are the only one
    with three or four axes (or `image_column`), labels the one named label, labels, y, target(s)
    or class(es) (or `label_column`). A .pt file with a pair holds images and labels.
    """
    arrays = _contents(path)
    if isinstance(arrays, Mapping):
        images, values = _choose(arrays, path, image_column, label_column)
    elif image_column or (label_column or "none") != "none":
        raise ValueError(
            f"image_column or label_column is given, and {path} has no names: leave them out"
        )
    elif isinstance(arrays, (tuple, list)):
        if len(arrays) != 2:
            raise ValueError(f"{path} holds {len(arrays)} things: give (images, labels)")
        images, values = arrays
    else:
        images, values = arrays, None
    images = _as_array(images, path)
    if label_column == "none":
        values = None
    mapped = path if isinstance(images, np.memmap) else None
    source = ArraySource(images, place=str(path), file=mapped)
    if values is None:
        return source
    labels = _as_array(values, path)
    if labels.shape != (len(source),):
        raise ValueError(
            f"{path} has labels of shape {labels.shape} for {len(source):,} images: give one each"
        )
    return source.with_labels(*class_indices(labels.tolist()))


def _contents(path: Path) -> Any:
    try:
        if path.suffix.lower() in (".pt", ".pth"):
            return torch.load(path, map_location="cpu", weights_only=True)
        if path.suffix.lower() == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except UNREADABLE as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"{path} cannot be read ({reason}): give arrays of numbers") from error


def _choose(
    arrays: Mapping[Any, Any], path: Path, image_name: str | None, label_name: str | None
) -> tuple[Any, Any]:
    names = {str(name): value for name, value in arrays.items()}
    for argument, name in (("image_column", image_name), ("label_column", label_name)):
        if name is not None and name != "none" and name not in names:
            raise ValueError(f"{argument} is {name!r}: {path} has {', '.join(names)}")
    if image_name is None:
        fitting = [n for n, v in names.items() if getattr(v, "ndim", 0) in (3, 4)]
        if len(fitting) != 1:
            found = ", ".join(fitting) or "none"
            raise ValueError(
                f"{path} has {len(fitting)} arrays that may be images ({found}, of "
                f"{', '.join(names) or 'nothing'}): name one as image_column"
            )
        image_name = fitting[0]
    if label_name is None:
        label_name = next((name for name in LABEL_NAMES if name in names), None)
    values = None if label_name in (None, "none") else names[str(label_name)]
    return names[image_name], values


def _as_array(value: Any, path: Path) -> np.ndarray:
    if isinstance(value, Tensor):
        value = value.detach()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (list, tuple)):
        return np.asarray(value)
    raise ValueError(f"{path} holds a {type(value).__name__}: give an array of images")
