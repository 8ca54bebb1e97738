"""``pal`` theorem 2: with the graph of all labels, the losses of self-supervision solve the
supervised problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from likewise.graph import Graph
from likewise.objectives import VIC2, BarlowTwins, NTXent
from likewise.objectives.base import Objective
from likewise.reproduce.curves import HONEST, PAPER
from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.reproduce.embedding import COMPONENTS, Embedding, both_errors
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples
from likewise.reproduce.pal.queries import SETTINGS
from likewise.reproduce.problems import CLASSES, Data, Matrix, Problem, problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

POINTS = 100
STEPS = 200
DATA: tuple[Data, ...] = ("circles", "mixture")
METHODS = ("VIC2", "Barlow Twins", "SimCLR")
FULL: tuple[tuple[Data, int, float], ...] = (
    ("circles", 100, 0.085),
    ("circles", 150, 0.04),
    ("circles", 300, 0.006),
    ("mixture", 100, 0.045),
)
"""Data, points, and what the error of the closed form with all labels is to stay below."""


def method(name: str) -> tuple[Objective, int]:
    """The loss in the form that holds (errata), and the number of dimensions.

    Barlow Twins: the graph divided by its degrees, no centring, K = C (more dimensions are left
    undetermined). SimCLR: NT-Xent at temperature 1, without pairs of a point with itself.
    """
    if name == "VIC2":
        return VIC2(), COMPONENTS
    if name == "Barlow Twins":
        return BarlowTwins(1.0, views="stacked", centered=False, epsilon=0.0), CLASSES
    return NTXent(1.0), COMPONENTS


def minimise(
    objective: Objective, graph: Graph, dimensions: int, generator: np.random.Generator
) -> Matrix:
    """Embeddings that are free to move, from a random start to the bottom of the loss."""
    start = generator.standard_normal((graph.n, dimensions))
    z = torch.as_tensor(start).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [z], max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = objective(z, graph)
        loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return z.detach().numpy()


def decode(z: Matrix, templates: np.ndarray) -> np.ndarray:
    """The class of the template in whose direction a row points."""
    rows = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300)
    return (rows @ rows[templates].T).argmax(axis=1)


def minimised(drawn: Problem, generator: np.random.Generator, name: str) -> np.ndarray:
    """Share of labels that are not recovered from one template a class; test errors (2).

    Beyond the points the embedding is the kernel function of least norm through it.
    """
    objective, dimensions = method(name)
    graph = Graph.from_labels(torch.as_tensor(drawn.labels))
    z = minimise(objective, graph, dimensions, generator)
    templates = np.array([np.flatnonzero(drawn.labels == c)[0] for c in range(CLASSES)])
    wrong = np.mean(decode(z, templates) != drawn.labels)
    embedding = Embedding(drawn.points, drawn.test_points)
    through = embedding.at(embedding.range.vectors.T @ z)
    return np.array([wrong, *both_errors(through, drawn)])


def trial(generator: np.random.Generator) -> Samples:
    """Minimisers without constraints, and the closed form with the kernel's penalty."""
    samples: Samples = {}
    for data in DATA:
        drawn = problem(data, POINTS, generator)
        for name in METHODS:
            samples[f"{name}, {data}"] = minimised(drawn, generator, name)
    for data, n, _ in FULL:
        drawn = problem(data, n, generator)
        graph = (drawn.labels[:, None] == drawn.labels).astype(float)
        embedding = Embedding(drawn.points, drawn.test_points)
        samples[f"{data}, N={n}"] = both_errors(embedding.fit(graph), drawn)
    return samples


def conclude(samples: Samples) -> Findings:
    """Labels that are not recovered, and errors on new points."""
    figures, checks = [], []
    for data in DATA:
        for name in METHODS:
            wrong = samples[f"{name}, {data}"]
            figures.append(Figure.of(f"{name}, {data}: labels not recovered", wrong[:, 0]))
            figures.append(Figure.of(f"{name}, {data}: test error", wrong[:, 1 + PAPER]))
            figures.append(Figure.of(f"{name}, {data}: honest test error", wrong[:, 1 + HONEST]))
            checks.append(
                Check(f"{name}, {data}: labels not recovered", wrong[:, 0].mean(), "at most", 0)
            )
    for data, n, limit in FULL:
        errors = samples[f"{data}, N={n}"]
        figures.append(Figure.of(f"all labels, {data}, N={n}: error", errors[:, PAPER]))
        figures.append(Figure.of(f"all labels, {data}, N={n}: honest", errors[:, HONEST]))
        name = f"all labels, {data}, N={n}: error"
        checks.append(Check(name, errors[:, PAPER].mean(), "at most", limit))
    return Findings(figures, checks)


def draw(samples: Samples) -> Picture:
    """Test errors as bars: free minimisers, and the closed form for several N."""
    figure, panels = canvas(2)
    _bars(panels[0], {f"{m}\n{d}": samples[f"{m}, {d}"][:, 1:] for d in DATA for m in METHODS})
    label(panels[0], f"free minimisers, N = {POINTS}", "", "test error")
    _bars(panels[1], {f"{d}\nN={n}": samples[f"{d}, N={n}"] for d, n, _ in FULL})
    label(panels[1], "VIC2 with the kernel's penalty", "", "test error")
    return figure


def _bars(panel: Axes, errors: dict[str, np.ndarray]) -> None:
    places = np.arange(len(errors))
    for kind, name in ((PAPER, "probe of the paper"), (HONEST, "honest probe")):
        values = np.stack([error[:, kind] for error in errors.values()])
        panel.bar(
            places + 0.2 * (2 * kind - 1),
            values.mean(axis=1),
            0.38,
            yerr=values.std(axis=1),
            label=name,
            color=COLORS[kind],
            error_kw={"lw": 0.8},
        )
    panel.set_xticks(places, list(errors), fontsize=6)


THEOREM_2 = Reproduction(
    "pal-theorem-2",
    "On the graph of all labels, VIC2, Barlow Twins and SimCLR have minimisers from which the "
    "labels are recovered with one template a class (pal, theorem 2); as functions of x they "
    "solve the supervised problem on new points.",
    {
        **SETTINGS,
        "data": list(DATA),
        "N": POINTS,
        "minimisers": f"L-BFGS, {STEPS} steps, free embeddings, float64",
    },
    trial,
    conclude,
    draw,
)
