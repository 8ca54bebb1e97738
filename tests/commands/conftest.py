"""A run and a folder of pictures, for the verbs that use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.runs import Preparation, Run
from tests.library.pictures import folder_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as `likewise train` leaves it, with an encoder that nobody trained."""
    from likewise.models import build_encoder

    run = Run(tmp_path_factory.mktemp("runs") / "a")
    run.path.mkdir()
    run.write_config({"data": "photos"})
    encoder = build_encoder("tiny", image_size=32, seed=0)
    run.write_encoder(encoder, Preparation(32, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)))
    return run.path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "photos", each=6)
