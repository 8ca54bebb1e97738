"""Small images for trainings of seconds: digits in grey, each at its own place, size and angle."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from likewise.data import ArraySource

TEST = 360
WIDTH = (0.8, 1.0)
ANGLE = 15.0


def plain_digits(split: str, *, size: int = 8, seed: int = 0) -> ArraySource:
    """Scikit-learn's digits in grey: 1,437 to train on, and two canvases each of 360 to test on.

    The built-in `digits` have clutter and colour, and take an encoder minutes to see through.
    Here place, size, angle and contrast are all there is to ignore, so that the effect of an
    augmentation or of a loss shows after seconds. The split is that of `digits`.

    >>> source = plain_digits("test")
    >>> len(source), source.read(0).shape
    (720, torch.Size([3, 8, 8]))
    """
    from sklearn.datasets import load_digits

    bundle = load_digits()
    order = np.random.default_rng(0).permutation(len(bundle.target))
    cut = len(order) - TEST
    copies = 1 if split == "train" else 2
    base = np.repeat(np.sort(order[:cut] if split == "train" else order[cut:]), copies)
    random = np.random.default_rng([seed, 0 if split == "train" else 1])
    n = len(base)
    width = random.uniform(*WIDTH, n)
    turn = np.deg2rad(random.uniform(-ANGLE, ANGLE, n))
    centre = random.uniform(-1, 1, (n, 2, 1)) * (1 - width)[:, None, None]
    # grid_sample asks where in the digit a pixel lies: the inverse of the placing.
    inverse = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) / width
    inverse = inverse.transpose(2, 0, 1)
    theta = torch.from_numpy(np.concatenate([inverse, -inverse @ centre], axis=2))
    shapes = torch.from_numpy(bundle.images[base] / 16)[:, None]
    grid = F.affine_grid(theta, [n, 1, size, size], align_corners=False)
    ink = F.grid_sample(shapes, grid, mode="bilinear", align_corners=False)[:, 0].numpy()
    ground = random.uniform(0, 0.4, (n, 1, 1))
    grey = ground + random.uniform(0.4, 1, (n, 1, 1)) * (1 - ground) * ink
    grey += random.normal(0, 0.02, grey.shape)
    pixels = (grey.clip(0, 1) * 255).round().astype(np.uint8)
    return ArraySource(
        np.repeat(pixels[..., None], 3, axis=3),
        keys=[f"{number}-{row % copies}" for row, number in enumerate(base)],
        labels=bundle.target[base].astype(np.int64),
        class_names=[str(digit) for digit in range(10)],
        place="plain digits",
    )
