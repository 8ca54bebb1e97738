"""Where the desk thinks: in a process of its own, in a thread, in the call."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from likewise.annotate import Desk, Store
from likewise.annotate.mind.manner import Manner
from likewise.annotate.mind.process import Elsewhere
from likewise.annotate.mind.snapshot import snapshot_of
from likewise.oracles.answers import Answer
from likewise.oracles.beliefs import ExactBeliefs, NoisyBeliefs
from tests.annotate.clouds import (
    CLASSES,
    ROWS,
    SOURCE,
    TRUTH,
    Ids,
    N,
    answer,
    answer_some,
    caught_up,
    soon,
)
from tests.annotate.databases import KINDS, new_project

PLACES = ("process", "thread", "call")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "project.db") as opened:
        yield opened


def is_there(pid: int) -> bool:
    """Whether a process runs (one that has ended and was not waited for does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_it_works_in_every_place(place, kind, tmp_path):
    new_id, project = Ids(), new_project(kind, tmp_path)
    with Store.open(project) as store:
        with Desk(SOURCE, ROWS, store, grid=6, thinking=place) as desk:
            asked = desk.question("ada")
            answer(desk, "ada", asked, "first")
            placed = caught_up(desk).progress("ada")["placed"]
            assert placed > 0
            desk.undo("ada", id="undone", fact="first")
            assert caught_up(desk).progress("ada")["placed"] == 0
            answer_some(desk, new_id, 12)
            desk.name("ada", id="named", item="photo 0", name="cats")
            before = caught_up(desk).progress("ada")
            rows = ROWS[:, ::-1].copy()
            desk.refit(rows)
            soon(lambda: desk.snapshot is not None and desk._mind.X is rows)
            assert desk.question("ada") is not None
            labels = desk.snapshot.labels
        with Desk(SOURCE, ROWS, store, grid=6, thinking=place) as again:
            np.testing.assert_array_equal(again.snapshot.labels, labels)  # it is all in the facts
            assert caught_up(again).progress("ada")["team"] == before["team"]
            assert "cats" in {one["name"] for one in again.progress("ada")["classes"]}
    placed = labels >= 0
    matched = {(int(c), int(t)) for c, t in zip(labels[placed], TRUTH[placed], strict=True)}
    assert len(matched) == CLASSES


def test_the_same_calls_give_the_same_questions(tmp_path):
    def questions(name: str, seed: int) -> list[object]:
        new_id, found = Ids(), []
        with (
            Store.open(tmp_path / name) as store,
            Desk(SOURCE, ROWS, store, grid=6, seed=seed, thinking="call") as desk,
        ):
            for number in range(15):
                who = f"p{number % 3}"
                asked = desk.question(who, kind="pair" if number % 5 == 4 else "grid")
                if asked is None:
                    break
                found.append((asked.kind, asked.exemplar, asked.tiles, asked.text))
                answer(desk, who, asked, new_id())
        return found

    first = questions("a.db", 1)
    assert len(first) > 8
    assert questions("b.db", 1) == first
    assert questions("c.db", 2) != first


# --- the process ----------------------------------------------------------------------------------


def test_a_process_that_dies_is_replaced(store, caplog):
    new_id = Ids()
    with Desk(SOURCE, ROWS, store, grid=6, thinking="process") as desk:
        answer_some(desk, new_id, 3)
        rows = ROWS + 1.0
        desk.refit(rows)
        soon(lambda: desk._mind.X is rows)
        thinker = desk._mind._thinker
        assert isinstance(thinker, Elsewhere)
        first = thinker._process.pid
        os.kill(first, signal.SIGKILL)
        answer_some(desk, new_id, 3)
        assert thinker._process.pid != first
        assert desk.progress("ada")["team"]["questions"] == 6
        assert desk._mind.X is rows
    assert not is_there(first) and not is_there(thinker._process.pid)
    assert "trying again" in caplog.text


def test_the_process_looks_for_modules_where_the_server_does(store, tmp_path, monkeypatch):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("queue", "json", "numpy"):
        (folder / f"{name}.py").write_text("raise SystemExit('a file of somebody else')")
    monkeypatch.chdir(folder)
    with Desk(SOURCE, ROWS, store, grid=6, thinking="process") as desk:
        assert desk.question("ada") is not None
        assert desk._mind._deaths == 0 and isinstance(desk._mind._thinker, Elsewhere)


def test_where_no_process_lives_the_server_thinks_itself(store, monkeypatch, caplog):
    monkeypatch.setattr("likewise.annotate.mind.process.BEGIN", "raise SystemExit(1)")
    with Desk(SOURCE, ROWS, store, grid=6, thinking="process") as desk:
        soon(lambda: desk.question("ada") is not None)
        assert not isinstance(desk._mind._thinker, Elsewhere)
    assert "it happens in this one now" in caplog.text


def test_an_index_that_failed_is_built_again(store, monkeypatch):
    calls, usual = [], Manner.probe

    def probe(manner, X):
        calls.append(1)
        if len(calls) == 1:
            raise MemoryError
        return usual(manner, X)

    monkeypatch.setattr(Manner, "probe", probe)
    monkeypatch.setattr("likewise.annotate.mind.building.AGAIN", 0.1)
    with Desk(SOURCE, ROWS, store, grid=6, thinking="thread") as desk:
        soon(lambda: len(desk._mind.pool) > 0)
        assert len(calls) == 2 and desk.question("ada") is not None


def test_the_process_ends_when_the_server_is_killed(tmp_path):
    code = (
        "import time; from likewise.annotate import Desk, Store; "
        "from tests.annotate.clouds import ROWS, SOURCE; "
        f"store = Store.open({str(tmp_path / 'project.db')!r}); "
        "desk = Desk(SOURCE, ROWS, store, grid=6, thinking='process'); "
        "assert desk.question('ada') is not None; "
        "print(desk._mind._thinker._process.pid, flush=True); time.sleep(60)"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert server.stdout is not None
    mind = int(server.stdout.readline())
    assert is_there(mind)
    server.kill()
    server.wait()
    server.stdout.close()
    soon(lambda: not is_there(mind))
    with Store.open(tmp_path / "project.db") as store:
        assert len(store.open_leases("ada")) == 1


def test_the_process_has_a_low_priority(store):
    with Desk(SOURCE, ROWS, store, thinking="process") as desk:
        assert desk.question("ada") is not None
        tasks = Path(f"/proc/{desk._mind._thinker._process.pid}/task")

        def priorities() -> set[int]:
            return {os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in tasks.iterdir()}

        soon(lambda: min(priorities()) >= 10)  # also that of the thread that builds the index


# --- what it says ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ExactBeliefs, NoisyBeliefs])
@pytest.mark.parametrize("seed", range(5))
def test_a_snapshot_says_what_beliefs_say(kind, seed):
    rng = np.random.default_rng(seed)
    n = 40
    beliefs = kind(n)
    truth = rng.integers(0, 4, n)
    for _ in range(int(rng.integers(1, 150))):
        a, b = rng.choice(n, 2, replace=False).tolist()
        value = 1.0 if truth[a] == truth[b] else -1.0
        if rng.random() < 0.1:
            value = float(rng.choice([-value, 0.0, 0.3]))
        beliefs.add([Answer(a, b, value, f"p{rng.integers(3)}")])
    snapshot = pickle.loads(pickle.dumps(snapshot_of(beliefs).derive()))
    np.testing.assert_array_equal(snapshot.labels, beliefs.labels())
    np.testing.assert_array_equal(snapshot.groups, beliefs.groups())
    assert snapshot.n_classes == beliefs.n_classes
    for item in range(n):
        expected = beliefs.relations(item, np.arange(n)).tolist()
        assert snapshot.relations(item, list(range(n))) == expected


def test_a_snapshot_of_many_items_is_small():
    beliefs = ExactBeliefs(1_000_000).add([Answer(k, k + 7, 1.0) for k in range(0, 900, 9)])
    assert len(pickle.dumps(snapshot_of(beliefs).derive())) < 20_000


def test_a_place_that_is_none_is_refused(store):
    with pytest.raises(ValueError, match="thinking is 'dream'"):
        Desk(SOURCE, ROWS, store, thinking="dream")


def test_few_items_have_a_thread_and_many_a_process(store, monkeypatch):
    with Desk(SOURCE, ROWS, store) as desk:
        assert desk._mind.place == "thread"
    monkeypatch.setattr("likewise.annotate.desk.desk.MANY", N)
    with Desk(SOURCE, ROWS, store) as desk:
        assert desk._mind.place == "process"
        assert desk.question("ada") is not None
