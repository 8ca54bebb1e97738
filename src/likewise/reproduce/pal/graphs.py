"""``pal`` figure 6: how much of the graph is known after some queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.reproduce.drawing import canvas
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples
from likewise.reproduce.problems import CLASSES, circles
from likewise.reproduce.questions import GRID, RandomPairs, TemplateQuestions

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

POINTS = 100
SNAPSHOTS = (20, 50, 100, 150, 200)
MOST = (POINTS - CLASSES) * (CLASSES - 1)
"""With templates, every point but these is excluded from all classes but one (errata)."""


def trial(generator: np.random.Generator) -> Samples:
    """The graphs at the snapshots, with points in the order of their classes; the queries that
    the complete graph takes."""
    labels = np.sort(circles(POINTS, generator).labels)
    oracle, pairs = TemplateQuestions(labels, generator), RandomPairs(labels, generator)
    active = []
    for snapshot in SNAPSHOTS:
        _ask(oracle, snapshot)
        active.append(oracle.graph())
    _ask(oracle, MOST)
    truth = np.where(labels[:, None] == labels, 1, -1)
    return {
        "active": np.stack(active).astype(np.int8),
        "passive": np.stack([pairs.graph(q) for q in SNAPSHOTS]).astype(np.int8),
        "queries to all": np.array(oracle.asked),
        "wrong": np.array((oracle.graph() != truth).sum()),
    }


def _ask(oracle: TemplateQuestions, until: int) -> None:
    while oracle.asked < until and (topic := oracle.topic()) is not None:
        oracle.ask(topic, oracle.random_candidates(topic, min(GRID, until - oracle.asked)))


def known_share(graphs: np.ndarray) -> np.ndarray:
    """The share of pairs of two points that are known, for each of some graphs."""
    pairs = np.triu_indices(graphs.shape[-1], 1)
    return (graphs[..., pairs[0], pairs[1]] != 0).mean(axis=-1)


def conclude(samples: Samples) -> Findings:
    """Shares of known pairs."""
    figures, checks = [], []
    for at, snapshot in enumerate(SNAPSHOTS):
        shares = {way: known_share(samples[way][:, at]) for way in ("active", "passive")}
        figures += [
            Figure.of(f"{way}: known pairs after {snapshot}", values)
            for way, values in shares.items()
        ]
        checks.append(
            Check(
                f"known pairs after {snapshot}, active / passive",
                shares["active"].mean() / shares["passive"].mean(),
                "at least",
                2,
            )
        )
    total = samples["queries to all"]
    figures.append(Figure.of("active: queries to the complete graph", total))
    checks.append(Check("queries to the complete graph, the most", total.max(), "at most", MOST))
    checks.append(Check("wrong pairs in the complete graph", samples["wrong"].sum(), "at most", 0))
    return Findings(figures, checks)


def draw(samples: Samples) -> Picture:
    """The graphs of the first trial: unknown grey, different white, alike black."""
    figure, panels = canvas(len(SNAPSHOTS), 2, width=1.8, height=1.9)
    for row, way in enumerate(("active", "passive")):
        for at, snapshot in enumerate(SNAPSHOTS):
            panel = panels[row * len(SNAPSHOTS) + at]
            panel.imshow(-samples[way][0, at], cmap="gray", vmin=-1, vmax=1)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_title(f"{way}, {snapshot} queries", fontsize=8)
            panel.spines[["top", "right"]].set_visible(True)
    return figure


FIGURE_6 = Reproduction(
    "pal-6",
    "Algorithm 3 deduces the graph much faster than random pairs: a positive observation is "
    "turned into many negative ones (pal, figure 6).",
    {"data": "circles", "N": POINTS, "candidates a question": GRID},
    trial,
    conclude,
    draw,
)
