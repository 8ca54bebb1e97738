"""The embeddings file: Parquet with the columns key, embedding, and label where it is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BYTES_AT_ONCE = 2**26
"""How much of the rows is written or read at once."""

SCHEMA_KEY = b"likewise"


@dataclass(eq=False)
class Embeddings:
    """Embeddings of items by key.

    Attributes:
        keys: the stable key of every item, each once.
        rows: (n, d) float32, finite.
        labels: (n,) int64 class indices, -1 where unknown; None where nothing is known.
        class_names: the name of each class index; None where classes have no names.
        metadata: anything that JSON can hold (the encoder, the run, ...).

    >>> Embeddings(["a.jpg", "b.jpg"], np.eye(2), labels=[1, -1], class_names=["cat", "dog"])
    Embeddings of 2 items, 2 numbers each, 1 labelled, 2 classes
    """

    keys: list[str]
    rows: NDArray[np.float32]
    labels: NDArray[np.int64] | None = None
    class_names: list[str] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = [str(key) for key in self.keys]
        rows = self.rows
        if hasattr(rows, "detach"):
            rows = rows.detach().cpu().float().numpy()
        self.rows = np.ascontiguousarray(rows, dtype=np.float32)
        _check_rows(self.rows, self.keys)
        if self.labels is not None:
            labels = self.labels.cpu() if hasattr(self.labels, "cpu") else self.labels
            self.labels = np.asarray(labels)
            self._check_labels()
            self.labels = self.labels.astype(np.int64)
        try:
            json.dumps(self.metadata)
        except TypeError as error:
            raise ValueError(f"metadata cannot be written as JSON: {error}") from error

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        text = f"Embeddings of {len(self)} items, {self.rows.shape[1]} numbers each"
        if self.labels is not None:
            text += f", {int((self.labels >= 0).sum())} labelled"
        if self.class_names is not None:
            text += f", {len(self.class_names)} classes"
        return text

    def labels_among(self, class_names: list[str]) -> NDArray[np.int64]:
        """The labels as indices into another list of names; unknown where a name is not in it.

        Two files may list the same classes in another order: compare names, not indices.

        >>> found = Embeddings(["a", "b"], np.eye(2), [0, 1], ["cat", "dog"])
        >>> found.labels_among(["bird", "dog", "cat"]).tolist()
        [2, 1]
        """
        if self.labels is None or self.class_names is None:
            raise ValueError("these embeddings have no named labels: give labels and class_names")
        places = {name: index for index, name in enumerate(class_names)}
        # One more for unknown, which -1 then finds at the end.
        moved = [places.get(name, -1) for name in self.class_names] + [-1]
        return np.array(moved, dtype=np.int64)[self.labels]

    def _check_labels(self) -> None:
        assert self.labels is not None
        if self.labels.dtype.kind not in "iu" or self.labels.shape != (len(self.keys),):
            raise ValueError(
                f"labels have type {self.labels.dtype} and shape {self.labels.shape} for "
                f"{len(self.keys)} keys: give one class index per key, -1 where it is unknown"
            )
        most = np.inf if self.class_names is None else len(self.class_names)
        if len(self.labels) and not -1 <= self.labels.min() <= self.labels.max() < most:
            raise ValueError(
                f"labels go from {self.labels.min()} to {self.labels.max()}: give class indices "
                f"from 0{'' if self.class_names is None else f' to {most - 1}'}, and -1 for unknown"
            )
        if self.class_names is not None and len(set(self.class_names)) < len(self.class_names):
            raise ValueError("class_names hold a name twice: give every class its own name")


def write_embeddings(path: Path | str, embeddings: Embeddings) -> None:
    """Write embeddings to a Parquet file, which is there as a whole or not at all.

    Columns: key (string), embedding (list of float32 of fixed size) and, where there are labels,
    label (the name of the class where classes have names, its index otherwise; null: unknown).
    The names of all classes and the metadata are kept in the schema. Other programs read the file
    as any Parquet file. Rows are written in groups: nothing is held twice.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "embeddings.parquet"
    >>> write_embeddings(path, Embeddings(["a", "b"], np.eye(2), [0, -1], ["cat"]))
    >>> read_embeddings(path)
    Embeddings of 2 items, 2 numbers each, 1 labelled, 1 classes
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likewise.runs.files import write_atomically

    width = embeddings.rows.shape[1]
    fields = [pa.field("key", pa.string()), pa.field("embedding", pa.list_(pa.float32(), width))]
    names = embeddings.class_names
    if embeddings.labels is not None:
        fields.append(pa.field("label", pa.int64() if names is None else pa.string()))
    about = {"class_names": names, "metadata": embeddings.metadata}
    schema = pa.schema(fields, metadata={SCHEMA_KEY: json.dumps(about).encode()})
    with (
        write_atomically(path) as aside,
        # Floating-point numbers hardly repeat: a dictionary of them would only cost time.
        pq.ParquetWriter(aside, schema, use_dictionary=["label"]) as writer,
    ):
        for part in _parts(len(embeddings), width):
            values = pa.array(embeddings.rows[part].reshape(-1))
            columns = [
                pa.array(embeddings.keys[part], pa.string()),
                pa.FixedSizeListArray.from_arrays(values, width),
            ]
            if embeddings.labels is not None:
                labels = embeddings.labels[part]
                known = [
                    None if c < 0 else c if names is None else names[c] for c in labels.tolist()
                ]
                columns.append(pa.array(known, fields[2].type))
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def read_embeddings(path: Path | str) -> Embeddings:
    """Read an embeddings file, Likewise's own or another with the same columns.

    The embedding may be any list of numbers, of one length in all rows. A label is a string (class
    names are then taken from the file's own list, or sorted) or an integer; it may be missing, or
    null. Errors name the column, and the key of the row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is no file: give the path of a Parquet file of embeddings")
    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # it would hold the whole file as well
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is no Parquet file: {error}") from error
    with file:
        schema = file.schema_arrow
        _check_columns(path, schema)
        n = file.metadata.num_rows
        if n == 0:
            raise ValueError(f"{path} has no rows: embed at least one item")
        about = json.loads((schema.metadata or {}).get(SCHEMA_KEY, b"{}"))
        keys: list[str] = []
        rows: NDArray[np.float32] | None = None
        labels: list[Any] = []
        has_labels = "label" in schema.names
        columns = ["key", "embedding", *(["label"] if has_labels else [])]
        for batch in file.iter_batches(_rows_at_once(file), columns=columns):
            part_keys = [str(key) for key in batch.column("key").to_pylist()]
            if batch.column("key").null_count:
                at = len(keys) + batch.column("key").is_null().to_pylist().index(True)
                raise ValueError(f"{path}: row {at} has no key; give every row a key of its own")
            part = _embedding_part(path, batch.column("embedding"), part_keys)
            if rows is None:
                rows = np.empty((n, part.shape[1]), dtype=np.float32)
            if part.shape[1] != rows.shape[1]:
                raise _ragged(path, part_keys[0], part.shape[1], rows.shape[1])
            rows[len(keys) : len(keys) + len(part)] = part
            keys += part_keys
            if has_labels:
                labels += batch.column("label").to_pylist()
    assert rows is not None
    indices, names = _labels(path, labels, about.get("class_names")) if has_labels else (None, None)
    try:
        return Embeddings(keys, rows, indices, names, about.get("metadata", {}))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _parts(n: int, width: int) -> Iterator[slice]:
    size = max(BYTES_AT_ONCE // (4 * width), 1)
    return (slice(start, start + size) for start in range(0, n, size))


def _rows_at_once(file: Any) -> int:
    rows, size = (
        file.metadata.num_rows,
        sum(
            file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)
        ),
    )
    return max(min(rows, BYTES_AT_ONCE * rows // max(size, 1)), 1)


def _check_columns(path: Path, schema: Any) -> None:
    import pyarrow as pa

    for name in ("key", "embedding"):
        if name not in schema.names:
            raise ValueError(
                f"{path} has no column {name!r}, but {', '.join(map(repr, schema.names))}: an "
                "embeddings file has the columns key, embedding, and label where known"
            )
    kind = schema.field("embedding").type
    is_list = (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
    if not is_list or not (
        pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
    ):
        raise ValueError(f"{path}: the column embedding is {kind}; it has to be a list of numbers")


def _embedding_part(path: Path, column: Any, keys: list[str]) -> NDArray[np.float32]:
    """(rows of this part, d) from a column of lists."""
    import pyarrow.compute as pc

    if column.null_count:
        key = keys[column.is_null().to_pylist().index(True)]
        raise ValueError(f"{path}: {key!r} has no embedding; leave the row out")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != lengths[0])
    if len(wrong):
        raise _ragged(path, keys[wrong[0]], int(lengths[wrong[0]]), int(lengths[0]))
    values = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float32).reshape(len(keys), int(lengths[0]))


def _ragged(path: Path, key: str, length: int, expected: int) -> ValueError:
    return ValueError(
        f"{path}: {key!r} has an embedding of {length} numbers, those before it have {expected}; "
        "all have to come from one encoder"
    )


def _labels(
    path: Path, labels: list[Any], names: list[str] | None
) -> tuple[NDArray[np.int64] | None, list[str] | None]:
    known = [label for label in labels if label is not None]
    if not known and names is None:
        return (None, None) if not labels else (np.full(len(labels), -1, dtype=np.int64), None)
    if all(isinstance(label, int) and not isinstance(label, bool) for label in known) and known:
        return np.array([-1 if label is None else label for label in labels], dtype=np.int64), names
    if not all(isinstance(label, str) for label in known):
        raise ValueError(f"{path}: the column label holds neither names nor integers alone")
    names = sorted(set(known)) if names is None else names
    places: dict[Any, int] = {name: index for index, name in enumerate(names)}
    if strange := sorted(set(known) - set(names)):
        raise ValueError(
            f"{path}: the label {strange[0]!r} is not among the file's class names "
            f"({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
        )
    return np.array([places.get(label, -1) for label in labels], dtype=np.int64), names


def _check_rows(rows: NDArray[np.float32], keys: list[str]) -> None:
    if rows.ndim != 2 or rows.shape[1] == 0 or len(rows) != len(keys):
        raise ValueError(
            f"rows have shape {rows.shape} for {len(keys)} keys: give one row of numbers per key"
        )
    if len(keys) == 0:
        raise ValueError("there are no rows: give at least one")
    if len(set(keys)) < len(keys):
        seen: set[str] = set()
        twice = next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} occurs twice: give every row a key of its own")
    for part in _parts(*rows.shape):
        finite = np.isfinite(rows[part]).all(axis=1)
        if not finite.all():
            if not np.isfinite(rows).any():
                raise ValueError(
                    "embeddings hold NaN or infinity throughout: what made them has diverged"
                )
            key = keys[part.start + int(finite.argmin())]
            raise ValueError(f"the embedding of {key!r} holds NaN or infinity: leave it out")
