"""Images that are an array already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from likewise.data.source import Source

ROWS_AT_A_TIME = 4096
"""Rows of a float array that are checked at once: it may be larger than memory."""


class ArraySource(Source):
    """Images in an array; a key is the number of the row.

    array: (N, H, W), (N, H, W, 3) or (N, 3, H, W) (also with one channel), uint8 or float in
    [0, 1], NumPy or torch. It is kept as it is.
    file: the .npy file that the array is a memory map of, which worker processes map again.

    >>> source = ArraySource(np.zeros((5, 8, 6), np.uint8), labels=[0, 1, 1, -1, 0])
    >>> source.read(0).shape, source.keys[:2], source.description
    (torch.Size([3, 8, 6]), ['0', '1'], '5 images in an array (2 classes, 4 labelled)')
    """

    def __init__(
        self,
        array: NDArray[Any] | Tensor,
        labels: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        *,
        keys: Iterable[str] | None = None,
        place: str = "an array",
        file: Path | None = None,
    ) -> None:
        if isinstance(array, Tensor):
            array = array.detach().cpu()
            array = (array.float() if array.dtype == torch.bfloat16 else array).numpy()
        self._channels = _channel_axis(array, place)
        _check_values(array, place)
        self._array = array
        self._file = file
        names = [str(row) for row in range(len(array))] if keys is None else list(keys)
        if len(names) != len(array):
            raise ValueError(f"keys are {len(names):,} for {len(array):,} images: give one each")
        super().__init__(names, labels, class_names, place=place)

    def _read(self, row: int, enough: int) -> Tensor:
        image = np.asarray(self._array[row])
        if image.dtype != np.uint8:
            image = np.round(image.astype(np.float32) * 255).astype(np.uint8)
        if self._channels is None:
            image = image[None]
        elif self._channels == 3:
            image = image.transpose(2, 0, 1)
        if image.shape[0] == 1:
            image = np.repeat(image, 3, axis=0)
        return torch.from_numpy(np.array(image))  # a copy: the array is the user's

    def __getstate__(self) -> dict[str, Any]:
        # A worker maps the file itself: pickled, a memory map is a copy of all of it.
        hidden = {} if self._file is None else {"_array": None}
        return {**super().__getstate__(), **hidden}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._file is not None:
            self._array = np.load(self._file, mmap_mode="r")


def _channel_axis(array: NDArray[Any], place: str) -> int | None:
    """Where the channels are: axis 1 or 3, or None where every image is (H, W)."""
    shape = array.shape
    if array.ndim == 3 and 0 not in shape[1:]:
        return None
    if array.ndim == 4 and 0 not in shape[1:]:
        first, last = shape[1] in (1, 3), shape[3] in (1, 3)
        if first and last:
            raise ValueError(
                f"{place} has shape {shape}, which may be (N, 3, H, W) or (N, H, W, 3): give "
                "larger images"
            )
        if first or last:
            return 1 if first else 3
    raise ValueError(
        f"{place} has shape {shape}: give images as (N, H, W), (N, H, W, 3) or (N, 3, H, W)"
    )


def _check_values(array: NDArray[Any], place: str) -> None:
    if array.dtype == np.uint8:
        return
    if array.dtype.kind != "f":
        raise ValueError(f"{place} holds {array.dtype}: give uint8 (0 to 255) or floats in [0, 1]")
    for start in range(0, len(array), ROWS_AT_A_TIME):
        part = array[start : start + ROWS_AT_A_TIME]
        low, high = float(part.min()), float(part.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"{place} holds NaN or infinity: give floats in [0, 1]")
        if low < 0 or high > 1:
            remedy = "(x + 1) / 2" if -1 <= low < 0 and high <= 1 else "x / 255 or x.astype(uint8)"
            raise ValueError(
                f"{place} holds floats from {low:g} to {high:g}: give floats in [0, 1], perhaps "
                f"{remedy}"
            )
