"""Rows depend on their image alone, and the encoder is left as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.data import Images, StreamedImages, channel_statistics, open_source, usual_size
from likewise.data.views import prepare
from likewise.models import build_encoder
from likewise.runs import Preparation, Run, embed_images, read_encoder, save_encoder
from tests.training.driver import pictures

PREPARATION = Preparation(16, (0.4, 0.5, 0.6), (0.2, 0.25, 0.3))


def images_of(n: int = 10) -> Images:
    pixels = torch.from_numpy(pictures(n)).permute(0, 3, 1, 2).contiguous()
    return Images(pixels, [str(i) for i in range(n)])


def embed(
    encoder: torch.nn.Module, images: Images | StreamedImages, **options: int
) -> torch.Tensor:
    return embed_images(
        encoder, images, size=16, mean=PREPARATION.mean, std=PREPARATION.std, **options
    )


def test_rows_are_the_encoders_one_by_one() -> None:
    encoder = build_encoder("tiny", seed=0)
    images = images_of()
    rows = embed(encoder, images, batch_size=4)
    encoder.eval()
    for i in range(10):
        ready = prepare(images.pixels[i : i + 1], 16, PREPARATION.mean, PREPARATION.std)
        with torch.no_grad():
            assert torch.allclose(rows[i], encoder(ready)[0], atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_the_encoder_stays_in_its_mode_and_learns_nothing(training: bool) -> None:
    encoder = build_encoder("tiny", seed=0).train(training)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    embed(encoder, images_of())
    assert encoder.training is training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


def test_streamed_images_give_the_same_rows() -> None:
    encoder = build_encoder("tiny", seed=0)
    streamed = StreamedImages(open_source(pictures(10)), 16)
    assert torch.allclose(embed(encoder, streamed, batch_size=3), embed(encoder, images_of()))


def test_progress_counts_all_images() -> None:
    counts: list[int] = []
    encoder = build_encoder("tiny", seed=0)
    embed_images(
        encoder,
        images_of(),
        size=16,
        mean=PREPARATION.mean,
        std=PREPARATION.std,
        batch_size=4,
        progress=counts.append,
    )
    assert counts == [4, 4, 2]


def test_a_saved_encoder_is_the_encoder_with_its_preparation(tmp_path: Path) -> None:
    encoder = build_encoder("tiny", seed=3)
    save_encoder(tmp_path / "encoder.safetensors", encoder, PREPARATION)
    again, preparation = read_encoder(tmp_path / "encoder.safetensors")
    assert preparation == PREPARATION
    assert not again.training
    assert torch.equal(embed(encoder, images_of()), embed(again, images_of()))


def test_a_run_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no folder"):
        Run.open(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="not a run"):
        Run.open(tmp_path)
    (tmp_path / "config.yaml").write_text("seed: 1\n")
    assert Run.open(tmp_path).config == {"seed": 1}
    with pytest.raises(ValueError, match="first checkpoint"):
        Run.open(tmp_path).encoder()


def test_statistics_of_channels_by_hand() -> None:
    pixels = torch.from_numpy(pictures(70)).permute(0, 3, 1, 2)  # more than are counted at a time
    mean, std = channel_statistics(pixels)
    for channel in range(3):
        values = pixels[:, channel].numpy().astype(float).ravel() / 255
        assert mean[channel] == pytest.approx(sum(values) / len(values), abs=1e-5)
        variance = sum((value - mean[channel]) ** 2 for value in values) / len(values)
        assert std[channel] == pytest.approx(variance**0.5, abs=1e-5)


def test_usual_size_is_the_median_of_the_shorter_sides(tmp_path: Path) -> None:
    from PIL import Image

    for i, (height, width) in enumerate([(20, 40), (30, 25), (90, 90)]):
        Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "broken.png").write_bytes(b"no")
    assert usual_size(open_source(tmp_path)) == 25
    for path in tmp_path.glob("[0-9].png"):
        path.write_bytes(b"no")
    with pytest.raises(ValueError, match="broken"):
        usual_size(open_source(tmp_path))
