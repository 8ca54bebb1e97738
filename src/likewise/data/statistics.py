"""What images are like on the whole: their usual size, and mean and deviation of a channel."""

from __future__ import annotations

from statistics import median

import numpy as np
import torch
from torch import Tensor

from likewise.data.source import BrokenImage, Source

LOOKED_AT = 32
"""Images, spread over a source, that its usual size is taken from."""

PART = 64
"""Images whose values are counted at a time."""


def usual_size(source: Source) -> int:
    """The median of the shorter sides, in pixels, of images spread over the source.

    >>> from likewise.data import open_source
    >>> usual_size(open_source("digits"))
    32
    """
    places = np.unique(np.linspace(0, len(source) - 1, min(LOOKED_AT, len(source))).astype(int))
    sides = []
    first = None
    for place in places.tolist():
        try:
            sides.append(min(source.read(place).shape[1:]))
        except BrokenImage as error:
            first = first or error
    if not sides:
        raise ValueError(
            f"none of {len(places)} images of {source.place}, spread over all, can be read: "
            f"all of them seem to be broken, the first ({first})"
        )
    return int(median(sides))


def channel_statistics(pixels: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of every channel of uint8 images, on the scale of 0 to 1.

    A channel that never changes gets the deviation 1, so that dividing by it does no harm.

    >>> channel_statistics(torch.full((2, 3, 4, 4), 255, dtype=torch.uint8))
    ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    """
    # How often each of the 256 values is there says all, in no more memory than the pixels take.
    counts = torch.zeros(pixels.shape[1], 256, dtype=torch.float64, device=pixels.device)
    for part in pixels.split(PART):
        for channel, found in zip(part.unbind(dim=1), counts, strict=True):
            found += torch.bincount(channel.flatten().int(), minlength=256)
    values = torch.arange(256, dtype=torch.float64, device=pixels.device) / 255
    shares = counts / counts.sum(dim=1, keepdim=True)
    mean = shares @ values
    std = (shares * (values - mean[:, None]).square()).sum(dim=1).sqrt()
    std = torch.where(std < 1e-6, torch.ones_like(std), std)
    return tuple(round(x, 6) for x in mean.tolist()), tuple(round(x, 6) for x in std.tolist())
