"""Small folders of pictures in a few kinds, for tests of the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

KINDS = ("circle", "square", "stripes")


def picture(kind: int, number: int, size: int = 32) -> NDArray[np.uint8]:
    """One picture of a kind, with a colour, a place and clutter of its own."""
    rng = np.random.default_rng([kind, number])
    image = Image.fromarray(rng.integers(0, 60, (size, size, 3), dtype=np.uint8))
    draw = ImageDraw.Draw(image)
    colour = tuple(int(c) for c in rng.integers(120, 255, 3))
    x, y, r = rng.uniform(9, size - 9, 2).tolist() + [float(rng.uniform(5, 9))]
    if kind == 0:
        draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    elif kind == 1:
        draw.rectangle((x - r, y - r, x + r, y + r), outline=colour, width=2)
    else:
        for at in range(0, size, 6):
            draw.line((at, 0, at + x - y, size), fill=colour, width=2)
    for _ in range(6):
        a, b = rng.integers(0, size, 2).tolist()
        draw.point((a, b), fill=(255, 255, 255))
    return np.array(image)


def folder_of(path: Path, each: int = 6, *, classes: bool = False) -> Path:
    """A folder of pictures of three kinds, in a folder a kind or side by side."""
    for kind, name in enumerate(KINDS):
        for number in range(each):
            place = path / name if classes else path
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture(kind, number)).save(place / f"{name}{number}.png")
    return path
