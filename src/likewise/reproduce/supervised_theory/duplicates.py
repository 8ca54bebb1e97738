"""``supervised-theory`` section 3: what duplicates do to one class a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.embedding import REGULARIZATION, Embedding
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples
from likewise.reproduce.supervised_theory.tasks import (
    BANDWIDTH,
    HEAD,
    NEW_POINTS,
    TASKS,
    draw_tasks,
    label_graph,
    noisy_circles,
    task_errors,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

POINTS = 100
SHARES = (0.0, 0.25, 0.5, 0.75)
DIMENSIONS = (5, 20)
POPULAR = 5
SPREAD, CONCENTRATED = "copies of any sample", f"copies of {POPULAR} samples"
DIFFERENT, MERGED, BALANCED = "a class a copy", "merged", "merged, balanced"


def trial(generator: np.random.Generator) -> Samples:
    """Errors (shares, dimensions, tasks), for both ways to copy and all ways to label copies.

    The distinct samples stay the same, so that nothing but the copies changes. The head is fitted
    on the distinct samples: what is compared are the embeddings.
    """
    points, circle = noisy_circles(POINTS + NEW_POINTS, generator)
    targets = draw_tasks(points, circle, generator)
    old, new = slice(POINTS), slice(POINTS, None)
    popular = generator.permutation(POINTS)[:POPULAR]
    samples: Samples = {}
    for way in (SPREAD, CONCENTRATED):
        rows: dict[str, list[np.ndarray]] = {DIFFERENT: [], MERGED: [], BALANCED: []}
        for share in SHARES:
            copies = round(POINTS * share / (1 - share))
            pool = np.arange(POINTS) if way == SPREAD else popular
            source = np.concatenate([np.arange(POINTS), generator.choice(pool, copies)])
            embedding = Embedding(points[source], points[new], BANDWIDTH)
            merged = label_graph(source)
            for name, graph in (
                (DIFFERENT, np.eye(len(source))),
                (MERGED, merged),
                (BALANCED, merged / merged.sum(axis=1)),
            ):
                z, new_z = embedding.fit(graph, REGULARIZATION, max(DIMENSIONS))
                rows[name].append(
                    np.stack(
                        [
                            task_errors(z[old, :k], targets[old], new_z[:, :k], targets[new])
                            for k in DIMENSIONS
                        ]
                    )
                )
        samples.update({f"{way}, {name}": np.stack(values) for name, values in rows.items()})
    return samples


def conclude(samples: Samples) -> Findings:
    """The harm that copies do, beside the same samples without any."""
    figures, checks, remarks = [], [], []
    for at, k in enumerate(DIMENSIONS):
        for way in (SPREAD, CONCENTRATED):
            for name in (DIFFERENT, MERGED, BALANCED):
                errors = samples[f"{way}, {name}"][:, :, at]
                for place, share in enumerate(SHARES):
                    title = f"K={k}, {share:.0%} {way}, {name}"
                    figures.append(Figure.of(f"{title}: worst", errors[:, place].max(axis=1)))
                    figures.append(Figure.of(f"{title}: mean", errors[:, place].mean(axis=1)))
            own = samples[f"{way}, {DIFFERENT}"][:, :, at].max(axis=2)
            both = samples[f"{way}, {MERGED}"][:, -1, at].max(axis=1)
            checks.append(
                Check(
                    f"K={k}, {SHARES[-1]:.0%} {way}: harm to the worst task, in standard errors",
                    _standard_errors(own[:, -1] - own[:, 0]),
                    "at least",
                    2,
                    tested=len(own) > 1,
                )
            )
            harm, repair = (own[:, -1] - own[:, 0]).mean(), (own[:, -1] - both).mean()
            remarks.append(f"K={k}, {way}: {harm:+.3f}, merging {-repair:+.3f} on top")
    same = max(
        np.abs(samples[f"{way}, {BALANCED}"] - samples[f"{way}, {DIFFERENT}"]).max()
        for way in (SPREAD, CONCENTRATED)
    )
    return Findings(
        figures,
        checks,
        f"What {SHARES[-1]:.0%} copies add to the worst error: {'; '.join(remarks)}. Merging with "
        f"balanced weights differs from a class a copy by {same:.2g}.",
    )


def _standard_errors(differences: np.ndarray) -> float:
    spread = differences.std() / np.sqrt(len(differences))
    return float(differences.mean() / max(spread, 1e-12))


def draw(samples: Samples) -> Picture:
    """Worst and mean error against the share of copies."""
    figure, panels = canvas(2, len(DIMENSIONS), height=2.6)
    for at, k in enumerate(DIMENSIONS):
        for column, way in enumerate((SPREAD, CONCENTRATED)):
            panel = panels[2 * at + column]
            for name, color in zip((DIFFERENT, MERGED), COLORS, strict=False):
                errors = samples[f"{way}, {name}"][:, :, at]
                curve(panel, SHARES, errors.max(axis=2), f"{name}: worst task", color)
                curve(panel, SHARES, errors.mean(axis=2), f"{name}: mean", color, dashed=True)
            panel.set_ylim(0)
            label(panel, f"K = {k}, {way}", "share of copies", "error on new points")
    return figure


DUPLICATES = Reproduction(
    "supervised-theory-duplicates",
    "Duplicates in the data break the assumption behind one class a sample, and so do harm "
    "(supervised-theory, section 3; suggested there, not tested).",
    {
        "data": "circles with noise, also the new points",
        "distinct samples": POINTS,
        "share of copies": list(SHARES),
        "K": list(DIMENSIONS),
        "kernel": f"exp(-|x - y| / {BANDWIDTH:g})",
        "lambda": REGULARIZATION,
        "head": f"eq. 1 with lambda {HEAD:g}, on the distinct samples",
        "tasks": TASKS,
    },
    trial,
    conclude,
    draw,
)
