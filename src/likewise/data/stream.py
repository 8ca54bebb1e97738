"""Images that are decoded batch by batch, in worker processes: for more than memory holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from likewise.data.images import check_enough
from likewise.data.keys import Keyed
from likewise.data.resizing import DETAIL, canvas, check_size
from likewise.data.source import BrokenImage, Source

TRIED = 16
"""Images, spread over the source, that are read at the start: one of them has to be readable."""

IN_A_ROW = 1000
"""Broken neighbours after which the search for a readable image is given up."""


Batch: TypeAlias = tuple[Tensor, Tensor]
"""Pixels, and the indices of the images that they show."""


class UnreadableError(ValueError):
    """No image could be read, where one was wanted."""


class StreamedImages(Keyed, Dataset[Batch]):
    """A dataset for torch's DataLoader, whose workers only decode and resize.

    Ask for a list of indices, and get pixels, uint8 (n, 3, size, size), and the indices that they
    show, int64 (n,). These are the indices asked for, except where an image is broken: the next
    readable one takes its place, with its own index, so that labels stay with their images.

    >>> from torch.utils.data import DataLoader
    >>> from likewise.data import open_source
    >>> images = StreamedImages(open_source("digits:test"), 32)
    >>> batches = DataLoader(images, sampler=[[0, 5], [7, 2]], batch_size=None)
    >>> [(pixels.shape[0], indices.tolist()) for pixels, indices in batches]
    [(2, [0, 5]), (2, [7, 2])]
    """

    def __init__(self, source: Source, size: int, *, at_least: int = 2) -> None:
        check_size(size)
        super().__init__(source.keys, source.labels, source.class_names)
        check_enough(len(source), at_least, source, {})
        self.source = source
        self.size = size
        # Shared with the workers, so that what they find is counted here.
        self._broken = torch.zeros(len(source), dtype=torch.uint8).share_memory_()
        self._check_some()

    def __getitem__(self, indices: int | Sequence[int] | NDArray[np.int64] | Tensor) -> Batch:
        """Pixels and the indices that they show; of one index, (3, size, size) and a scalar."""
        if isinstance(indices, int):
            pixels, shown = self._whole(indices)
            return pixels, torch.tensor(shown)
        found = [self._whole(int(index)) for index in indices]
        pixels = torch.stack([image for image, _ in found])
        return pixels, torch.tensor([index for _, index in found])

    @property
    def broken_count(self) -> int:
        """How many images have turned out broken so far, in any worker."""
        return int(self._broken.sum())

    @property
    def broken(self) -> dict[str, str]:
        """Why each broken image that was met so far cannot be read, by key."""
        reasons = {}
        for index in self._broken.nonzero()[:, 0].tolist():
            try:
                self.source.read(index)
                reasons[self.keys[index]] = "could not be read at first, and can be by now"
            except BrokenImage as error:
                reasons[error.key] = error.reason
        return reasons

    def without_repeats(
        self, indices: Sequence[int], places: range, turn: int = 0, turns: int = 1
    ) -> Batch:
        """Some of a batch's images, such that no image is in the batch twice.

        What takes the place of a broken one is in nobody's part of the batch, and is grey where
        the batch holds all that can be read: the index that stays is then that of a broken image.
        Where none of the images can be read, that is an error.

        Args:
            indices: the whole batch.
            places: in it, of the images that are wanted.
            turn, turns: who asks, of how many who have a part each: they do not choose the same.

        Returns:
            pixels of these places, and the indices that they show.
        """
        taken = set(indices)
        pixels, shown = [], []
        unreadable: list[UnreadableError] = []
        for place in places:
            index = int(indices[place])

            def may_be(other: int, index: int = index) -> bool:
                return other == index or (other % turns == turn and other not in taken)

            try:
                image, at = self._whole(index, may_be)
            except UnreadableError as error:
                unreadable.append(error)
                image, at = torch.full((3, self.size, self.size), 128, dtype=torch.uint8), index
            taken.add(at)
            pixels.append(image)
            shown.append(at)
        if len(unreadable) == len(places):
            raise unreadable[0]  # a disk that is gone, for example
        return torch.stack(pixels), torch.tensor(shown)

    def _whole(
        self, index: int, may_be: Callable[[int], bool] = lambda _: True
    ) -> tuple[Tensor, int]:
        """The canvas at an index, or the next one that is not broken, and its index."""
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"index {index} is outside of {n} images")
        met = 0
        for step in range(n):
            place = (index + step) % n
            if not may_be(place):
                continue
            if not self._broken[place]:
                try:
                    image = self.source.read(place, enough=DETAIL * self.size)
                    return canvas(image, self.size), place
                except BrokenImage:
                    self._broken[place] = 1
            met += 1
            if met == IN_A_ROW:
                break
        raise UnreadableError(
            f"{met:,} images in a row cannot be read, from {self.keys[index]!r} on"
        )

    def _check_some(self) -> None:
        n = len(self)
        broken = {}
        for index in np.unique(np.linspace(0, n - 1, TRIED).astype(int)).tolist():
            try:
                self.source.read(index, enough=DETAIL * self.size)
                return
            except BrokenImage as error:
                broken[error.key] = error.reason
        check_enough(0, 1, self.source, broken)
