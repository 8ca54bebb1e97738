"""``geometry`` figure 10: the wider the range of rotations, the more directions they span."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from likewise.diagnostics import rank_tau
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

SIDE = 32
ROTATIONS = 500
RANGES = (1, 5, 10, 20, 45, 90, 135, 180)
TAU = 1e-3
"""Of the largest singular value."""


def rotated(row: int, column: int, degrees: np.ndarray) -> np.ndarray:
    """One pixel of a blank image, rotated about the centre: (n, SIDE * SIDE), bilinear."""
    image = torch.zeros(1, 1, SIDE, SIDE, dtype=torch.float64)
    image[0, 0, row, column] = 1.0
    angle = torch.deg2rad(torch.as_tensor(degrees))
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1)
    theta = F.pad(turn.reshape(-1, 2, 2), (0, 1))
    grid = F.affine_grid(theta, [len(degrees), 1, SIDE, SIDE], align_corners=False)
    found = F.grid_sample(image.expand(len(degrees), -1, -1, -1), grid, align_corners=False)
    return found.flatten(1).numpy()


def trial(generator: np.random.Generator) -> Samples:
    """The rank of the covariance for each range of angles, at one random pixel."""
    row, column = generator.integers(SIDE, size=2)
    ranks = np.empty(len(RANGES))
    for place, most in enumerate(RANGES):
        images = rotated(row, column, generator.uniform(0, most, ROTATIONS))
        # Most pixels stay blank, and blank columns change no singular value.
        seen = images[:, images.any(axis=0)]
        values = np.linalg.svd(seen - seen.mean(axis=0), compute_uv=False)
        ranks[place] = rank_tau(values, TAU)
    return {"rank": ranks}


def conclude(samples: Samples) -> Findings:
    """Whether it grows."""
    ranks = samples["rank"]
    mean = ranks.mean(axis=0)
    figures = [
        Figure.of(f"0 to {most} degrees: rank", ranks[:, place])
        for place, most in enumerate(RANGES)
    ]
    return Findings(
        figures,
        [
            Check("least growth from one range to the next", np.diff(mean).min(), "more than", 0.0),
            Check("rank at 180 / rank at 10 degrees", mean[-1] / mean[2], "at least", 2.0),
        ],
    )


def draw(samples: Samples) -> Picture:
    """Rank against the range."""
    figure, panels = canvas()
    curve(panels[0], RANGES, samples["rank"], "rank of the covariance", COLORS[0])
    label(panels[0], f"{ROTATIONS} rotations of one pixel", "largest angle, degrees", "rank")
    return figure


FIGURE_10 = Reproduction(
    "geometry-10",
    "The larger the range of rotations, the higher the rank of what they make of an image "
    "(geometry, figure 10).",
    {"image": f"one pixel of {SIDE} x {SIDE}", "rotations": ROTATIONS, "tau": TAU},
    trial,
    conclude,
    draw,
)
