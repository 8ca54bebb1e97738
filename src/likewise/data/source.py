"""A source: images by stable key, decoded when asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor
from typing_extensions import Self

from likewise.data.keys import UNKNOWN, Indices, Keyed


class BrokenImage(ValueError):  # noqa: N818 (an image, not an event)
    """An image that cannot be read: its key, and why."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


class Source(Keyed, ABC):
    """Images by stable key, each decoded when asked for; it pickles, for worker processes.

    A kind of source says in `_read` how the image in a row of its storage is decoded, and gives
    keys and labels of its rows; a subset keeps the storage and remembers the rows.

    place: where the images are, in words ("photos/").
    unmatched: how many given labels match no image.
    why_no_labels: what speaks against labels that one might expect; "" where nothing does.
    passed_over: how many files hold an image of a kind that is not read, by extension.
    """

    def __init__(
        self,
        keys: Iterable[str],
        labels: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        *,
        place: str,
    ) -> None:
        super().__init__(keys, labels, class_names)
        self.place = place
        self.unmatched = 0
        self.why_no_labels = ""
        self.passed_over: dict[str, int] = {}
        self._rows = np.arange(len(self.keys))

    @abstractmethod
    def _read(self, row: int, enough: int) -> Tensor:
        """The image in a row of the storage, uint8 (3, H, W); any exception means broken."""

    def read(self, index: int, *, enough: int = 0) -> Tensor:
        """One image, uint8 (3, H, W), RGB, upright; raises :class:`BrokenImage`.

        With `enough` > 0 a large JPEG may come at 1/2, 1/4 or 1/8 of its size (libjpeg's own
        scaling, which saves most of the work), with both sides at least `enough` pixels.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is outside of {len(self)} images")
        try:
            return self._read(int(self._rows[index]), enough)
        except Exception as error:  # decoders raise anything: OSError, SyntaxError, struct.error
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BrokenImage(self.keys[index], reason) from error

    def subset(self, indices: Indices) -> Self:
        """The images at `indices` (integers, a mask or a slice), in that order."""
        other, positions = self._select(indices)
        other._rows = self._rows[positions]
        return other

    @property
    def description(self) -> str:
        """In words: "12,034 images in photos/ (3 classes)"."""
        n = len(self)
        text = f"{count(n, 'image')} in {self.place}"
        if self.labels is None or self.class_names is None:
            why = f", since {self.why_no_labels}" if self.why_no_labels else ""
            notes = [f"no labels{why}"]
        else:
            notes = [count(len(self.class_names), "class", "classes")]
            labelled = int((self.labels != UNKNOWN).sum())
            if labelled < n:
                notes.append(f"{labelled:,} labelled")
            if self.unmatched:
                notes.append(f"{count(self.unmatched, 'label')} without an image")
        if self.passed_over:
            kinds = ", ".join(self.passed_over)
            notes.append(f"{count(sum(self.passed_over.values()), 'file')} not read: {kinds}")
        return f"{text} ({', '.join(notes)})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.description}>"


def count(n: int, one: str, several: str | None = None) -> str:
    """How many of something, for a reader.

    >>> count(1, "image"), count(1200, "image")
    ('1 image', '1,200 images')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def left_out(broken: int) -> str:
    """Of images that could not be read, for a reader.

    >>> left_out(1), left_out(1200)
    ('1 broken image is left out', '1,200 broken images are left out')
    """
    return f"{count(broken, 'broken image')} {'is' if broken == 1 else 'are'} left out"
