"""Encoded images in Parquet files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from likewise.data.available import available_memory
from likewise.data.columns import Columns, find_columns, has_images, labels_of
from likewise.data.decoding import decode
from likewise.data.folder import SPLITS, holds_images, suggested_part
from likewise.data.labels import natural_order
from likewise.data.memory import FULL, in_words
from likewise.data.source import Source

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetSource(Source):
    """The images of one or several Parquet files; the encoded bytes are held in memory.

    A key is the row number in a single file, and "file:row" in several, so that another file
    shifts nothing; or, with `key_column`, what that column says. A row of {bytes, path} that has
    no bytes is read from its path, as it stands or beside the Parquet file.

    image_column, label_column: found by themselves, see
    :func:`~likewise.data.columns.find_columns`.
    """

    def __init__(
        self,
        files: Path | str | Sequence[Path | str],
        *,
        image_column: str | None = None,
        label_column: str | None = None,
        key_column: str | None = None,
        place: str | None = None,
    ) -> None:
        paths = [Path(files)] if isinstance(files, (str, Path)) else [Path(f) for f in files]
        if not paths:
            raise ValueError("files is empty: give at least one Parquet file")
        place = place or (str(paths[0]) if len(paths) == 1 else f"{len(paths)} Parquet files")
        schemas = [_schema(path) for path in paths]
        columns = find_columns(
            schemas[0], str(paths[0]), image_column=image_column, label_column=label_column
        )
        _check_others(paths, schemas, columns, key_column)
        _check_memory(paths, columns.image, place)
        images, values, keys = _tables(paths, columns, key_column)
        labels = labels_of(values, columns)
        super().__init__(keys, *(labels or (None, None)), place=place)
        self._chunks = [chunk for column in images for chunk in column.chunks if len(chunk)]
        self._ends = np.cumsum([len(chunk) for chunk in self._chunks])
        self._elsewhere = _paths_of_rows(paths, images, columns.image) if columns.nested else {}

    def _read(self, row: int, enough: int) -> Tensor:
        chunk = int(np.searchsorted(self._ends, row, side="right"))
        array = self._chunks[chunk]
        encoded = array[row - int(self._ends[chunk]) + len(array)].as_buffer()
        if encoded is not None:
            return decode(memoryview(encoded), enough)
        if row not in self._elsewhere:
            raise ValueError("the row has no image bytes")
        folder, name = self._elsewhere[row]
        for path in (Path(name), folder / name):
            if path.is_file():
                return decode(path, enough)
        raise ValueError(f"the row has no image bytes, and its path {name!r} is no file here")


def shards(folder: Path) -> list[Path]:
    """The Parquet files of a folder in natural order; an error where they are different splits.

    Beside image files, those without a column of images (embeddings, say) are passed over.
    """
    files = [path for path in folder.glob("*.parquet") if not path.name.startswith(".")]
    files.sort(key=lambda path: natural_order(path.name))
    others = [path for path in files if not has_images(_schema(path))]
    if others and holds_images(folder):
        files = [path for path in files if path not in others]
    words = {path: re.split(r"[-_.\d]", path.name.lower())[0] for path in files}
    found = sorted(set(words.values()) & SPLITS)
    if len(found) > 1:
        part = suggested_part(found)
        first = next(path for path in files if words[path] == part)
        raise ValueError(
            f"{folder} holds the parts {', '.join(found)}: give one of them, as {first} or as "
            f"{folder / (part + '*.parquet')}"
        )
    return files


def _schema(path: Path) -> pa.Schema:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"{path} cannot be read as Parquet ({reason})") from None


def _check_others(
    paths: list[Path], schemas: list[pa.Schema], columns: Columns, key_column: str | None
) -> None:
    wanted = [name for name in (columns.image, columns.label, key_column) if name is not None]
    for path, schema in zip(paths, schemas, strict=True):
        missing = [name for name in wanted if name not in schema.names]
        if missing:
            raise ValueError(
                f"{path} has no column {missing[0]!r}, only {', '.join(schema.names)}: give files "
                "of the same table"
            )
        if schema.field(columns.image).type != schemas[0].field(columns.image).type:
            raise ValueError(
                f"column {columns.image!r} of {path} is not of the type that it has in {paths[0]}"
            )


def _check_memory(paths: list[Path], column: str, place: str) -> None:
    import pyarrow.parquet as pq

    size = 0
    for path in paths:
        notes = pq.read_metadata(path)
        for group in range(notes.num_row_groups):
            parts = [notes.row_group(group).column(i) for i in range(notes.num_columns)]
            size += sum(
                part.total_uncompressed_size
                for part in parts
                if part.path_in_schema in (column, f"{column}.bytes")
            )
    free = available_memory()
    if free is not None and size > FULL * free:
        raise ValueError(
            f"the images of {place} take {in_words(size)} and {in_words(free)} of memory are free: "
            "save them with Hugging Face's Dataset.save_to_disk, and give that folder, which is "
            "read from the disk"
        )


def _tables(
    paths: list[Path], columns: Columns, key_column: str | None
) -> tuple[list[pa.ChunkedArray], list[Any], list[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    image = f"{columns.image}.bytes" if columns.nested else columns.image
    wanted = [image, *(name for name in (columns.label, key_column) if name is not None)]
    images, values, keys = [], list[Any](), list[str]()
    for path in paths:
        try:
            table = pq.ParquetFile(path).read(columns=wanted)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path} cannot be read ({str(error).splitlines()[0]})") from None
        column = table[columns.image]
        images.append(pc.struct_field(column, "bytes") if columns.nested else column)
        if columns.label is not None:
            values.extend(table[columns.label].to_pylist())
        if key_column is not None:
            keys.extend(str(key) for key in table[key_column].to_pylist())
        elif len(paths) == 1:
            keys.extend(str(row) for row in range(len(table)))
        else:
            keys.extend(f"{path.name}:{row}" for row in range(len(table)))
    return images, values, keys


def _paths_of_rows(
    paths: list[Path], images: list[pa.ChunkedArray], column: str
) -> dict[int, tuple[Path, str]]:
    """Of the rows without bytes that have a path: the folder of their file, and that path."""
    import pyarrow.parquet as pq

    found: dict[int, tuple[Path, str]] = {}
    start = 0
    for path, encoded in zip(paths, images, strict=True):
        # Most files hold all bytes, and then their paths need not be read.
        if encoded.null_count:
            table = pq.ParquetFile(path).read(columns=[f"{column}.path"])
            rows = table[column].to_pylist() if column in table.column_names else []
            missing = encoded.is_null().to_pylist()
            for row, value in enumerate(rows):
                if missing[row] and value is not None and isinstance(value["path"], str):
                    found[start + row] = (path.parent, value["path"])
        start += len(encoded)
    return found
