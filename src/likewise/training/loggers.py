"""Where the figures of a run go: its own CSV file, TensorBoard, W&B, MLflow."""

from __future__ import annotations

import os
from typing import Literal

from lightning.pytorch.loggers import Logger

from likewise.runs import Run
from likewise.runs.cache import distinct_name
from likewise.runs.files import write_atomically
from likewise.training.metrics import MetricsFile

LoggerName = Literal["csv", "tensorboard", "wandb", "mlflow"]

MLFLOW_RUN = "mlflow-run"
"""A file of the run: what MLflow calls it, so that a resumed run goes on with the same curves."""


def build_logger(name: LoggerName, run: Run, resumed_at: int | None, *, first: bool) -> Logger:
    """Lightning's logger of that name.

    Args:
        name: of the logger.
        run: whose figures they are.
        resumed_at: the step that a resumed run starts from; None for a new run.
        first: whether this process is the one that writes.
    """
    from lightning.pytorch import loggers

    title = run.path.name
    if name == "csv":
        return MetricsFile(run.path, resumed_at=resumed_at)
    if name == "tensorboard":
        return loggers.TensorBoardLogger(run.path, name="", version="tensorboard")
    if name == "wandb":
        return loggers.WandbLogger(
            name=title,
            save_dir=run.path,
            project=os.environ.get("WANDB_PROJECT", "likewise"),
            id=distinct_name(title, str(run.path)),
            resume=None if resumed_at is None else "allow",
        )
    return _mlflow(run, resumed_at, first=first)


def _mlflow(run: Run, resumed_at: int | None, *, first: bool) -> Logger:
    from lightning.pytorch import loggers

    kept = run.path / MLFLOW_RUN
    known = resumed_at is not None and kept.is_file()
    logger = loggers.MLFlowLogger(
        experiment_name=os.environ.get("MLFLOW_EXPERIMENT_NAME", "likewise"),
        run_name=run.path.name,
        # MLflow's folders of files have had their day.
        tracking_uri=os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{run.path / 'mlflow.db'}"),
        run_id=kept.read_text().strip() if known else None,
    )
    if first and not known:
        with write_atomically(kept) as aside:
            aside.write_text(f"{logger.run_id}\n")
    return logger
