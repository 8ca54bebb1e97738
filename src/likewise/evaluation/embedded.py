"""A run over a source: every image that a user points at, as a row of numbers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from likewise.data import Source, load_images, open_source
from likewise.evaluation.embeddings import Embeddings, read_embeddings
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


def embed_source(
    run: Path | str,
    data: str | Source,
    *,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: str = "auto",
    workers: int | None = None,
    console: Console | None = None,
) -> Embeddings:
    """Embed all images of a source with the encoder of a run; broken ones are left out."""
    console = console or Console(stderr=True)
    place = choose_device(device)
    encoder, preparation = Run.open(run).encoder(place)
    source = open_source(data, image_column=image_column, label_column=label_column)
    workers = min(8, os.cpu_count() or 1) if workers is None else workers
    rows: list[np.ndarray] = []
    keys: list[str] = []
    labels: list[np.ndarray] = []
    broken: dict[str, str] = {}
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("embedding", total=len(source))
        for start in range(0, len(source), CHUNK):
            part = source.subset(np.arange(start, min(start + CHUNK, len(source))))
            images = load_images(part, preparation.size, at_least=0)
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
                labels.append(images.labels)
    if broken:
        console.print(f"{len(broken)} broken images are left out, such as {next(iter(broken))}")
    if not rows:
        raise ValueError(f"none of the {len(source)} images could be read")
    return Embeddings(
        keys=keys,
        rows=np.concatenate(rows),
        labels=np.concatenate(labels) if labels else None,
        class_names=source.class_names,
        metadata={"run": str(run), "data": str(data)},
    )


def rows_of(run: Path | str | None, data: str, **settings: object) -> Embeddings:
    """The rows of an embeddings file, or those of a run over images."""
    if run is None:
        if not str(data).endswith(".parquet"):
            raise ValueError(f"{data} is no embeddings file: give a run, too, to embed images with")
        return read_embeddings(data)
    return embed_source(run, data, **settings)  # type: ignore[arg-type]
