"""Which column holds the images, and which the labels: by Hugging Face's notes, type and name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likewise.data.array_files import LABEL_NAMES
from likewise.data.keys import Labels
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
    """

    image: str
    nested: bool
    label: str | None
    class_names: list[str] | None


def find_columns(
    schema: pa.Schema, place: str, *, image_column: str | None, label_column: str | None
) -> Columns:
    """The image and label columns of a table.

    Images are what Hugging Face's notes in the file call an Image, else a column of {bytes, path},
    else a column of bytes; the label is what they call a ClassLabel, else a column of text or
    integers with a usual name. Where several would do, the name decides, and where it does not, an
    error lists them. ``label_column="none"`` reads no labels.
    """
    features = _features(schema)
    image = _image_column(schema, features, place, image_column)
    label = _label_column(schema, features, place, label_column)
    names = features.get(label or "", {}).get("names") if label else None
    if names is not None and not isinstance(names, list):  # older files: {"0": "cat", ...}
        names = [names[str(i)] for i in range(len(names))]
    return Columns(image, _is_nested(schema.field(image).type), label, names)


def labels_of(
    values: list[Any], class_names: list[str] | None, column: str
) -> tuple[Labels, list[str]]:
    """Class indices and names of a column; the file's own names go before those found."""
    try:
        labels, found = class_indices(values)
    except ValueError as error:
        raise ValueError(f"column {column!r}: {error}") from None
    if class_names is None:
        return labels, found
    if len(found) > len(class_names) or not all(name.isdecimal() for name in found):
        raise ValueError(
            f"column {column!r} has labels outside of its {len(class_names)} class names"
        )
    return labels, list(class_names)


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
    named = [field.name for field in schema if field.name in LABEL_NAMES and _is_class(field.type)]
    candidates = noted or named
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
