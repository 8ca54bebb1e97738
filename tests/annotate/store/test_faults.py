"""What is acknowledged is there: after kill -9, on a full disk, with two processes that write."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from likewise.annotate import Fact, NotSaved, Store
from tests.annotate.databases import KINDS, new_project

WRITER = """
import sys
from likewise.annotate.facts import Fact
from likewise.annotate.store import Store

store = Store.open(sys.argv[1])
name, number = sys.argv[2], 0
while True:
    facts = [
        Fact(f"{name}-{number}-{k}", "name", name, 0.0, {"item": "a" * 500, "name": "cats"})
        for k in range(2)
    ]
    store.lease(f"q-{name}-{number}", name, [f"item {number % 7} of {name}"], seconds=0.001)
    store.append(facts, release=[f"q-{name}-{number}"])
    sys.stdout.write("".join(fact.id + chr(10) for fact in facts))
    sys.stdout.flush()
    number += 1
"""


def acknowledged(project: str, name: str, seconds: float) -> list[str]:
    """What a process was told to be saved before it was killed with -9."""
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, project, name], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    lines = [child.stdout.readline().strip()]  # it has begun
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.read().split("\n")
    child.wait()
    return [line for line in lines if line]


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_is_killed_loses_nothing_that_was_acknowledged(kind, tmp_path):
    project = new_project(kind, tmp_path)
    Store.open(project).close()
    told: list[str] = []
    for round in range(5):
        told += acknowledged(project, f"round {round}", 0.05 + 0.07 * round)
        with Store.open(project) as store:  # and whoever comes next can go on at once
            ids = [fact.id for _, fact in store.facts()]
            assert len(ids) == len(set(ids))
            assert set(told) <= set(ids)
            # A transaction is there as a whole, also the one that was under way.
            assert len(ids) % 2 == 0
            assert store.append([Fact(f"after {round}", "undo", "x", 0.0, {"fact": "1"})] * 2) == [
                True,
                False,
            ]
            store.append([Fact(f"again {round}", "undo", "x", 0.0, {"fact": "1"})])
    assert len(told) >= 10


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from likewise.annotate.facts import Fact
from likewise.annotate.store import NotSaved, Store

store = Store.open(sys.argv[1])
# No file may grow any more from here on: what a full disk does.
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
number = failed = 0
while failed < 3:
    fact = Fact(f"{number}", "name", "ada", 0.0, {"item": "a" * 3000, "name": "cats"})
    try:
        store.append([fact])
        print("saved", fact.id, flush=True)
    except NotSaved as error:
        print("refused", fact.id, error, flush=True)
        failed += 1
    number += 1
print("read", len(store.facts()), flush=True)  # reading goes on
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
fact = Fact("room again", "name", "ada", 0.0, {"item": "a", "name": "cats"})
print("saved" if store.append([fact]) == [True] else "lost", "room", flush=True)
"""


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path):
    project = tmp_path / "project.db"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(project), "300000"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    saved = [line[1] for line in lines if line[0] == "saved"]
    refused = [line for line in lines if line[0] == "refused"]
    assert len(saved) > 5
    assert len(refused) == 3
    assert all("nothing was saved" in " ".join(line) for line in refused)
    assert saved[-1] == "room"
    assert ["read", str(len(saved) - 1)] in lines
    with Store.open(project) as store:
        ids = [fact.id for _, fact in store.facts()]
    assert ids == [*saved[:-1], "room again"]
    with sqlite3.connect(project) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_database_says_so(tmp_path):
    with Store.open(tmp_path / "project.db") as store:
        store.append([Fact("1", "undo", "ada", 0.0, {"fact": "0"})])
        connection = store._connections._writers[True]
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        connection.rollback()
        big = Fact("2", "name", "ada", 0.0, {"item": "a" * 4000, "name": "cats"})
        with pytest.raises(NotSaved, match="the disk is full"):
            for number in range(10):
                store.append([Fact(f"big {number}", *list(big.to_dict().values())[1:])])
        connection.exec_driver_sql("PRAGMA max_page_count=1000000")
        connection.rollback()
        assert store.append([big]) == [True]


def test_two_processes_that_write_are_never_locked_out(tmp_path):
    project = str(tmp_path / "project.db")
    with Store.open(project) as store:
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, project, "other"], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        told, number = [child.stdout.readline().strip()], 0
        until = time.monotonic() + 60
        while len(told) < 40 and time.monotonic() < until:
            # As fast as they can, both of them: each has to get its turn.
            for _ in range(3):
                fact = Fact(f"m{number}", "undo", "ada", 0.0, {"fact": "1"})
                assert store.append([fact]) == [True]
                assert store.lease(f"l{number}", "ada", [f"mine {number}"])
                number += 1
            told.append(child.stdout.readline().strip())
        child.send_signal(signal.SIGKILL)
        told += child.stdout.read().split("\n")
        child.wait()
        ids = {fact.id for _, fact in store.facts()}
        assert {f"m{k}" for k in range(number)} <= ids
        assert len(told) >= 40 and {id for id in told if id} <= ids


def test_a_closed_store_refuses_politely(tmp_path):
    store = Store.open(tmp_path / "project.db")
    store.close()
    with pytest.raises(NotSaved, match="is closed"):
        store.append([Fact("1", "undo", "ada", 0.0, {"fact": "0"})])


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        Store.open(Path(tmp_path / "file" / "project.db"))
