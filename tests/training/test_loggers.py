"""Where figures go. W&B and MLflow are not installed here: what they are asked for is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch import loggers

from likewise.runs import Run
from likewise.training.loggers import build_logger


class Asked:
    """A logger that keeps what it was asked for."""

    def __init__(self, **asked: Any) -> None:
        self.asked = asked
        self.run_id = asked.get("run_id") or "a-new-one"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(loggers, "WandbLogger", Asked)
    monkeypatch.setattr(loggers, "MLFlowLogger", Asked)
    for name in ("WANDB_PROJECT", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "RANK"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a").mkdir()
    return Run(tmp_path / "a")


def asked(name: Any, run: Run, resumed_at: int | None) -> dict[str, Any]:
    logger: Any = build_logger(name, run, resumed_at, first=True)
    return dict(logger.asked)


def test_a_resumed_run_goes_on_with_its_curves_in_wandb(run: Run) -> None:
    new, resumed = asked("wandb", run, None), asked("wandb", run, 12)
    assert new["id"] == resumed["id"] and (new["resume"], resumed["resume"]) == (None, "allow")
    other = Run(run.path.with_name("b"))
    assert asked("wandb", other, None)["id"] != new["id"]


def test_a_resumed_run_goes_on_with_its_curves_in_mlflow(run: Run) -> None:
    assert asked("mlflow", run, None)["run_id"] is None
    assert asked("mlflow", run, 12)["run_id"] == "a-new-one"
    assert asked("mlflow", run, None)["run_id"] is None  # one that begins anew is another


def test_the_environment_says_where(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked("mlflow", run, None)["tracking_uri"] == f"sqlite:///{run.path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://there")
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    assert asked("mlflow", run, None)["tracking_uri"] == "http://there"
    assert asked("wandb", run, None)["project"] == "mine"
