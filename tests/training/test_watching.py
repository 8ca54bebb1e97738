"""What is said before and during a training: estimates, collapse; and that no step waits."""

from __future__ import annotations

import inspect
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch.utils._python_dispatch import TorchDispatchMode

import likewise
from likewise import Graph
from likewise.data import Images, StreamedImages, open_source
from likewise.diagnostics import gather_evidence, verdict
from likewise.models import build_encoder
from likewise.runs import Preparation
from likewise.training import RECIPES, Learner, Recipe, recipe
from likewise.training.advice import (
    HOLDS_MORE_APART,
    HOLDS_NOTHING_APART,
    WITH_SPREAD,
    collapse_advice,
)
from likewise.training.images import watched
from likewise.training.module import Optimization
from likewise.training.monitor import Monitor
from likewise.training.named_objective import objective_class
from likewise.training.progress import ProgressLine
from tests.training.driver import pictures


class Reads(TorchDispatchMode):
    """Counts the values that are read back to the host: on a GPU, each one waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(name in str(func) for name in ("_local_scalar_dense", "nonzero", "_unique")):
            self.count += 1
        return func(*args, **(kwargs or {}))


# Log-determinants and matrix logarithms check what they are given, and that is a look.
LOOK = {"tcr", "emp-ssl", "mec", "corinfomax", "matrix-ssl", "supervised-mse"}


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in LOOK])
def test_no_step_waits_for_the_device_without_labels(name: str) -> None:
    torch.manual_seed(0)
    options = {"slice_size": 12} if name == "w-mse" else None
    learner = Learner(recipe(name), build_encoder("tiny"), projector=[16, 8], options=options)
    crops = torch.rand(48, 3, 32, 32)
    reads = Reads()
    for step in range(3):
        generator = torch.Generator().manual_seed(step)
        with reads:
            terms = learner([crops], Graph.identity(24), generator=generator, parts=False)
            next(iter(terms.values())).backward()
        if step == 0:
            reads.count = 0  # what the first step works out about the graph is kept
    assert reads.count == 0


def test_graphs_of_one_size_are_not_mistaken_for_one_another() -> None:
    torch.manual_seed(0)
    # Summed over those alike; a mean does not change with the graph's scale.
    learner = Learner(
        recipe("simclr"), build_encoder("tiny"), projector=[16, 8], options={"positives": "sum"}
    ).eval()
    crops = [torch.rand(48, 3, 32, 32)]

    def value(graph: Graph) -> float:
        return float(learner(crops, graph, parts=False)["loss"].detach())

    plain = value(Graph.identity(24))
    assert value(0.5 * Graph.identity(24)) == pytest.approx(0.5 * plain, rel=1e-5)
    assert value(Graph.identity(24)) == pytest.approx(plain)


class Constant(torch.nn.Module):
    """An encoder that has collapsed, onto a point or a line."""

    def __init__(self, directions: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.directions = directions

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        means = images.mean(dim=(2, 3))[:, : self.directions]
        return torch.nn.functional.pad(means, (0, 200 - self.directions), value=1.0)


class Watched:
    """What a monitor looks at."""

    device = torch.device("cpu")
    optimization = Optimization("sgd", lr=0.1, weight_decay=0.0, epochs=10, warmup_epochs=0.5)

    def __init__(self, encoder: torch.nn.Module) -> None:
        self.learner = torch.nn.Module()
        self.learner.encoder = encoder


class FakeTrainer:
    is_global_zero = True
    global_step = 0
    max_epochs = 10
    loggers: list[Any] = []


@pytest.mark.parametrize(("directions", "expected"), [(0, "full collapse"), (1, "dimensional")])
def test_collapse_is_said_once_with_a_remedy(directions: int, expected: str) -> None:
    pixels = torch.from_numpy(pictures(32)).permute(0, 3, 1, 2).contiguous()
    images = Images(pixels, [str(i) for i in range(32)], np.arange(32) % 2)
    said: list[str] = []
    preparation = Preparation(16, (0.5,) * 3, (0.25,) * 3)
    monitor = Monitor(images, preparation, recipe("simclr"), every=1, neighbors=3, say=said.append)
    for epoch in (1, 2, 3):
        monitor.look(FakeTrainer(), Watched(Constant(directions)), epoch)  # type: ignore[arg-type]
    assert len(said) == 1
    assert expected in said[0]
    assert said[0].endswith(collapse_advice(recipe("simclr"), full=directions == 0))


@pytest.mark.parametrize(("classes", "mates"), [(10, 4), (2, 20), (1, 20)])
def test_neighbours_are_no_more_than_there_are_mates(classes: int, mates: int) -> None:
    """With k = 20 and classes of 4, those of other classes would always win."""
    labels = np.repeat(np.arange(classes), mates)
    n = len(labels)
    images = Images(torch.zeros(n, 3, 8, 8, dtype=torch.uint8), [str(i) for i in range(n)], labels)
    preparation = Preparation(8, (0.5,) * 3, (0.25,) * 3)
    monitor = Monitor(images, preparation, recipe("simclr"), every=1)
    rows = 10 * torch.eye(classes, 12)[torch.from_numpy(labels)]
    rows += 0.5 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(0)) + 3
    assert monitor.figures(rows)["knn"] == 1.0


LINE, POINT, GOOD = Constant(1), Constant(0), build_encoder("tiny", seed=0)


@pytest.mark.parametrize(
    ("seen", "warmup", "expected"),
    [
        # (epoch, encoder) of every look, and the epochs at which something is said.
        ([(1, LINE), (2, GOOD)], 0.5, []),
        ([(1, LINE), (2, GOOD), (3, LINE), (4, GOOD)], 0.5, []),
        ([(1, LINE), (2, LINE), (3, LINE)], 0.5, [2]),
        ([(1, LINE), (2, LINE), (3, LINE), (4, LINE)], 3, [4]),
        ([(9, GOOD), (10, LINE)], 0.5, [10]),
        ([(1, POINT), (2, POINT)], 3, [1]),
        ([(1, LINE), (2, POINT)], 0.5, [2]),
    ],
)
def test_few_dimensions_are_a_collapse_where_they_stay(
    seen: list[tuple[int, Any]], warmup: float, expected: list[int]
) -> None:
    pixels = torch.from_numpy(pictures(32)).permute(0, 3, 1, 2).contiguous()
    images = Images(pixels, [str(i) for i in range(32)])
    said: list[int] = []
    preparation = Preparation(16, (0.5,) * 3, (0.25,) * 3)
    state: dict[str, Any] = {}
    for epoch, encoder in seen:
        # A new one every time, as in a run that is resumed.
        monitor = Monitor(images, preparation, recipe("simclr"), every=1)
        monitor.say = lambda text, epoch=epoch: said.append(epoch)
        if state:
            monitor.load_state_dict(state)
        watched = Watched(encoder)
        watched.optimization = replace(Watched.optimization, warmup_epochs=warmup)
        monitor.look(FakeTrainer(), watched, epoch)  # type: ignore[arg-type]
        state = monitor.state_dict()
    assert said == expected


class Shown:
    """What a progress line tells about."""

    steps = 400
    last = {"loss": 12.3456, "attraction": -4.56789, "repulsion": 16.9134, "regularization": 1.0}


class StepTrainer(FakeTrainer):
    max_epochs = 1000
    current_epoch = 0


def test_80_columns_show_rank_and_knn_and_keep_a_line_for_every_look() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system=None)
    images = Images(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), ["a", "b"])
    monitor = Monitor(images, Preparation(8, (0.5,) * 3, (0.25,) * 3), recipe("simclr"), every=2)
    line, trainer = ProgressLine(console, monitor, 512), StepTrainer()
    line.images_per_second = 123_456.0
    line.on_train_start(trainer, Shown())  # type: ignore[arg-type]
    for epoch in range(4):
        trainer.current_epoch, trainer.global_step = 996 + epoch, 100 * (epoch + 1)
        if epoch % 2:
            monitor.last = {"effective_rank": 123.4, "knn": 0.567}
            monitor.history.append({"epoch": 997 + epoch, **monitor.last})
        line.on_train_epoch_end(trainer, Shown())  # type: ignore[arg-type]
    assert line._progress is not None
    shown = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with shown.capture() as captured:
        shown.print(line._progress.get_renderable())
    bar, figures = captured.get().splitlines()
    assert "━━━" in bar and "100%" in bar and bar.rstrip().endswith("left")
    wanted = "epoch 1000/1000  123,456 images/s  loss 12.35  rank 123.4  kNN 56.7%"
    assert figures.startswith(wanted)
    assert len(bar) <= 80 and len(figures) <= 80
    line.on_train_end(trainer, Shown())  # type: ignore[arg-type]
    kept = [row for row in scroll_back(file.getvalue()) if row]
    assert [row.split()[1] for row in kept] == ["998/1000", "1000/1000"]
    assert kept[-1].startswith(wanted)
    assert all(len(row) <= 80 for row in kept)


def scroll_back(written: str) -> list[str]:
    """The lines that a terminal is left with: as one does, it moves up and erases."""
    rows, at = [""], 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", written):
        if part == "\n":
            at += 1
            rows += [""] * (at + 1 - len(rows))
        elif part.endswith("A") and part.startswith("\x1b"):
            at -= int(part[2:-1])
        elif part == "\x1b[2K":
            rows[at] = ""
        elif not part.startswith("\x1b") and part != "\r":
            rows[at] += part
    return rows


@pytest.mark.parametrize("name", RECIPES)
def test_advice_suits_the_recipe_and_agrees_with_the_verdict(name: str) -> None:
    method = recipe(name)
    full, part = (collapse_advice(method, full=full) for full in (True, False))
    if method.objective in HOLDS_MORE_APART:
        argument = HOLDS_MORE_APART[method.objective][1]
        assert argument in full and argument in part
    # Another recipe only where nothing in this one's loss holds images apart.
    alone = method.objective in ("NegativeCosine", "BYOLRegression", "ClassRegression")
    assert ("recipe" in full) == ("recipe" in part) == alone
    assert name not in WITH_SPREAD or "recipe" not in part
    line = torch.outer(torch.linspace(0, 1, 64), torch.ones(16))
    noise = 1e-3 * torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    rows = line + torch.arange(16) + noise
    for found, advice in ((torch.ones(64, 16), full), (rows - rows.mean(dim=0), part)):
        finding = verdict(gather_evidence(found, found)).findings[0]
        remedies = " ".join(finding.remedies)
        shared = {
            "full collapse": [("lower learning rate", "lower the learning rate")],
            "dimensional collapse": [
                ("larger batch", "larger batches"),
                ("weaker augmentation", "weaker augmentation"),
                ("more epochs", "train longer"),
            ],
        }[finding.name]
        for ours, theirs in shared:
            assert ours in advice and theirs in remedies
        assert "stronger" not in advice and "stronger" not in remedies
    assert set(RECIPES[other].objective for other in WITH_SPREAD) <= set(HOLDS_MORE_APART)


def test_advice_names_arguments_that_the_objective_has() -> None:
    for name, (_, argument) in HOLDS_MORE_APART.items():
        kind = objective_class(name)
        assert argument in inspect.signature(kind).parameters
    for name in HOLDS_NOTHING_APART:
        assert objective_class(name).__name__ not in HOLDS_MORE_APART


def test_advice_for_a_loss_of_ones_own_choice_claims_nothing_about_it() -> None:
    mine = Recipe(title="Mine", paper="ours", objective="MaximalCodingRateReduction")
    assert collapse_advice(mine, full=True) == "Try a lower learning rate."
    few = collapse_advice(mine, full=False)
    assert few == "Try a larger batch, weaker augmentation, or more epochs."


def test_a_healthy_encoder_is_not_warned_of() -> None:
    pixels = torch.from_numpy(pictures(32)).permute(0, 3, 1, 2).contiguous()
    images = Images(pixels, [str(i) for i in range(32)], np.arange(32) % 4)
    said: list[str] = []
    preparation = Preparation(16, (0.5,) * 3, (0.25,) * 3)
    monitor = Monitor(images, preparation, recipe("simclr"), every=1, neighbors=3, say=said.append)
    monitor.look(FakeTrainer(), Watched(build_encoder("tiny", seed=0)), 1)  # type: ignore[arg-type]
    assert said == []
    assert monitor.last["effective_rank"] > 2
    assert 0 <= monitor.last["knn"] <= 1


def test_the_estimate_comes_before_the_first_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    likewise.train(
        open_source(pictures(16)),
        out=tmp_path / "run",
        encoder="tiny",
        projector=[8],
        epochs=1,
        batch_size=8,
        device="cpu",
        logger=["csv"],
    )
    said = capsys.readouterr().err
    estimate, epoch = said.index(" a step, "), said.index("epoch 1/1")
    assert estimate < epoch
    assert "free on cpu" in said


def test_what_will_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.training import estimate

    monkeypatch.setattr(estimate, "available_memory", lambda device: 1 << 20)
    arguments: dict[str, Any] = {
        "encoder": "tiny",
        "projector": [8],
        "epochs": 1,
        "batch_size": 8,
        "device": "cpu",
        "logger": ["csv"],
    }
    source = open_source(pictures(16))
    with pytest.raises(ValueError, match="will not fit"):
        likewise.train(source, out=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()
    likewise.train(source, out=tmp_path / "run", force=True, **arguments)
    assert (tmp_path / "run" / "summary.json").is_file()


def test_an_image_does_not_vote_on_itself() -> None:
    labels = np.array([0, 1, 0, 1])
    images = Images(torch.zeros(4, 3, 8, 8, dtype=torch.uint8), list("abcd"), labels)
    preparation = Preparation(8, (0.5,) * 3, (0.25,) * 3)
    monitor = Monitor(images, preparation, recipe("simclr"), every=1)
    # The nearest other image is of the other class, for all of them.
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    assert monitor.figures(rows)["knn"] == 0.0


def test_watched_images_of_a_stream_have_their_own_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.training.images.WATCHED", 10)
    labels = np.arange(40)
    found = watched(StreamedImages(open_source(pictures(40)), 16), seed=0, labels=labels)
    assert found.labels.tolist() == [int(key) for key in found.keys]
    assert found.labels.tolist() != list(range(10))
