"""The figures of `use.py`: each is kept in docs/benchmarks/use.json as soon as it is known."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from likewise.runs import write_atomically

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "use.json"
PAGE = FIGURES.with_suffix(".md")


def figures() -> dict[str, Any]:
    return dict(json.loads(FIGURES.read_text())) if FIGURES.is_file() else {}


def keep(name: str, entry: dict[str, Any]) -> None:
    with write_atomically(FIGURES) as aside:
        aside.write_text(json.dumps(figures() | {name: entry}, indent=1) + "\n")


def stamp() -> dict[str, Any]:
    return {"machine": machine(), "load": round(os.getloadavg()[0], 1)}


def measure(name: str, encoder: str, parts: dict[str, Callable[[], dict[str, Any]]]) -> None:
    """Each part that is not known yet of this encoder, kept as soon as it is."""
    entry = figures().get(name, {})
    if entry.get("encoder") != encoder:
        entry = {"encoder": encoder, "parts": {}}
    for part, how in parts.items():
        if part not in entry["parts"]:
            begun = time.perf_counter()
            found = how()
            took = {"took": round(time.perf_counter() - begun, 1)}
            entry["parts"][part] = found | took | stamp()
            keep(name, entry)
            print(name, part, entry["parts"][part], flush=True)


def machine() -> str:
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {platform.machine()}, PyTorch {torch.__version__}"
