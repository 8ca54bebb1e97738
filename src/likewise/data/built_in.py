"""Built-in images: scikit-learn's 8x8 digits, somewhere on a cluttered canvas."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from likewise.data.arrays import ArraySource

TEST = 360
"""How many of scikit-learn's 1,797 digits only `digits:test` shows."""

FRAGMENTS = 3
"""Pieces of other digits that lie about on every canvas."""

LUMINANCE = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in what turning to grey keeps (ITU-R BT.601)."""


def digits(
    split: Literal["train", "test"] = "train", *, copies: int = 2, size: int = 32, seed: int = 0
) -> ArraySource:
    """Scikit-learn's digits at random place, size, angle and colour, among pieces of others.

    Every canvas has a background of its own (a gradient, with noise), three pieces of other
    digits, and one whole digit that is lighter or darker than what lies under it, so that its
    shape survives changes of colour. Pixels are thus a poor representation, and what a digit is
    has to be learned. `likewise.open_source("digits")` is ``digits("train")`` and "digits:test"
    is ``digits("test")``; no 8x8 digit, nor a piece of one, is in both.

    `copies` canvases are made of every digit, and a key says which digit of
    `sklearn.datasets.load_digits` it is, and which copy: "17-0", "17-1". The same seed gives the
    same pixels.

    >>> source = digits("test", copies=1)
    >>> len(source), source.read(0).shape, source.class_names[:3]
    (360, torch.Size([3, 32, 32]), ['0', '1', '2'])
    """
    from sklearn.datasets import load_digits

    if split not in ("train", "test"):
        raise ValueError(f"split is {split!r}: give 'train' or 'test'")
    if copies < 1:
        raise ValueError(f"copies is {copies}: give 1 or more canvases of every digit")
    if size < 16:
        raise ValueError(f"size is {size}: give 16 or more, a digit needs room to move")
    bundle = load_digits()
    # The split does not follow `seed`: test digits stay unseen whatever the canvases are.
    order = np.random.default_rng(0).permutation(len(bundle.target))
    cut = len(order) - TEST
    base = np.sort(order[:cut] if split == "train" else order[cut:])
    random = np.random.default_rng([seed, 0 if split == "train" else 1])

    shapes = torch.from_numpy(bundle.images[base].astype(np.float32) / 16)
    which = np.repeat(np.arange(len(base)), copies)
    keys = [f"{base[i]}-{copy}" for i in range(len(base)) for copy in range(copies)]
    labels = bundle.target[base][which].astype(np.int64)
    return ArraySource(
        _canvases(shapes, which, size, random),
        keys=keys,
        labels=labels,
        class_names=[str(digit) for digit in range(10)],
        place="digits" if split == "train" else "digits:test",
    )


def _canvases(
    shapes: Tensor, which: NDArray[np.int64], size: int, random: np.random.Generator
) -> NDArray[np.uint8]:
    """One canvas for each entry of `which`, uint8 (n, size, size, 3)."""
    n = len(which)
    light = random.uniform(0.15, 0.85, n)
    canvas = _background(light, size, random)
    for _ in range(FRAGMENTS):
        pieces = _pieces(shapes[random.integers(len(shapes), size=n)], random)
        ink = _place(pieces, size, random, width=(0.25, 0.5), angle=180)
        canvas = _paint(canvas, ink, _contrasting(light, (0.15, 0.35), random))
    ink = _place(shapes[which], size, random, width=(0.5, 0.8), angle=20)
    canvas = _paint(canvas, ink, _contrasting(light, (0.45, 0.65), random))
    canvas += torch.from_numpy(random.normal(0, 0.03, canvas.shape).astype(np.float32))
    return (canvas.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).contiguous().numpy()


def _background(light: NDArray[np.float64], size: int, random: np.random.Generator) -> Tensor:
    """From one colour to another of about the same luminance, in any direction."""
    n = len(light)
    first = _colour(light + random.uniform(-0.1, 0.1, n), random)
    second = _colour(light + random.uniform(-0.1, 0.1, n), random)
    angle = torch.from_numpy(random.uniform(0, 2 * np.pi, n).astype(np.float32))
    line = torch.linspace(-1, 1, size)
    along = angle.cos()[:, None, None] * line + angle.sin()[:, None, None] * line[:, None]
    share = (0.5 + along / (2 * 2**0.5))[:, None]
    return first[:, :, None, None] * (1 - share) + second[:, :, None, None] * share


def _colour(light: NDArray[np.float64], random: np.random.Generator) -> Tensor:
    """Random colours (n, 3) of given luminance, up to what clipping to [0, 1] takes."""
    weights = np.array(LUMINANCE)
    tint = random.uniform(-0.3, 0.3, (len(light), 3))
    tint -= (tint @ weights)[:, None]
    colour = np.clip(light[:, None] + tint, 0, 1)
    return torch.from_numpy(colour.astype(np.float32))


def _contrasting(
    light: NDArray[np.float64], step: tuple[float, float], random: np.random.Generator
) -> Tensor:
    """Colours that are lighter or darker than `light` by a step, whichever there is room for."""
    change = random.uniform(*step, len(light))
    up = random.random(len(light)) < 0.5
    up = np.where(light + change > 1, False, np.where(light - change < 0, True, up))
    return _colour(np.clip(light + np.where(up, change, -change), 0, 1), random)


def _pieces(shapes: Tensor, random: np.random.Generator) -> Tensor:
    """What a window of 4x4 shows of every 8x8 shape; the rest is blank."""
    corner = torch.from_numpy(random.integers(1, 4, (len(shapes), 2)))
    line = torch.arange(8)
    inside = (line >= corner[..., None]) & (line < corner[..., None] + 4)
    return shapes * (inside[:, 0, :, None] & inside[:, 1, None, :])


def _place(
    shapes: Tensor,
    size: int,
    random: np.random.Generator,
    *,
    width: tuple[float, float],
    angle: float,
) -> Tensor:
    """How much ink lies on each pixel, (n, 1, size, size), with every shape inside the canvas."""
    n = len(shapes)
    scale = random.uniform(*width, n)
    turn = np.deg2rad(random.uniform(-angle, angle, n))
    centre = random.uniform(-1, 1, (n, 2)) * (1 - scale[:, None])
    # grid_sample asks where in the shape a pixel of the canvas lies: the inverse of the placing.
    inverse = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) / scale
    inverse = inverse.transpose(2, 0, 1)
    offset = -inverse @ centre[:, :, None]
    theta = torch.from_numpy(np.concatenate([inverse, offset], axis=2).astype(np.float32))
    grid = F.affine_grid(theta, [n, 1, size, size], align_corners=False)
    ink = F.grid_sample(shapes[:, None], grid, mode="bilinear", align_corners=False)
    return (ink * 1.2).clamp(max=1)


def _paint(canvas: Tensor, ink: Tensor, colour: Tensor) -> Tensor:
    return canvas * (1 - ink) + colour[:, :, None, None] * ink
