"""`likewise train` and its neighbours as a user calls them: results, files, errors."""

from __future__ import annotations

import errno
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import likewise
from likewise.commands import main
from likewise.commands.errors import UsageError
from likewise.runs import Run
from tests.training.driver import pictures

QUICK = [
    "--encoder=tiny",
    "--projector=[16,8]",
    "--epochs=2",
    "--batch-size=8",
    "--device=cpu",
    "--logger=[csv]",
]


def write_pictures(folder: Path, n: int = 24, classes: int = 1) -> Path:
    for i, picture in enumerate(pictures(n)):
        place = folder / f"class{i % classes}" if classes > 1 else folder
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(place / f"{i:03}.png")
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("photos"), classes=2)


@pytest.fixture(scope="module")
def run(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "a"
    assert main(["train", str(photos), "--out", str(out), *QUICK]) == 0
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said to someone whose call is refused."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert stopped.value.code == 2
    said: str = capsys.readouterr().err
    assert "Traceback" not in said
    return " ".join(said.split())


class TestTraining:
    def test_leaves_config_encoder_checkpoint_figures_and_summary(self, run: Path) -> None:
        names = {path.name for path in run.iterdir()}
        assert {
            "config.yaml",
            "encoder.safetensors",
            "checkpoints",
            "metrics.csv",
            "summary.json",
            "data.json",
        } <= names
        summary = json.loads((run / "summary.json").read_text())
        assert summary["epochs"] == 2
        assert summary["images"] == 24
        assert 0 <= summary["knn"] <= 1
        assert summary["effective_rank"] > 1
        assert not [path for path in run.rglob(".*") if path.is_file()]

    def test_config_is_resolved_and_repeats_the_run(self, run: Path, tmp_path: Path) -> None:
        config = yaml.safe_load((run / "config.yaml").read_text())
        assert config["optimizer"] == "sgd"
        assert config["lr"] == pytest.approx(0.3 * 8 / 256)
        assert config["image_size"] == 16
        again = tmp_path / "again"
        assert main(["train", "--config", str(run / "config.yaml"), "--out", str(again)]) == 0
        weights = [Run.open(path).encoder()[0].state_dict() for path in (run, again)]
        assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])

    def test_one_epoch_of_one_step_is_said_as_such(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from likewise.training.estimate import Estimate

        timed = Estimate.timed
        monkeypatch.setattr(Estimate, "timed", lambda self, _, steps: timed(self, 0.01, steps))
        folder = write_pictures(tmp_path / "photos", n=8)
        quick = [option for option in QUICK if "epochs" not in option]
        assert main(["train", str(folder), f"--out={tmp_path / 'r'}", *quick, "--epochs=1"]) == 0
        said = capsys.readouterr().err
        assert ", 1 epoch, 1 step\n" in said
        assert "10 ms a step, under a second in all" in said

    def test_other_seeds_give_other_encoders(self, run: Path, photos: Path, tmp_path: Path) -> None:
        out = tmp_path / "b"
        assert main(["train", str(photos), "--out", str(out), "--seed=1", *QUICK]) == 0
        weights = [Run.open(path).encoder()[0].state_dict() for path in (run, out)]
        assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])

    def test_broken_images_are_counted_and_left_out(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = write_pictures(tmp_path / "photos")
        (folder / "broken.jpg").write_bytes(b"no image at all")
        whole = (folder / "000.png").read_bytes()
        (folder / "half.png").write_bytes(whole[: len(whole) // 2])
        assert main(["train", str(folder), "--out", str(tmp_path / "run"), *QUICK]) == 0
        assert "2 broken images are left out" in capsys.readouterr().err
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert (summary["images"], summary["broken"]) == (24, 2)

    def test_a_few_labels_from_a_csv_go_into_the_graph(self, photos: Path, tmp_path: Path) -> None:
        keys = [f"class{i % 2}/{i:03}.png" for i in range(6)]
        rows = [f"{key},{'cat' if i % 2 else 'dog'}" for i, key in enumerate(keys)]
        (tmp_path / "some.csv").write_text("key,label\n" + "\n".join(rows) + "\n")
        out = tmp_path / "run"
        arguments = ["--recipe=vicreg", f"--labels={tmp_path / 'some.csv'}", "--label-weight=0.25"]
        assert main(["train", str(photos), "--out", str(out), *QUICK, *arguments]) == 0
        assert yaml.safe_load((out / "config.yaml").read_text())["label_weight"] == 0.25

    @pytest.mark.parametrize(("share", "pairs"), [(0.25, 3.6), (0.75, 11)])
    def test_a_share_of_the_batch_is_known(
        self,
        share: float,
        pairs: float,
        photos: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Six are labelled, of one class. Where two are brought, 1 + 2 E[H] + E[C(H, 2)] pairs
        meet, with H more among the 6 that are drawn from 22, of whom 4 are labelled. Where five
        are, which is the most: 10 + 5 * 3 / 19."""
        rows = [f"class0/{i:03}.png,dog" for i in range(0, 12, 2)]
        (tmp_path / "some.csv").write_text("key,label\n" + "\n".join(rows) + "\n")
        more = [f"--labels={tmp_path / 'some.csv'}", f"--known-share={share}"]
        assert main(["train", str(photos), "--out", str(tmp_path / "r"), *QUICK, *more]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert f"known pairs are brought together: {pairs} in a batch of 8" in said

    def test_labels_of_a_file_are_what_neighbours_are_judged_by(self, tmp_path: Path) -> None:
        folder, out = write_pictures(tmp_path / "photos"), tmp_path / "run"
        rows = [f"{i:03}.png,kind{i % 2}" for i in range(12)]
        (tmp_path / "some.csv").write_text("key,label\n" + "\n".join(rows) + "\n")
        more = f"--labels={tmp_path / 'some.csv'}"
        assert main(["train", str(folder), "--out", str(out), *QUICK, more]) == 0
        assert 0 <= Run.open(out).summary["knn"] <= 1

    def test_streamed_images_that_are_broken_are_counted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = write_pictures(tmp_path / "photos")
        (folder / "005.png").write_bytes(b"no image at all")
        more = ["--stream=true", "--workers=1"]
        assert main(["train", str(folder), "--out", str(tmp_path / "r"), *QUICK, *more]) == 0
        assert "1 broken image is left out:\n  005.png" in capsys.readouterr().err

    def test_a_part_given_in_python_is_not_taken_for_all(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from likewise.data import open_source

        options: dict[str, Any] = {"encoder": "tiny", "epochs": 1, "batch_size": 8, "device": "cpu"}
        part = open_source(photos).subset(range(8))
        likewise.train(part, out=tmp_path / "part", **options, logger=["csv"])
        config = tmp_path / "part" / "config.yaml"
        said = refused(capsys, "train", "--config", config, "--out", tmp_path / "again")
        assert "given in Python" in said

    def test_labels_change_what_is_learned(self, photos: Path, tmp_path: Path) -> None:
        encoders = []
        for name, more in (("ssl", []), ("sup", ["--labels=source", "--label-weight=1"])):
            out = tmp_path / name
            assert main(["train", str(photos), "--out", str(out), *QUICK, *more]) == 0
            encoders.append(Run.open(out).encoder()[0].state_dict())
        assert any(not torch.equal(encoders[0][name], encoders[1][name]) for name in encoders[0])

    def test_streamed_images_give_what_images_in_memory_give(
        self, run: Path, photos: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "streamed"
        more = ["--stream=true", "--workers=1"]
        assert main(["train", str(photos), "--out", str(out), *QUICK, *more]) == 0
        weights = [Run.open(path).encoder()[0].state_dict() for path in (run, out)]
        assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])

    def test_python_function_is_the_command(self, run: Path, photos: Path, tmp_path: Path) -> None:
        trained = likewise.train(
            str(photos),
            out=tmp_path / "p",
            encoder="tiny",
            projector=[16, 8],
            epochs=2,
            batch_size=8,
            device="cpu",
            logger=["csv"],
        )
        weights = [opened.encoder()[0].state_dict() for opened in (Run.open(run), trained)]
        assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])

    def test_a_graph_of_answers_is_learned_from(self, photos: Path, tmp_path: Path) -> None:
        options = {
            "encoder": "tiny",
            "projector": [16, 8],
            "epochs": 1,
            "batch_size": 8,
            "device": "cpu",
            "logger": ["csv"],
        }
        answers = likewise.Graph.from_edges(
            torch.tensor([0, 2, 4]), torch.tensor([6, 9, 11]), torch.tensor([1.0, -1.0, 1.0]), n=24
        )
        graph = likewise.Graph.identity(24) + answers
        run = likewise.train(str(photos), out=tmp_path / "answers", graph=graph, **options)
        plain = likewise.train(str(photos), out=tmp_path / "plain", **options)
        weights = [opened.encoder()[0].state_dict() for opened in (run, plain)]
        assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
        (run.path / "summary.json").unlink()  # as if it had been killed just before
        with pytest.raises(ValueError, match="resume it there"):
            likewise.train(resume=run.path)
        other = likewise.Graph.identity(24) + 2 * answers
        with pytest.raises(ValueError, match="the graph is not that of before"):
            likewise.train(resume=run.path, graph=other)
        likewise.train(resume=run.path, graph=graph)
        assert run.summary["epochs"] == 1
        with pytest.raises(ValueError, match="graph is given"):
            likewise.train(resume=plain.path, graph=graph)
        for wrong, expected in ((likewise.Graph.identity(5), "5 nodes for 24"), (3, "is a int")):
            with pytest.raises(ValueError, match=expected):
                likewise.train(str(photos), out=tmp_path / "x", graph=wrong, **options)

    def test_diverging_is_said_with_a_remedy(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        more = ["--lr=1e30", "--log-every=1", "--recipe=vicreg"]
        said = refused(capsys, "train", photos, "--out", tmp_path / "r", *QUICK, *more)
        assert "start a new run with a lower learning rate (it is 1e+30)" in said
        assert "precision 32" not in said

    def test_weights_that_the_last_step_spoils_are_said_with_the_same_remedy(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        more = ["--lr=1e30", "--optimizer=lars", "--epochs=1", "--batch-size=24"]
        said = refused(capsys, "train", photos, "--out", tmp_path / "r", *QUICK, *more)
        assert "weights are not finite at step 1: start a new run with a lower learning" in said

    def test_a_larger_canvas_is_kept_and_cut_from(self, photos: Path, tmp_path: Path) -> None:
        plain, wide = (
            likewise.train(
                str(photos),
                out=tmp_path / f"canvas{canvas}",
                **dict(encoder="tiny", projector=[16, 8], batch_size=8, device="cpu"),
                **dict(epochs=1, logger=["csv"], image_size=8, canvas=canvas),
            )
            for canvas in (None, 16)
        )
        assert (plain.config["canvas"], wide.config["canvas"]) == (8, 16)
        weights = [run.encoder()[0].state_dict() for run in (plain, wide)]
        assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files, with when they were written."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def unfinished(run: Path, copy: Path) -> Path:
    """The run as if it had been killed just before its end."""
    shutil.copytree(run, copy)
    (copy / "summary.json").unlink()
    return copy


class TestResuming:
    def test_a_finished_run_is_left_as_it_is(
        self, run: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = contents(run)
        assert main(["train", "--resume", str(run)]) == 0
        assert f"{run} is finished already" in capsys.readouterr().err
        assert likewise.train(resume=run).path == run
        assert contents(run) == before

    def test_killed_before_the_summary_it_is_written_with_what_was_seen(
        self, run: Path, tmp_path: Path
    ) -> None:
        copy = unfinished(run, tmp_path / "run")
        assert main(["train", "--resume", str(copy)]) == 0
        found, expected = Run.open(copy).summary, Run.open(run).summary
        same = ("history", "loss", "attraction", "knn", "effective_rank", "known")
        assert {name: found[name] for name in same} == {name: expected[name] for name in same}
        assert len(found["history"]) == 2
        # All of its time and views, and not those since it was resumed, of which there are none.
        assert found["seconds"] >= 0.5 * expected["seconds"]
        views = [one["seconds"] * one["images_per_second"] for one in (found, expected)]
        assert views == pytest.approx([96, 96], rel=0.2)

    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            (["--epochs=4"], "epochs is 4 (the run has 2)"),
            (["--epochs=100"], "epochs is 100 (the run has 2)"),  # the default, and yet a wish
            (
                ["--seed=1", "--recipe=byol"],
                "seed is 1 (the run has 0), recipe is 'byol' (the run has",
            ),
            (["--labels=source"], "labels is 'source' (the run has None)"),
            (["--merge-duplicates"], "merge_duplicates is True"),
            (["--out=elsewhere"], "out is 'elsewhere'"),
        ],
    )
    def test_other_arguments_are_refused_by_name(
        self, more: list[str], expected: str, run: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = contents(run)
        assert expected in refused(capsys, "train", "--resume", run, *more)
        assert contents(run) == before

    def test_another_folder_is_refused_while_the_first_is_there(
        self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = write_pictures(tmp_path / "photos", classes=2)  # of the same names
        assert f"data is '{other}'" in refused(capsys, "train", other, "--resume", run)

    def test_the_same_arguments_again_and_what_has_moved_are_taken(
        self, run: Path, photos: Path, tmp_path: Path
    ) -> None:
        copy = unfinished(run, tmp_path / "run")
        again = ["train", str(photos), "--out", str(copy), *QUICK, "--force", "--precision=auto"]
        assert main([*again, "--resume", str(copy)]) == 0
        (copy / "summary.json").unlink()
        config = Run.open(copy).config
        Run.open(copy).write_config({**config, "data": str(tmp_path / "gone")})
        assert main(["train", str(photos), "--resume", str(copy)]) == 0
        assert Run.open(copy).summary["epochs"] == 2

    def test_force_holds_for_a_run_that_goes_on(
        self,
        run: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        copy = unfinished(run, tmp_path / "run")
        monkeypatch.setattr("likewise.training.estimate.available_memory", lambda device: 1 << 20)
        assert "will not fit" in refused(capsys, "train", "--resume", copy)
        assert main(["train", "--resume", str(copy), "--force"]) == 0

    def test_other_pixels_under_the_same_names_are_refused(self, tmp_path: Path) -> None:
        options = {"encoder": "tiny", "epochs": 1, "batch_size": 8, "device": "cpu"}
        run = likewise.train(pictures(24), out=tmp_path / "run", logger=["csv"], **options)
        before = run.encoder()[1]
        (run.path / "summary.json").unlink()
        with pytest.raises(UsageError, match="names of before and other pixels"):
            likewise.train(255 - pictures(24), resume=run.path)
        likewise.train(255 - pictures(24), resume=run.path, force=True)
        assert run.summary["epochs"] == 1
        (run.path / "summary.json").unlink()
        likewise.train(pictures(24), resume=run.path)
        assert run.encoder()[1] == before

    def test_one_other_picture_is_seen(self, tmp_path: Path) -> None:
        options = {"encoder": "tiny", "epochs": 1, "batch_size": 8, "device": "cpu"}
        run = likewise.train(pictures(24), out=tmp_path / "run", logger="csv", **options)
        (run.path / "summary.json").unlink()
        other = pictures(24)
        other[-1] = 255 - other[-1]
        with pytest.raises(UsageError, match="other pixels"):
            likewise.train(other, resume=run.path)

    def test_force_is_for_pixels_and_counts_only_where_it_is_given(self, tmp_path: Path) -> None:
        one = likewise.Graph.from_edges(torch.tensor([0]), torch.tensor([1]), n=24)
        graph = likewise.Graph.identity(24) + one
        options: dict[str, Any] = {"encoder": "tiny", "epochs": 1, "batch_size": 8, "device": "cpu"}
        out = tmp_path / "run"
        run = likewise.train(pictures(24), out=out, graph=graph, force=True, **options)
        (run.path / "summary.json").unlink()
        with pytest.raises(UsageError, match="other pixels"):
            likewise.train(255 - pictures(24), resume=out, graph=graph)
        near = likewise.Graph.identity(24) + 0.999 * one
        with pytest.raises(UsageError, match="graph is not that of before"):
            likewise.train(pictures(24), resume=out, graph=near, force=True)

    def test_another_argument_of_the_objective_is_refused(
        self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        copy = unfinished(run, tmp_path / "run")
        said = refused(capsys, "train", "--resume", copy, '--objective={"temperature": 0.9}')
        assert "objective is {'temperature': 0.9}" in said

    def test_other_labels_are_refused(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file, out = tmp_path / "some.csv", tmp_path / "run"

        def write(classes: int) -> None:
            rows = [f"class{i % 2}/{i:03}.png,{i % classes}" for i in range(12)]
            file.write_text("key,label\n" + "\n".join(rows) + "\n")

        write(2)
        assert main(["train", str(photos), "--out", str(out), *QUICK, f"--labels={file}"]) == 0
        (out / "summary.json").unlink()
        write(3)
        assert "the labels are not those of before" in refused(capsys, "train", "--resume", out)
        write(2)
        assert main(["train", "--resume", str(out)]) == 0

    def test_images_that_cannot_be_read_any_more_are_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder, out = write_pictures(tmp_path / "photos"), tmp_path / "run"
        assert main(["train", str(folder), "--out", str(out), *QUICK]) == 0
        (out / "summary.json").unlink()
        (folder / "003.png").write_bytes(b"no image")
        said = refused(capsys, "train", "--resume", out)
        assert "other images than before can be read" in said

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("checkpoints/last.ckpt", b"half", "remove it, and the run begins at its first step"),
            ("config.yaml", b"a: [", "config.yaml cannot be read"),
            ("config.yaml", b"", "config.yaml holds no arguments"),
            ("data.json", b"", "data.json cannot be read"),
        ],
    )
    def test_files_that_were_damaged_are_named(
        self,
        name: str,
        content: bytes,
        expected: str,
        run: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        copy = unfinished(run, tmp_path / "run")
        (copy / name).write_bytes(content)
        assert expected in refused(capsys, "train", "--resume", copy)

    def test_how_far_it_had_come_is_said(
        self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["train", "--resume", str(unfinished(run, tmp_path / "run"))]) == 0
        assert "2 epochs, 6 steps, of which 6 are done" in capsys.readouterr().err

    def test_without_its_checkpoint_it_begins_anew(self, run: Path, tmp_path: Path) -> None:
        copy = unfinished(run, tmp_path / "run")
        shutil.rmtree(copy / "checkpoints")
        assert main(["train", "--resume", str(copy)]) == 0
        weights = [Run.open(path).encoder()[0].state_dict() for path in (run, copy)]
        assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
        for name in ("metrics.csv", "diagnostics.jsonl"):
            assert len((copy / name).read_text().splitlines()) == len(
                (run / name).read_text().splitlines()
            )

    def test_the_weights_that_it_began_with_need_not_be_there(
        self, run: Path, photos: Path, tmp_path: Path
    ) -> None:
        start = tmp_path / "start.safetensors"
        shutil.copy(run / "encoder.safetensors", start)
        options: dict[str, Any] = {"encoder": "tiny", "epochs": 1, "batch_size": 8, "device": "cpu"}
        out = tmp_path / "run"
        trained = likewise.train(str(photos), out=out, pretrained=str(start), **options)
        weights = trained.encoder()[0].state_dict()
        (out / "summary.json").unlink()
        start.unlink()
        again = likewise.train(resume=out).encoder()[0].state_dict()
        assert all(torch.equal(weights[name], again[name]) for name in weights)
        # Without a checkpoint it begins anew, from them.
        (out / "summary.json").unlink()
        (out / "checkpoints/last.ckpt").unlink()
        with pytest.raises(UsageError, match="start.safetensors"):
            likewise.train(resume=out)
        shutil.copy(run / "encoder.safetensors", start)
        anew = likewise.train(resume=out).encoder()[0].state_dict()
        assert all(torch.equal(weights[name], anew[name]) for name in weights)

    def test_the_config_says_what_the_recipe_and_the_images_decided(self, run: Path) -> None:
        config = Run.open(run).config
        assert config["objective"] == {"temperature": 0.2, "positives": "mean"}
        assert config["projector"] == [16, 8]
        assert main(["train", "--resume", str(run), '--objective={"temperature": 0.2}']) == 0

    def test_images_that_have_moved_are_named_anew(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        old, new, out = tmp_path / "old", tmp_path / "new", tmp_path / "run"
        shutil.copytree(photos, old)
        assert main(["train", str(old), "--out", str(out), *QUICK]) == 0
        (out / "summary.json").unlink()
        old.rename(new)
        said = refused(capsys, "train", "--resume", out)
        assert f"trained on '{old}', which is not there" in said
        assert f"`likewise train NEW_PLACE --resume {out}`" in said
        assert main(["train", str(new), "--resume", str(out)]) == 0

    def test_a_run_says_what_it_is(self, run: Path, tmp_path: Path) -> None:
        assert repr(Run.open(run)).startswith(f"Run('{run}': simclr with tiny, 2 epochs")
        assert repr(Run.open(unfinished(run, tmp_path / "r"))).endswith("not finished)")
        assert repr(Run(tmp_path / "none")) == f"Run('{tmp_path / 'none'}')"

    def test_a_path_from_python_is_found_again(self, photos: Path, tmp_path: Path) -> None:
        options: dict[str, Any] = {"encoder": "tiny", "epochs": 1, "batch_size": 8, "device": "cpu"}
        run = likewise.train(photos, out=tmp_path / "run", **options, logger=["csv"])  # type: ignore[arg-type]
        assert run.config["data"] == str(photos)
        (run.path / "summary.json").unlink()
        assert main(["train", "--resume", str(run.path)]) == 0

    def test_what_was_trained_stays_where_a_later_step_fails(
        self, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from likewise.training.module import TrainingModule

        original = TrainingModule.training_step

        def step(self: Any, *batch: Any) -> Any:
            if self.trainer.global_step == 4:
                raise ValueError("this step cannot be taken")
            return original(self, *batch)

        monkeypatch.setattr(TrainingModule, "training_step", step)
        options: dict[str, Any] = {"encoder": "tiny", "epochs": 2, "batch_size": 8, "device": "cpu"}
        with pytest.raises(ValueError, match="this step cannot be taken"):
            likewise.train(str(photos), out=tmp_path / "run", **options, logger=["csv"])
        assert (tmp_path / "run" / "config.yaml").is_file()

    def test_arrays_are_given_again(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {"encoder": "tiny", "epochs": 1, "batch_size": 8, "device": "cpu"}
        run = likewise.train(pictures(16), out=tmp_path / "run", **options, logger=["csv"])
        (run.path / "summary.json").unlink()
        assert likewise.train(pictures(16), resume=run.path).summary["epochs"] == 1
        assert likewise.train(pictures(16), resume=run.path).path == run.path
        (run.path / "summary.json").unlink()
        with pytest.raises(ValueError, match="are not those"):
            likewise.train(pictures(12), resume=run.path)


def answer(exemplar: str, candidates: list[str], clicked: list[str]) -> Any:
    from likewise.annotate.facts import Fact

    question = {"kind": "grid", "exemplar": exemplar, "candidates": candidates}
    return Fact(exemplar, "answer", "ada", 0.0, {"question": question, "clicked": clicked})


class TestWhatIsKnown:
    def test_labels_are_counted(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        lines = [f"class{i % 2}/{i:03}.png,kind{i % 3}" for i in range(9)]
        file = tmp_path / "some.csv"
        file.write_text("\n".join(["key,label", *lines, "x.png,kind0", "y.png,kind1"]) + "\n")
        out = tmp_path / "run"
        assert main(["train", str(photos), f"--out={out}", f"--labels={file}", *QUICK]) == 0
        said = capsys.readouterr().err
        expected = f"9 of 24 images have a label, 3 classes; 2 lines of {file} match no image"
        assert expected in said
        assert "no labels" not in said
        known = {"labelled": 9, "classes": 3, "unmatched": 2}
        assert Run.open(out).summary["known"] == known

    def test_a_share_of_them_is_counted(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        more = ["--labels=source", "--label-share=0.25"]
        assert main(["train", str(photos), f"--out={tmp_path / 'run'}", *more, *QUICK]) == 0
        assert "6 of 24 images have a label (24 are known), 2 classes" in capsys.readouterr().err

    def test_without_either_nothing_is_known(self, run: Path) -> None:
        assert Run.open(run).summary["known"] == {}

    def test_answers_are_counted_and_kept(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from likewise.annotate import Store

        keys = [f"class{i % 2}/{i:03}.png" for i in range(6)]
        with Store.open(tmp_path / "project.db") as store:
            store.append(
                [answer(keys[0], keys[1:4], keys[1:3]), answer("gone.png", ["lost.png"], [])]
            )
        out, more = tmp_path / "run", f"--answers={tmp_path / 'project.db'}"
        assert main(["train", str(photos), f"--out={out}", more, *QUICK]) == 0
        # 0, 1 and 2 are alike, and 3 is different from each of them.
        expected = "3 answers about these images (1 more about other images): 3 pairs alike, 3 diff"
        assert expected in capsys.readouterr().err
        counts = {"answers": 3, "answers_elsewhere": 1, "alike": 3, "different": 3}
        assert Run.open(out).summary["known"] == counts
        assert (out / "answers.jsonl").is_file()
        copy = unfinished(out, tmp_path / "copy")
        (copy / "answers.jsonl").unlink()
        assert "answers.jsonl is missing" in refused(capsys, "train", "--resume", copy)

    @pytest.mark.parametrize("more", [['--objective={"temprature": 1}'], ["--lr=1"]])
    def test_what_is_refused_leaves_no_folder(
        self, more: list[str], photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from likewise.annotate import Store

        # Answers about these images with another argument that is wrong, or about other images.
        keys = ["class0/000.png", "class1/001.png"] if "obj" in more[0] else ["gone.png", "x.png"]
        with Store.open(tmp_path / "project.db") as store:
            store.append([answer(keys[0], keys[1:], [])])
        answers = f"--answers={tmp_path / 'project.db'}"
        refused(capsys, "train", photos, "--out", tmp_path / "run", answers, *QUICK, *more)
        assert not (tmp_path / "run").exists()


class TestAfterTraining:
    def test_embed_writes_a_row_an_image_by_key(self, run: Path, photos: Path, tmp_path: Path):
        out = tmp_path / "embeddings.parquet"
        assert main(["embed", str(run), str(photos), "--out", str(out), "--device=cpu"]) == 0
        from likewise.evaluation import read_embeddings

        found = read_embeddings(out)
        assert found.rows.shape == (24, 128)
        assert found.keys[0] == "class0/000.png"

    def test_embedding_is_the_same_whatever_comes_along(self, run: Path, photos: Path) -> None:
        whole = likewise.embed(run, str(photos), device="cpu")
        part = likewise.embed(run, str(photos / "class1"), device="cpu")
        place = whole.keys.index("class1/" + part.keys[0])
        assert np.allclose(whole.rows[place], part.rows[0], atol=1e-5)

    def test_evaluate_scores_and_writes_json(self, run: Path, photos: Path) -> None:
        arguments = ["--train", str(photos), "--test", str(photos), "--neighbors=3"]
        more = ["--device=cpu", "--methods=[knn,linear]"]
        assert main(["evaluate", str(run), *arguments, *more]) == 0
        found = json.loads((run / "evaluation.json").read_text())
        assert "knn" in json.dumps(found)

    def test_evaluate_takes_embeddings_without_a_run(
        self, run: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file, out = tmp_path / "rows.parquet", tmp_path / "scores.json"
        likewise.embed(run, str(photos), out=file, device="cpu")
        arguments = ["--train", str(file), "--test", str(file), "--neighbors=1", "--device=cpu"]
        more = ["--methods=[knn]", "--out", str(out)]
        assert main(["evaluate", *arguments, *more]) == 0
        # Every row is its own nearest neighbour.
        assert "1.0" in out.read_text()
        said = refused(capsys, "evaluate", "--train", photos, "--test", photos)
        assert "is no embeddings file" in said

    @pytest.mark.parametrize("kind", ["safetensors", "onnx"])
    def test_export_gives_the_same_features(self, kind: str, run: Path, tmp_path: Path) -> None:
        out = tmp_path / f"model.{kind}"
        assert main(["export", str(run), f"--format={kind}", "--out", str(out)]) == 0
        encoder, preparation = Run.open(run).encoder()
        images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
        mean, std = (torch.tensor(x)[:, None, None] for x in (preparation.mean, preparation.std))
        with torch.no_grad():
            expected = encoder((images - mean) / std)
        if kind == "onnx":
            import onnxruntime

            session = onnxruntime.InferenceSession(str(out))
            found = session.run(None, {"images": images.numpy()})[0]
            assert np.allclose(found, expected.numpy(), atol=1e-4)
        else:
            from likewise.models import build_encoder

            again = build_encoder("tiny", image_size=16, pretrained=out).eval()
            with torch.no_grad():
                assert torch.equal(again((images - mean) / std), expected)

    def test_export_to_timm_loads_in_timm(self, photos: Path, tmp_path: Path) -> None:
        import timm

        out = tmp_path / "run"
        quick = [a for a in QUICK if "encoder" not in a and "epochs" not in a]
        resnet = ["--encoder=resnet18", "--stem=original", "--epochs=1"]
        assert main(["train", str(photos), "--out", str(out), *quick, *resnet]) == 0
        assert main(["export", str(out), "--format=timm", "--out", str(tmp_path / "timm")]) == 0
        model = timm.create_model(f"local-dir:{tmp_path / 'timm'}", pretrained=True).eval()
        encoder, _ = Run.open(out).encoder()
        images = torch.rand(2, 3, 64, 64)
        with torch.no_grad():
            assert torch.allclose(model(images), encoder(images), atol=1e-5)

    @pytest.mark.parametrize(("size", "stem"), [(96, "original"), (32, "small")])
    def test_a_transformer_of_another_size_loads_in_timm(
        self, size: int, stem: str, tmp_path: Path
    ) -> None:
        import timm

        from likewise.models import build_encoder
        from likewise.runs import Preparation

        run = Run(tmp_path / "run")
        run.write_config({})
        made = build_encoder("vit_tiny_patch16_224", image_size=size, stem=stem, seed=0)
        run.write_encoder(made, Preparation(size, (0.5,) * 3, (0.25,) * 3))
        assert main(["export", str(run.path), "--format=timm", "--out", str(tmp_path / "t")]) == 0
        model = timm.create_model(f"local-dir:{tmp_path / 't'}", pretrained=True).eval()
        images = torch.rand(2, 3, size, size)
        with torch.no_grad():
            assert torch.allclose(model(images), made.eval()(images), atol=1e-5)

    def test_recipes_are_listed_with_paper_and_defaults(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["recipes", "--markdown"]) == 0
        listed = capsys.readouterr().out
        assert "| simclr | Chen et al. 2020 | NTXent(temperature=0.2" in listed
        assert "matrix-ssl" in listed


class TestBadInput:
    def test_empty_folder(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "photos").mkdir()
        said = refused(capsys, "train", tmp_path / "photos", "--out", tmp_path / "run", *QUICK)
        assert "no image" in said
        assert not (tmp_path / "run").exists()

    def test_one_image(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = write_pictures(tmp_path / "photos", n=1)
        said = refused(capsys, "train", folder, "--out", tmp_path / "run", *QUICK)
        assert "1 image" in said
        assert not (tmp_path / "run").exists()

    def test_all_images_broken(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = tmp_path / "photos"
        folder.mkdir()
        for i in range(4):
            (folder / f"{i}.jpg").write_bytes(b"nothing")
        said = refused(capsys, "train", folder, "--out", tmp_path / "run", *QUICK)
        assert "broken" in said
        assert not (tmp_path / "run").exists()

    def test_labels_that_match_no_image(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "labels.csv").write_text("key,label\nelsewhere.png,cat\n")
        labels = f"--labels={tmp_path / 'labels.csv'}"
        said = refused(capsys, "train", photos, "--out", tmp_path / "run", labels, *QUICK)
        assert "elsewhere.png" in said
        assert "class0/000.png" in said
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        ("option", "expected"),
        [
            ("--recipe=simcrl", "did you mean 'simclr'"),
            ("--recipe=SimCLR", "did you mean 'simclr'"),
            ("--encoder=resnet19", "resnet18"),
            ("--views=simclrr", "simclr"),
            ('--objective={"temprature": 1}', "temperature"),
            ("--epochs=0", "epochs is 0"),
            ("--batch-size=1", "batch_size is 1"),
            ("--label-weight=2", "label_weight is 2"),
            ("--label-weight=0.5", "without labels or answers: add --labels (source, or a CSV"),
            ("--label-weight=0.4", "or --answers"),
            ("--device=cuda", "device is cuda, and PyTorch finds no GPU here: give --device cpu"),
            ("--label-share=0", "label_share is 0"),
            ("--known-share=1", "known_share is 1.0: give a number between 0 and 1"),
            ("--pretrained=nowhere.safetensors", "nowhere.safetensors"),
            ("--warmup-epochs=5", "warmup_epochs is 5"),
            ("--lr=0", "lr is 0.0: give a number above 0"),
            ("--canvas=15", "canvas is 15 for views of 16 pixels: give at least 16"),
            ("--weight-decay=-1", "weight_decay is -1.0: give 0 or more"),
            ("--micro-batch=5", "micro_batch is 5 for 16 views"),
            ("--logger=[wandb]", "wandb is not installed: pip install '.[wandb]' in the checkout"),
            ("--recipe=w-mse", "a slice holds"),
            ("--optimizer=lars", "give --lr, too"),
            ("--nodes=2", "nodes is 2, and MASTER_ADDR, MASTER_PORT, NODE_RANK are not in"),
        ],
    )
    def test_options_without_meaning(
        self,
        option: str,
        expected: str,
        photos: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        name = option.split("=")[0]
        quick = [other for other in QUICK if not other.startswith(name + "=")]
        said = refused(capsys, "train", photos, "--out", tmp_path / "run", *quick, option)
        assert expected in said
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"device": "gpu"}, "device is 'gpu': give one of 'auto', 'cpu', 'cuda'"),
            ({"precision": "fp16"}, "precision is 'fp16': give one of"),
            ({"sampler": "random"}, "sampler is 'random': give one of"),
            ({"optimizer": "adam"}, "optimizer is 'adam': give one of"),
            ({"logger": ["csv", "excel"]}, "logger is 'excel': give one of 'csv'"),
            ({"epochs": 2.5}, "epochs is 2.5: give a whole number of at least 1"),
            ({"batch_size": "8"}, "batch_size is '8': give a whole number of at least 2"),
            ({"seed": True}, "seed is True: give a whole number"),
            ({"lr": "0.1"}, "lr is '0.1': give a number"),
            ({"checkpoint_minutes": math.nan}, "checkpoint_minutes is nan: give a number"),
            ({"compile": True, "deterministic": True}, "both compile and deterministic"),
            ({"known_share": 0.2, "sampler": "shuffled"}, "known_share is 0.2, and samples are"),
            ({"recipe": "swav", "objective": {"dim": 3}}, "dim is 3, and is known already (128"),
            ({"label_weight": 0.0}, "label_weight is given without labels"),
        ],
    )
    def test_from_python_too(self, options: dict[str, Any], expected: str, tmp_path: Path) -> None:
        quick: dict[str, Any] = {"epochs": 1, "encoder": "tiny", "device": "cpu"}
        with pytest.raises(UsageError, match=re.escape(expected)):
            likewise.train("digits", out=tmp_path / "run", **{**quick, **options})
        assert not (tmp_path / "run").exists()

    def test_numbers_of_numpy_are_numbers(self, tmp_path: Path) -> None:
        run = likewise.train(
            pictures(24), out=tmp_path / "run", encoder="tiny", device="cpu", batch_size=8,
            epochs=np.int64(1), lr=np.float32(0.5), projector=np.array([16, 8]), logger="csv",
            objective={"temperature": np.float64(0.5)},
        )  # fmt: skip
        assert (run.config["epochs"], run.config["lr"]) == (1, 0.5)
        assert run.config["objective"]["temperature"] == 0.5
        assert run.config["projector"] == [16, 8]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            # The batch is cut to the 24 images: 48 views, of which 47 leave one.
            (["--batch-size=256", "--micro-batch=47"], "micro_batch is 47 for 48 views"),
            # Six small views of 8 images, beside two large ones.
            (["--batch-size=8", "--micro-batch=47", "--views=multi-crop"], "47 for 48 views"),
        ],
    )
    def test_micro_batches_that_leave_one_view_alone(
        self,
        options: list[str],
        expected: str,
        photos: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        said = refused(capsys, "train", photos, "--out", tmp_path / "r", *QUICK, *options)
        assert expected in said
        assert not (tmp_path / "r").exists()

    @pytest.mark.parametrize("place", ["afile", "afile/run"])
    def test_a_file_in_place_of_the_folder(
        self, place: str, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "afile").write_text("")
        said = refused(capsys, "train", photos, "--out", tmp_path / place, *QUICK)
        assert f"{tmp_path / 'afile'} is no folder: give another place" in said

    def test_what_a_regression_on_labels_cannot_take(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        more = ["--recipe=supervised-mse", "--labels=source", "--label-weight=0.5"]
        said = refused(capsys, "train", photos, "--out", tmp_path / "r", *QUICK, *more)
        assert "label_weight is 0.5" in said and "leave it out" in said

    def test_views_that_an_encoder_cannot_take(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        quick = [option for option in QUICK if "encoder" not in option]
        more = ["--encoder=vit_tiny_patch16_224", "--image-size=32", "--views=multi-crop"]
        said = refused(capsys, "train", photos, "--out", tmp_path / "r", *quick, *more)
        assert "encoder vit_tiny_patch16_224 cannot take the views" in said
        assert not (tmp_path / "r").exists()

    def test_config_with_a_misspelt_key(
        self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        config = yaml.safe_load((run / "config.yaml").read_text())
        config["epocs"] = config.pop("epochs")
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        said = refused(
            capsys, "train", "--config", tmp_path / "config.yaml", "--out", tmp_path / "r"
        )
        assert "epocs" in said

    def test_a_run_is_never_overwritten(
        self, run: Path, photos: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = (run / "encoder.safetensors").read_bytes()
        said = refused(capsys, "train", photos, "--out", run, *QUICK)
        assert "--resume" in said
        assert (run / "encoder.safetensors").read_bytes() == before

    def test_resume_refuses_other_images(
        self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        copy = unfinished(run, tmp_path / "run")
        folder = write_pictures(tmp_path / "photos", n=20, classes=2)
        config = yaml.safe_load((copy / "config.yaml").read_text())
        config["data"] = str(folder)
        (copy / "config.yaml").write_text(yaml.safe_dump(config))
        said = refused(capsys, "train", "--resume", copy)
        assert "added, removed or renamed" in said

    def test_nothing_to_train_on(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "--out" in refused(capsys, "train")

    @pytest.mark.parametrize(
        ("encoder", "expected"), [("resnet18", "stem for small images"), ("tiny", "is 'tiny'")]
    )
    def test_export_of_what_timm_cannot_build(
        self, encoder: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from likewise.models import build_encoder
        from likewise.runs import Preparation

        run = Run(tmp_path / "run")
        run.write_config({})
        made = build_encoder(encoder, image_size=32, seed=0)
        run.write_encoder(made, Preparation(32, (0.5,) * 3, (0.25,) * 3))
        assert expected in refused(capsys, "export", run.path, "--format=timm")
        assert not (run.path / "timm").exists()

    def test_embed_with_what_is_no_run(
        self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = f"--out={tmp_path / 'e.parquet'}"
        assert "is no folder" in refused(capsys, "embed", tmp_path / "none", photos, out)
        assert "not a run" in refused(capsys, "embed", photos, photos, out)

    @pytest.mark.parametrize(
        "error",
        [
            OSError(errno.ENOSPC, "No space left on device"),
            # What torch makes of it.
            RuntimeError("[enforce fail at inline_container.cc:671] . unexpected pos 1890432"),
        ],
    )
    def test_disk_full_leaves_the_old_checkpoint_and_no_half_file(
        self,
        error: Exception,
        photos: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        original, calls = torch.save, [0]

        def save(content: Any, path: Any) -> None:
            calls[0] += 1
            if calls[0] == 2:
                Path(path).write_bytes(b"half")
                raise error
            original(content, path)

        monkeypatch.setattr(torch, "save", save)
        monkeypatch.setattr("likewise.runs.files._is_full", lambda _: True)
        out = tmp_path / "run"
        often = "--checkpoint-minutes=0"
        said = refused(capsys, "train", photos, "--out", out, *QUICK, often)
        assert "No space left on device" in said
        monkeypatch.undo()
        assert not list((out / "checkpoints").glob(".*"))
        assert main(["train", "--resume", str(out)]) == 0
