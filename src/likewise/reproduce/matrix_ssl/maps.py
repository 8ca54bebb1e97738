"""``matrix-ssl`` figures 2 and 5: maps of classes by t-SNE, and one method that collapses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from likewise.diagnostics import neural_collapse, spectrum
from likewise.reproduce.drawing import canvas, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.matrix_ssl.methods import BUDGET, TITLES, training
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

METHODS = ("simclr", "byol", "barlow-twins", "simsiam", "collapsed")
HEALTHY = METHODS[:-1]
A_CLASS = 100
"""Test images of a class in a map."""


def trainings(setting: Setting, seed: int, *, methods: Sequence[str] = METHODS) -> list[Training]:
    """One for each method."""
    return [training(setting, method, seed) for method in methods]


def measure(encoders: Encoders, seed: int, *, methods: Sequence[str], classes: int) -> Samples:
    """The map (methods, n, 2), and its figures.

    (methods, 5): silhouette of the map and of the encoder's output, NC1 (variability within
    classes against between), spread 1 - |mean of unit rows|^2 and effective rank of the
    projector's output.
    """
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score

    labels = encoders.pictures.labels("test")
    index = np.concatenate([np.flatnonzero(labels == c)[:A_CLASS] for c in range(classes)])
    own = labels[index]
    maps, figures = [], []
    for method in methods:
        h, z = encoders.embed(training(encoders.setting, method, seed))
        h, z = h[index].cpu(), z[index].cpu()
        rows = h.double().numpy()
        placed = TSNE(random_state=seed).fit_transform(rows.astype(np.float32))
        maps.append(placed)
        figures.append(
            [
                float(silhouette_score(placed, own)),
                float(silhouette_score(rows, own, metric="cosine")),
                neural_collapse(_unit(h), own).nc1,
                1 - float(_unit(z).mean(dim=0).square().sum()),
                spectrum(z, normalize=True).centered_effective_rank,
            ]
        )
    return {"map": np.stack(maps), "labels": own, "figures": np.array(figures)}


def _unit(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-12)


NAMES = (
    "silhouette of the map",
    "silhouette of the encoder's output",
    "NC1 (variability within classes)",
    "spread of the projector's output",
    "effective rank of the projector's output",
)


def _figures(samples: Samples, methods: Sequence[str]) -> list[Figure]:
    return [
        Figure.of(f"{TITLES[method]}: {text}", samples["figures"][:, row, column])
        for row, method in enumerate(methods)
        for column, text in enumerate(NAMES)
    ]


def conclude_2(samples: Samples) -> Findings:
    """Whether SimCLR is the most separable, and whether the last one collapsed."""
    mean = dict(zip(METHODS, samples["figures"].mean(axis=0), strict=True))
    others = [float(mean[method][0]) for method in HEALTHY[1:]]
    spread = [float(mean[method][3]) for method in HEALTHY]
    return Findings(
        _figures(samples, METHODS),
        [
            Check(
                "silhouette of the map, SimCLR less the best other",
                float(mean["simclr"][0]) - max(others),
                "more than",
                0.0,
            ),
            Check(
                "NC1, Barlow Twins / SimCLR",
                float(mean["barlow-twins"][2] / mean["simclr"][2]),
                "more than",
                1.0,
            ),
            Check(
                "spread without stop-gradient / least spread of the others",
                float(mean["collapsed"][3]) / min(spread),
                "at most",
                0.1,
            ),
            Check(
                "silhouette of the map without stop-gradient, less the least other",
                float(mean["collapsed"][0]) - min(others),
                "at most",
                -0.05,
            ),
        ],
    )


def conclude_5(samples: Samples) -> Findings:
    """Whether the maps of the methods look alike."""
    silhouettes = samples["figures"][:, :, 0].mean(axis=0)
    figures = _figures(samples, METHODS[:3])
    apart = float(silhouettes.max() - silhouettes.min())
    return Findings(
        figures,
        [Check("silhouettes of the maps, largest less least", apart, "at most", 0.1)],
    )


def draw(samples: Samples, *, methods: Sequence[str]) -> Picture:
    """The maps of the first trial."""
    from matplotlib import colormaps

    figure, panels = canvas(len(methods), width=2.6, height=2.6)
    labels = samples["labels"][0]
    colors = colormaps["tab10"](labels)
    for panel, placed, method in zip(panels, samples["map"][0], methods, strict=True):
        panel.scatter(placed[:, 0], placed[:, 1], c=colors, s=3, lw=0)
        panel.set_xticks([])
        panel.set_yticks([])
        label(panel, TITLES[method], "", "", legend=False)
    return figure


FIGURE_2 = TrainedReproduction(
    "matrix-ssl-2",
    "In maps of five classes, SimCLR's clusters are the most separable and Barlow Twins varies "
    "more within classes; SimSiam without stop-gradient collapses (matrix-ssl, figure 2, "
    "appendix E).",
    trainings,
    partial(measure, methods=METHODS, classes=5),
    conclude_2,
    partial(draw, methods=METHODS),
    {"map": "t-SNE of the encoder's output, scikit-learn's defaults, test images", **BUDGET},
)
FIGURE_5 = TrainedReproduction(
    "matrix-ssl-5",
    "In maps of ten classes, contrastive and non-contrastive methods are hard to tell apart "
    "(matrix-ssl, figure 5).",
    partial(trainings, methods=METHODS[:3]),
    partial(measure, methods=METHODS[:3], classes=10),
    conclude_5,
    partial(draw, methods=METHODS[:3]),
    {"map": "t-SNE of the encoder's output, scikit-learn's defaults, test images", **BUDGET},
)
