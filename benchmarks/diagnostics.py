"""Time and memory of the diagnostics on a million rows.

    python benchmarks/diagnostics.py --rows 1000000 --dim 512

Prints a Markdown table; memory is the peak of the whole process, data and PyTorch included.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import torch

from likewise.diagnostics import alignment, nearest_of_many, spectrum, uniformity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=512)
    given = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(given.rows, given.dim, generator=generator)
    cases: dict[str, Callable[[], object]] = {
        "`spectrum`": lambda: spectrum(z),
        "`uniformity`": lambda: uniformity(z),
        "`alignment`": lambda: alignment(z, z),
        "`nearest_of_many`, 10 neighbours of 1,000 queries": lambda: nearest_of_many(
            z, z[:1000], 10
        ),
    }
    total = 0.0
    print("| | wall time | peak memory |\n| --- | ---: | ---: |")
    for name, case in cases.items():
        started = time.perf_counter()
        case()
        seconds = time.perf_counter() - started
        total += seconds
        print(f"| {name} | {seconds:.0f} s | {_peak():.1f} GiB |", flush=True)
    print(f"| together | {total:.0f} s | {_peak():.1f} GiB |")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
