"""What is refused before images are read, and labels of a file for rows that are there."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from rich.console import Console

from likewise.data import Images
from likewise.evaluation import Embeddings, write_embeddings
from likewise.evaluation.embedded import check_settings, embed_source, open_rows, rows_of
from likewise.runs import embed_images
from likewise.runs.files import check_file


def test_settings():
    check_settings(1, None)
    check_settings(512, 0)
    with pytest.raises(ValueError, match="batch_size is 0: give an integer of at least 1"):
        check_settings(0, None)
    with pytest.raises(ValueError, match="workers is -1: give 0"):
        check_settings(1, -1)
    # Before the run is looked at: it may be far away.
    with pytest.raises(ValueError, match="batch_size is 0"):
        embed_source("no-run", "digits", batch_size=0)


@pytest.mark.parametrize("size", [0, -4])
def test_embed_images_wants_a_batch(size):
    images = Images(torch.zeros(3, 3, 4, 4, dtype=torch.uint8), ["a", "b", "c"])
    encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2))
    options = {"size": 4, "mean": (0.5,) * 3, "std": (0.5,) * 3}
    with pytest.raises(ValueError, match=f"batch_size is {size}"):
        embed_images(encoder, images, batch_size=size, **options)
    assert encoder.training


def test_labels_of_a_file_replace_those_of_an_embeddings_file(tmp_path):
    rows, labels = tmp_path / "rows.parquet", tmp_path / "labels.csv"
    keys = ["x/a.png", "x/b.png", "y/c.png"]
    write_embeddings(rows, Embeddings(keys, np.eye(3), [0, 0, 0], ["old"]))
    labels.write_text("key,label\nx/a.png,new\nc.png,newer\nz.png,new\n")
    said = io.StringIO()
    found = open_rows(None, str(rows), labels=labels, console=Console(file=said))
    assert found.labels.tolist() == [0, -1, 1] and found.class_names == ["new", "newer"]
    assert "2 labelled, 1 label without an image" in said.getvalue()
    assert rows_of(None, found) is found
    labels.write_text("key,label\nq.png,new\n")
    with pytest.raises(ValueError, match="none of the 1 keys"):
        open_rows(None, str(rows), labels=labels)


def test_files_that_can_be(tmp_path, monkeypatch):
    (tmp_path / "old.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "new" / "er" / "a.json", tmp_path / "old.json", "a.json", "b/a.json"):
        check_file(path)
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]  # nothing is made


@pytest.mark.parametrize("path", ["old.json/a.json", "old.json/b/a.json"])
def test_files_that_cannot_be(path, tmp_path, monkeypatch):
    (tmp_path / "old.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for one in (path, tmp_path / path):
        with pytest.raises(ValueError, match=r"out is .*, and .*old\.json is no folder"):
            check_file(one)
    with pytest.raises(ValueError, match="rows is .*, a folder: give the name of a file"):
        check_file(tmp_path, "rows")
