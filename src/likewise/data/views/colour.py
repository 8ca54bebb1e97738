"""Colours, in torchvision's semantics, with one parameter per row.

All take and give images (rows, 3, height, width) with values from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import torch
from torch import Tensor

from likewise.data.views.rows import column, on_rows, selects_rows

RED, GREEN, BLUE = 0.2989, 0.587, 0.114
"""ITU-R 601-2, as in torchvision and Pillow."""


def lightness(images: Tensor) -> Tensor:
    """The grey value, (rows, 1, height, width)."""
    red, green, blue = images.split(1, dim=1)
    return RED * red + GREEN * green + BLUE * blue


def _blend(images: Tensor, other: Tensor | float, factor: Tensor) -> Tensor:
    share = column(factor)
    return (share * images + (1 - share) * other).clamp(0, 1)


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Towards black (0) or away from it: f X, cut off at 0 and 1."""
    return (column(factor) * images).clamp(0, 1)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Towards the image's mean grey m or away from it: f X + (1 - f) m, cut off at 0 and 1."""
    return _blend(images, lightness(images).mean(dim=(1, 2, 3), keepdim=True), factor)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Towards each pixel's grey L or away from it: f X + (1 - f) L, cut off at 0 and 1."""
    return _blend(images, lightness(images), factor)


def hue(images: Tensor, shift: Tensor) -> Tensor:
    r"""Turn the colour wheel by `shift` (1 is a full turn), keeping HSV's value and saturation.

    With v the largest channel, c = v - (smallest channel) and the turned hue H, in sixths of a
    turn from 0 to 6, the channels become

    .. math::
        v - c\,[2 - |H - 3|]_0^1, \quad v - c\,[|H - 2| - 1]_0^1, \quad v - c\,[|H - 4| - 1]_0^1

    cut off at 0 and 1 where it says so: the way through HSV and back in one formula.
    """
    red, green, blue = images.unbind(dim=1)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    # A grey pixel has no hue: with chroma 0 any will do, and with a divisor above 0 it is finite.
    share = 1 / chroma.clamp(min=1e-12)
    sixths = torch.where(
        value == red,
        (green - blue) * share,
        torch.where(value == green, 2 + (blue - red) * share, 4 + (red - green) * share),
    )
    sixths = sixths + 6 * shift[:, None, None]
    # remainder(sixths, 6), which has no vector instruction on a CPU.
    turned = sixths - 6 * torch.floor(sixths / 6)
    channels = [
        value - chroma * (2 - (turned - 3).abs()).clamp(0, 1),
        value - chroma * ((turned - 2).abs() - 1).clamp(0, 1),
        value - chroma * ((turned - 4).abs() - 1).clamp(0, 1),
    ]
    return torch.stack(channels, dim=2).permute(0, 2, 1, 3)


def grayscale(images: Tensor) -> Tensor:
    """All three channels become the grey value."""
    return lightness(images).expand_as(images)


def solarize(images: Tensor, threshold: float) -> Tensor:
    """Pixels from the threshold on are inverted: x becomes 1 - x."""
    return torch.where(images >= threshold, 1 - images, images)


Operation = Callable[[Tensor, Tensor], Tensor]
JITTER: dict[str, Operation] = {
    "brightness": brightness,
    "contrast": contrast,
    "saturation": saturation,
    "hue": hue,
}


def jitter(images: Tensor, order: Tensor, factors: dict[str, Tensor]) -> Tensor:
    """Brightness, contrast, saturation and hue in each row's own order.

    Args:
        order: (rows, k) for the k operations in `factors`: what is done first, second, ..., as
            places in `factors`; -1 does nothing.
        factors: by name, one number per row.
    """
    operations = [JITTER[name] for name in factors]
    if selects_rows(images):
        # Every order once: each row is fetched and written back once, and few enough stay in cache.
        for places in permutations(range(len(operations))):
            chosen = (order == torch.tensor(places)).all(dim=1)
            images = on_rows(chosen, _sequence(operations, places), images, *factors.values())
        return images
    for step in range(order.shape[1]):
        for place, factor in enumerate(factors.values()):
            images = on_rows(order[:, step] == place, operations[place], images, factor)
    return images


def _sequence(operations: list[Operation], places: tuple[int, ...]) -> Callable[..., Tensor]:
    """The operations in a given order, as one."""

    def run(images: Tensor, *factors: Tensor) -> Tensor:
        for place in places:
            images = operations[place](images, factors[place])
        return images

    return run


def normalized(images: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    """(x - mean) / std per channel, contiguous. The numbers are constants of a compiled graph."""
    channels = images.unbind(dim=1)
    parts = [(x - m) / s for x, m, s in zip(channels, mean, std, strict=True)]
    return torch.stack(parts, dim=1)
