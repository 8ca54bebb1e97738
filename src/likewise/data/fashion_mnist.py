"""Fashion-MNIST from the files of Debian's package `dataset-fashion-mnist`."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from likewise.data.arrays import ArraySource

FOLDER = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package puts the files; the environment's LIKEWISE_FASHION_MNIST goes before."""

CLASS_NAMES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
FILES = {"train": "train", "test": "t10k"}


def fashion_mnist(
    split: Literal["train", "test"] = "train", *, folder: Path | str | None = None
) -> ArraySource:
    """60,000 (test: 10,000) grey pictures of clothes, 28 x 28, ten classes (Xiao et al. 2017).

    `likewise.open_source("fashion-mnist")` and "fashion-mnist:test" are these. The files are in
    `folder`, in the folder that LIKEWISE_FASHION_MNIST names, or where Debian's package
    `dataset-fashion-mnist` puts them.
    """
    if split not in FILES:
        raise ValueError(f"split is {split!r}: give 'train' or 'test'")
    place = Path(folder or os.environ.get("LIKEWISE_FASHION_MNIST") or FOLDER)
    arrays = []
    for what in ("images-idx3", "labels-idx1"):
        file = place / f"{FILES[split]}-{what}-ubyte.gz"
        if not file.is_file():
            raise ValueError(
                f"{file} is not there: install Debian's package dataset-fashion-mnist, or name the "
                "folder of its files in LIKEWISE_FASHION_MNIST"
            )
        arrays.append(read_idx(file))
    name = "fashion-mnist" + (":test" if split == "test" else "")
    return ArraySource(arrays[0], arrays[1].astype(np.int64), CLASS_NAMES, place=name)


def read_idx(file: Path) -> NDArray[Any]:
    """The bytes of a compressed IDX file: a magic number with the number of axes, the size of
    each, then one byte a value."""
    try:
        content = gzip.decompress(file.read_bytes())
        kind, axes = struct.unpack(">HBB", content[:4])[1:]
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
        if kind != 8:
            raise ValueError(f"values of kind {kind}")
        return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
    except (OSError, EOFError, ValueError, struct.error) as error:
        raise ValueError(f"{file} is no IDX file of bytes: {error}") from None
