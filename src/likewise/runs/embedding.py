"""From images to rows: an encoder over a whole source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from likewise.data import Images, StreamedImages
from likewise.data.views import prepare


@torch.no_grad()
def embed_images(
    encoder: nn.Module,
    images: Images | StreamedImages,
    *,
    size: int,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    batch_size: int = 512,
    device: torch.device | str | None = None,
    workers: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Tensor:
    """The encoder's features of every image, (n, dim) in float32 on the CPU.

    Batch norm uses its running statistics, and there is no augmentation, so that a row depends on
    its image alone. The encoder is left in the mode it was in.

    Args:
        encoder: from images (n, 3, size, size) to features (n, dim).
        images: in memory or streamed.
        size: what the encoder was trained with.
        mean: of the channels, subtracted.
        std: of the channels, divided by.
        batch_size: images at a time.
        device: where to compute; default: where the encoder is.
        workers: processes that decode streamed images.
        progress: called with the number of images of every batch.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}: give an integer of at least 1")
    place = torch.device(device) if device is not None else next(encoder.parameters()).device
    training = encoder.training
    encoder.eval().to(place)
    rows: list[Tensor] = []
    half = place.type == "cuda" and torch.cuda.is_bf16_supported()
    try:
        for pixels in _batches(images, batch_size, workers):
            ready = prepare(pixels.to(place, non_blocking=True), size, mean, std)
            if place.type == "cuda":
                ready = ready.to(memory_format=torch.channels_last)
            with torch.autocast(place.type, torch.bfloat16, enabled=half):
                rows.append(encoder(ready).float())
            if progress is not None:
                progress(len(pixels))
    finally:
        encoder.train(training)
    # One copy at the end: a copy a batch would wait for the device every time.
    return torch.cat(rows).cpu()


def _batches(images: Images | StreamedImages, batch_size: int, workers: int) -> Iterator[Tensor]:
    if isinstance(images, Images):
        yield from images.pixels.split(batch_size)
        return
    order = [
        list(range(start, min(start + batch_size, len(images))))
        for start in range(0, len(images), batch_size)
    ]
    loader: torch.utils.data.DataLoader[tuple[Tensor, Tensor]] = torch.utils.data.DataLoader(
        images, sampler=order, batch_size=None, num_workers=workers
    )
    for pixels, _ in loader:
        yield pixels
