"""What may break while people answer: the process, the disk, the clock."""

import argparse
import importlib.util
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from likewise.annotate import Desk, Store
from likewise.annotate.server import Invited, OnePerson, create_app, running
from likewise.data import open_source
from tests.annotate.databases import KINDS, new_project
from tests.annotate.server.conftest import Page


def script(name: str):
    """A module of benchmarks/, which is no package."""
    path = Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


load = script("annotate_load")
benchmark = script("annotate")


def settings(**changes) -> argparse.Namespace:
    usual = {"people": 8, "every": 0.4, "items": 600, "dim": 8, "classes": 6, "pictures": False}
    usual |= {"killed_after": (0.1, 1.5), "warm_up": 1.0}
    return argparse.Namespace(**{**usual, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_killed_under_load_nothing_acknowledged_is_lost(kind, tmp_path):
    # `python benchmarks/annotate.py --kills 100` is the long form of this.
    kills = 5 if kind == "sqlite" else 2
    found = benchmark.kill_often(settings(kills=kills), new_project(kind, tmp_path), tmp_path)
    checked = found["audit"]
    assert checked["acknowledged"] > 20
    assert checked["failures"]  # the kills were noticed
    assert (checked["lost"], checked["duplicates"], checked["shared"]) == (0, 0, 0)
    assert (checked["refused"], checked["errors"], found["locked"]) == (0, 0, 0)


def test_the_audit_can_fail(tmp_path):
    project = new_project("sqlite", tmp_path)
    with Store.open(project) as store, a_desk(store) as desk:
        for who in ("ann", "bob"):
            asked = desk.question(who)
            desk.answer(who, id=f"{who}-1", question_id=asked.id, skipped=True)
    logs = {
        "ann": [
            {"acknowledged": "ann-1"},
            {"acknowledged": "ann-2"},  # nobody has it
            {"again": "ann-1", "new": True},
            {"asked": "q", "exemplar": "1", "tiles": ["2"], "at": 0.0},
            {"sent": "x", "question": "q", "at": 2.0},
        ],
        "bob": [
            {"asked": "p", "exemplar": "2", "tiles": ["1", "3"], "at": 1.0},
            {"sent": "y", "question": "p", "at": 3.0},
            {"asked": "q", "exemplar": "5", "tiles": ["6"], "at": 4.0},
        ],
    }
    checked = load.audit(project, logs)
    assert (checked.acknowledged, checked.stored, checked.lost) == (2, 2, 1)
    assert checked.duplicates == 1
    assert load.shared_questions(logs, {}) == 1  # the question q
    assert load.shared_questions(logs, {"q": set(), "p": {"3"}}) == 2  # and the pair 1, 2


def a_desk(store: Store) -> Desk:
    source = open_source("digits:test").subset(np.arange(300))
    return Desk(source, np.random.default_rng(0).normal(size=(300, 6)), store)


def test_a_full_disk_is_said_and_forgotten_once_there_is_room(tmp_path):
    project = str(tmp_path / "project.db")
    with Store.open(project) as store:
        token = store.add_person("ann")
    with benchmark.socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    job = {"items": 600, "dim": 8, "classes": 6, "spread": 1.0, "project": project, "port": port}
    server = load.Server(job, tmp_path / "server.log")
    server.start(token)
    page = Page(f"http://127.0.0.1:{port}", token)

    def answer(number: int) -> int:
        asked = page.get("/api/question")
        if asked.status_code != 200:
            return asked.status_code
        found = asked.json()
        body = {"id": f"a{number}", "question_id": found["id"], "question": found}
        return page.post("/api/answers", body).status_code

    assert answer(0) == 200
    # SQLite's log may not grow any more: as on a full disk, for this process alone.
    size = Path(f"{project}-wal").stat().st_size
    whole = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    statuses = [answer(number) for number in range(1, 30)]
    assert set(statuses) <= {200, 503} and statuses[-1] == 503
    assert page.get("/api/session").status_code == 200
    assert page.get("/api/progress").status_code == 200
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, whole)
    assert answer(100) == 200
    server.close()
    page.close()
    said = {f"a{number}" for number, status in enumerate(statuses, 1) if status == 200}
    with Store.open(project) as store:
        kept = [fact.id for _, fact in store.facts()]
    assert len(kept) == len(set(kept)) and said | {"a0", "a100"} == set(kept)


def test_a_clock_that_jumps_back(tmp_path):
    now = [1_800_000_000.0]
    with Store.open(tmp_path / "project.db", clock=lambda: now[0]) as store, a_desk(store) as desk:
        tokens = [store.add_person(name, expires=now[0] + 1e6) for name in ("ann", "bob")]
        with running(create_app(desk, access=Invited(store))) as address:
            ann, bob = (Page(address, token) for token in tokens)
            order, open_tiles = [], []
            for number, jump in enumerate((0.0, -86400.0, -3600.0, 10.0, -1e6)):
                now[0] += jump
                for page in (ann, bob):
                    asked = page.get("/api/question").json()
                    open_tiles.append({tile["key"] for tile in asked["tiles"]})
                    body = {"id": f"{number}-{len(order)}", "question_id": asked["id"]}
                    assert page.post("/api/answers", body).json() == {"saved": True, "new": True}
                    assert page.post("/api/answers", body).json()["new"] is False
                    order.append(body["id"])
            assert [fact.id for _, fact in store.facts()] == order  # not by the clock
            newest = ann.get("/api/history").json()[0]["id"]
            assert newest == order[-2]
            assert ann.post("/api/undo", {"id": "u", "fact": newest}).json()["new"] is True


def test_a_server_that_is_stopped_finishes_what_it_began(tmp_path):
    with Store.open(tmp_path / "project.db") as store:
        token = store.add_person("ann")
    with benchmark.socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    job = {
        "items": 300,
        "dim": 4,
        "classes": 3,
        "spread": 1.0,
        "project": str(tmp_path / "project.db"),
        "port": port,
    }
    server = load.Server(job, tmp_path / "server.log")
    server.start(token)
    pid = server.pid
    server.end(signal.SIGTERM)
    deadline = time.time() + 20
    while Path(f"/proc/{pid}").exists() and time.time() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
    # Closed in good order: SQLite has put its log away.
    assert not (tmp_path / "project.db-wal").exists()
    server.close()
    assert "Traceback" not in (tmp_path / "server.log").read_text()


def test_one_person_can_go_on_where_another_server_was_killed(tmp_path):
    project = tmp_path / "project.db"
    with Store.open(project) as store:
        with a_desk(store) as desk, running(create_app(desk, access=OnePerson("ann"))) as first:
            page = Page(first)
            asked = page.get("/api/question").json()
        # The page still has the question; another process answers for the first.
        with a_desk(store) as desk, running(create_app(desk, access=OnePerson("ann"))) as second:
            late = Page(second)
            body = {"id": "late", "question_id": asked["id"], "question": asked}
            assert late.post("/api/answers", body).json() == {"saved": True, "new": True}
            assert late.get("/api/history").json()[0]["id"] == "late"
