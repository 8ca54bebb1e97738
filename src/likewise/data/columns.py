"""Which column holds the images, and which the labels: by Hugging Face's notes, type and name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likewise.data.array_files import LABEL_NAMES
from likewise.data.keys import UNKNOWN, Labels
from likewise.data.labels import class_indices

if TYPE_CHECKING:
    import pyarrow as pa

IMAGE_NAMES = ("image", "img", "images", "picture", "photo")
"""Which name decides where several columns could be the image."""


@dataclass(frozen=True)
class Columns:
    """The columns that a source reads.

    image: the column of encoded images.
    nested: whether it holds {bytes, path} rather than bytes.
    label: the column of labels, or None.
    class_names: names that the file itself gives to the labels 0, 1, ...
    perhaps: whether the label is a column of floats, which are classes only where all are whole.
    """

    image: str
    nested: bool
    label: str | None
    class_names: list[str] | None
    perhaps: bool = False


def find_columns(
    schema: pa.Schema, place: str, *, image_column: str | None, label_column: str | None
) -> Columns:
    """The image and label columns of a table.

    Images are what Hugging Face's notes in the file call an Image, else a column of {bytes, path},
    else a column of bytes; the label is what they call a ClassLabel, else a column of text or
    integers with a usual name, else one of floats (pandas writes integers so where some are
    missing), which `labels_of` takes for classes where all are whole. Where several would do, the
    name decides, and where it does not, an error lists them. ``label_column="none"`` reads no
    labels.
    """
    from pyarrow.types import is_floating

    features = _features(schema)
    image = _image_column(schema, features, place, image_column)
    label = _label_column(schema, features, place, label_column)
    names = features.get(label or "", {}).get("names") if label else None
    if names is not None and not isinstance(names, list):  # older files: {"0": "cat", ...}
        names = [names[str(i)] for i in range(len(names))]
    perhaps = (
        label is not None
        and label_column is None
        and names is None
        and is_floating(schema.field(label).type)
    )
    return Columns(image, _is_nested(schema.field(image).type), label, names, perhaps)


def labels_of(values: list[Any], columns: Columns) -> tuple[Labels, list[str]] | None:
    """Class indices and names of the label column; the file's own names go before those found.

    None where there is no such column, or where its floats are measurements and no classes.

    >>> columns = Columns("image", False, "label", None, perhaps=True)
    >>> labels_of([1.0, None, 0.0], columns)
    (array([ 1, -1,  0]), ['0', '1'])
    >>> labels_of([1.5, None, 0.0], columns)
    """
    if columns.label is None or (columns.perhaps and not _are_whole(values)):
        return None
    try:
        labels, found = class_indices(values)
    except ValueError as error:
        raise ValueError(f"column {columns.label!r}: {error}") from None
    names = columns.class_names
    if names is None:
        return labels, found
    if len(found) > len(names) or not all(name.isdecimal() for name in found):
        raise ValueError(
            f"column {columns.label!r} has labels outside of its {len(names)} class names"
        )
    return labels, list(names)


def _are_whole(values: list[Any]) -> bool:
    known = [float(value) for value in values if value is not None and value == value]  # no NaN
    return bool(known) and all(value.is_integer() and value >= UNKNOWN for value in known)


def has_images(schema: pa.Schema) -> bool:
    """Whether a table has a column that may hold encoded images."""
    return any(_is_nested(field.type) or _is_bytes(field.type) for field in schema)


def _features(schema: pa.Schema) -> dict[str, dict[str, Any]]:
    """What `datasets` notes of each column: {"label": {"_type": "ClassLabel", "names": [...]}}."""
    notes = (schema.metadata or {}).get(b"huggingface")
    if notes is None:
        return {}
    try:
        features = json.loads(notes)["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {name: value for name, value in features.items() if isinstance(value, dict)}


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_nested(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        return False
    fields = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
    return "bytes" in fields and _is_bytes(fields["bytes"])


def _image_column(
    schema: pa.Schema, features: dict[str, dict[str, Any]], place: str, given: str | None
) -> str:
    usable = [field.name for field in schema if _is_nested(field.type) or _is_bytes(field.type)]
    if given is not None:
        if given in usable:
            return given
        why = "holds no image bytes" if given in schema.names else "is no column"
        raise ValueError(
            f"image_column is {given!r}, which {why} of {place}: columns with bytes are "
            f"{', '.join(usable) or 'none'}"
        )
    noted = [name for name in usable if features.get(name, {}).get("_type") == "Image"]
    nested = [name for name in usable if _is_nested(schema.field(name).type)]
    candidates = noted or nested or usable
    if not candidates:
        raise ValueError(
            f"{place} has no column of encoded images, only {', '.join(schema.names) or 'none'}: "
            "give one of bytes, or of {bytes, path}"
        )
    return _one(candidates, IMAGE_NAMES, place, "image_column")


def _label_column(
    schema: pa.Schema, features: dict[str, dict[str, Any]], place: str, given: str | None
) -> str | None:
    from pyarrow.types import is_floating

    if given is not None:
        if given in schema.names:
            return given
        if given == "none":
            return None
        raise ValueError(
            f"label_column is {given!r}, which is no column of {place}: it has "
            f"{', '.join(schema.names)}"
        )
    noted = [name for name, note in features.items() if note.get("_type") == "ClassLabel"]
    noted = [name for name in noted if name in schema.names]
    usual = [field for field in schema if field.name in LABEL_NAMES]
    named = [field.name for field in usual if _is_class(field.type)]
    floats = [field.name for field in usual if is_floating(field.type)]
    candidates = noted or named or floats
    return _one(candidates, LABEL_NAMES, place, "label_column") if candidates else None


def _is_class(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _is_class(kind.value_type)
    return bool(
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
    )


def _one(candidates: list[str], names: tuple[str, ...], place: str, argument: str) -> str:
    if len(candidates) == 1:
        return candidates[0]
    for name in names:
        if name in candidates:
            return name
    remedy = " (or 'none')" if argument == "label_column" else ""
    raise ValueError(
        f"{place} has {len(candidates)} columns that may be meant ({', '.join(candidates)}): name "
        f"one as {argument}{remedy}"
    )
