"""What a verb works on: images by key with their rows, from a run, an encoder or a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from torch import Tensor

from likewise.data import BrokenImage, Source, open_source
from likewise.evaluation import read_embeddings
from likewise.evaluation.neighbors import unit_rows
from likewise.library.changes import Changes
from likewise.library.embedder import Embedder, embedder_by_name, embedder_of_run
from likewise.library.exact import Places, Rows, search_rows
from likewise.library.index import Index
from likewise.runs.cache import cache_folder, distinct_name


@dataclass
class Collection:
    """Images by key, each with a row of length 1.

    Attributes:
        keys: of all that have a row.
        source: where the images themselves are, if they are at hand.
        labels: (n,) class indices that the images bring along, -1 where unknown; or None.
        class_names: of these.
        index: where the rows are kept; None for an embeddings file.
        embedder: what made them; None for an embeddings file.
        changes: what became of the images since the last call.
        description: in words.
    """

    keys: list[str]
    source: Source | None = None
    labels: NDArray[np.int64] | None = None
    class_names: list[str] | None = None
    index: Index | None = None
    embedder: Embedder | None = None
    changes: Changes | None = None
    description: str = ""
    _rows: Rows | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def rows(self) -> Rows:
        """(n, d) of length 1, in memory."""
        if self._rows is not None:
            return self._rows
        assert self.index is not None
        return self.index.rows()

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Where a key is."""
        return {key: place for place, key in enumerate(self.keys)}

    def search(self, queries: Rows, k: int) -> tuple[Rows, Places]:
        """Similarities and places of the k nearest of each query; exact."""
        if self.index is not None and "rows" not in self.__dict__:
            return self.index.search(queries, k)
        return search_rows([self.rows], queries, k)

    def image(self, key: str, enough: int = 0) -> Tensor | None:
        """The image of a key, uint8 (3, H, W), or None where it is not at hand."""
        if self.source is None:
            return None
        try:
            return self.source.read(int(self.source.index_of(key)), enough=enough)
        except (BrokenImage, ValueError):
            return None

    def label_of(self, place: int) -> str | None:
        """The name of an item's class, where it is known."""
        if self.labels is None or self.class_names is None or self.labels[place] < 0:
            return None
        return self.class_names[self.labels[place]]

    def with_rows(self, keep: Sequence[int] | NDArray[np.int64]) -> Collection:
        """Some of the items only, in memory."""
        places = np.asarray(keep, dtype=np.int64)
        return Collection(
            [self.keys[place] for place in places],
            self.source,
            None if self.labels is None else self.labels[places],
            self.class_names,
            None,
            self.embedder,
            self.changes,
            self.description,
            self.rows[places],
        )


def open_collection(
    run: Path | str | None,
    data: str | Source | None = None,
    *,
    encoder: str | None = None,
    pretrained: str | None = None,
    image_size: int | None = None,
    index: Path | str | None = None,
    rebuild: bool = False,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: str = "auto",
    console: Console | None = None,
) -> Collection:
    """Images with rows: those of a run over a source, of an encoder by name, or of a file.

    Args:
        run: a folder that `likewise train` wrote; or an embeddings file; or, with `encoder`, the
            images.
        data: the images. With an embeddings file they only serve to be shown.
        encoder: any model of timm, or "tiny", in place of a run.
        pretrained: weights of `encoder`: "timm", or a file; without, random ones.
        image_size: pixels a side that `encoder` sees.
        index: the folder where rows are kept; by default in the run's folder, and without a run in
            the user's cache.
        rebuild: embed all images again.
        image_column, label_column: of Parquet files and datasets.
        batch_size: images at a time.
        device: where to compute.
        console: to say what changed on.
    """
    console = console or Console(stderr=True)
    if encoder is not None and data is None:
        run, data = None, str(run) if run is not None else None
    if encoder is not None and run is not None:
        raise ValueError(f"both a run ({run}) and --encoder {encoder} are given: give one of them")
    columns: dict[str, Any] = {"image_column": image_column, "label_column": label_column}
    if run is not None and str(run).endswith(".parquet"):
        return _of_file(Path(run), data, columns, console)
    if data is None:
        raise ValueError(
            "the images are missing: give a run and the images, an embeddings file (.parquet), or "
            "the images and --encoder"
        )
    if encoder is not None:
        embedder = embedder_by_name(
            encoder,
            pretrained=pretrained,
            image_size=image_size,
            device=device,
            batch_size=batch_size,
        )
    else:
        assert run is not None
        if pretrained is not None or image_size is not None:
            raise ValueError("pretrained and image_size go with --encoder: a run has its own")
        embedder = embedder_of_run(run, device=device, batch_size=batch_size)
    source = open_source(data, **columns)
    folder = Path(index) if index is not None else default_index(run, embedder, source)
    kept = Index(folder, embedder, rebuild=rebuild)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("embedding", total=None)
        changes = kept.update(
            source, lambda done, total: bar.update(task, completed=done, total=total)
        )
    console.print(f"{source.place}: {changes.text()}", highlight=False, soft_wrap=True)
    if len(kept) == 0:
        why = next(iter(changes.broken.values()), "")
        raise ValueError(f"none of the {len(source):,} images in {source.place} can be read: {why}")
    keys = kept.keys
    labels = source.labels
    if labels is not None and len(keys) < len(source):
        labels = labels[source.index_of(keys)]
    about = f"{len(keys):,} images in {source.place}, {embedder.description}"
    return Collection(keys, source, labels, source.class_names, kept, embedder, changes, about)


def default_index(run: Path | str | None, embedder: Embedder, source: Source) -> Path:
    """Where the index of a source is kept: in the run's folder, or in the user's cache."""
    name = distinct_name(Path(source.place).name, source.place)
    if run is not None:
        return Path(run) / "index" / name
    # Without a run the encoder is part of the name: two of them do not get in each other's way.
    return cache_folder("index") / f"{name}-{embedder.fingerprint[:8]}"


def _of_file(
    path: Path, data: str | Source | None, columns: dict[str, Any], console: Console
) -> Collection:
    found = read_embeddings(path)
    source = None if data is None else open_source(data, **columns)
    if source is not None:
        there, known = set(source.keys), set(found.keys)
        without = sum(key not in known for key in source.keys)
        gone = sum(key not in there for key in found.keys)
        if gone == len(found.keys):
            raise ValueError(
                f"no key of {path} ({found.keys[0]!r}, ...) is in {source.place} "
                f"({source.keys[0]!r}, ...): give the images that it was made of"
            )
        if without or gone:
            console.print(
                f"{path}: {without:,} images of {source.place} are not in it, and {gone:,} of its "
                "items are gone: embed them again with `likewise embed`",
                highlight=False,
                soft_wrap=True,
            )
    return Collection(
        found.keys,
        source,
        found.labels,
        found.class_names or _numbered(found.labels),
        description=f"{len(found.keys):,} rows of {path}",
        _rows=unit_rows(torch.from_numpy(found.rows)).numpy(),
    )


def _numbered(labels: NDArray[np.int64] | None) -> list[str] | None:
    return None if labels is None else [str(c) for c in range(int(labels.max(initial=-1)) + 1)]
