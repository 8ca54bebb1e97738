"""``supervised-theory`` sections 2.2 and 3: which labels are best for the worst task to come.

The embedding is the closed form on a graph of labels. Tasks that come later are two-class
problems of which it knew nothing; what counts is the worst of them, on points that are new.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from likewise.reproduce.problems import (
    CIRCLE_NOISE,
    CLASSES,
    Labels,
    Matrix,
    circle_points,
)

BANDWIDTH = 1.0
HEAD = 1e-4
"""lambda of eq. 1: the weight of the head's squared norm."""
NEW_POINTS = 1000
LENGTHS = (0.5, 1.0, 2.0, 4.0)
EACH = 5
WAVES = 200

GROUPINGS = (
    (0,),
    (1,),
    (2,),
    (3,),
    (0, 1),
    (0, 2),
    (0, 3),
)
"""All ways to make two classes of the four circles."""
TASKS = len(GROUPINGS) + EACH * len(LENGTHS)


def noisy_circles(n: int, generator: np.random.Generator) -> tuple[Matrix, Labels]:
    """Points of the four circles, noise included, and their circle."""
    labels = generator.integers(CLASSES, size=n)
    angles = generator.uniform(0, 2 * np.pi, n)
    noise = CIRCLE_NOISE * generator.standard_normal((n, 2))
    return circle_points(1.0 + labels, angles) + noise, labels


def draw_tasks(
    points: Matrix, circle: Labels, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Two-class tasks (n, tasks) with values +1 and -1.

    The groupings of the circles, and the signs of random smooth functions of x (Gaussian
    processes of several length scales, cut at their median so that no class is rare).
    """
    columns = [np.where(np.isin(circle, group), 1.0, -1.0) for group in GROUPINGS]
    for length in LENGTHS:
        for _ in range(EACH):
            frequencies = generator.standard_normal((points.shape[1], WAVES)) / length
            phases = generator.uniform(0, 2 * np.pi, WAVES)
            weights = generator.standard_normal(WAVES)
            values = np.cos(points @ frequencies + phases) @ weights
            columns.append(np.where(values > np.median(values), 1.0, -1.0))
    return np.stack(columns, axis=1)


def task_errors(
    z: Matrix, targets: Matrix, new_z: Matrix, new_targets: Matrix, weight: float = HEAD
) -> NDArray[Any]:
    """The share of new points on the wrong side, for each task, under the head of eq. 1:
    least squares with a bias and ``weight`` times the squared norm."""
    mean, middle = z.mean(axis=0), targets.mean(axis=0)
    centred = z - mean
    inner = centred.T @ centred + weight * len(z) * np.eye(z.shape[1])
    head = np.linalg.solve(inner, centred.T @ (targets - middle))
    scores = (new_z - mean) @ head + middle
    return np.mean(np.sign(scores) != new_targets, axis=0)


def label_graph(labels: Labels) -> Matrix:
    """1 where labels agree."""
    return (labels[:, None] == labels).astype(float)


def labelings(
    points: Matrix, circle: Labels, numbers: tuple[int, ...], generator: np.random.Generator
) -> dict[str, Labels]:
    """Labels of the same points: the circles, clusters of x, random ones, one a sample."""
    n = len(points)
    found = {"the 4 circles": circle}
    for number in numbers:
        seed = int(generator.integers(2**31))
        clusters = KMeans(number, n_init=1, random_state=seed).fit_predict(points)
        found[f"{number} clusters"] = clusters
        found[f"{number} random classes"] = generator.permutation(np.arange(n) % number)
    found["one class a sample"] = np.arange(n)
    return found
