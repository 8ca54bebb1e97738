"""``--retrain``: better rows while people answer."""

import time
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.annotate import Desk, ProjectAnswers, Store
from likewise.annotate.facts import Said
from likewise.annotate.server.refitting import main as refit
from likewise.annotate.server.refitting import refitted
from likewise.annotate.server.retraining import Plan, Retraining, next_run
from likewise.data import open_source
from likewise.runs import Run
from tests.oracles.contract import blobs


def nearest_accuracy(rows, labels, known):
    others = np.setdiff1d(np.arange(len(rows)), known)
    far = ((rows[others, None] - rows[known]) ** 2).sum(axis=2)
    return (labels[known][far.argmin(axis=1)] == labels[others]).mean()


def test_rows_know_the_answers_then():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    # Only the first two of sixty columns tell the classes apart.
    rows = rng.normal(size=(300, 60)).astype(np.float32)
    rows[:, :2] += 2.0 * np.array([[1, 0], [0, 1], [-1, -1]])[labels]
    keys = [str(number) for number in range(300)]
    said = [
        Said(str(a), str(b), 1.0 if labels[a] == labels[b] else -1.0)
        for a in range(100)
        for b in range(a)
    ]
    found = refitted(rows, keys, ProjectAnswers(said))
    assert found.dtype == np.float32 and len(found) == 300 and np.isfinite(found).all()
    known = np.arange(100)
    before = nearest_accuracy(rows, labels, known)
    assert nearest_accuracy(found, labels, known) > before + 0.05
    # The rows themselves are in it, up to one factor.
    assert np.allclose(found[:, :60] / found[0, 0], rows / rows[0, 0], atol=1e-3)
    with pytest.raises(ValueError, match="fewer than two classes"):
        refitted(rows, keys, ProjectAnswers([Said("1", "2", 1.0)]))


def answer_all(desk, labels, count, who="ann"):
    places = {key: place for place, key in enumerate(desk.source.keys)}
    for number in range(count):
        asked = desk.question(who)
        same = labels[places[asked.exemplar]]
        clicked = [key for key in asked.tiles if labels[places[key]] == same]
        desk.answer(who, id=f"{who}-{number}", question_id=asked.id, clicked=clicked)


def wait_for(condition, seconds=120.0):
    deadline = time.time() + seconds
    while not condition() and time.time() < deadline:
        time.sleep(0.05)
    assert condition()


class Watched(Desk):
    """A desk that remembers the rows it was given."""

    def refit(self, X):
        self.given = X
        super().refit(X)


def test_without_a_run_rows_are_refitted_in_closed_form(tmp_path):
    source = open_source("digits:test").subset(np.arange(200))
    rows, labels = blobs(200, 4, 0)
    rows = rows.astype(np.float32)
    project, told = str(tmp_path / "project.db"), []
    with Store.open(project) as store, Watched(source, rows, store) as desk:
        retraining = Retraining(desk, Plan(project, rows), every=5, tell=told.append)
        # What the child does is done here: another test starts a real one.
        jobs = []
        retraining._process = lambda module, job: jobs.append((module, refit(Path(job))))
        retraining.start()
        answer_all(desk, labels, 4)
        time.sleep(1.5)
        assert retraining.done == 0 and not told  # four are not five
        answer_all(desk, labels, 4, "bob")
        wait_for(lambda: told)
        assert retraining.done == 1, told
        assert jobs == [("likewise.annotate.server.refitting", 0)]
        assert "refitted after" in told[0] and "closed form" in told[0]
        assert desk.given.shape[0] == 200 and desk.given.shape[1] > rows.shape[1]
        answer_all(desk, labels, 1, "eve")  # people go on
        retraining.close()


def test_with_a_run_its_encoder_is_trained_on(photos, tmp_path):
    old, data = tmp_path / "run", str(photos)
    fast = {"epochs": 1, "image_size": 16, "monitor_every": 0, "batch_size": 16, "device": "cpu"}
    likewise.train(data, out=old, encoder="tiny", **fast)
    source = open_source(data)
    rows = np.random.default_rng(0).normal(size=(len(source), 8)).astype(np.float32)
    project, told = str(tmp_path / "project.db"), []
    with Store.open(project) as store, Watched(source, rows, store) as desk:
        answer_all(desk, np.arange(len(source)) % 2, 3)
        plan = Plan(project, rows, old, data, epochs=1, options={"device": "cpu"})
        retraining = Retraining(desk, plan, every=3, tell=told.append).start()
        wait_for(lambda: told)
        retraining.close()
    assert told[0].startswith("refitted after 3"), told
    new = Run.open(tmp_path / "run-asked-1")
    assert new.config["pretrained"] == str(old / "encoder.safetensors")
    assert new.config["answers"] and new.config["encoder"] == "tiny"
    assert retraining.run == new.path and next_run(old).name == "run-asked-2"
    assert desk.given.shape == (len(source), 128)
    # It went on from the old weights: after one epoch they are near.
    a, b = (run.encoder()[0].state_dict() for run in (Run.open(old), new))
    name = next(name for name in a if name.endswith("weight"))
    moved = (a[name] - b[name]).norm() / a[name].norm()
    assert 0 < moved < 0.5


def test_a_refit_that_fails_is_said_and_changes_nothing(tmp_path):
    source = open_source("digits:test").subset(np.arange(60))
    rows, labels = blobs(60, 2, 0)
    project, told = str(tmp_path / "project.db"), []
    with Store.open(project) as store, Watched(source, rows, store) as desk:
        plan = Plan(project, rows, tmp_path / "no-run", "digits:test")
        retraining = Retraining(desk, plan, every=1, tell=told.append).start()
        answer_all(desk, labels, 1)
        wait_for(lambda: told)
        assert told[0].startswith("not refitted") and "no-run" in told[0]
        assert not hasattr(desk, "given") and retraining.done == 0
        answer_all(desk, labels, 1, "bob")
        retraining.close()


def test_stopping_does_not_wait_for_a_refit(tmp_path):
    source = open_source("digits:test").subset(np.arange(60))
    rows, labels = blobs(60, 2, 0)
    project, told = str(tmp_path / "project.db"), []
    with Store.open(project) as store, Watched(source, rows, store) as desk:
        retraining = Retraining(desk, Plan(project, rows), every=1, tell=told.append).start()
        answer_all(desk, labels, 1)
        wait_for(lambda: retraining._child is not None)
        retraining.close()
        assert retraining._child.poll() is not None and not retraining._thread.is_alive()
        assert not told
    with pytest.raises(ValueError, match="retrain_every is 0"):
        Retraining(desk, Plan(project, rows), every=0)
