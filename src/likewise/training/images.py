"""The images of a training: in memory or streamed, and the few of them that are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from likewise.data import Images, Source, StreamedImages, fits_in_memory, load_images
from likewise.data.source import left_out
from likewise.training.machine import Machine
from likewise.training.processes import is_first_process, own_device

WATCHED = 4096
"""Images that the monitor embeds."""


def open_images(
    source: Source, canvas: int, config: dict[str, Any], machine: Machine, console: Console
) -> Images | StreamedImages:
    """The images in memory, or streamed where they do not fit; what is broken is said."""
    stream = config["stream"]
    if stream is None:
        stream = not _fit(len(source), canvas, machine)
    config["stream"] = stream
    if stream:
        images: Images | StreamedImages = StreamedImages(source, canvas)
    else:
        with _decoding(console) as progress:
            images = load_images(source, canvas, progress=progress)
    if is_first_process(machine.processes):
        say_broken(images.broken, console)
    return images


def _fit(n: int, canvas: int, machine: Machine) -> bool:
    """Whether all images can be held; every process of a training comes to the same answer.

    Each process decodes into memory of its own, from where a GPU gets them.
    """
    several = machine.processes > 1
    return fits_in_memory(n, canvas, copies=machine.devices, of_all=several) and (
        machine.device == "cpu" or fits_in_memory(n, canvas, own_device(machine), of_all=several)
    )


def say_broken(broken: Mapping[str, str], console: Console) -> None:
    """How many images could not be read, and why the first of them could not."""
    if not broken:
        return
    shown = [f"  {key}: {reason}" for key, reason in list(broken.items())[:5]]
    more = len(broken) - len(shown)
    console.print(
        f"{left_out(len(broken))}:",
        *shown,
        *([f"  and {more} more"] if more else []),
        sep="\n",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


@contextmanager
def _decoding(console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar for reading images, on a terminal."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading images", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def watched(
    images: Images | StreamedImages, seed: int, labels: NDArray[np.int64] | None = None
) -> Images:
    """A few thousand images to look at while training, drawn once.

    Args:
        images: all of them.
        seed: of the draw.
        labels: of a file, which go before those that the images have of their own.
    """
    n = len(images)
    index = np.sort(np.random.default_rng([seed, 13]).permutation(n)[:WATCHED])
    if isinstance(images, Images):
        found = images if n <= WATCHED else images.subset(index)
    else:
        found = load_images(images.source.subset(index), images.size)
    if labels is None:
        return found
    names = [str(number) for number in range(int(labels.max()) + 1)]
    return found.with_labels(labels[images.index_of(found.keys)], names)
