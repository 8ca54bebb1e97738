"""Rows to begin with: from a run, from a file, from an encoder as it is, or from plain pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from likewise.data import Images, Source, channel_statistics, load_images
from likewise.data.source import count
from likewise.evaluation.embedded import CHUNK, choose_device, embed_source
from likewise.evaluation.embeddings import read_embeddings
from likewise.models import build_encoder
from likewise.runs import embed_images

PIXELS = 28
"""Pixels a side that are compared where there is no encoder."""

COMPONENTS = 64
"""Principal components of them that are kept."""


@dataclass
class Beginning:
    """The items that can be asked about, with a row each.

    words: where the rows come from, for the user.
    """

    source: Source
    rows: NDArray[np.float32]
    words: str


def begin(
    source: Source,
    *,
    run: Path | None = None,
    embeddings: Path | None = None,
    encoder: str | None = None,
    pretrained: str | None = None,
    image_size: int | None = None,
    batch_size: int = 512,
    device: str = "auto",
    seed: int = 0,
    console: Console | None = None,
) -> Beginning:
    """Rows for the items of a source; items that cannot be read are left out.

    Args:
        source: the images.
        run: a run whose encoder is used.
        embeddings: a file of `likewise embed`, in place of a run.
        encoder: the name of a model, in place of both: as it was built, or pretrained.
        pretrained: its weights: "timm" for the model's own, or a file.
        image_size: pixels a side that such a model sees.
        batch_size: images at a time.
        device: where to compute.
        seed: of random weights.
        console: where progress is shown.
    """
    given = {"--run": run, "--embeddings": embeddings, "--encoder": encoder}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} are given: rows come from one of them")
    if pretrained is not None and encoder is None:
        raise ValueError("pretrained is given without --encoder: name the model, too")
    console = console or Console(stderr=True)
    if embeddings is not None:
        return _from_file(source, embeddings)
    if run is not None:
        found = embed_source(run, source, batch_size=batch_size, device=device, console=console)
        return Beginning(
            source.subset(source.index_of(found.keys)), found.rows, f"the encoder of {run}"
        )
    if encoder is not None:
        return _from_encoder(
            source, encoder, pretrained, image_size, batch_size, device, seed, console
        )
    return _from_pixels(source, console)


def _from_file(source: Source, path: Path) -> Beginning:
    found = read_embeddings(path)
    here = set(source.keys)
    both = [row for row, key in enumerate(found.keys) if key in here]
    if not both:
        raise ValueError(
            f"embeddings is {path}, which has none of the images' keys (it has "
            f"{found.keys[0]!r}, they are called {source.keys[0]!r}): embed these images"
        )
    keys = [found.keys[row] for row in both]
    words = f"{path}"
    if len(both) < len(source):
        words += f" (without {count(len(source) - len(both), 'image')} that it does not have)"
    return Beginning(source.subset(source.index_of(keys)), found.rows[both], words)


def _from_encoder(
    source: Source,
    name: str,
    pretrained: str | None,
    image_size: int | None,
    batch_size: int,
    device: str,
    seed: int,
    console: Console,
) -> Beginning:
    size = image_size or 64
    weights = pretrained == "timm" or pretrained or False
    model = build_encoder(name, pretrained=weights, image_size=size, seed=seed)
    parts, keys = [], list[str]()
    mean = std = None
    for images in _in_parts(source, size, console):
        if mean is None or std is None:
            mean, std = channel_statistics(images.pixels)
        rows = embed_images(
            model,
            images,
            size=size,
            mean=mean,
            std=std,
            batch_size=batch_size,
            device=choose_device(device),
        )
        parts.append(rows.numpy())
        keys += images.keys
    kind = f"pretrained ({pretrained})" if pretrained else "untrained"
    return Beginning(source.subset(source.index_of(keys)), np.concatenate(parts), f"{name}, {kind}")


def _from_pixels(source: Source, console: Console) -> Beginning:
    from sklearn.decomposition import PCA

    parts, keys, components = [], list[str](), None
    for images in _in_parts(source, PIXELS, console):
        flat = images.pixels.flatten(1).numpy().astype(np.float32) / 255
        if components is None:
            wanted = min(COMPONENTS, *flat[:10_000].shape)
            components = PCA(wanted, svd_solver="randomized", random_state=0).fit(flat[:10_000])
        parts.append(components.transform(flat).astype(np.float32))
        keys += images.keys
    words = f"plain pixels ({PIXELS} x {PIXELS}, {parts[0].shape[1]} principal components)"
    return Beginning(source.subset(source.index_of(keys)), np.concatenate(parts), words)


def _in_parts(source: Source, size: int, console: Console) -> Iterator[Images]:
    """The images in parts that fit into memory; broken ones are counted and left out."""
    broken: dict[str, str] = {}
    read = 0
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading images", total=len(source))
        for start in range(0, len(source), CHUNK):
            rows = np.arange(start, min(start + CHUNK, len(source)))
            images = load_images(source.subset(rows), size, at_least=0)
            broken.update(images.broken)
            read += len(images)
            if len(images):
                yield images
            bar.advance(task, len(rows))
    if broken:
        console.print(
            f"{count(len(broken), 'broken image')} left out, such as {next(iter(broken))}",
            highlight=False,
        )
    if read < 2:
        raise ValueError(f"{count(read, 'image')} of {len(source):,} can be read: give two or more")
