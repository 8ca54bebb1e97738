"""Settings, trainings and the files of reproductions that train."""

import io
import json

import numpy as np
import pytest
import torch

from likewise.commands import main
from likewise.commands.errors import UsageError
from likewise.commands.reproduce import reproduce
from likewise.reproduce import REPRODUCTIONS, TrainedReproduction, reproduction, select
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.page import page_text, read_page
from likewise.reproduce.setting import FULL, Setting, full_setting, pictures
from likewise.reproduce.trainings import Training, train, training_rows
from likewise.training import recipe

TINY = Setting(samples=96, epochs=1, batch_size=32)
ONE = Training("simclr", "small", 2, snapshots=(0.0, 0.5))


def test_all_names_of_the_issue_are_there():
    names = [
        *(f"geometry-{number}" for number in (1, 3, 4, 5, 6, 7, 9, 10)),
        "geometry-projector",
        *(f"matrix-ssl-{name}" for name in (2, 3, 5, "table-1", "table-4", "table-5")),
        *(f"balanced-{name}" for name in (3, 5, 6)),
        *(f"balanced-table-{number}" for number in (1, 2, 4, 5)),
    ]
    assert [name for name in REPRODUCTIONS if name.split("-")[0] in ("geometry", "matrix")] == [
        name for name in names if not name.startswith("balanced")
    ]
    assert set(names) <= set(REPRODUCTIONS)


def test_the_same_training_gives_the_same_weights():
    first, second = train(ONE, TINY), train(ONE, TINY)
    assert first.times == [0.0, 0.5, 1.0]
    for at in first.times:
        for name, value in first.weights[at].items():
            assert torch.equal(value, second.weights[at][name]), name
    assert not np.array_equal(first.losses[:1], first.losses[-1:])
    start, end = (first.weights[at]["projector.layers.0.weight"] for at in (0.0, 1.0))
    assert not torch.equal(start, end)


def test_processes_change_nothing():
    other = Training("simclr", "large", 1)
    alone, together = Encoders(TINY), Encoders(TINY)
    alone.prepare([ONE, other], jobs=1)
    together.prepare([ONE, other], jobs=2)
    for training in (ONE, other):
        one, two = alone.embed(training)[0], together.embed(training)[0]
        torch.testing.assert_close(one, two)


def test_the_first_snapshot_has_running_statistics():
    trained = train(ONE, TINY)
    start = trained.weights[0.0]
    (name,) = [key for key in start if key.endswith("blocks.0.1.running_mean")]
    assert start[name].abs().max() > 0  # calibrated before the first step


def test_subsets_have_the_same_size_and_other_shares():
    labels = np.arange(1000) % 10
    tail, even = (
        training_rows(Training("simclr", "small", 1, subset=subset), labels)
        for subset in ("long-tail", "uniform")
    )
    assert len(tail) == len(even) < len(labels)
    counts = np.bincount(labels[tail], minlength=10)
    assert counts.max() >= 10 * counts.min() and counts.min() == 5
    assert np.bincount(labels[even], minlength=10).min() > 5


def test_without_stop_gradient_both_branches_learn():
    from likewise.graph import Graph
    from likewise.reproduce.trainings import _learner

    crops = [torch.randn(8, 3, 8, 8)]
    graph = Graph.identity(4)
    for stopped in (True, False):
        training = Training("simsiam", "small", 1, stop_gradient=stopped)
        learner = _learner(training, TINY).train()
        z, p = learner.embed(crops, 4)
        target, _ = learner._other_branch(crops, z, 4)
        assert target.requires_grad is not stopped
        assert sum(learner(crops, graph).values()).requires_grad


# --- full size ----------------------------------------------------------------------------------


@pytest.fixture
def cifar(tmp_path):
    """A copy of CIFAR-10's layout with 60 and 30 images of noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    random = np.random.default_rng(0)
    for split, n in (("train", 60), ("test", 30)):
        rows = []
        for _ in range(n):
            file = io.BytesIO()
            pixels = random.integers(0, 255, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(file, "JPEG")
            rows.append({"bytes": file.getvalue(), "path": None})
        table = pa.table({"img": rows, "label": list(np.arange(n) % 10)})
        pq.write_table(table, tmp_path / f"{split}.parquet")
    return tmp_path


def test_full_setting_reads_parquet_and_knows_animals_from_vehicles(cifar):
    setting = full_setting(cifar, device="cpu", epochs=1)
    assert (setting.encoder, setting.size, setting.name) == ("resnet18", 32, "full")
    found = pictures(setting)
    assert len(found.train) == 60 and len(found.test) == 30
    assert found.coarse.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]
    assert full_setting(cifar / "train.parquet", device="cpu").data == setting.data


def test_full_setting_trains_the_same_code(cifar):
    setting = full_setting(
        cifar, device="cpu", epochs=1, encoder="tiny", batch_size=16, wide=16, linear=8
    )
    encoders = Encoders(setting)
    for name in ("geometry-5", "matrix-ssl-table-5", "balanced-table-4"):
        entry = reproduction(name)
        for training in entry.trainings(setting, 0):
            # The recipes' own optimisers, where digits have AdamW for all.
            assert training.method.optimizer == recipe(training.recipe).optimizer != "adamw"
        assert set(entry.measure(encoders, 0))


def test_full_setting_is_refused_without_data(tmp_path):
    with pytest.raises(ValueError, match="--full needs --data"):
        full_setting(None)
    with pytest.raises(ValueError, match=r"no train\.parquet"):
        full_setting(tmp_path, device="cpu")
    with pytest.raises(UsageError, match="without --full"):
        reproduce("geometry-1", data=tmp_path, out=tmp_path)
    with pytest.raises(UsageError, match="trains no encoder"):
        reproduce("pal-6", full=True, data=_with_files(tmp_path), device="cpu", out=tmp_path)


def _with_files(folder):
    for split in ("train", "test"):
        (folder / f"{split}.parquet").touch()
    return folder


def test_full_setting_needs_a_gpu(cifar, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="--device cpu"):
        full_setting(cifar)
    assert FULL.device == "cuda"


# --- the command and the page -------------------------------------------------------------------


def test_command_writes_files_and_updates_only_its_rows(tmp_path, capsys):
    page = tmp_path / "page.md"
    arguments = ["--jobs", "1", "--out", str(tmp_path / "a"), "--docs", str(page)]
    assert main(["reproduce", "pal-6", "--trials", "2", *arguments]) == 0
    before = page.read_text()
    arguments = ["--jobs", "1", "--out", str(tmp_path / "b"), "--docs", str(page)]
    assert main(["reproduce", "geometry-7", "--trials", "1", "--epochs", "1", *arguments]) == 0
    assert "geometry, figure 7" in " ".join(capsys.readouterr().out.split())
    after = page.read_text()
    rows, sections, machines = read_page(page)
    assert list(rows) == ["pal-6", "geometry-7"] == list(sections)
    (row,) = [line for line in before.splitlines() if line.startswith("| [`pal-6`]")]
    assert rows["pal-6"] == row
    kept = before[before.index("## pal-6") :].rstrip()
    assert sections["pal-6"] == kept and kept in after
    assert len(machines) == 1
    found = json.loads((tmp_path / "b" / "geometry-7.json").read_text())
    assert found["command"] == "likewise reproduce geometry-7 --trials 1 --epochs 1"
    assert found["settings"]["epochs"] == 1 and found["trials"] == 1
    assert (tmp_path / "images/reproductions/geometry-7.png").exists()
    reproduce(out=tmp_path / "b", docs=page)  # without a name nothing is run
    assert page.read_text() == after  # the same files give the same page
    with pytest.raises(UsageError, match="holds no results"):
        reproduce(out=tmp_path / "empty", docs=page)


def test_page_keeps_what_it_says_about_others():
    entry = {
        **{"name": "geometry-1", "claim": "c", "verdict": "holds", "remark": "", "machine": "m"},
        **{"checks": [], "figures": [], "settings": {}, "trials": 1, "seed": 0, "seconds": 1.0},
    }
    text = page_text([entry], "x", {"pal-3": "| [`pal-3`] old |"}, {"pal-3": "## pal-3\nold"}, [])
    assert text.index("| [`pal-3`] old |") < text.index("| [`geometry-1`]")
    assert text.index("## pal-3\nold") < text.index("## geometry-1")


def test_select_by_paper_and_by_names():
    assert [entry.name for entry in select("pal-9,balanced-3")] == ["pal-9", "balanced-3"]
    assert len(select("geometry")) == 9 and len(select("all")) == len(REPRODUCTIONS)
    with pytest.raises(ValueError, match="'geometry-2'"):
        select("geometry-2")
    trained = [e for e in REPRODUCTIONS.values() if isinstance(e, TrainedReproduction)]
    assert all(entry.claim.endswith(").") for entry in trained)
