"""``likewise export`` where nothing can be written."""

from __future__ import annotations

import errno
import os

import pytest
from safetensors import SafetensorError

from likewise.models import build_encoder
from likewise.runs import Preparation, Run
from tests.commands.test_train import refused


@pytest.fixture(scope="module")
def of_timm(tmp_path_factory):
    """A run whose encoder timm can build."""
    run = Run(tmp_path_factory.mktemp("runs") / "timm")
    run.path.mkdir()
    run.write_config({"data": "photos"})
    encoder = build_encoder("resnet18", image_size=32, stem="original", seed=0)
    run.write_encoder(encoder, Preparation(32, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)))
    return run.path


@pytest.mark.parametrize("kind", ["safetensors", "timm"])
def test_a_full_disk(kind, run, of_timm, tmp_path, capsys, monkeypatch):
    def full(*_: object, **__: object) -> None:
        # What safetensors 0.8 raises on a file system without room; it is no OSError.
        raise SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        )

    monkeypatch.setattr("safetensors.torch.serialize_file", full)
    out = tmp_path / "kept" / "model"
    words = ["export", of_timm if kind == "timm" else run, f"--format={kind}", "--out", out]
    said = refused(capsys, *words)
    assert said.startswith(f"error: {out} cannot be written: ") and "No space left" in said
    assert not list(out.parent.iterdir())


def test_a_disk_that_is_full_at_the_end(run, tmp_path, capsys, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    out = tmp_path / "kept" / "model.safetensors"
    said = refused(capsys, "export", run, "--out", out)
    assert f"{out} cannot be written" in said and "No space left" in said
    assert not list(out.parent.iterdir())


@pytest.mark.parametrize("name", ["folder", "file/m.safetensors"])
def test_what_can_be_no_file(name, run, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    said = refused(capsys, "export", run, "--out", tmp_path / name)
    assert f"error: out is {tmp_path / name}" in said and "folder" in said
    assert not list((tmp_path / "folder").iterdir())
