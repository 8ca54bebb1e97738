"""What is written down while training: the right figures, at the right steps, and at no cost to
the training itself."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import likewise
from likewise.data import Images, open_source
from likewise.data.views import Views
from likewise.diagnostics import alignment, gather_evidence, info_nce_parts, spectrum, verdict
from likewise.models import MLP, build_encoder
from likewise.training.choices import choose_diagnose_every
from likewise.training.diagnosis import Diagnosis
from likewise.training.metrics import MetricsFile, rows_before
from likewise.training.records import (
    append_record,
    evidence_of,
    keep_records,
    measure,
    read_records,
    scalars,
)
from likewise.training.two_views import TwoViews, embed_two_views
from tests.training.driver import pictures
from tests.training.test_interruptions import drive


def train(out: Path, **changes: Any) -> Path:
    settings: dict[str, Any] = {
        "encoder": "tiny",
        "projector": [16, 8],
        "epochs": 3,
        "batch_size": 8,
        "device": "cpu",
        "logger": ["csv"],
        "recipe": "simclr",
        "diagnose_every": 1,
    }
    likewise.train(open_source(pictures(24)), out=out, **{**settings, **changes})
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("runs") / "a")


def rows(n: int = 40, dim: int = 12, seed: int = 0) -> TwoViews:
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(n, dim))
    h1, h2 = (torch.from_numpy(h + 0.3 * rng.normal(size=h.shape)).float() for _ in range(2))
    weight = torch.from_numpy(rng.normal(size=(dim, 5))).float()
    return TwoViews(h1, h2, h1 @ weight, h2 @ weight)


def test_figures_are_those_of_the_diagnostics() -> None:
    both = rows()
    assert both.z1 is not None and both.z2 is not None
    labels = np.arange(40) % 4
    record = measure(both, labels, inverse_temperature=5.0)
    known = gather_evidence(both.z1, both.z2, h1=both.h1, h2=both.h2, labels=labels)
    assert evidence_of(record) == known
    assert record["evidence"]["alignment"] == alignment(both.z1, both.z2)
    for part, x in (("encoder", both.h1), ("projector", both.z1)):
        found = spectrum(x, normalize=True)
        assert record[part]["centered_effective_rank"] == found.centered_effective_rank
        assert record[part]["matrix_entropy"] == found.matrix_entropy
        assert record[part]["values"] == pytest.approx(
            found.centered_singular_values.tolist(), rel=1e-4, abs=1e-9
        )
    parts = info_nce_parts(both.z1, both.z2, inverse_temperature=5.0)
    assert record["info_nce"]["gap"] == parts.gap
    assert json.loads(json.dumps(record)) == record


def test_undefined_is_none_in_the_file_and_nan_again_when_read(tmp_path: Path) -> None:
    both = rows()
    record = measure(TwoViews(both.h1, both.h2, None, None))
    assert record["projector"] is None and record["info_nce"] is None
    assert record["evidence"]["label_lift"] is None
    append_record(tmp_path, {"step": 4, "epoch": 1, **record})
    (read,) = read_records(tmp_path)
    evidence = evidence_of(read)
    assert math.isnan(evidence.label_lift) and evidence.alignment > 0
    assert verdict(evidence).names
    assert all(isinstance(value, float) for value in scalars(read).values())


def test_the_half_line_of_a_killed_run_is_left_out(tmp_path: Path) -> None:
    for step in (0, 5, 10):
        append_record(tmp_path, {"step": step})
    with (tmp_path / "diagnostics.jsonl").open("a") as file:
        file.write('{"step": 15, "evid')
    assert [record["step"] for record in read_records(tmp_path)] == [0, 5, 10]
    keep_records(tmp_path, 5)
    assert (tmp_path / "diagnostics.jsonl").read_text().count("\n") == 2
    assert [record["step"] for record in read_records(tmp_path)] == [0, 5]


def test_looks_are_at_the_start_and_every_so_often(run: Path) -> None:
    records = read_records(run)
    assert [(record["step"], record["epoch"]) for record in records] == [
        (0, 0),
        (3, 1),
        (6, 2),
        (9, 3),
    ]
    assert all(record["samples"] == 24 and record["projector"]["dim"] == 8 for record in records)
    assert all(record["info_nce"]["inverse_temperature"] == 5.0 for record in records)
    assert records[0]["evidence"] != records[-1]["evidence"]


def test_metrics_have_the_same_numbers(run: Path) -> None:
    with (run / "metrics.csv").open() as file:
        found = [row for row in csv.DictReader(file) if row["diagnostics/alignment"]]
    records = read_records(run)
    assert [int(float(row["step"])) for row in found] == [record["step"] for record in records]
    for row, record in zip(found, records, strict=True):
        for name, value in scalars(record).items():
            assert float(row[name]) == pytest.approx(value)


def test_the_last_look_is_of_the_encoder_that_is_written(run: Path) -> None:
    """An independent path: the saved encoder and projector on views made by hand."""
    encoder, preparation = likewise.Run.open(run).encoder()
    state = torch.load(run / "checkpoints/last.ckpt", weights_only=True)["state_dict"]
    head = MLP([encoder.dim, 16, 8], last_norm=True)
    prefix = "learner.student.projector."
    head.load_state_dict({k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)})
    head.eval()
    pixels = torch.from_numpy(pictures(24)).permute(0, 3, 1, 2).contiguous()
    policy = likewise.Run.open(run).config["views"]
    views = Views(policy, 16, 2, mean=preparation.mean, std=preparation.std)
    drawn = views.draw(24, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        h = encoder(views.apply(pixels, drawn)[0])
        z = torch.nn.functional.normalize(head(h), dim=1)
    expected = float((z[::2] - z[1::2]).square().sum(dim=1).mean())
    assert read_records(run)[-1]["evidence"]["alignment"] == pytest.approx(expected, rel=1e-4)


def test_looking_changes_nothing(run: Path, tmp_path: Path) -> None:
    without = train(tmp_path / "without", diagnose_every=0)
    assert not (without / "diagnostics.jsonl").exists()
    one, other = (load_file(folder / "encoder.safetensors") for folder in (run, without))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_modes_and_random_states_are_left_alone() -> None:
    encoder, head = build_encoder("tiny", seed=0).train(), MLP([128, 16]).eval()
    before = [value.clone() for value in encoder.state_dict().values()]
    views = Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3)
    pixels = torch.from_numpy(pictures(20)).permute(0, 3, 1, 2).contiguous()
    state = torch.get_rng_state()
    arguments: Any = (encoder, head, pixels, views)
    first = embed_two_views(*arguments, seed=3, device=torch.device("cpu"))
    second = embed_two_views(*arguments, seed=3, device=torch.device("cpu"))
    other = embed_two_views(*arguments, seed=4, device=torch.device("cpu"))
    assert torch.equal(first.h1, second.h1) and not torch.equal(first.h1, other.h1)
    assert first.z1 is not None and first.z1.shape == (20, 16)
    assert encoder.training and not head.training
    assert torch.equal(state, torch.get_rng_state())
    after = encoder.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_killed_and_resumed_run_writes_what_it_would_have_written(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert drive(whole).returncode == 0
    assert drive(killed, "--die-in-step", "10").returncode == -9
    assert drive(killed, "--resume").returncode == 0
    found = [read_records(folder) for folder in (whole, killed)]
    for records in found:
        for record in records:
            record.pop("held_seconds")
    assert found[0] == found[1] and len(found[0]) > 1
    curves = []
    for folder in (whole, killed):
        with (folder / "metrics.csv").open() as file:
            rows = list(csv.DictReader(file))
        curves.append([(row["step"], row["train/loss"]) for row in rows if row["train/loss"]])
    assert curves[0] == curves[1] and curves[0][0][0] == "0"


def test_rows_of_before_a_resume_are_kept(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(
        "epoch,monitor/knn,step,train/loss\n,,0,3.0\n1,0.5,4,\n,,4,2.0\n,,6,1.0\n2,0.6,8,\n"
    )
    kept = rows_before(tmp_path / "metrics.csv", 4)
    assert kept == [
        {"step": "0", "train/loss": "3.0"},
        {"epoch": "1", "monitor/knn": "0.5", "step": "4"},
    ]
    logger = MetricsFile(tmp_path, resumed_at=4)
    logger.log_metrics({"train/loss": 1.5}, step=4)
    logger.save()
    with (tmp_path / "metrics.csv").open() as file:
        losses = [(row["step"], row["train/loss"]) for row in csv.DictReader(file)]
    assert losses == [("0", "3.0"), ("4", ""), ("4", "1.5")]
    assert rows_before(tmp_path / "nowhere.csv", 4) == []


class Broken(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)[:, :4] * torch.nan


def test_nan_is_said_and_written_and_does_not_stop_a_run(tmp_path: Path) -> None:
    pixels = torch.from_numpy(pictures(8)).permute(0, 3, 1, 2).contiguous()
    images = Images(pixels, [str(i) for i in range(8)])
    views = Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3)
    said: list[str] = []
    look = Diagnosis(images, views, tmp_path, every=1, say=said.append)

    class Module:
        device = torch.device("cpu")
        learner = torch.nn.Module()

    class Trainer:
        is_global_zero = True
        global_step = 7
        loggers: list[Any] = []

    Module.learner.student = torch.nn.Module()
    Module.learner.student.encoder = Broken()
    Module.learner.student.projector = torch.nn.Identity()
    Module.learner.objective = torch.nn.Module()
    look.look(Trainer(), Module(), 1)  # type: ignore[arg-type]
    assert len(said) == 1 and "step 7" in said[0] and "NaN" in said[0]
    assert "error" in read_records(tmp_path)[0]


def test_only_the_first_process_looks(tmp_path: Path) -> None:
    pixels = torch.from_numpy(pictures(8)).permute(0, 3, 1, 2).contiguous()
    views = Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3)
    look = Diagnosis(Images(pixels, list("abcdefgh")), views, tmp_path, every=1)

    class Trainer:
        is_global_zero = False
        global_step = current_epoch = 0
        max_epochs = 1

    look.on_train_start(Trainer(), None)  # type: ignore[arg-type]
    look.on_train_epoch_end(Trainer(), None)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def looks_of(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    *,
    epochs: int,
    epoch: float,
    look: float,
    share: float | None,
) -> list[int]:
    """After which epochs there is a look, by a clock of our own: seconds an epoch and a look."""
    pixels = torch.from_numpy(pictures(8)).permute(0, 3, 1, 2).contiguous()
    views = Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3)
    now, found = [0.0], list[int]()
    monkeypatch.setattr("likewise.training.diagnosis.time.perf_counter", lambda: now[0])
    diagnosis = Diagnosis(Images(pixels, list("abcdefgh")), views, folder, every=1, share=share)

    def embedded(*given: Any, **options: Any) -> TwoViews:
        now[0] += look
        found.append(trainer.current_epoch + 1 if started else 0)
        return rows()

    monkeypatch.setattr("likewise.training.diagnosis.embed_two_views", embedded)
    started = False

    class Trainer:
        is_global_zero = True
        global_step = 0
        current_epoch = 0
        max_epochs = epochs
        loggers: list[Any] = []

    class Module:
        device = torch.device("cpu")
        learner = torch.nn.Module()

    Module.learner.student = torch.nn.Module()
    Module.learner.student.encoder = Module.learner.student.projector = torch.nn.Identity()
    Module.learner.objective = torch.nn.Module()
    trainer = Trainer()
    diagnosis.on_train_start(trainer, Module())  # type: ignore[arg-type]
    started = True
    for number in range(epochs):
        now[0] += epoch
        trainer.current_epoch = number
        diagnosis.on_train_epoch_end(trainer, Module())  # type: ignore[arg-type]
    return found


def test_looks_take_no_more_than_their_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {"epochs": 100, "epoch": 1.0, "share": 0.01}
    cheap = looks_of(monkeypatch, tmp_path, look=0.001, **settings)
    assert cheap == list(range(101))
    dear = looks_of(monkeypatch, tmp_path, look=0.2, **settings)
    assert (dear[0], dear[-1]) == (0, 100) and dear == sorted(set(dear))
    between = dear[1:-1]
    assert 3 <= len(between) <= 6
    # Before each of them but the first, whose length nobody knows, there was time for it.
    assert all(0.2 * (i + 1) <= 0.01 * (at + 0.2 * i) + 1e-9 for i, at in enumerate(between) if i)
    asked = looks_of(monkeypatch, tmp_path, look=0.2, epochs=10, epoch=1.0, share=None)
    assert asked == list(range(11))


def test_the_default_share_is_a_hundredth() -> None:
    assert choose_diagnose_every({"diagnose_every": None, "epochs": 200}) == (10, 0.01)
    assert choose_diagnose_every({"diagnose_every": 0, "epochs": 200}) == (0, None)


@pytest.mark.gpu
def test_on_a_gpu_a_thread_works_out_the_figures(tmp_path: Path) -> None:
    run = train(tmp_path / "run", device="cuda", compile=False)
    records = read_records(run)
    assert [record["step"] for record in records] == [0, 3, 6, 9]
    assert all(math.isfinite(record["evidence"]["alignment"]) for record in records)
    assert records[0]["evidence"] != records[-1]["evidence"]
    with (run / "metrics.csv").open() as file:
        assert sum(bool(row["diagnostics/alignment"]) for row in csv.DictReader(file)) == 4


def test_views_of_a_later_block_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.training.two_views.IMAGES_AT_ONCE", 4)
    encoder = build_encoder("tiny", seed=0).eval()
    views = Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3)
    one = torch.from_numpy(pictures(1)).permute(0, 3, 1, 2)
    pixels = one.expand(8, -1, -1, -1).contiguous()
    rows = embed_two_views(encoder, None, pixels, views, seed=0, device=torch.device("cpu")).h1
    assert len(torch.unique(rows, dim=0)) == len(rows)
