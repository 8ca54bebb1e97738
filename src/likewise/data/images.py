"""Images in memory, each on a canvas of one size: what training holds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from typing_extensions import Self

from likewise.data.available import available_memory
from likewise.data.keys import Indices, Keyed
from likewise.data.memory import FULL, bytes_needed, in_words
from likewise.data.resizing import DETAIL, canvas, check_size
from likewise.data.source import BrokenImage, Source, count

PART = 64
"""Images that a thread decodes at a time."""

SLOW = 1e-3
"""Seconds an image above which threads pay: below, Python's lock costs more than they bring."""

Progress = Callable[[int, int], None]
"""Called with how many images are done, and how many there are."""


class Images(Keyed):
    """Decoded images by key.

    pixels: uint8 (N, 3, S, S), on any device.
    broken: why each image that could not be read was left out, by key.
    """

    def __init__(
        self,
        pixels: Tensor,
        keys: Iterable[str],
        labels: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        *,
        broken: dict[str, str] | None = None,
    ) -> None:
        super().__init__(keys, labels, class_names)
        if pixels.dtype != torch.uint8 or pixels.ndim != 4 or pixels.shape[1] != 3:
            raise ValueError(
                f"pixels are {pixels.dtype} of shape {tuple(pixels.shape)}: give uint8 (N, 3, S, S)"
            )
        if len(pixels) != len(self.keys):
            raise ValueError(f"{len(pixels):,} images have {len(self.keys):,} keys: give one each")
        self.pixels = pixels
        self.broken = dict(broken or {})

    def to(self, device: torch.device | str) -> Self:
        """The same images on another device."""
        other = self._copy()
        other.pixels = self.pixels.to(device)
        return other

    def subset(self, indices: Indices) -> Self:
        """The images at `indices`, in that order."""
        other, positions = self._select(indices)
        other.pixels = self.pixels[torch.from_numpy(positions).to(self.pixels.device)]
        return other

    def __repr__(self) -> str:
        n, _, height, width = self.pixels.shape
        lost = f", {len(self.broken):,} broken left out" if self.broken else ""
        return f"<Images: {n:,} of {height} x {width} on {self.pixels.device}{lost}>"


def load_images(
    source: Source,
    size: int,
    *,
    workers: int = 0,
    progress: Progress | None = None,
    at_least: int = 2,
) -> Images:
    """Decode a source once, onto canvases of size x size; images that are broken are left out.

    workers: threads that decode; 0 takes one per core where decoding is slow enough to gain.
    progress: called now and then with (done, total).
    at_least: how many images have to be readable.

    >>> from likewise.data import open_source
    >>> images = load_images(open_source("digits:test"), 32)
    >>> images.pixels.shape, images.broken
    (torch.Size([720, 3, 32, 32]), {})
    """
    check_size(size)
    if workers < 0:
        raise ValueError(f"workers is {workers}: give 0 (automatic) or more threads")
    n = len(source)
    check_enough(n, max(1, at_least), source, {})
    need, free = bytes_needed(n, size), available_memory()
    if free is not None and need > FULL * free:
        raise ValueError(
            f"{n:,} images of {size} x {size} take {in_words(need)}, and {in_words(free)} of "
            "memory are free: give a smaller size, or stream them (StreamedImages)"
        )
    pixels = torch.empty(n, 3, size, size, dtype=torch.uint8)
    reasons: dict[int, str] = {}

    def decode_part(start: int) -> int:
        stop = min(start + PART, n)
        for index in range(start, stop):
            try:
                pixels[index] = canvas(source.read(index, enough=DETAIL * size), size)
            except BrokenImage as error:
                reasons[index] = error.reason
        return stop - start

    def report(done: int) -> None:
        if progress is not None:
            progress(done, n)

    begun = time.perf_counter()
    done = decode_part(0)
    each = (time.perf_counter() - begun) / done
    report(done)
    threads = workers or (_cores() if each > SLOW else 1)
    starts = range(done, n, PART)
    if threads == 1:
        for start in starts:
            done += decode_part(start)
            report(done)
    else:
        with ThreadPoolExecutor(threads) as pool:
            for count in pool.map(decode_part, starts):
                done += count
                report(done)
    broken = {source.keys[index]: reasons[index] for index in sorted(reasons)}
    check_enough(n - len(broken), at_least, source, broken)
    if broken:
        whole = np.ones(n, dtype=bool)
        whole[list(reasons)] = False
        source, pixels = source.subset(whole), pixels[torch.from_numpy(whole)]
    return Images(pixels, source.keys, source.labels, source.class_names, broken=broken)


def _cores() -> int:
    # Not every system says which of its cores a process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_enough(n: int, at_least: int, source: Source, broken: dict[str, str]) -> None:
    """An error that says what is wrong, where fewer than `at_least` images can be read."""
    if n >= at_least:
        return
    if not broken:
        raise ValueError(f"{source.place} has {count(n, 'image')}: give at least {at_least}")
    examples = "; ".join(f"{key}: {reason}" for key, reason in list(broken.items())[:3])
    raise ValueError(
        f"{len(broken):,} of {len(broken) + n:,} images in {source.place} cannot be read, which "
        f"leaves {n}: give at least {at_least} that can ({examples})"
    )
