"""``pal`` figures 4 and 8: some labels beside views, and labels of which some are wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from likewise.reproduce.curves import HONEST, PAPER
from likewise.reproduce.drawing import COLORS, canvas, curve, label
from likewise.reproduce.embedding import REGULARIZATION, Embedding, both_errors
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples
from likewise.reproduce.pal.queries import SETTINGS
from likewise.reproduce.problems import CLASSES, Data, problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

# --- figure 4: a few labels ---------------------------------------------------------------------

SAMPLES, VIEWS, VIEW_NOISE, WIDE = 200, 2, 0.1, 1.0
KNOWN = (0, 8, 16, 24, 40, 60, 80, 100, 150, 200)
ALPHAS = (0.5, 1e-3, 1e-4, 1e-6)
GOOD = 1e-4
"""A tenth of lambda."""


def trial_labels(generator: np.random.Generator, data: Data, alphas: tuple[float, ...]) -> Samples:
    """Errors (numbers of labels, 2) for every alpha; labels are added to those known before."""
    drawn = problem(data, SAMPLES, generator)
    rows = np.repeat(drawn.points, VIEWS, axis=0)
    views = rows + VIEW_NOISE * generator.standard_normal(rows.shape)
    embedding = Embedding(views, drawn.test_points, WIDE)
    itself = np.kron(np.eye(SAMPLES), np.ones((VIEWS, VIEWS)))
    order = generator.permutation(SAMPLES)

    def errors(alpha: float, known: int) -> np.ndarray:
        targets = np.zeros((SAMPLES, CLASSES))
        targets[order[:known], drawn.labels[order[:known]]] = 1
        targets = np.repeat(targets, VIEWS, axis=0)
        graph = (1 - alpha) * itself + alpha * targets @ targets.T
        return both_errors(embedding.fit(graph), drawn)

    samples = {
        f"alpha {alpha:g}": np.stack([errors(alpha, known) for known in KNOWN]) for alpha in alphas
    }
    # alpha = 0 does not see the labels: one fit serves all their numbers.
    samples["no labels"] = np.repeat(errors(0.0, 0)[None], len(KNOWN), axis=0)
    return samples


def conclude_4(samples: Samples) -> Findings:
    """Errors beside the one without labels."""
    figures = []
    for name, errors in samples.items():
        for known in (0,) if name == "no labels" else (8, 40, 100, 200):
            at = KNOWN.index(known)
            figures.append(Figure.of(f"{name}: error, {known} labels", errors[:, at, PAPER]))
            figures.append(Figure.of(f"{name}: honest, {known} labels", errors[:, at, HONEST]))
    mean = {name: errors[..., PAPER].mean(axis=0) for name, errors in samples.items()}
    bad, good, none = mean["alpha 0.5"], mean[f"alpha {GOOD:g}"], mean["no labels"]
    eight = KNOWN.index(8)
    return Findings(
        figures,
        [
            Check("alpha .5, 8 labels: excess", bad[eight] - none[eight], "at least", 0.1),
            Check("alpha 1e-4: worst excess", (good - none).max(), "at most", 0.03),
            Check("alpha 1e-4, 40 labels: error", good[KNOWN.index(40)], "at most", 0.3),
            Check("alpha 1e-4, 100 labels: error", good[KNOWN.index(100)], "at most", 0.1),
        ],
    )


def draw_labels(panel: Axes, samples: Samples, title: str) -> None:
    """Errors against the number of labels."""
    for (name, errors), color in zip(samples.items(), COLORS, strict=False):
        curve(panel, KNOWN, errors[..., PAPER], name, color, dashed=name == "no labels")
    label(panel, title, "labels", "test error")


def draw_4(samples: Samples) -> Picture:
    """With the paper's probe, and with the honest one."""
    figure, panels = canvas(2)
    draw_labels(panels[0], samples, "probe of the paper")
    honest = {name: errors[..., [HONEST]] for name, errors in samples.items()}
    draw_labels(panels[1], honest, "honest probe")
    return figure


FIGURE_4 = Reproduction(
    "pal-4",
    "A few labels mixed into the graph of views can do harm if their weight alpha is large; mixed "
    "properly they help (pal, figure 4).",
    {
        **SETTINGS,
        "kernel": f"exp(-|x - y| / {WIDE:g})",
        "data": "circles",
        "samples": SAMPLES,
        "views": f"{VIEWS}, each with noise {VIEW_NOISE}",
        "alpha": list(ALPHAS),
    },
    partial(trial_labels, data="circles", alphas=ALPHAS),
    conclude_4,
    draw_4,
)

# --- figure 8: wrong labels ---------------------------------------------------------------------

NOISY_POINTS = 300
CORRUPTED = (0, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300)
PLAIN, SMOOTH = "lambda 1e-3", "lambda 100, sigma 1"
STRICT, STRICT_SMOOTH = f"{PLAIN}, always another class", f"{SMOOTH}, always another class"
LIMITS = {PLAIN: 0.15, SMOOTH: 0.05}


def trial_noise(generator: np.random.Generator, data: Data) -> Samples:
    """Errors (numbers of corrupted labels, 2), for each setting.

    A corrupted label is replaced by a uniformly random class, which is the right one in a quarter
    of the cases: with all 300 corrupted nothing is left to learn, as in the paper's figure. The
    stricter reading, always another class, stands beside it.
    """
    drawn = problem(data, NOISY_POINTS, generator)
    order = generator.permutation(NOISY_POINTS)
    anything = generator.integers(CLASSES, size=NOISY_POINTS)
    another = (drawn.labels + generator.integers(1, CLASSES, size=NOISY_POINTS)) % CLASSES
    samples: Samples = {}
    narrow = Embedding(drawn.points, drawn.test_points)
    wide = Embedding(drawn.points, drawn.test_points, 1.0)
    for name, embedding, regularization, wrong in (
        (PLAIN, narrow, REGULARIZATION, anything),
        (SMOOTH, wide, 100.0, anything),
        (STRICT, narrow, REGULARIZATION, another),
        (STRICT_SMOOTH, wide, 100.0, another),
    ):
        errors = []
        for corrupted in CORRUPTED:
            labels = drawn.labels.copy()
            labels[order[:corrupted]] = wrong[order[:corrupted]]
            graph = (labels[:, None] == labels).astype(float)
            errors.append(both_errors(embedding.fit(graph, regularization), drawn))
        samples[name] = np.stack(errors)
    return samples


def conclude_8(samples: Samples) -> Findings:
    """Errors with 60 of 300 labels corrupted."""
    at = CORRUPTED.index(60)
    figures = []
    for name, errors in samples.items():
        figures.append(Figure.of(f"{name}: error, none corrupted", errors[:, 0, PAPER]))
        figures.append(Figure.of(f"{name}: error, 60 corrupted", errors[:, at, PAPER]))
        figures.append(Figure.of(f"{name}: honest, 60 corrupted", errors[:, at, HONEST]))
    strict = []
    for name, limit in ((STRICT, LIMITS[PLAIN]), (STRICT_SMOOTH, LIMITS[SMOOTH])):
        error = samples[name][:, at, PAPER].mean()
        strict.append(f"{name}: {error:.3f} ({'within' if error <= limit else 'above'} {limit:g})")
    return Findings(
        figures,
        [
            Check(f"{name}: error, 60 corrupted", samples[name][:, at, PAPER].mean(), "at most", x)
            for name, x in LIMITS.items()
        ],
        "The paper does not say what a corrupted label becomes. The checks are for a uniformly "
        "random class, which may be the right one; this reading was chosen after both had been "
        f"seen. Under the stricter one, with the same limits: {'; '.join(strict)}.",
    )


def draw_noise(panel: Axes, samples: Samples) -> None:
    """Errors against the number of corrupted labels."""
    for (name, errors), color in zip(samples.items(), COLORS, strict=False):
        curve(
            panel,
            CORRUPTED,
            errors[..., PAPER],
            name,
            color,
            dashed=name in (STRICT, STRICT_SMOOTH),
        )
    label(panel, f"N = {NOISY_POINTS}", "corrupted labels", "test error")


def draw_8(samples: Samples) -> Picture:
    """All settings in one panel."""
    figure, panels = canvas()
    draw_noise(panels[0], samples)
    return figure


FIGURE_8 = Reproduction(
    "pal-8",
    "With the graph of all labels, some of them wrong, the embedding is somewhat robust to the "
    "noise (pal, figure 8).",
    {
        **SETTINGS,
        "data": "circles",
        "N": NOISY_POINTS,
        "corrupted": "replaced by a uniformly random class, which may be the right one",
    },
    partial(trial_noise, data="circles"),
    conclude_8,
    draw_8,
)
