"""Small pictures to test with, encoded by Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def pixels(seed: int, height: int = 6, width: int = 8) -> np.ndarray:
    """Random RGB, uint8 (height, width, 3)."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def smooth(height: int, width: int) -> np.ndarray:
    """A picture of slow waves: what resizing and JPEG keep."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    waves = [np.sin(6 * x + 2 * y), np.cos(5 * y), np.sin(4 * (x - y))]
    return np.round(127 + 100 * np.stack(waves, axis=-1)).astype(np.uint8)


def encoded(picture: np.ndarray | Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def write(path: Path, seed: int = 0, **size: int) -> Path:
    """A random picture in a file, in the format of its name; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels(seed, **size)).save(path)
    return path
