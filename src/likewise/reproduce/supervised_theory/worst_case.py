"""``supervised-theory`` section 2.2: is one class a sample best for the worst task to come?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.reproduce.embedding import REGULARIZATION, Embedding
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples
from likewise.reproduce.supervised_theory.tasks import (
    BANDWIDTH,
    GROUPINGS,
    HEAD,
    NEW_POINTS,
    TASKS,
    draw_tasks,
    label_graph,
    labelings,
    noisy_circles,
    task_errors,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

POINTS = 150
NUMBERS = (4, 16, 64, 120)
DIMENSIONS = (5, 20, 75, 150)
OURS = "one class a sample"


def trial(generator: np.random.Generator) -> Samples:
    """Errors (dimensions, tasks) for every labeling; the rank of the embeddings (dimensions)."""
    points, circle = noisy_circles(POINTS + NEW_POINTS, generator)
    targets = draw_tasks(points, circle, generator)
    old, new = slice(POINTS), slice(POINTS, None)
    embedding = Embedding(points[old], points[new], BANDWIDTH)
    samples: Samples = {}
    for name, labels in labelings(points[old], circle[old], NUMBERS, generator).items():
        # The closed form is nested: fewer dimensions are the first columns of more.
        z, new_z = embedding.fit(label_graph(labels), REGULARIZATION, POINTS)
        samples[name] = np.stack(
            [task_errors(z[:, :k], targets[old], new_z[:, :k], targets[new]) for k in DIMENSIONS]
        )
        centred = [z[:, :k] - z[:, :k].mean(axis=0) for k in DIMENSIONS]
        samples[f"rank: {name}"] = np.array([np.linalg.matrix_rank(part) for part in centred])
    return samples


def conclude(samples: Samples) -> Findings:
    """The worst task of each labeling, and how far the best of the others is from ours."""
    names = [name for name in samples if not name.startswith("rank: ")]
    figures, checks, sure = [], [], []
    for at, k in enumerate(DIMENSIONS):
        worst = {name: samples[name][:, at].max(axis=1) for name in names}
        for name in names:
            figures.append(Figure.of(f"K={k}, {name}: worst task", worst[name]))
            figures.append(
                Figure.of(f"K={k}, {name}: mean over tasks", samples[name][:, at].mean(axis=1))
            )
        rival = min((name for name in names if name != OURS), key=lambda name: worst[name].mean())
        ahead = Figure.of(f"K={k}: worst task of {rival} less {OURS}", worst[rival] - worst[OURS])
        figures.append(ahead)
        checks.append(Check(ahead.name, ahead.value, "more than", 0))
        if ahead.deviation is not None:
            error = ahead.deviation / np.sqrt(len(worst[OURS]))
            sure.append(f"{ahead.value / max(error, 1e-12):.1f} (K={k})")
    groups = slice(len(GROUPINGS))
    for name in ("the 4 circles", OURS):
        values = samples[name][:, 0, groups].mean(axis=1)
        figures.append(Figure.of(f"K=5, {name}: mean over groupings of the circles", values))
    full = float(np.mean(samples[f"rank: {OURS}"][:, -1] >= POINTS - 1))
    others = max(
        float(np.mean(samples[f"rank: {name}"][:, -1] >= POINTS - 1))
        for name in names
        if name != OURS
    )
    figures.append(Figure("K=N: trials in which ours fits every task on the samples", full))
    figures.append(Figure("K=N: the same, best of the others", others))
    means = [figure.value for figure in figures[-4:-2]]
    return Findings(
        figures,
        checks,
        f"On the groupings of the circles with K = 5, the circles as labels err {means[0]:.3f} "
        f"and one class a sample {means[1]:.3f}. The lead over the best rival, in standard "
        f"errors: {', '.join(sure) or 'not known from one trial'}.",
    )


def draw(samples: Samples) -> Picture:
    """Worst and mean error against the number of dimensions."""
    figure, panels = canvas(2, width=5.0)
    names = [n for n in samples if not n.startswith("rank: ") and "120" not in n]
    places = np.arange(len(DIMENSIONS))
    for panel, title in zip(panels, ("worst task", "mean over tasks"), strict=True):
        for at, name in enumerate(names):
            errors = samples[name]
            values = errors.max(axis=2) if title == "worst task" else errors.mean(axis=2)
            panel.errorbar(
                places + 0.05 * (at - len(names) / 2),
                values.mean(axis=0),
                values.std(axis=0),
                label=name,
                color="black" if name == OURS else COLORS[(at + 1) // 2 % len(COLORS)],
                linestyle=":" if "random" in name else "-",
                lw=1.2,
                elinewidth=0.6,
            )
        panel.set_xticks(places, [str(k) for k in DIMENSIONS])
        panel.set_ylim(0)
        label(panel, title, "dimensions K", "error on new points", legend=False)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False
    )
    return figure


WORST_CASE = Reproduction(
    "supervised-theory-worst-case",
    "Labels that give every sample a class of its own ensure the best worst-case performance on "
    "downstream tasks (supervised-theory, section 2.2; argued there, not tested).",
    {
        "data": "circles with noise, also the new points",
        "N": POINTS,
        "kernel": f"exp(-|x - y| / {BANDWIDTH:g})",
        "lambda": REGULARIZATION,
        "head": f"eq. 1 with lambda {HEAD:g}",
        "tasks": f"{TASKS} two-class tasks: {len(GROUPINGS)} groupings of the circles, the rest "
        "signs of random smooth functions of x",
    },
    trial,
    conclude,
    draw,
)
