"""Ctrl-C and SIGTERM: a checkpoint, a line that says how to go on, and the weights of a run that
was never stopped."""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from safetensors.torch import load_file

import likewise
from likewise.commands import main
from likewise.training.checkpoints import Checkpoints
from likewise.training.module import TrainingModule
from likewise.training.progress import ProgressLine
from likewise.training.stopping import HEARD, STOPPING, StopSignals
from tests.training.driver import pictures

# 6 steps an epoch.
QUICK = ["--recipe=byol", "--encoder=tiny", "--projector=[16,8]", "--epochs=3", "--batch-size=8",
         "--device=cpu", "--logger=[csv]", "--monitor-every=1", "--diagnose-every=1"]  # fmt: skip


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "pictures.npy"
    np.save(path, pictures(48))
    return path


@pytest.fixture(scope="module")
def whole(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert main(["train", str(images), "--out", str(out), *QUICK]) == 0
    return out


def signalled(monkeypatch: pytest.MonkeyPatch, step: int, *numbers: int) -> None:
    """Send signals to this process in the middle of a step."""
    original = TrainingModule.training_step

    def training_step(self: Any, *given: Any) -> Any:
        if self.trainer.global_step == step:
            for number in numbers:
                os.kill(os.getpid(), number)
        return original(self, *given)

    monkeypatch.setattr(TrainingModule, "training_step", training_step)


def lines(run: Path) -> list[dict[str, str]]:
    with (run / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("step", "number", "epoch"),
    [
        (0, signal.SIGINT, 1),  # the first
        (8, signal.SIGINT, 2),  # in the middle of an epoch
        (11, signal.SIGINT, 2),  # the last of one
        (8, signal.SIGTERM, 2),
    ],
)
def test_stopped_and_resumed_is_as_if_never_stopped(
    step: int,
    number: int,
    epoch: int,
    images: Path,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "run"
    before = [signal.getsignal(heard) for heard in HEARD]
    signalled(monkeypatch, step, number)
    assert main(["train", str(images), "--out", str(run), *QUICK]) == 128 + number
    monkeypatch.undo()
    assert [signal.getsignal(heard) for heard in HEARD] == before
    said = capfd.readouterr().err
    assert f"stopped at epoch {epoch}; go on with: likewise train --resume {run}\n" in said
    assert "stopping after this step" in said
    assert torch.load(run / "checkpoints/last.ckpt", weights_only=False)["global_step"] == step + 1
    assert (run / "encoder.safetensors").is_file()
    assert not (run / "summary.json").exists()
    assert main(["train", "--resume", str(run)]) == 0
    found, expected = (load_file(path / "encoder.safetensors") for path in (run, whole))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert lines(run) == lines(whole)
    summaries = [likewise.Run.open(path).summary for path in (run, whole)]
    assert summaries[0]["history"] == summaries[1]["history"]
    assert summaries[0]["loss"] == summaries[1]["loss"]


def test_a_signal_in_the_last_step_leaves_a_finished_run_and_is_passed_on(
    images: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to resume, but whoever trains in a loop is to stop there."""
    run = tmp_path / "run"
    signalled(monkeypatch, 17, signal.SIGINT)
    assert main(["train", str(images), "--out", str(run), *QUICK]) == 130
    found, expected = (load_file(path / "encoder.safetensors") for path in (run, whole))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert likewise.Run.open(run).summary["loss"] == likewise.Run.open(whole).summary["loss"]


def test_killed_between_the_last_checkpoint_and_the_encoder(
    images: Path, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    for name in ("encoder.safetensors", "summary.json"):
        (run / name).unlink()
    assert main(["train", "--resume", str(run)]) == 0
    found, expected = (load_file(path / "encoder.safetensors") for path in (run, whole))
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_python_gets_a_keyboard_interrupt_and_is_told_what_to_give_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signalled(monkeypatch, 1, signal.SIGINT)
    options: dict[str, Any] = {
        "encoder": "tiny", "projector": [8], "epochs": 2, "batch_size": 8, "device": "cpu",
        "logger": ["csv"],
    }  # fmt: skip
    graph = likewise.Graph.identity(24)
    with pytest.raises(KeyboardInterrupt):
        likewise.train(pictures(24), out=tmp_path / "run", graph=graph, **options)
    path = str(tmp_path / "run")
    assert f"likewise.train(data, resume={path!r}, graph=graph)" in capsys.readouterr().err


def test_the_second_signal_stops_at_once(
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = [signal.getsignal(heard) for heard in HEARD]
    signalled(monkeypatch, 8, signal.SIGINT, signal.SIGINT)
    run = tmp_path / "run"
    assert main(["train", str(images), "--out", str(run), *QUICK]) == 130
    assert [signal.getsignal(heard) for heard in HEARD] == before
    assert "stopped before a first checkpoint" in capsys.readouterr().err
    assert not (run / "checkpoints").exists()
    run = tmp_path / "other"
    more = ["--checkpoint-steps=4"]
    assert main(["train", str(images), "--out", str(run), *QUICK, *more]) == 130
    assert "go on from the last checkpoint with: likewise train" in capsys.readouterr().err
    assert torch.load(run / "checkpoints/last.ckpt", weights_only=False)["global_step"] == 8


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    before = [signal.getsignal(heard) for heard in HEARD]
    signals = StopSignals()
    trainer: Any = SimpleNamespace(is_global_zero=True)
    thread = threading.Thread(target=signals.on_train_start, args=(trainer, None))
    thread.start()
    thread.join()
    assert [signal.getsignal(heard) for heard in HEARD] == before


@pytest.mark.parametrize("terminal", [True, False])
def test_that_it_stops_is_said_in_the_bar_or_where_there_is_none_past_it(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bar draws over what is written past it."""
    written: list[bytes] = []
    monkeypatch.setattr("likewise.training.stopping.os.write", lambda _, text: written.append(text))
    file, signals = io.StringIO(), StopSignals()
    console = Console(file=file, width=80, force_terminal=terminal, color_system=None)
    monitor: Any = SimpleNamespace(last={}, history=[])
    line = ProgressLine(console, monitor, 8, signals)
    trainer: Any = SimpleNamespace(is_global_zero=True, global_step=0)
    module: Any = SimpleNamespace(steps=10, last={})
    line.on_train_start(trainer, module)
    signals._hear(signal.SIGINT, None)
    if line._progress is not None:
        line._progress.refresh()
    line.on_train_end(trainer, module)
    assert (STOPPING in file.getvalue(), len(written)) == ((True, 0) if terminal else (False, 1))
    assert not signals.is_shown


# --- as a terminal and a cluster do it ----------------------------------------------------------


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command in a group of processes of its own, as a shell starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "likewise.commands", "train", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if text in line:
            return
    raise AssertionError("".join(seen))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_processes_that_decode_get_the_signal_too_and_finish_the_step(
    number: signal.Signals, tmp_path: Path
) -> None:
    """In the first epoch; images are large, so that training waits for them most of the time."""
    folder = tmp_path / "photos"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (600, 600, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "0.png", compress_level=1)
    for i in range(1, 400):
        os.link(folder / "0.png", folder / f"{i}.png")
    run = tmp_path / "run"
    process = started(
        str(folder), "--out", str(run), "--encoder=tiny", "--projector=[8]", "--epochs=2",
        "--batch-size=8", "--device=cpu", "--logger=[csv]", "--stream=true", "--workers=2",
        "--image-size=16", "--monitor-every=0", "--diagnose-every=0", "--checkpoint-steps=1",
    )  # fmt: skip
    try:
        wait_until((run / "checkpoints/last.ckpt").is_file)
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 128 + number, said
        assert "stopped at epoch 1;" in said and "Traceback" not in said
        assert said.count("stopping after this step") == 1
        wait_until(lambda: not is_there(process.pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def wait_until(so: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not so():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_there(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_of_two_processes_is_told_and_both_stop(images: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    quick = [option for option in QUICK if not option.startswith("--epochs")]
    process = started(str(images), "--out", str(run), *quick, "--epochs=10000", "--devices=2")
    try:
        read_until(process, "epoch ")
        process.send_signal(signal.SIGTERM)  # the first alone
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 143, said
    assert said.count("stopped at epoch") == 1
    checkpoint = torch.load(run / "checkpoints/last.ckpt", weights_only=False)
    assert checkpoint["global_step"] > 0
    assert (run / "encoder.safetensors").is_file()


# --- when checkpoints are written ---------------------------------------------------------------


def saved_at(
    monkeypatch: pytest.MonkeyPatch, *, epoch: float, epochs: int, minutes: float, began: int = 0
) -> list[int]:
    """After which epochs, by a clock of our own: so many seconds an epoch, of two steps."""
    now, found = [0.0], list[int]()
    monkeypatch.setattr("likewise.training.checkpoints.time.monotonic", lambda: now[0])
    trainer: Any = SimpleNamespace(
        world_size=1, is_global_zero=True, global_step=2 * began, max_epochs=epochs
    )
    trainer.save_checkpoint = lambda path: found.append(trainer.global_step)
    keeper = Checkpoints(Path("nowhere"), minutes=minutes, after=lambda module: None)
    module: Any = SimpleNamespace(check_finite=lambda: None)
    keeper.on_train_start(trainer, module)
    for trainer.current_epoch in range(began, epochs):
        for trainer.is_last_batch in (False, True):
            now[0] += epoch / 2
            trainer.global_step += 1
            keeper.on_train_batch_end(trainer, module)
        keeper.on_train_epoch_end(trainer, module)
    keeper.on_train_end(trainer, module)
    return found


def test_the_first_checkpoint_comes_with_the_first_epoch_that_ends_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Steps of 10 s: the third epoch ends at 60 s, then five minutes pass.
    assert saved_at(monkeypatch, epoch=20, epochs=20, minutes=5.0) == [6, 36, 40]
    # An epoch of ten minutes: by the clock, between steps.
    assert saved_at(monkeypatch, epoch=600, epochs=1, minutes=5.0) == [1, 2]
    # An epoch of four: whichever is later.
    assert saved_at(monkeypatch, epoch=240, epochs=3, minutes=5.0) == [2, 5, 6]
    # Who wants more has more.
    assert saved_at(monkeypatch, epoch=20, epochs=2, minutes=0.0) == [1, 2, 3, 4]
    # A run that is resumed has one already.
    assert saved_at(monkeypatch, epoch=20, epochs=20, minutes=5.0, began=10) == [40]


# --- what a checkpoint may hold -----------------------------------------------------------------


@pytest.mark.parametrize("last", [False, True])
def test_weights_that_are_no_numbers_replace_nothing(
    last: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss that is looked at is that of the weights before the step."""
    data, run = pictures(40), tmp_path / "run"
    bad = 29 if last else 19  # of three epochs of ten steps
    original = TrainingModule.optimizer_step

    def spoil(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self.trainer.global_step == bad:
            with torch.no_grad():
                next(self.learner.encoder.parameters())[0] = torch.nan

    monkeypatch.setattr(TrainingModule, "optimizer_step", spoil)
    options: dict[str, Any] = {
        "encoder": "tiny", "projector": [16, 8], "epochs": 3, "batch_size": 4, "device": "cpu",
        "checkpoint_steps": 10, "logger": ["csv"], "monitor_every": 0,
    }  # fmt: skip
    with pytest.raises(
        RuntimeError, match=f"weights are not finite at step {bad + 1}: start a new"
    ):
        likewise.train(data, out=run, **options)
    monkeypatch.undo()
    kept = torch.load(run / "checkpoints/last.ckpt", weights_only=False)
    assert kept["global_step"] == (20 if last else 10)
    weights = load_file(run / "encoder.safetensors")
    assert all(weight.isfinite().all() for weight in weights.values())
    likewise.train(data, resume=run)  # it was no fault of the data
    assert likewise.Run.open(run).summary["epochs"] == 3


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda learner: next(learner.encoder.parameters()),
        lambda learner: next(learner.student.projector.parameters()),
        # An overflow in half precision: the scaler leaves the step out, and not the statistics.
        lambda learner: next(b for b in learner.encoder.buffers() if b.is_floating_point()),
    ],
    ids=["encoder", "projector", "statistics"],
)
def test_any_weight_or_statistic_is_looked_at(
    spoiled: Callable[[Any], torch.Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = TrainingModule.optimizer_step

    def spoil(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self.trainer.global_step == 2:
            with torch.no_grad():
                spoiled(self.learner)[0] = torch.inf

    monkeypatch.setattr(TrainingModule, "optimizer_step", spoil)
    options: dict[str, Any] = {
        "encoder": "tiny", "projector": [16, 8], "epochs": 1, "batch_size": 8, "device": "cpu",
        "logger": ["csv"], "monitor_every": 0, "diagnose_every": 0,
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="weights are not finite"):
        likewise.train(pictures(24), out=tmp_path / "run", **options)


def test_half_precision_is_named_where_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="or with precision 32"):
        likewise.train(
            pictures(24), out=tmp_path / "run", encoder="tiny", epochs=3, batch_size=8, lr=1e30,
            log_every=1, precision="bf16", device="cpu", logger=["csv"],
        )  # fmt: skip
