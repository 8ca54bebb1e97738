"""How much memory images take, and how much there is."""

from __future__ import annotations

import os
from pathlib import Path

import torch

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


def available_memory(device: torch.device | str = "cpu") -> int | None:
    """Free bytes on a device, or None where the system does not say.

    On the CPU, the limit of a container counts as well as what the machine has.
    """
    device = torch.device(device)
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = [_machine(), _container()]
    known = [amount for amount in free if amount is not None]
    return min(known) if known else None


def fits_in_memory(n: int, size: int, device: torch.device | str = "cpu") -> bool:
    """Whether n canvases take at most 60 % of what is free on the device.

    >>> fits_in_memory(1000, 32), fits_in_memory(10**12, 224)
    (True, False)
    """
    available = available_memory(device)
    return available is None or bytes_needed(n, size) <= SHARE * available


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


def _machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # not Linux: all that is built in, for want of what is free
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _container() -> int | None:
    group = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0, int((group / limit).read_text()) - int((group / used).read_text()))
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    return None
