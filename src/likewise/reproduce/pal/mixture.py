"""``pal`` figure 10: the same figures on a mixture of Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.reproduce.curves import HONEST, PAPER, queries_needed
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.embedding import Embedding
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples
from likewise.reproduce.pal import labels, missing, queries
from likewise.reproduce.problems import problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

POINTS = 100
QUERIES = np.arange(0, 801, 20)
SIGNED_QUERIES = np.arange(0, 641, 40)
ALPHAS = (0.5, 1e-3)


def trial(generator: np.random.Generator) -> Samples:
    """All panels, each with points of its own."""
    drawn = problem("mixture", POINTS, generator)
    embedding = Embedding(drawn.points, drawn.test_points)
    samples: Samples = {
        way: queries.asked_curve(drawn, embedding, generator, QUERIES, way)
        for way in (queries.ACTIVE, queries.GUIDED)
    }
    samples[queries.PASSIVE] = queries.passive_curve(drawn, embedding, generator, QUERIES)
    parts = {
        "sign": queries.trial_signed(generator, "mixture", SIGNED_QUERIES),
        "missing": missing.trial(generator, "mixture"),
        "few": labels.trial_labels(generator, "mixture", ALPHAS),
        "noise": labels.trial_noise(generator, "mixture"),
    }
    for part, results in parts.items():
        samples.update({f"{part}: {name}": values for name, values in results.items()})
    return samples


def part_of(samples: Samples, part: str) -> Samples:
    """What belongs to one panel."""
    return {
        name.removeprefix(f"{part}: "): values
        for name, values in samples.items()
        if name.startswith(f"{part}: ")
    }


def conclude(samples: Samples) -> Findings:
    """The claims of the other figures, and that no query at all is not hopeless here."""
    ways = (queries.ACTIVE, queries.GUIDED, queries.PASSIVE)
    figures: list[Figure] = []
    for way in ways:
        figures += [
            queries_needed(way, QUERIES, samples[way][..., PAPER], level) for level in (0.1, 0.05)
        ]
        figures.append(Figure.of(f"{way}: last error", samples[way][:, -1, PAPER]))
        figures.append(Figure.of(f"{way}: last honest error", samples[way][:, -1, HONEST]))
    nothing = samples[queries.ACTIVE][:, 0]
    figures.append(Figure.of("no queries: error", nothing[:, PAPER]))
    figures.append(Figure.of("no queries: honest error", nothing[:, HONEST]))
    gone = part_of(samples, "missing")
    figures.append(Figure.of("all entries missing: error", gone["error"][:, -1, PAPER]))
    sign = part_of(samples, "sign")
    for kind, errors in sign.items():
        figures += [queries_needed(kind, SIGNED_QUERIES, errors[..., PAPER], 0.05)]
    noise = part_of(samples, "noise")
    at = labels.CORRUPTED.index(60)
    for kind, errors in noise.items():
        figures.append(Figure.of(f"{kind}: error, 60 corrupted", errors[:, at, PAPER]))
    few = part_of(samples, "few")
    eight = labels.KNOWN.index(8)
    for kind, errors in few.items():
        figures.append(Figure.of(f"{kind}: error, 8 labels", errors[:, eight, PAPER]))
    needed = {
        way: queries_needed("", QUERIES, samples[way][..., PAPER], 0.05).value for way in ways
    }
    excess = {kind: errors[:, eight, PAPER].mean() for kind, errors in few.items()}
    return Findings(
        figures,
        [
            Check("all labels: error", samples[ways[0]][:, -1, PAPER].mean(), "at most", 0.045),
            Check(
                "passive / algorithm 3, queries to .05",
                needed[queries.PASSIVE] / needed[queries.ACTIVE],
                "at least",
                2,
            ),
            Check("no queries: error (chance is .75)", nothing[:, PAPER].mean(), "at most", 0.1),
            Check(
                "excess of alpha .5 with 8 labels",
                excess["alpha 0.5"] - excess["no labels"],
                "at least",
                0.1,
            ),
        ],
        "Not checked, since the caption excepts it: the correlation of error and components that "
        "pal-9 has on circles is here "
        f"{missing.correlation(gone):.2f}.",
    )


def draw(samples: Samples) -> Picture:
    """The five panels of the paper."""
    figure, panels = canvas(3, 2, width=3.6, height=2.7)
    for way, color in zip((queries.ACTIVE, queries.GUIDED, queries.PASSIVE), COLORS, strict=False):
        curve(panels[0], QUERIES, samples[way][..., PAPER], way, color)
    label(panels[0], f"N = {POINTS}", "queries", "test error")
    missing.draw_missing(panels[1], part_of(samples, "missing"))
    queries.draw_signed(panels[2], part_of(samples, "sign"), SIGNED_QUERIES)
    labels.draw_labels(panels[3], part_of(samples, "few"), "labels beside views")
    labels.draw_noise(panels[4], part_of(samples, "noise"))
    panels[5].set_axis_off()
    return figure


FIGURE_10 = Reproduction(
    "pal-10",
    "The findings on circles carry over to a mixture of Gaussians, where the task can be solved "
    "even without any query (pal, figure 10).",
    {**queries.SETTINGS, "data": "mixture, X = Y + 0.3 E", "N": POINTS},
    trial,
    conclude,
    draw,
)
