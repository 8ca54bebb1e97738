"""What the command line says reaches what it is about."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import likewise
from likewise.commands import main
from likewise.evaluation import Embeddings, read_embeddings, write_embeddings
from likewise.models import build_encoder
from likewise.runs import Preparation, Run
from tests.evaluation.blobs import blobs


def saved(path: Path, n: int, begin: int) -> Path:
    rows, labels = blobs(n, spread=3.0)
    keys = [f"{begin + row}.png" for row in range(n)]
    write_embeddings(path, Embeddings(keys=keys, rows=rows.astype(np.float32), labels=labels))
    return path


def test_the_probe_and_the_seed_are_those_asked_for(tmp_path: Path) -> None:
    sets = [saved(tmp_path / f"{n}.parquet", n, n) for n in (80, 60)]
    words = ["evaluate", f"--train={sets[0]}", f"--test={sets[1]}", "--device=cpu"]
    out = tmp_path / "scores.json"
    more = ["--methods=[linear,clustering]", "--probe=sgd", "--seed=3", f"--out={out}"]
    assert main([*words, *more]) == 0
    scores = json.loads(out.read_text())
    assert scores["settings"]["seed"] == 3
    assert scores["linear"]["settings"]["method"] == "sgd"
    assert scores["linear"]["settings"]["seed"] == scores["clustering"]["settings"]["seed"] == 3


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two columns of images, and two of labels: one has to say which."""

    def png(value: int) -> bytes:
        file = io.BytesIO()
        Image.new("RGB", (16, 16), (value, 0, 0)).save(file, "PNG")
        return file.getvalue()

    columns = {
        "photo": [png(10 * i) for i in range(12)],
        "mask": [png(255) for _ in range(12)],
        "kind": [["cat", "dog"][i % 2] for i in range(12)],
        "colour": [["red", "blue", "grey"][i % 3] for i in range(12)],
    }
    pq.write_table(pa.table(columns), tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = Run(tmp_path / "run")
    run.write_config({})
    run.write_encoder(build_encoder("tiny", seed=0), Preparation(16, (0.5,) * 3, (0.25,) * 3))
    return run.path


def test_columns_are_those_asked_for(run: Path, table: Path, tmp_path: Path) -> None:
    columns = ["--image-column=photo", "--device=cpu"]
    out = tmp_path / "e.parquet"
    for column, names in (("kind", ["cat", "dog"]), ("colour", ["blue", "grey", "red"])):
        more = [f"--label-column={column}", f"--out={out}"]
        assert main(["embed", str(run), str(table), *columns, *more]) == 0
        found = read_embeddings(out)
        assert found.class_names == names
        assert len(np.unique(found.rows, axis=0)) == 12  # the photos, not the masks
        scored = ["--methods=[knn]", "--neighbors=[1]", f"--out={tmp_path / 's.json'}"]
        sets = [f"--train={table}", f"--test={table}", f"--label-column={column}"]
        assert main(["evaluate", str(run), *sets, *columns, *scored]) == 0
        scores = json.loads((tmp_path / "s.json").read_text())
        assert scores["class_names"] == names and scores["summary"]["knn-1"] == 1.0
        # The masks are all the same, and say nothing.
        blind = [word.replace("photo", "mask") for word in columns]
        assert main(["evaluate", str(run), *sets, *blind, *scored]) == 0
        assert json.loads((tmp_path / "s.json").read_text())["summary"]["knn-1"] < 1


def test_what_timm_is_told_of_the_images(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.write_config({})
    encoder = build_encoder("resnet18", stem="original", image_size=64, seed=0)
    run.write_encoder(encoder, Preparation(64, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)))
    assert main(["export", str(run.path), "--format=timm", f"--out={tmp_path / 't'}"]) == 0
    told = json.loads((tmp_path / "t" / "config.json").read_text())["pretrained_cfg"]
    # As likewise.data.views.prepare: the whole square.
    assert told["crop_pct"] == 1.0 and told["interpolation"] == "bilinear"
    assert (told["mean"], told["std"]) == ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    assert told["input_size"] == [3, 64, 64]


def test_a_source_that_is_read_in_chunks_has_every_row_once(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(12):
        Image.new("RGB", (16, 16), (20 * i, 0, 0)).save(folder / f"{i:02}.png")
    (folder / "05.png").write_bytes(b"no image")
    whole = likewise.embed(run, str(folder), device="cpu")
    monkeypatch.setattr("likewise.evaluation.embedded.CHUNK", 5)
    found = likewise.embed(run, str(folder), device="cpu")
    assert found.keys == whole.keys == [f"{i:02}.png" for i in range(12) if i != 5]
    np.testing.assert_allclose(found.rows, whole.rows, atol=1e-5)
