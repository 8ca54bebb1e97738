"""Datasets of Hugging Face's `datasets`, in memory or saved to disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from likewise.data.columns import find_columns, labels_of
from likewise.data.decoding import decode
from likewise.data.folder import suggested_part
from likewise.data.source import Source


class HuggingFaceSource(Source):
    """The images of a `datasets.Dataset`, or of the folder that its `save_to_disk` wrote.

    What was saved to disk is read from there, image by image, so it may be larger than memory. A
    key is the row number, or what `key_column` says; for the columns see
    :func:`~likewise.data.columns.find_columns`.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        image_column: str | None = None,
        label_column: str | None = None,
        key_column: str | None = None,
    ) -> None:
        import datasets

        place = "a Hugging Face dataset"
        if isinstance(dataset, (str, Path)):
            place = str(dataset)
            dataset = _load(Path(dataset))
        if isinstance(dataset, (datasets.DatasetDict, datasets.IterableDatasetDict)):
            raise ValueError(
                f"data holds the parts {', '.join(dataset)}: give one, as "
                f"dataset[{suggested_part(list(dataset) or ['train'])!r}]"
            )
        if not isinstance(dataset, datasets.Dataset):
            raise ValueError(
                f"data is a {type(dataset).__name__}: give a datasets.Dataset, whose rows have "
                "numbers"
            )
        schema = dataset.features.arrow_schema
        columns = find_columns(schema, place, image_column=image_column, label_column=label_column)
        if key_column is not None and key_column not in schema.names:
            raise ValueError(
                f"key_column is {key_column!r}, which is no column of {place}: it has "
                f"{', '.join(schema.names)}"
            )
        dataset = dataset.with_format(None)
        values = [] if columns.label is None else list(dataset[columns.label])
        labels = labels_of(values, columns)
        numbers = range(len(dataset)) if key_column is None else dataset[key_column]
        super().__init__([str(key) for key in numbers], *(labels or (None, None)), place=place)
        dataset = dataset.select_columns([columns.image])
        if isinstance(dataset.features[columns.image], datasets.Image):
            # As bytes: decoding is the same for all sources.
            dataset = dataset.cast_column(columns.image, datasets.Image(decode=False))
        self._dataset = dataset
        self._column = columns.image

    def _read(self, row: int, enough: int) -> Tensor:
        value = self._dataset[row][self._column]
        if isinstance(value, dict):
            path, value = value.get("path"), value.get("bytes")
            if value is None and path is not None:
                return decode(Path(path), enough)
        if value is None:
            raise ValueError("the row has no image bytes")
        return decode(value, enough)


def is_saved_dataset(folder: Path) -> bool:
    """Whether `save_to_disk` wrote this folder."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def _load(folder: Path) -> Any:
    import datasets

    parts = folder / "dataset_dict.json"
    if parts.is_file():
        names = sorted(path.name for path in folder.iterdir() if path.is_dir())
        raise ValueError(
            f"{folder} holds the parts {', '.join(names)}: give one of them, as "
            f"{folder / suggested_part(names or ['train'])}"
        )
    try:
        return datasets.load_from_disk(str(folder))
    except Exception as error:  # a damaged folder raises whatever its reader meets first
        raise ValueError(f"{folder} cannot be read as a saved dataset ({error})") from error
