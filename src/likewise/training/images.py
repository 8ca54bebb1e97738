"""The images of a training: in memory or streamed, and the few of them that are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from likewise.data import Images, Source, StreamedImages, fits_in_memory, load_images
from likewise.training.fit import Machine
from likewise.training.processes import is_first_process, own_device

WATCHED = 4096
"""Images that the monitor embeds."""


def open_images(
    source: Source, canvas: int, config: dict[str, Any], machine: Machine, console: Console
) -> Images | StreamedImages:
    """The images in memory, or streamed where they do not fit; what is broken is said."""
    stream = config["stream"]
    if stream is None:
        stream = not fits_in_memory(len(source), canvas, own_device(machine))
    config["stream"] = stream
    if stream:
        images: Images | StreamedImages = StreamedImages(source, canvas)
    else:
        with _decoding(console) as progress:
            images = load_images(source, canvas, progress=progress)
    if images.broken and is_first_process():
        shown = [f"  {key}: {reason}" for key, reason in list(images.broken.items())[:5]]
        more = len(images.broken) - len(shown)
        console.print(
            f"{len(images.broken)} broken images are left out:",
            *shown,
            *([f"  and {more} more"] if more else []),
            sep="\n",
            highlight=False,
        )
    return images


@contextmanager
def _decoding(console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar for reading images, on a terminal."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading images", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def watched(images: Images | StreamedImages, seed: int) -> Images:
    """A few thousand images to look at while training, drawn once."""
    n = len(images)
    if n <= WATCHED and isinstance(images, Images):
        return images
    index = np.sort(np.random.default_rng([seed, 13]).permutation(n)[:WATCHED])
    if isinstance(images, Images):
        return images.subset(index)
    return load_images(images.source.subset(index), images.size)


def bytes_on(device: torch.device, images: Images | StreamedImages) -> int:
    """What the images add to the memory of a device; on a CPU they are in it already."""
    if isinstance(images, Images) and device.type != "cpu":
        return images.pixels.nbytes
    return 0
