"""``likewise embed`` as a user calls it: labels of a file, threads, what is refused."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.commands import main
from likewise.data import load_images
from likewise.evaluation import read_embeddings
from tests.commands.test_train import refused
from tests.library.pictures import KINDS

LOADING = "likewise.evaluation.embedded.load_images"


def embed(*words: object) -> int:
    return main(["embed", *map(str, words), "--device=cpu"])


class TestLabels:
    def test_those_of_a_file_are_written(self, run, photos, tmp_path, capsys):
        path, out = tmp_path / "labels.csv", tmp_path / "e.parquet"
        lines = [f"{kind}{number}.png,a {kind}" for kind in KINDS for number in range(2)]
        path.write_text("\n".join(["key,label", *lines, "gone.png,a square"]))
        assert embed(run, photos, "--labels", path, "--out", out) == 0
        said = capsys.readouterr().err
        assert "6 labelled" in said and "1 label without an image" in said
        found = read_embeddings(out)
        assert found.class_names == ["a circle", "a square", "a stripes"]
        for key, label in zip(found.keys, found.labels, strict=True):
            known = key.startswith(KINDS) and key[-5] in "01"
            assert label == (KINDS.index(key[:-5]) if known else -1)

    def test_in_place_of_the_folders(self, run, photos, tmp_path):
        for kind in KINDS:
            (photos / "by-kind" / kind).mkdir(parents=True)
            for file in photos.glob(f"{kind}*.png"):
                file.rename(photos / "by-kind" / kind / file.name)
        path = tmp_path / "labels.csv"
        path.write_text("key,label\ncircle0.png,x\nsquare0.png,y\n")
        found = likewise.embed(run, str(photos / "by-kind"), labels=path, device="cpu")
        assert found.class_names == ["x", "y"] and (found.labels >= 0).sum() == 2

    def test_refuses_keys_of_other_images(self, run, photos, tmp_path, capsys):
        path, out = tmp_path / "labels.csv", tmp_path / "e.parquet"
        path.write_text("key,label\nx.png,a\ny.png,b\n")
        words = ["embed", run, photos, "--out", out, "--device=cpu", "--labels"]
        assert "none of the 2 keys" in refused(capsys, *words, path)
        assert "no such file" in refused(capsys, *words, tmp_path / "none.csv")
        assert not out.exists()


class TestWorkers:
    @pytest.mark.parametrize(("given", "taken"), [([], 0), (["--workers=3"], 3)])
    def test_decode(self, given, taken, run, photos, tmp_path, monkeypatch):
        asked = []

        def load(*arguments, workers, **options):
            asked.append(workers)
            return load_images(*arguments, workers=workers, **options)

        monkeypatch.setattr(LOADING, load)
        assert embed(run, photos, "--out", tmp_path / "e.parquet", *given) == 0
        assert asked == [taken]

    def test_change_no_row(self, run, photos):
        one, three = (
            likewise.embed(run, str(photos), workers=workers, device="cpu") for workers in (1, 3)
        )
        assert one.keys == three.keys
        np.testing.assert_array_equal(one.rows, three.rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch-size=0"], "batch_size is 0: give an integer of at least 1"),
        (["--batch-size=-2"], "batch_size is -2"),
        (["--workers=-3"], "workers is -3: give 0 (automatic) or more threads"),
    ],
)
def test_numbers_are_refused_before_any_work(
    words, message, run, photos, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(LOADING, None)
    out = tmp_path / "e.parquet"
    assert message in refused(capsys, "embed", run, photos, "--out", out, "--device=cpu", *words)
    assert not out.exists()


class TestOut:
    @pytest.mark.parametrize("name", ["folder", "folder.parquet", "file/e.parquet"])
    def test_what_can_be_no_file_is_refused_before_any_work(
        self, name, run, photos, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setattr(LOADING, None)
        for folder in ("folder", "folder.parquet"):
            (tmp_path / folder).mkdir()
        (tmp_path / "file").write_text("mine")
        said = refused(capsys, "embed", run, photos, "--out", tmp_path / name, "--device=cpu")
        assert f"error: out is {tmp_path / name}" in said and "folder" in said

    def test_a_full_disk(self, run, photos, tmp_path, capsys, monkeypatch):
        import pyarrow.parquet as pq

        def full(*_: object) -> None:
            # In the words of pyarrow 26, on a file system without room.
            said = "Error writing bytes to file. Detail: [errno 28] No space left on device"
            raise OSError(errno.ENOSPC, said)

        monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
        out = tmp_path / "kept" / "e.parquet"
        out.parent.mkdir()
        out.write_bytes(b"old")
        said = refused(capsys, "embed", run, photos, "--out", out, "--device=cpu")
        assert said.startswith(f"error: {out} cannot be written: ") and "No space left" in said
        assert out.read_bytes() == b"old" and list(out.parent.iterdir()) == [Path(out)]
