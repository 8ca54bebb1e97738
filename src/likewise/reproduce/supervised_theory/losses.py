"""``supervised-theory`` figures 1 and 2: the loss that needs no labels, and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from likewise.graph import Graph
from likewise.objectives import AbsoluteRegression, RelativeRegression
from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.reproduce.findings import Check, Figure, Findings, Reproduction, Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

# --- figure 1: the gradient with respect to a singular value ------------------------------------

ROWS, DIMENSIONS, CLASSES = 30, 4, 3
LAMBDAS = (1.0, 0.1, 0.01, 0.001)
SIGMAS = np.geomspace(0.05, 50, 31)
STEP = 1e-5


def theorem_2_gradient(sigma: np.ndarray, regularization: float, rows: int) -> np.ndarray:
    r"""Theorem 2 with :math:`(V^\top G V)_{kk} = 1`:
    :math:`-2 \sigma \lambda / (\sigma^2 + \lambda N)^2`."""
    return -2 * sigma * regularization / (sigma**2 + regularization * rows) ** 2


def trial_1(generator: np.random.Generator) -> Samples:
    """The gradient at each lambda and sigma, by PyTorch and by differences, over (V^T G V)_kk.

    The embeddings are random with given singular values, of which the first one moves.
    """
    labels = torch.as_tensor(generator.integers(CLASSES, size=ROWS))
    graph = Graph.from_labels(labels, n_classes=CLASSES)
    left = generator.standard_normal((ROWS, DIMENSIONS))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(generator.standard_normal((DIMENSIONS, DIMENSIONS)))[0]
    others = generator.uniform(0.5, 2.0, DIMENSIONS - 1)
    a, b = torch.as_tensor(left), torch.as_tensor(right)
    weight = float((a[:, 0] * (graph @ a[:, :1])[:, 0]).sum())

    def value(objective: torch.nn.Module, sigma: torch.Tensor) -> torch.Tensor:
        scales = torch.cat([sigma[None], torch.as_tensor(others)])
        return objective((a * scales) @ b.T, graph)

    slopes = np.empty((len(LAMBDAS), len(SIGMAS)))
    differences = np.empty_like(slopes)
    for row, regularization in enumerate(LAMBDAS):
        relative = RelativeRegression(regularization)
        absolute = AbsoluteRegression(regularization)
        for column, number in enumerate(SIGMAS):
            sigma = torch.tensor(number, dtype=torch.float64, requires_grad=True)
            (slope,) = torch.autograd.grad(value(relative, sigma), sigma)
            slopes[row, column] = float(slope) / weight
            step = STEP * number
            with torch.no_grad():
                above = value(absolute, sigma + step)
                below = value(absolute, sigma - step)
            differences[row, column] = float(above - below) / (2 * step) / weight
    return {"gradient": slopes, "differences": differences}


def conclude_1(samples: Samples) -> Findings:
    """How far the formula is off, and where the gradient is large."""
    formula = np.stack([theorem_2_gradient(SIGMAS, value, ROWS) for value in LAMBDAS])
    size = np.abs(formula).max(axis=1, keepdims=True)
    off = {
        "autograd": np.abs(samples["gradient"] - formula) / size,
        "differences of eq. 1": np.abs(samples["differences"] - formula) / size,
    }
    figures = [
        Figure.of(f"{way}: largest distance from the formula", gap.max(axis=(1, 2)))
        for way, gap in off.items()
    ]
    found = np.abs(samples["gradient"].mean(axis=0))
    for regularization, slopes in zip(LAMBDAS, found, strict=True):
        figures.append(Figure(f"lambda {regularization:g}: largest gradient", slopes.max()))
        figures.append(Figure(f"lambda {regularization:g}: sigma of it", SIGMAS[slopes.argmax()]))
    last = (found[:, -1] / found.max(axis=1)).max()
    one = int(np.abs(SIGMAS - 1.0).argmin())
    first = found[0, 0] / found[0].max()
    return Findings(
        figures,
        [
            Check("autograd: distance from the formula", off["autograd"].max(), "at most", 1e-6),
            Check(
                "differences of eq. 1: distance from the formula",
                off["differences of eq. 1"].max(),
                "at most",
                1e-5,
            ),
            Check("gradient at sigma 50, of the largest", last, "at most", 0.05),
            Check(
                "gradient at sigma 1, lambda 1e-3 / 1e-2",
                found[3, one] / found[2, one],
                "at most",
                0.5,
            ),
        ],
        f"At sigma {SIGMAS[0]:g} the gradient is {first:.2g} of the largest for lambda "
        f"{LAMBDAS[0]:g}: a direction that has collapsed is not brought back. The largest gradient "
        f"goes from {found[0].max():.2g} to {found[3].max():.2g} as lambda falls.",
    )


def draw_1(samples: Samples) -> Picture:
    """The formula as lines, the measured gradient as dots."""
    figure, panels = canvas()
    dense = np.geomspace(SIGMAS[0], SIGMAS[-1], 300)
    for regularization, slopes, color in zip(
        LAMBDAS, samples["gradient"].mean(axis=0), COLORS, strict=False
    ):
        panels[0].plot(dense, -theorem_2_gradient(dense, regularization, ROWS), color=color, lw=1.2)
        panels[0].plot(SIGMAS, -slopes, ".", color=color, ms=4, label=f"λ = {regularization:g}")
    panels[0].set_xscale("log")
    panels[0].set_yscale("log")
    panels[0].set_ylim(1e-6)
    label(panels[0], f"N = {ROWS}; lines: theorem 2, dots: autograd", "σ", "- gradient")
    return figure


FIGURE_1 = Reproduction(
    "supervised-theory-1",
    "The gradient of the relative loss with respect to a singular value vanishes as this grows, "
    "and the sooner the smaller lambda is (supervised-theory, figure 1, theorem 2).",
    {"N": ROWS, "K": DIMENSIONS, "classes": CLASSES, "lambda": list(LAMBDAS)},
    trial_1,
    conclude_1,
    draw_1,
)

# --- figure 2: absolute and relative loss -------------------------------------------------------

SIZES = tuple((n, k) for n in (16, 64, 256) for k in (2, 8, 32))
WEIGHTS = (0.0, 0.1)


def trial_2(generator: np.random.Generator) -> Samples:
    """Both losses (sizes, weights, 2) of random embeddings and random labels, in float64."""
    values = np.empty((len(SIZES), len(WEIGHTS), 2))
    for at, (n, k) in enumerate(SIZES):
        z = torch.as_tensor(generator.standard_normal((n, k)))
        graph = Graph.from_labels(torch.as_tensor(generator.integers(10, size=n)), n_classes=10)
        for column, weight in enumerate(WEIGHTS):
            values[at, column] = (
                float(AbsoluteRegression(weight)(z, graph)),
                float(RelativeRegression(weight)(z, graph)),
            )
    return {"losses": values}


def conclude_2(samples: Samples) -> Findings:
    """Mean losses, and how far they are apart."""
    losses = samples["losses"]
    apart = np.abs(losses[..., 0] - losses[..., 1])
    figures, checks = [], []
    for column, weight in enumerate(WEIGHTS):
        for at, (n, k) in enumerate(SIZES):
            name = f"lambda {weight:g}, N={n}, K={k}: absolute loss"
            figures.append(Figure.of(name, losses[:, at, column, 0]))
        gap = apart[:, :, column]
        figures.append(Figure.of(f"lambda {weight:g}: largest difference", gap.max(axis=1)))
        checks.append(Check(f"lambda {weight:g}: largest difference", gap.max(), "at most", 1e-9))
    return Findings(figures, checks)


def draw_2(samples: Samples) -> Picture:
    """One loss against the other."""
    figure, panels = canvas(len(WEIGHTS), width=3.6)
    for column, (panel, weight) in enumerate(zip(panels, WEIGHTS, strict=True)):
        values = samples["losses"][:, :, column]
        for at, (n, k) in enumerate(SIZES):
            color, marker = COLORS[at // 3], "o^s"[at % 3]
            panel.plot(
                *values[:, at].T, marker, color=color, ms=3, label=f"N={n}, K={k}", alpha=0.5
            )
        panel.plot([0, values.max()], [0, values.max()], color="black", lw=0.6)
        label(panel, f"λ = {weight:g}", "absolute loss", "relative loss", legend=column == 0)
    return figure


FIGURE_2 = Reproduction(
    "supervised-theory-2",
    "Regression on labels and the relative loss on the graph of the labels have the same value, "
    "for all N and K (supervised-theory, figure 2, lemma 1).",
    {"sizes (N, K)": [list(size) for size in SIZES], "classes": 10, "lambda": list(WEIGHTS)},
    trial_2,
    conclude_2,
    draw_2,
)
