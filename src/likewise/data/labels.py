"""Labels by key: from values, from a CSV file, or from a mapping."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TextIO, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from likewise.data.keys import UNKNOWN, Labels
from likewise.data.source import Source

SourceKind = TypeVar("SourceKind", bound=Source)

UNKNOWN_TEXTS = frozenset({"", "-1", "-1.0", "nan", "NaN", "None"})
"""What a table holds where the program that wrote it knew no label; "none" may well be a class."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""What may stand between the columns of a label file, in words."""


def natural_order(text: str) -> tuple[Any, ...]:
    """A sorting key under which "img2" comes before "img10", folder by folder.

    >>> sorted(["img10.png", "b/x.png", "img2.png"], key=natural_order)
    ['b/x.png', 'img2.png', 'img10.png']
    """
    parts = text.split("/")
    split = tuple(
        tuple(
            (0, int(piece), "") if piece.isdecimal() else (1, 0, piece.casefold())
            for piece in re.split(r"([0-9]+)", part)
            if piece
        )
        for part in parts
    )
    return split, text  # the text itself decides between "a1" and "a01"


def class_indices(values: Iterable[Any]) -> tuple[Labels, list[str]]:
    """Class indices and sorted class names of values; None, NaN, "" and -1 are unknown.

    So are the texts "-1", "nan", "NaN" and "None", which is how tables write these. Integers from 0
    on are their own index (a test set that lacks class 3 counts as the training set does); all else
    counts along the sorted names.

    >>> class_indices(["dog", None, "cat"])
    (array([ 1, -1,  0]), ['cat', 'dog'])
    >>> class_indices([2, 0, -1])
    (array([ 2,  0, -1]), ['0', '1', '2'])
    >>> class_indices(["cat", "nan", "-1"])
    (array([ 0, -1, -1]), ['cat'])
    """
    known = [_plain(value) for value in values]
    integers = [value for value in known if isinstance(value, int)]
    given = [value for value in known if value is not None]
    if given and len(integers) == len(given) and max(integers) < max(1000, len(known)):
        top = max(integers)
        labels = np.array([UNKNOWN if value is None else value for value in known], dtype=np.int64)
        return labels, [str(i) for i in range(top + 1)]
    return named_indices([None if value is None else str(value) for value in known])


def named_indices(texts: Sequence[str | None]) -> tuple[Labels, list[str]]:
    """Class indices and sorted class names of texts, each of which is a class; None is unknown.

    >>> named_indices(["dog", None, "-1"])
    (array([ 1, -1,  0]), ['-1', 'dog'])
    """
    names = sorted({text for text in texts if text is not None}, key=natural_order)
    places = {name: place for place, name in enumerate(names)}
    indices = [UNKNOWN if text is None else places[text] for text in texts]
    return np.array(indices, dtype=np.int64), names


def _plain(value: Any) -> int | str | None:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        if value < UNKNOWN:
            raise ValueError(f"label {value} is negative: give classes from 0 on, -1 for unknown")
        return None if value == UNKNOWN else int(value)
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return None
        if not float(value).is_integer():
            raise ValueError(f"label {value} is a fraction: labels are classes (text or integers)")
        return _plain(int(value))
    if value is None:
        return None
    text = (value.decode() if isinstance(value, bytes) else str(value)).strip()
    return None if text in UNKNOWN_TEXTS else text


def read_label_file(path: Path | str) -> dict[str, str]:
    """Labels by key from a CSV file whose header names the columns `key` and `label`.

    Commas, semicolons or tabs stand between the columns, as the header has them. Other columns are
    ignored, a key may be repeated only with the same label, and "" is an unknown label (in the
    file an empty one, or -1, nan, NaN or None).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("key;label\\na.png;cat\\nb.png;-1\\n")
    >>> read_label_file(path)
    {'a.png': 'cat', 'b.png': ''}
    """
    if not isinstance(path, (str, Path)):
        raise ValueError(f"labels is a {type(path).__name__}: give the path of a CSV file")
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"labels is {str(path)!r}: no such file; give a CSV file (key,label)")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator, header = _header(file, path)
            file.seek(0)
            rows = csv.reader(file, delimiter=separator)
            next(rows)
            return _by_key(rows, header.index("key"), header.index("label"), path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}): save it as UTF-8") from None
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file ({error})") from None


def _header(file: TextIO, path: Path) -> tuple[str, list[str]]:
    """What stands between the columns, and the names of these: only a header leaves no doubt."""
    fitting = {}
    for separator in SEPARATORS:
        file.seek(0)
        names = next(csv.reader(file, delimiter=separator), [])
        header = [name.strip().lower() for name in names]
        if "key" in header and "label" in header:
            fitting[separator] = header
    if len(fitting) == 1:
        return next(iter(fitting.items()))
    file.seek(0)
    begins = f"{path} begins with {file.readline().strip() or 'nothing'!r}"
    if fitting:
        words = " and by ".join(SEPARATORS[separator] for separator in fitting)
        raise ValueError(f"{begins}, which names key and label by {words}: leave one of these")
    raise ValueError(
        f"{begins}: its first line has to name the columns key,label, with commas, semicolons or "
        "tabs between them"
    )


def _by_key(rows: Iterable[list[str]], key: int, label: int, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, row in enumerate(rows, start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) <= max(key, label):
            raise ValueError(f"{path}, line {number}, is {','.join(row)!r}: a column is missing")
        name, value = row[key].strip(), row[label].strip()
        value = "" if value in UNKNOWN_TEXTS else value
        if found.setdefault(name, value) != value:
            raise ValueError(
                f"{path} has two labels for {name!r}, {found[name]!r} and {value!r}: keep one"
            )
    if not any(found.values()):
        raise ValueError(f"{path} has no label: give at least one line key,label")
    return found


def labelled(
    source: SourceKind, labels: Path | str | Mapping[str, Any] | ArrayLike | Tensor
) -> SourceKind:
    """A source with labels from a CSV file, a mapping from keys, or one value for every image.

    Keys match the source's keys, or, where only one image has that file name, the name alone.
    Images without a label are unknown (-1), and labels without an image are counted in
    `unmatched`; that none matches is an error.
    """
    if isinstance(labels, (str, Path)):
        given: Mapping[str, Any] = read_label_file(labels)
        origin = str(labels)
    elif isinstance(labels, Mapping):
        given, origin = labels, "labels"
    else:
        return _labelled_by_row(source, labels)
    if not given:
        raise ValueError(f"{origin} is empty: give at least one label")
    values, unmatched = _matched(source, given, origin)
    other = source.with_labels(*class_indices(values))
    other.unmatched = unmatched
    return other


def _labelled_by_row(source: SourceKind, labels: ArrayLike | Tensor) -> SourceKind:
    values = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if values.shape != (len(source),):
        raise ValueError(
            f"labels have shape {values.shape}: give one for each of {len(source):,} images"
        )
    indices, names = class_indices(values.tolist())
    numbered = values.dtype.kind in "iuf"
    if numbered and source.class_names is not None and len(names) <= len(source.class_names):
        names = source.class_names  # the numbers are indices of the classes that are there
    return source.with_labels(indices, names)


def _matched(source: Source, given: Mapping[str, Any], origin: str) -> tuple[list[Any], int]:
    """The value of each image (None where there is none), and how many keys match no image."""
    positions = {key: index for index, key in enumerate(source.keys)}
    by_name = _unique_names(source.keys)
    values: list[Any] = [None] * len(source)
    taken: dict[int, str] = {}
    unmatched = 0
    for key, value in given.items():
        path = _as_key(str(key))
        index = positions.get(str(key), positions.get(path, by_name.get(path)))
        if index is None:
            unmatched += 1
        elif index in taken and values[index] != value:
            raise ValueError(
                f"{origin} has two labels for {source.keys[index]!r}, as {taken[index]!r} and as "
                f"{key!r}: keep one"
            )
        else:
            values[index], taken[index] = value, str(key)
    if not taken:
        raise ValueError(
            f"none of the {len(given):,} keys of {origin} matches an image: it has "
            f"{next(iter(given))!r}, where {source.place} has {_example(source.keys)}"
        )
    return values, unmatched


def _as_key(text: str) -> str:
    return str(PurePosixPath(text.replace("\\", "/")))


def _unique_names(keys: Sequence[str]) -> dict[str, int]:
    """Positions by file name, of the names that one image only has."""
    positions: dict[str, int] = {}
    repeated = set()
    for index, key in enumerate(keys):
        name = key.rsplit("/", 1)[-1]
        if positions.setdefault(name, index) != index:
            repeated.add(name)
    return {name: index for name, index in positions.items() if name not in repeated}


def _example(keys: Sequence[str]) -> str:
    return repr(keys[0]) if keys else "no image"
