"""Views and recipes of one's own: given from Python, YAML or the command line, and repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import likewise
from likewise.commands.line import main
from likewise.data import open_source
from likewise.data.views import POLICIES
from likewise.training import RECIPES, Recipe
from likewise.training.checkpoints import Checkpoints
from likewise.training.choices import choose_views
from likewise.training.module import TrainingModule
from tests.training.driver import pictures

OWN = POLICIES["simclr"].with_(rotation=10.0, cutout=0.5, noise=0.5, crop_scale=(0.5, 1.0))


def arguments(**changes: Any) -> dict[str, Any]:
    small: dict[str, Any] = {
        "encoder": "tiny",
        "projector": [8],
        "epochs": 1,
        "batch_size": 8,
        "device": "cpu",
        "logger": ["csv"],
        "diagnose_every": 0,
    }
    return {**small, **changes}


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The policies that trainings made their views by."""
    found: list[Any] = []
    original = TrainingModule.__init__

    def noted(self: Any, learner: Any, images: Any, views: Any, *others: Any, **more: Any) -> None:
        found.append(views.policy)
        original(self, learner, images, views, *others, **more)

    monkeypatch.setattr(TrainingModule, "__init__", noted)
    return found


def test_a_policy_is_written_down_and_repeated(tmp_path: Path, used: list[Any]) -> None:
    np.save(tmp_path / "images.npy", pictures(16))
    data = str(tmp_path / "images.npy")
    run = likewise.train(data, out=tmp_path / "a", views=OWN, **arguments())  # type: ignore[arg-type]
    assert used == [OWN]
    assert yaml.safe_load((run.path / "config.yaml").read_text())["views"] == OWN.to_dict()
    again = ["--config", str(run.path / "config.yaml"), "--out", str(tmp_path / "b")]
    assert main(["train", *again]) == 0
    assert used == [OWN, OWN]
    first, second = (likewise.Run.open(tmp_path / name).summary["loss"] for name in "ab")
    assert first == second


def test_a_resumed_run_makes_the_same_views(
    tmp_path: Path, used: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class HaltedError(Exception):
        pass

    source, original = open_source(pictures(16)), Checkpoints.on_train_epoch_end

    def halt(self: Any, trainer: Any, module: Any) -> None:
        original(self, trainer, module)
        raise HaltedError

    with monkeypatch.context() as patch, pytest.raises(HaltedError):
        patch.setattr(Checkpoints, "on_train_epoch_end", halt)
        likewise.train(
            source,
            out=tmp_path / "a",
            views=OWN,  # type: ignore[arg-type]
            **arguments(epochs=2, checkpoint_steps=1),
        )
    run = likewise.train(source, resume=tmp_path / "a", views=OWN)  # type: ignore[arg-type]
    assert used == [OWN, OWN]
    assert run.summary["epochs"] == 2


def test_the_command_line_takes_fields_over_those_of_a_policy(
    tmp_path: Path, used: list[Any]
) -> None:
    np.save(tmp_path / "images.npy", pictures(16))
    words = ["--encoder", "tiny", "--projector", "[8]", "--epochs", "1", "--batch-size", "8"]
    words += ["--device", "cpu", "--diagnose-every", "0", "--out", str(tmp_path / "a")]
    views = {"base": "simclr", "rotation": 10}
    given = ["--views", json.dumps(views)]
    assert main(["train", str(tmp_path / "images.npy"), *words, *given]) == 0
    assert used == [POLICIES["simclr"].with_(rotation=10)]
    assert likewise.Run.open(tmp_path / "a").config["views"] == views
    # The words of a run may stand beside --resume.
    assert main(["train", "--resume", str(tmp_path / "a"), *given]) == 0


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        ({"base": "simclr", "rotatoin": 10}, "'rotatoin' is no field of a policy"),
        ({"base": "simclr", "flip": 2}, "flip is 2: give a probability"),
        ("simclrr", r"policy is 'simclrr' \(did you mean 'simclr'\?\): give one of none"),
    ],
)
def test_views_without_a_meaning_leave_nothing_behind(
    tmp_path: Path, views: Any, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        likewise.train(open_source(pictures(16)), out=tmp_path / "a", views=views, **arguments())
    assert not (tmp_path / "a").exists()


def test_a_recipe_of_ones_own_is_trained_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Recipe(title="Mine", paper="ours", objective="VICReg", projector=(8,), lr=0.05)
    source = open_source(pictures(16))
    with pytest.raises(ValueError, match=r"recipe is a Recipe: .*RECIPES\[\"mine\"\] = Recipe"):
        likewise.train(source, out=tmp_path / "a", recipe=mine, **arguments())  # type: ignore[arg-type]
    assert not (tmp_path / "a").exists()
    with monkeypatch.context() as patch:
        patch.setitem(RECIPES, "mine", mine)
        run = likewise.train(source, out=tmp_path / "a", recipe="mine", **arguments())
    assert run.config["recipe"] == run.summary["recipe"] == "mine"
    assert run.config["lr"] == pytest.approx(0.05 * 8 / 256)
    # A run that was not finished, in a process that does not know the recipe.
    (run.path / "summary.json").unlink()
    with pytest.raises(ValueError, match=r"register your own first.*RECIPES\['mine'\]"):
        likewise.train(source, resume=run.path)


@pytest.mark.parametrize(
    ("data", "views"),
    [
        ("digits", "digits"),
        ("digits:test", "digits"),
        ("digits, given in Python", "digits"),
        ("digits-photos", "byol"),
        ("digits.parquet", "byol"),
    ],
)
def test_only_the_built_in_digits_have_views_of_their_own(data: str, views: str) -> None:
    config = {"views": None, "data": data, "image_size": 32}
    assert choose_views(RECIPES["byol"], config) == views


def test_labels_that_are_an_array_have_their_own_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"labels is a ndarray.*open_source\(data, labels=...\)"):
        likewise.train(
            open_source(pictures(16)),
            out=tmp_path / "a",
            labels=np.zeros(16),  # type: ignore[arg-type]
            **arguments(),
        )
