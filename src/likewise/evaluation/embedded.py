"""A run over a source: every image that a user points at, as a row of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor

from likewise.data import Source, labelled, load_images, open_source
from likewise.data.source import left_out
from likewise.evaluation.embeddings import Embeddings, read_embeddings
from likewise.evaluation.task import positive_integer
from likewise.runs import Run, embed_images

CHUNK = 20_000
"""Images that are decoded before they are embedded: memory stays the same for any source."""


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is cuda, and there is no GPU here: give cpu or auto")
    return torch.device(name)


def check_settings(batch_size: int, workers: int | None) -> None:
    """Raise unless images can be embedded like this: to be called before anything is read."""
    positive_integer("batch_size", batch_size)
    if workers is not None and workers < 0:
        raise ValueError(f"workers is {workers}: give 0 (automatic) or more threads")


def embed_source(
    run: Path | str,
    data: str | Source,
    *,
    labels: Path | str | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: str = "auto",
    workers: int | None = None,
    console: Console | None = None,
) -> Embeddings:
    """Embed all images of a source with the encoder of a run; broken ones are left out.

    Args:
        run: a folder that `likewise train` wrote.
        data: the images.
        labels: a CSV file (key,label), in place of the labels that the images have.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        batch_size: images at a time.
        device: where to compute.
        workers: threads that decode; None or 0 takes one per core where that gains.
        console: where progress is shown.
    """
    check_settings(batch_size, workers)
    console = console or Console(stderr=True)
    place = choose_device(device)
    encoder, preparation = Run.open(run).encoder(place)
    source = open_source(data, image_column=image_column, label_column=label_column)
    if labels is not None:
        source = _with_labels(source, labels, console)
    rows: list[np.ndarray] = []
    keys: list[str] = []
    known: list[np.ndarray] = []
    broken: dict[str, str] = {}
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("embedding", total=len(source))
        for start in range(0, len(source), CHUNK):
            part = source.subset(np.arange(start, min(start + CHUNK, len(source))))
            images = load_images(part, preparation.size, workers=workers or 0, at_least=0)
            broken.update(images.broken)
            bar.advance(task, len(images.broken))
            if len(images) == 0:
                continue
            found = embed_images(
                encoder,
                images,
                size=preparation.size,
                mean=preparation.mean,
                std=preparation.std,
                batch_size=batch_size,
                device=place,
                progress=lambda count: bar.advance(task, count),
            )
            rows.append(found.numpy())
            keys += images.keys
            if images.labels is not None:
                known.append(images.labels)
    if broken:
        console.print(f"{left_out(len(broken))}, such as {next(iter(broken))}")
    if not rows:
        raise ValueError(f"none of the {len(source)} images could be read")
    return Embeddings(
        keys=keys,
        rows=np.concatenate(rows),
        labels=np.concatenate(known) if known else None,
        class_names=source.class_names,
        metadata={"run": str(run), "data": str(data)},
    )


def _with_labels(source: Source, labels: Path | str, console: Console) -> Source:
    found = labelled(source, labels)
    # A file may be about other images for the most part: say what it holds of these.
    console.print(found.description, highlight=False, soft_wrap=True)
    return found


class _Items(Source):
    """The keys of an embeddings file, to match labels with; there are no images in it."""

    def _read(self, row: int, enough: int) -> Tensor:
        raise ValueError("an embeddings file holds no images")


def open_rows(
    run: Path | str | None,
    data: str,
    *,
    labels: Path | str | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    console: Console | None = None,
) -> Source | Embeddings:
    """An embeddings file, or the images for a run to embed: what is asked for, before any work.

    Args:
        run: a folder that `likewise train` wrote; None where `data` is an embeddings file.
        data: images, or an embeddings file.
        labels: a CSV file (key,label), in place of the labels that are there.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        console: where it is said how many labels were found.
    """
    console = console or Console(stderr=True)
    if run is not None:
        source = open_source(data, image_column=image_column, label_column=label_column)
        return source if labels is None else _with_labels(source, labels, console)
    if not str(data).endswith(".parquet"):
        raise ValueError(f"{data} is no embeddings file: give a run, too, to embed images with")
    found = read_embeddings(data)
    if labels is not None:
        items = _with_labels(_Items(found.keys, place=str(data)), labels, console)
        found.labels, found.class_names = items.labels, items.class_names
    return found


def rows_of(
    run: Path | str | None,
    opened: Source | Embeddings,
    *,
    batch_size: int = 512,
    device: str = "auto",
    workers: int | None = None,
    console: Console | None = None,
) -> Embeddings:
    """The rows of what :func:`open_rows` gave: an embeddings file has them, a run makes them."""
    if isinstance(opened, Embeddings):
        return opened
    if run is None:
        raise ValueError("run is None: give a run to embed images with")
    return embed_source(
        run, opened, batch_size=batch_size, device=device, workers=workers, console=console
    )
