"""What turns images into rows: the encoder of a run, or one by name; known by a fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.data import Source, load_images
from likewise.data.resizing import canvas
from likewise.data.views import prepare
from likewise.evaluation.embedded import choose_device
from likewise.evaluation.neighbors import unit_rows
from likewise.models import Encoder, build_encoder
from likewise.runs import Preparation, Run, embed_images

TINY_SIZE = 32
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Embedder:
    """An encoder, how it is fed, and a fingerprint of both.

    Attributes:
        encoder: in evaluation mode.
        preparation: size, mean and deviation of the pixels.
        fingerprint: of weights and preparation: rows with another one cannot be compared.
        description: in words.
        device: where it computes.
    """

    encoder: Encoder
    preparation: Preparation
    fingerprint: str
    description: str
    device: torch.device
    batch_size: int = 512

    def rows_of(
        self, source: Source, progress: Callable[[int], None] | None = None
    ) -> tuple[list[str], Rows, dict[str, str]]:
        """Keys and rows of length 1 of all readable images of a source, and why others are not."""
        size = self.preparation.size
        images = load_images(source, size, at_least=0)
        if progress is not None and images.broken:
            progress(len(images.broken))
        if len(images) == 0:
            return [], np.zeros((0, self.encoder.dim), np.float32), images.broken
        found = embed_images(
            self.encoder,
            images,
            size=size,
            mean=self.preparation.mean,
            std=self.preparation.std,
            batch_size=self.batch_size,
            device=self.device,
            progress=progress,
        )
        if not bool(torch.isfinite(found).all()):
            raise ValueError(f"{self.description} gives NaN or infinity: its training diverged")
        return images.keys, unit_rows(found).numpy(), images.broken

    @torch.no_grad()
    def row_of(self, image: Tensor) -> Rows:
        """The row of length 1 of one image, uint8 (3, H, W)."""
        pixels = canvas(image, self.preparation.size)[None].to(self.device)
        ready = prepare(pixels, self.preparation.size, self.preparation.mean, self.preparation.std)
        self.encoder.eval().to(self.device)
        return unit_rows(self.encoder(ready).float().cpu()).numpy()[0]


def embedder_of_run(run: Path | str, *, device: str = "auto", batch_size: int = 512) -> Embedder:
    """The encoder that `likewise train` left in a folder."""
    place = choose_device(device)
    encoder, preparation = Run.open(run).encoder(place)
    mark = fingerprint(encoder, preparation)
    return Embedder(encoder, preparation, mark, f"the encoder of {run}", place, batch_size)


def embedder_by_name(
    name: str,
    *,
    pretrained: str | None = None,
    image_size: int | None = None,
    device: str = "auto",
    batch_size: int = 512,
) -> Embedder:
    """An encoder by its name, with weights of others or with random ones.

    Args:
        name: any model of timm, or "tiny".
        pretrained: "timm" for the model's own weights, or a file; without, weights are drawn at
            random, by a seed: the same ones always.
        image_size: pixels a side; by default what timm says of the model, and 32 for "tiny".
        device: where to compute.
        batch_size: images at a time.

    >>> embedder_by_name("tiny", device="cpu").description
    'an untrained tiny'
    """
    size, mean, std = _usual_input(name)
    size = image_size or size
    encoder = build_encoder(
        name, pretrained=pretrained == "timm" or pretrained or False, image_size=size, seed=0
    ).eval()
    preparation = Preparation(size, mean, std)
    what = f"an untrained {name}" if pretrained is None else f"{name} with weights of {pretrained}"
    mark = fingerprint(encoder, preparation)
    place = choose_device(device)
    return Embedder(encoder.to(place), preparation, mark, what, place, batch_size)


def _usual_input(name: str) -> tuple[int, tuple[float, ...], tuple[float, ...]]:
    if name == "tiny":
        return TINY_SIZE, IMAGENET_MEAN, IMAGENET_STD
    import timm

    known = timm.get_pretrained_cfg(name) if timm.is_model(name) else None
    if known is None:
        return 224, IMAGENET_MEAN, IMAGENET_STD
    return int(known.input_size[-1]), tuple(known.mean), tuple(known.std)


def fingerprint(encoder: Encoder, preparation: Preparation) -> str:
    """16 letters that other weights, another architecture or another preparation would change.

    >>> encoder = build_encoder("tiny", seed=0)
    >>> small = fingerprint(encoder, Preparation(32, (0.5,), (0.5,)))
    >>> small == fingerprint(encoder, Preparation(28, (0.5,), (0.5,)))
    False
    """
    about = {**encoder.config, **asdict(preparation)}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, value in sorted(encoder.state_dict().items()):
        array = value.detach().cpu().contiguous()
        digest.update(f"{name} {array.dtype} {tuple(array.shape)}".encode())
        digest.update(array.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
