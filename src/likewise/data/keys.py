"""Items by key: what every collection of images shares."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from typing_extensions import Self

Labels: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = "Sequence[int] | NDArray[Any] | Tensor | slice"

UNKNOWN = -1
"""The label of an item of which no class is known."""


class Keyed:
    """An ordered collection of items, each of which has a stable key and perhaps a label.

    Labels, answers and embeddings refer to an item by its key, never by its position: to add or
    remove a file shifts nothing.

    keys: one text per item; unique.
    labels: class index of every item, -1 where unknown; None where there are no labels.
    class_names: what the class indices mean.

    >>> items = Keyed(["a.jpg", "b.jpg"], [1, -1], ["cat", "dog"])
    >>> items.index_of(["b.jpg", "a.jpg"])
    array([1, 0])
    >>> items.label_name("a.jpg")
    'dog'
    """

    keys: list[str]
    labels: Labels | None
    class_names: list[str] | None

    def __init__(
        self,
        keys: Iterable[str],
        labels: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self.keys = list(keys)
        self._positions: dict[str, int] | None = None
        if len(set(self.keys)) < len(self.keys):
            raise ValueError(f"{_first_repeated(self.keys)!r} is the key of two items: keys differ")
        self.labels, self.class_names = checked_labels(len(self.keys), labels, class_names)

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def index_of(self, keys: str) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def index_of(self, keys: Iterable[str]) -> NDArray[np.int64]: ...
    def index_of(self, keys: str | Iterable[str]) -> int | NDArray[np.int64]:
        """The position of a key, or of each of several; a key that is not there is an error."""
        if self._positions is None:
            self._positions = {key: index for index, key in enumerate(self.keys)}
        wanted = [keys] if isinstance(keys, str) else list(keys)
        missing = [key for key in wanted if key not in self._positions]
        if missing:
            example = f"; keys look like {self.keys[0]!r}" if self.keys else ""
            raise ValueError(
                f"{len(missing):,} of {len(wanted):,} keys are not here, {missing[0]!r} "
                f"for one{example}"
            )
        if isinstance(keys, str):
            return self._positions[keys]
        return np.array([self._positions[key] for key in wanted], dtype=np.int64)

    def label_name(self, key: str) -> str | None:
        """The name of an item's class, or None where it is unknown."""
        if self.labels is None or self.class_names is None:
            return None
        label = self.labels[self.index_of(key)]
        return None if label == UNKNOWN else self.class_names[label]

    def fingerprint(self) -> str:
        """Sha256 of the keys in their order: a resumed run refuses other data."""
        digest = hashlib.sha256()
        for key in self.keys:
            digest.update(key.encode() + b"\0")
        return digest.hexdigest()

    def with_labels(self, labels: ArrayLike | None, class_names: Sequence[str] | None) -> Self:
        """The same items with other labels (class indices, -1 unknown); None removes them."""
        other = self._copy()
        other.labels, other.class_names = checked_labels(len(self), labels, class_names)
        return other

    def in_classes(self, class_names: Sequence[str]) -> Self:
        """The same labels, counted along other class names: those that an encoder was trained on.

        A test set may lack a class, or be given in another order; names say what belongs together.

        >>> items = Keyed(["a", "b"], [0, 1], ["cat", "dog"])
        >>> items.in_classes(["ant", "cat", "dog"]).labels
        array([1, 2])
        """
        if self.labels is None or self.class_names is None:
            raise ValueError("there are no labels here: give a source that has some")
        places = {name: place for place, name in enumerate(class_names)}
        used = [self.class_names[label] for label in np.unique(self.labels[self.labels >= 0])]
        strange = [name for name in used if name not in places]
        if strange:
            raise ValueError(
                f"class {strange[0]!r} is not among the {len(places)} class names given "
                f"({_few(list(class_names))}): give labels of the same classes"
            )
        table = np.array([places.get(name, UNKNOWN) for name in self.class_names] + [UNKNOWN])
        return self.with_labels(table[self.labels], class_names)

    def _copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def _select(self, indices: Indices) -> tuple[Self, NDArray[np.int64]]:
        """A copy with the keys and labels at `indices`, and the indices as positions >= 0."""
        positions = positions_of(indices, len(self))
        other = self._copy()
        other.keys = [self.keys[i] for i in positions]
        other._positions = None
        if len(np.unique(positions)) < len(positions):
            repeated = _first_repeated(other.keys)
            raise ValueError(f"indices name {repeated!r} twice: a subset holds an item once")
        if self.labels is not None:
            other.labels = self.labels[positions]
        return other, positions

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_positions": None}


def positions_of(indices: Indices, n: int) -> NDArray[np.int64]:
    """Indices of any kind (negative, a mask, a slice) as positions 0 ... n - 1.

    >>> positions_of([-1, 0], 3), positions_of(slice(1, None), 3)
    (array([2, 0]), array([1, 2]))
    """
    if isinstance(indices, slice):
        return np.arange(n)[indices]
    if isinstance(indices, Tensor):
        indices = indices.cpu().numpy()
    array = np.asarray(indices)
    if array.ndim != 1:
        raise ValueError(f"indices have shape {array.shape}: give one row of them")
    if array.dtype == bool:
        if len(array) != n:
            raise ValueError(f"indices are a mask of {len(array)} for {n} items: give {n}")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"indices are of type {array.dtype}: give integers, a mask or a slice")
    if array.min() < -n or array.max() >= n:
        raise IndexError(f"index {array[(array < -n) | (array >= n)][0]} is outside of {n} items")
    return np.where(array < 0, array + n, array).astype(np.int64)


def checked_labels(
    n: int, labels: ArrayLike | None, class_names: Sequence[str] | None
) -> tuple[Labels | None, list[str] | None]:
    """Labels as int64 with their names; names are "0", "1", ... where none are given."""
    if labels is None:
        return None, None
    array = np.asarray(labels)
    if array.shape != (n,):
        raise ValueError(f"labels have shape {array.shape}: give one for each of {n:,} images")
    if array.dtype.kind not in "iub":
        raise ValueError(
            f"labels are of type {array.dtype}: give class indices (integers), -1 where unknown"
        )
    array = array.astype(np.int64)
    low, high = (int(array.min()), int(array.max())) if n else (UNKNOWN, UNKNOWN)
    names = [str(i) for i in range(high + 1)] if class_names is None else list(class_names)
    if low < UNKNOWN or high >= len(names):
        wrong = low if low < UNKNOWN else high
        raise ValueError(
            f"label {wrong} is none of {len(names)} classes: give 0 to {len(names) - 1}, "
            "or -1 where unknown"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"class name {_first_repeated(names)!r} is given twice: names differ")
    return array, names


def _first_repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("nothing is repeated")


def _few(names: list[str], show: int = 5) -> str:
    return ", ".join(names[:show]) + (", ..." if len(names) > show else "")
