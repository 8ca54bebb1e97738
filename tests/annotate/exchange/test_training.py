"""``likewise train --answers``: what people said is the graph."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from likewise.annotate import Store
from likewise.annotate.facts import Fact
from likewise.commands.errors import UsageError
from likewise.commands.train import _graph_of_answers, train
from likewise.data.arrays import ArraySource
from likewise.training.known import without_password
from likewise.training.session import prepare

SMALL = {"encoder": "tiny", "epochs": 1, "batch_size": 16, "monitor_every": 0, "image_size": 8}


def pictures(prefix: str = "picture") -> ArraySource:
    pixels = np.random.default_rng(0).integers(0, 255, (32, 8, 8), dtype=np.uint8)
    return ArraySource(pixels, keys=[f"{prefix} {k}" for k in range(32)])


def said(id: str, exemplar: int, candidates: list[int], clicked: list[int]) -> Fact:
    keys = pictures().keys
    question = {
        "kind": "grid",
        "exemplar": keys[exemplar],
        "candidates": [keys[k] for k in candidates],
    }
    body = {"question": question, "clicked": [keys[k] for k in clicked]}
    return Fact(id, "answer", "ada", 0.0, body)


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "project.db"
    with Store.open(path) as store:
        store.append([said("1", 0, [1, 2, 3], [1, 2]), said("2", 3, [4], [4])])
    return path


def prepared(**more):
    """A training as `likewise train` prepares it."""
    defaults = {name: p.default for name, p in inspect.signature(train).parameters.items()}
    return prepare(
        **{**defaults, **SMALL, "data": pictures(), "graph_of_answers": _graph_of_answers, **more}
    )


def known(training, rows: list[int]) -> torch.Tensor:
    return torch.as_tensor(training.plan.graph(torch.tensor(rows)).dense()).double()


def test_the_graph_is_what_the_answers_say_and_imply(project, tmp_path):
    training = prepared(
        out=tmp_path / "run", answers=str(project), label_weight=0.25, sampler="shuffled"
    )
    wanted = torch.eye(5).double()
    wanted[0, 1] = wanted[1, 0] = 0.25  # both are alike to 0
    wanted[:2, 2:4] = wanted[2:4, :2] = -0.25  # 3 differs from 0, and 4 is alike to 3
    wanted[2, 3] = wanted[3, 2] = 0.25
    torch.testing.assert_close(known(training, [1, 2, 3, 4, 9]), wanted)


def test_a_run_keeps_its_answers_and_is_resumed_on_them(project, tmp_path):
    run = train(pictures(), **SMALL, out=tmp_path / "run", answers=str(project))
    assert (run.path / "encoder.safetensors").is_file()
    assert run.config["answers"] == str(project)
    # 4 pairs alike and 6 different, of 32 x 31 / 2: of 15 others in the batch, so many are known.
    partners = 15 * 10 / (32 * 31 / 2)
    assert run.config["label_weight"] == pytest.approx(1 / (1 + partners), rel=1e-2)
    with Store.open(project) as store:  # people went on meanwhile
        store.append([said("3", 0, [9], [9])])
    project.unlink()
    again = prepared(resume=run.path, out=None)
    block = known(again, [0, 1, 9])
    assert block[0, 1] > 0
    assert block[0, 2] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"labels": "source"}, "both answers and labels"),
        ({"recipe": "supervised-mse"}, "needs labels"),
        ({"answers": "nowhere.db"}, "there is no such file"),
        ({"data": pictures("other")}, "none of them about these images"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(more, message, project, tmp_path):
    options = {"data": pictures(), **SMALL, "out": tmp_path / "run", "answers": str(project)}
    with pytest.raises(UsageError, match=message):
        train(**{**options, **more})


def test_a_password_is_not_written_down():
    assert without_password("postgresql://ada:se:cret@h/x") == "postgresql://ada@h/x"
    assert without_password("postgresql://ada@h/x?a=b") == "postgresql://ada@h/x?a=b"
    assert without_password("/home/ada/project.db") == "/home/ada/project.db"
