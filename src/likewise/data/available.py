"""How much memory is free, and how much there is."""

from __future__ import annotations

from pathlib import Path

import torch


def available_memory(
    device: torch.device | str = "cpu",
    *,
    proc: Path = Path("/proc"),
    groups: Path = Path("/sys/fs/cgroup"),
) -> int | None:
    """Free bytes on a device; None where the system does not say.

    On the CPU, that is what the machine has, or what the control groups of this process (a
    container, a job of a cluster) leave to it, if that is less. Files that the system keeps in
    memory only because it has room do not count as used.

    Args:
        device: a CUDA device, or anything else for the CPU.
        proc: where Linux tells about processes.
        groups: where it tells about control groups.
    """
    place = torch.device(device)
    if place.type == "cuda":
        return int(torch.cuda.mem_get_info(place)[0])
    free = [_free_in_group(group) for group in _own_groups(proc, groups)]
    free.append(_told(proc, "MemAvailable"))
    return min((amount for amount in free if amount is not None), default=None)


def total_memory(
    device: torch.device | str = "cpu",
    *,
    proc: Path = Path("/proc"),
    groups: Path = Path("/sys/fs/cgroup"),
) -> int | None:
    """Bytes of a device, free or not, as :func:`available_memory`: the same for all processes that
    share it, whenever they ask."""
    place = torch.device(device)
    if place.type == "cuda":
        return int(torch.cuda.mem_get_info(place)[1])
    limits = [
        _number(group / name)
        for group in _own_groups(proc, groups)
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    limits.append(_told(proc, "MemTotal"))
    return min((amount for amount in limits if amount is not None), default=None)


def _told(proc: Path, name: str) -> int | None:
    """What the system says about the memory of the machine."""
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _number(file: Path) -> int | None:
    """The number in a file; None where there is no such file, or the word "max" in it."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _own_groups(proc: Path, groups: Path) -> list[Path]:
    """The control groups that this process is in, from its own up to the root."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = groups / "memory" if controllers else groups
        own = root / path.lstrip("/")
        # In a container the path may be that of the host: then only the root is there.
        found += [place for place in (own, *own.parents) if place.is_relative_to(root)]
    return found


def _free_in_group(group: Path) -> int | None:
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most, taken = _number(group / limit), _number(group / used)
        if most is None or taken is None:
            continue
        left = most - taken
        try:
            for line in (group / "memory.stat").read_text().splitlines():
                name, value = line.split()
                if name == ("inactive_file" if limit == "memory.max" else "total_inactive_file"):
                    left += int(value)
        except (OSError, ValueError):
            pass
        return max(left, 0)
    return None
