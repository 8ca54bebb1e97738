"""What a step frees is there for the next one, and goes back to the system in the end."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

import likewise
from likewise.training.freed_memory import keep_freed_memory
from tests.training.driver import pictures
from tests.training.test_prepared import prepared

BLOCKS = """
import resource
from contextlib import nullcontext
import torch
from likewise.training.freed_memory import keep_freed_memory

PAGE = resource.getpagesize()

def new_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt * PAGE

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE

def five_blocks(context, size):
    with context:
        torch.ones(size // 4)
        before = new_bytes()
        for _ in range(5):
            torch.ones(size // 4)
        print((new_bytes() - before) / size, end=" ")
        most = held()
    print((most - held()) / size)

five_blocks(nullcontext(), 100 * 2**20)
five_blocks(keep_freed_memory(), 100 * 2**20)
# Larger than the place that the last ones may have left in the heap.
five_blocks(nullcontext(), 200 * 2**20)
"""


def test_a_block_that_was_freed_is_used_again_and_given_back_at_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (before, _), (meanwhile, given_back), (after, _) = (
        map(float, line.split()) for line in done.stdout.splitlines()
    )
    # In blocks: each is new to the process, but for those that it has kept.
    assert before > 4.5 and after > 4.5
    assert meanwhile < 0.5
    assert given_back > 0.9


def test_without_glibc_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    with keep_freed_memory():
        assert len(bytearray(2**20)) == 2**20


def test_it_is_kept_where_half_of_the_memory_stays_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = import_module("likewise.training.estimate")
    for free, kept in ((2**30, True), (2**22, False)):
        monkeypatch.setattr(estimate, "available_memory", lambda device, free=free: free)
        assert prepared(pictures(32), tmp_path / "run", force=True).keep_memory is kept


def test_a_training_on_a_cpu_keeps_it_and_lets_go_when_it_ends_badly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    @contextmanager
    def watched() -> Iterator[None]:
        seen.append("kept")
        try:
            with keep_freed_memory():
                yield
        finally:
            seen.append("let go")

    monkeypatch.setattr(import_module("likewise.training.fit"), "keep_freed_memory", watched)
    few = {"encoder": "tiny", "device": "cpu", "batch_size": 16, "logger": ["csv"], "epochs": 1}
    likewise.train(pictures(32), out=tmp_path / "good", **few)
    assert seen == ["kept", "let go"]
    with pytest.raises(RuntimeError, match="loss is"):
        likewise.train(pictures(32), out=tmp_path / "bad", lr=1e30, log_every=1, **few)
    assert seen == ["kept", "let go"] * 2
