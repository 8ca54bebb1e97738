"""The data of the controlled experiments: concentric circles and a mixture of Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]
Data = Literal["circles", "mixture"]

CLASSES = 4
CIRCLE_NOISE = 0.1
"""Standard deviation of each coordinate of a point about its circle (training points only)."""
MIXTURE_NOISE = 0.3
TEST_POINTS = 1000


@dataclass(frozen=True)
class Problem:
    """Points to learn from and points to be judged on; classes are 0 to 3."""

    points: Matrix
    labels: Labels
    test_points: Matrix
    test_labels: Labels


def circle_points(radii: Matrix, angles: Matrix) -> Matrix:
    """Points of the plane, from polar coordinates."""
    return radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def circles(n: int, generator: np.random.Generator) -> Problem:
    """Four concentric circles (``pal`` figure 5): radii 1 to 4, the class is the circle.

    Training points have uniform classes and angles, and noise in both coordinates. The 1,000 test
    points are equispaced, 250 a circle, without noise.
    """
    labels = _labels(n, generator)
    angles = generator.uniform(0, 2 * np.pi, n)
    noise = CIRCLE_NOISE * generator.standard_normal((n, 2))
    each = TEST_POINTS // CLASSES
    test_labels = np.repeat(np.arange(CLASSES), each)
    test_angles = np.tile(2 * np.pi * np.arange(each) / each, CLASSES)
    return Problem(
        circle_points(1.0 + labels, angles) + noise,
        labels,
        circle_points(1.0 + test_labels, test_angles),
        test_labels,
    )


def mixture(n: int, generator: np.random.Generator) -> Problem:
    """Four Gaussians about the unit vectors (``pal`` C.2.6): X = Y + 0.3 E.

    Test points are drawn in the same way, 250 a class.
    """
    labels = _labels(n, generator)
    test_labels = np.repeat(np.arange(CLASSES), TEST_POINTS // CLASSES)
    corners = np.eye(CLASSES)
    noise = MIXTURE_NOISE * generator.standard_normal((n + TEST_POINTS, CLASSES))
    return Problem(
        corners[labels] + noise[:n], labels, corners[test_labels] + noise[n:], test_labels
    )


def problem(data: Data, n: int, generator: np.random.Generator) -> Problem:
    """Either of the two."""
    return circles(n, generator) if data == "circles" else mixture(n, generator)


def _labels(n: int, generator: np.random.Generator) -> Labels:
    """Uniform classes; drawn again where one of them has no point, since each needs a template."""
    while True:
        labels = generator.integers(CLASSES, size=n)
        if len(np.unique(labels)) == CLASSES:
            return labels
