"""How much memory images take, and how much there is."""

from __future__ import annotations

import torch

from likewise.data.available import available_memory, total_memory
from likewise.data.resizing import check_size

FULL = 0.8
"""Share of the free memory beyond which nothing is begun."""

SHARE = 0.6
"""Of the free memory, what images may take: the rest is for the model and its gradients."""


def bytes_needed(n: int, size: int) -> int:
    """Bytes of n images on canvases of size x size, uint8 RGB.

    >>> bytes_needed(50_000, 32)
    153600000
    """
    check_size(size)
    return n * 3 * size * size


def fits_in_memory(
    n: int,
    size: int,
    device: torch.device | str = "cpu",
    *,
    copies: int = 1,
    of_all: bool = False,
) -> bool:
    """Whether n canvases take at most 60 % of what is free on the device.

    copies: how often they lie there: every process of a machine has its own.
    of_all: of what there is, free or not, so that processes which ask one after the other, each
        with its images in memory then, come to one answer.

    >>> fits_in_memory(1000, 32), fits_in_memory(10**12, 224)
    (True, False)
    """
    memory = total_memory(device) if of_all else available_memory(device)
    return memory is None or copies * bytes_needed(n, size) <= SHARE * memory


def in_words(amount: float) -> str:
    """Bytes for a reader.

    >>> in_words(153_600_000)
    '146.5 MiB'
    """
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} GiB"
