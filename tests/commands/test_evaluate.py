"""``likewise evaluate`` as a user calls it: labels of a file, neighbours, what is refused."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from PIL import Image

import likewise
from likewise.commands import main
from likewise.evaluation import evaluate_embeddings
from tests.commands.test_train import refused
from tests.library.pictures import KINDS, folder_of, picture


@pytest.fixture
def held_out(tmp_path: Path) -> Path:
    """Other pictures, of the same names as those of `photos`."""
    folder = tmp_path / "held-out"
    folder.mkdir()
    for kind, name in enumerate(KINDS):
        for number in range(4):
            Image.fromarray(picture(kind, 50 + number)).save(folder / f"{name}{number}.png")
    return folder


def label_file(path: Path, each: int, turn: int = 0) -> Path:
    lines = [
        f"{name}{number}.png,{KINDS[(kind + turn) % 3]}"
        for kind, name in enumerate(KINDS)
        for number in range(each)
    ]
    path.write_text("\n".join(["key,label", *lines, ""]))
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return label_file(tmp_path / "labels.csv", 6)


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "labelled", each=6, classes=True)


def scores(out: Path) -> dict:
    return json.loads(out.read_text())


def evaluate(*words: object) -> int:
    return main(["evaluate", *map(str, words), "--device=cpu"])


class TestLabels:
    def test_flat_folders_are_scored_as_folders_of_classes_are(
        self, run, photos, labels, held_out, labelled, tmp_path, capsys
    ):
        out = [tmp_path / "file.json", tmp_path / "folders.json"]
        words = ["--neighbors=3", "--methods=[knn,linear]", "--out"]
        known = ["--train-labels", labels, "--test-labels", labels]
        assert evaluate(run, "--train", photos, "--test", held_out, *known, *words, out[0]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "18 images" in said and "6 labels without an image" in said
        for kind in KINDS:
            (tmp_path / "other" / kind).mkdir(parents=True)
            for file in held_out.glob(f"{kind}*"):
                file.rename(tmp_path / "other" / kind / file.name)
        assert evaluate(run, "--train", labelled, "--test", tmp_path / "other", *words, out[1]) == 0
        one, other = (scores(path) for path in out)
        assert one["summary"] == other["summary"]

    def test_each_set_has_its_own_file(self, run, photos, held_out, labels, tmp_path):
        # Both folders have a circle0.png: one file for both could not tell them apart.
        turned = label_file(tmp_path / "turned.csv", 4, turn=1)
        options = {"methods": ["knn"], "neighbors": 1, "device": "cpu"}
        data = {"train": str(photos), "test": str(held_out), "train_labels": labels}
        right, wrong = (
            likewise.evaluate(run, **data, test_labels=file, **options) for file in (labels, turned)
        )
        assert right.knn[1].accuracy + wrong.knn[1].accuracy <= 1
        assert right.knn[1].accuracy != wrong.knn[1].accuracy

    def test_embeddings_without_labels_get_them(self, run, photos, labels, tmp_path):
        rows, out = tmp_path / "rows.parquet", tmp_path / "scores.json"
        likewise.embed(run, str(photos), out=rows, device="cpu")
        words = ["--train", rows, "--test", rows, "--methods=[knn]", "--neighbors=1", "--out", out]
        assert evaluate(*words, "--train-labels", labels, "--test-labels", labels) == 0
        assert scores(out)["summary"]["knn-1"] == 1.0
        assert scores(out)["settings"]["n_test"] == 18

    def test_one_set_may_have_its_own_labels(self, run, photos, labels, labelled, tmp_path):
        words = ["--train", labelled, "--test", photos, "--test-labels", labels]
        more = ["--methods=[knn]", "--neighbors=1", "--out", tmp_path / "s.json"]
        assert evaluate(run, *words, *more) == 0
        assert scores(tmp_path / "s.json")["summary"]["knn-1"] == 1.0

    def test_refuses_keys_of_other_images_before_any_work(
        self, run, photos, labels, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setattr("likewise.evaluation.embedded.embed_images", None)
        other = tmp_path / "other.csv"
        other.write_text("key,label\nx.png,a\n")
        words = ["--train", photos, "--test", photos, "--train-labels", labels]
        said = refused(capsys, "evaluate", run, *words, "--test-labels", other)
        assert "none of the 1 keys" in said and "other.csv" in said
        said = refused(capsys, "evaluate", run, *words)
        assert "test has no labels" in said and "--test-labels" in said


class TestNeighbors:
    def found(self, run, labelled, tmp_path, *words):
        out = tmp_path / "s.json"
        data = ["--train", labelled, "--test", labelled, "--methods=[knn]", "--out", out]
        assert evaluate(run, *data, *words) == 0
        return scores(out)["knn"]

    def test_several_a_temperature_and_a_majority(self, run, labelled, tmp_path):
        words = ["--neighbors", "[5, 2]", "--knn-temperature=0.5", "--knn-vote=majority"]
        found = self.found(run, labelled, tmp_path, *words)
        rows = likewise.embed(run, str(labelled), device="cpu")
        expected = evaluate_embeddings(
            rows, rows, methods=["knn"], k=(5, 2), temperature=0.5, vote="majority"
        )
        assert list(found) == ["5", "2"]
        for k in (5, 2):
            assert found[str(k)]["accuracy"] == expected.knn[k].accuracy
            settings = found[str(k)]["settings"]
            assert (settings["temperature"], settings["vote"]) == (0.5, "majority")

    def test_as_in_python_by_default(self, run, labelled, tmp_path):
        # 18 rows can vote, and not 200.
        assert list(self.found(run, labelled, tmp_path)) == ["18", "1"]
        assert list(self.found(run, labelled, tmp_path, "--neighbors", 4)) == ["4"]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--neighbors=0"], "neighbors is 0"),
            (["--neighbors=[3,-1]"], "neighbors is -1"),
            (["--neighbors=[]"], "neighbors is empty"),
            (["--neighbors=many"], "such as --neighbors '[200, 1]'"),
            (["--knn-temperature=0"], "knn_temperature is 0.0: give a positive number"),
            (["--knn-vote=loud"], "give weighted or majority"),
            (["--batch-size=0"], "batch_size is 0: give an integer of at least 1"),
            (["--workers=-3"], "workers is -3"),
        ],
    )
    def test_refused_before_any_work(self, words, message, run, labelled, capsys, monkeypatch):
        monkeypatch.setattr("likewise.evaluation.embedded.embed_images", None)
        data = ["--train", labelled, "--test", labelled]
        assert message in refused(capsys, "evaluate", run, *data, *words)


class TestOut:
    @pytest.mark.parametrize("name", ["folder", "file/s.json", "file/deep/s.json"])
    def test_what_can_be_no_file_is_refused_before_any_work(
        self, name, run, labelled, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setattr("likewise.evaluation.embedded.embed_images", None)
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_text("mine")
        words = ["--train", labelled, "--test", labelled, "--out", tmp_path / name]
        said = refused(capsys, "evaluate", run, *words)
        assert f"error: out is {tmp_path / name}" in said and "folder" in said
        assert (tmp_path / "file").read_text() == "mine"
        assert not list((tmp_path / "folder").iterdir())

    def test_a_full_disk(self, run, labelled, tmp_path, capsys, monkeypatch):
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, "write_text", full)
        out = tmp_path / "kept" / "s.json"
        words = ["--train", labelled, "--test", labelled, "--methods=[knn]", "--device=cpu"]
        said = refused(capsys, "evaluate", run, *words, "--out", out)
        assert said == f"error: {out} cannot be written: No space left on device"
        assert not list(out.parent.iterdir())


def test_a_seed_below_zero_is_refused_first(run, photos, labels, capsys):
    words = ("--train", photos, "--test", photos, "--train-labels", labels, "--seed", "-1")
    assert "seed is -1" in refused(capsys, "evaluate", run, *words)
