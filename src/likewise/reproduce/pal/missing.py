"""``pal`` figure 9: entries of the graph that are missing, and its connected components."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import connected_components

from likewise.reproduce.curves import HONEST, PAPER
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.embedding import Embedding, both_errors
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples
from likewise.reproduce.pal.queries import SETTINGS
from likewise.reproduce.problems import Data, problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

POINTS = 100
SHARES = np.concatenate([np.arange(0.5, 0.9, 0.05), np.arange(0.9, 1.001, 0.01)]).round(2)


def trial(generator: np.random.Generator, data: Data) -> Samples:
    """Errors and components as ever more entries of the supervised graph go missing."""
    drawn = problem(data, POINTS, generator)
    embedding = Embedding(drawn.points, drawn.test_points)
    alike = drawn.labels[:, None] == drawn.labels
    chance = np.triu(generator.random((POINTS, POINTS)), 1)
    chance += chance.T
    errors, components = [], []
    for share in SHARES:
        graph = (alike & (chance >= share)).astype(float)
        np.fill_diagonal(graph, 1.0)
        errors.append(both_errors(embedding.fit(graph), drawn))
        components.append(connected_components(graph, directed=False)[0])
    return {"error": np.stack(errors), "components": np.array(components)}


def correlation(samples: Samples) -> float:
    """Between the mean error and the mean number of components, over the shares."""
    means = samples["error"][..., PAPER].mean(axis=0), samples["components"].mean(axis=0)
    return float(np.corrcoef(*means)[0, 1])


def conclude(samples: Samples) -> Findings:
    """The correlation, and some points of the curves."""
    figures = []
    for share in (0.8, 0.9, 0.95, 1.0):
        at = int(np.flatnonzero(share == SHARES)[0])
        figures += [
            Figure.of(f"error, {share:.0%} missing", samples["error"][:, at, PAPER]),
            Figure.of(f"honest error, {share:.0%} missing", samples["error"][:, at, HONEST]),
            Figure.of(f"components, {share:.0%} missing", samples["components"][:, at]),
        ]
    each = [
        np.corrcoef(error, components)[0, 1]
        for error, components in zip(
            samples["error"][..., PAPER], samples["components"], strict=True
        )
    ]
    figures.append(Figure.of("correlation within a trial", np.array(each)))
    check = Check("correlation of the mean curves", correlation(samples), "at least", 0.95)
    return Findings(figures, [check])


def draw_missing(panel: Axes, samples: Samples) -> None:
    """Error on the left axis, components on the right one."""
    curve(panel, SHARES, samples["error"][..., PAPER], "test error", COLORS[0])
    label(panel, f"N = {POINTS}", "share of missing entries", "test error", legend=False)
    other = panel.twinx()
    curve(other, SHARES, samples["components"], "components", COLORS[1])
    other.set_ylabel("connected components", color=COLORS[1], fontsize=9)
    panel.yaxis.label.set_color(COLORS[0])


def draw(samples: Samples) -> Picture:
    """One panel."""
    figure, panels = canvas()
    draw_missing(panels[0], samples)
    return figure


FIGURE_9 = Reproduction(
    "pal-9",
    "As entries of the supervised graph go missing, the number of its connected components "
    "predicts the test error (pal, figure 9).",
    {**SETTINGS, "data": "circles", "N": POINTS, "graph": "0/1, symmetric, diagonal kept"},
    partial(trial, data="circles"),
    conclude,
    draw,
)
