"""Two views of a sample through encoder and projector: what diagnostics of a run look at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise.data.views import Views

IMAGES_AT_ONCE = 256
"""Images whose views are made and embedded at a time."""


@dataclass(frozen=True)
class TwoViews:
    """Rows (n, d) of two views of every sample, in float32.

    h1, h2: the encoder's output.
    z1, z2: the projector's output; None where there is no projector to ask.
    """

    h1: Tensor
    h2: Tensor
    z1: Tensor | None
    z2: Tensor | None

    def cpu(self) -> TwoViews:
        """On the host; from a GPU into pinned memory, without waiting: synchronise before use."""
        return TwoViews(*(None if x is None else _to_host(x) for x in self.tensors))  # type: ignore[arg-type]

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """All four."""
        return self.h1, self.h2, self.z1, self.z2


@torch.no_grad()
def embed_two_views(
    encoder: nn.Module,
    projector: nn.Module | None,
    pixels: Tensor,
    views: Views,
    *,
    seed: int,
    device: torch.device,
) -> TwoViews:
    """The first two full-size views of every image, through both networks in evaluation mode.

    The views are a function of the seed alone, so that a later look sees the same ones, and no
    random state that training uses is touched. Networks are left in the mode they were in.

    Args:
        encoder: from images (n, 3, s, s) to features (n, d).
        projector: from features to what the loss compares; None leaves z1 and z2 out.
        pixels: uint8 (n, 3, S, S), on any device.
        views: the augmentation of the run.
        seed: of the views.
        device: where to compute.
    """
    parts = [encoder] if projector is None else [encoder, projector]
    modes = [part.training for part in parts]
    per_sample = views.crops[0][0]
    if per_sample < 2:
        raise ValueError(f"views make {per_sample} full-size view of an image: two are needed")
    half = device.type == "cuda" and torch.cuda.is_bf16_supported()
    found: list[list[Tensor]] = [[], [], [], []]
    for part in parts:
        part.eval()
    try:
        for number, block in enumerate(pixels.split(IMAGES_AT_ONCE)):
            # On the host, so that a GPU and a CPU look at the same views.
            generator = torch.Generator().manual_seed(seed + number)
            drawn = views.draw(len(block), generator=generator, device=device)
            crops = views.apply(block.to(device, non_blocking=True), drawn)[0]
            if device.type == "cuda":
                crops = crops.contiguous(memory_format=torch.channels_last)
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                h = encoder(crops)
                z = None if projector is None else projector(h)
            for place, rows in ((0, h), (2, z)):
                if rows is not None:
                    by_view = rows.float().unflatten(0, (-1, per_sample))
                    found[place].append(by_view[:, 0])
                    found[place + 1].append(by_view[:, 1])
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.train(mode)
    h1, h2, z1, z2 = (torch.cat(rows) if rows else None for rows in found)
    assert h1 is not None and h2 is not None
    return TwoViews(h1, h2, z1, z2)


def _to_host(rows: Tensor) -> Tensor:
    if rows.device.type == "cpu":
        return rows
    return torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True).copy_(rows, non_blocking=True)
