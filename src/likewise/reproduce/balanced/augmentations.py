"""``balanced`` figure 3: the less biased the prototypes, the higher the accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.data.views import Policy
from likewise.diagnostics import prototype_bias
from likewise.reproduce.balanced.losses import policy, training
from likewise.reproduce.drawing import COLORS, canvas, label
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.findings import Check, Figure, Findings, Samples, TrainedReproduction
from likewise.reproduce.setting import Setting
from likewise.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAMES = (
    "base",
    "- Gaussian blur",
    "- colour distortion",
    "+ cutout",
    "+ rotation",
    "+ noise",
)
VIEWS = 8
IMAGES = 512


def policies(setting: Setting) -> dict[str, Policy]:
    """The base with blur, without one of its parts, or with one more.

    On digits the base has no rotation, which is then one of the additions.
    """
    base = policy(setting).with_(blur=0.5, rotation=0.0)
    plain = base.with_(
        jitter=0.0, brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0, grayscale=0.0
    )
    return dict(
        zip(
            NAMES,
            (
                base,
                base.with_(blur=0.0),
                plain,
                base.with_(cutout=0.5),
                base.with_(rotation=30.0),
                base.with_(noise=0.5, noise_deviation=0.1),
            ),
            strict=True,
        )
    )


def trainings(setting: Setting, seed: int) -> list[Training]:
    """SimCLR with each of them."""
    return [
        training(setting, "simclr", seed, views=views, snapshots=())
        for views in policies(setting).values()
    ]


def measure(encoders: Encoders, seed: int) -> Samples:
    """(policies, 4): probe, neighbours, and the bias by equations 16 and 51."""
    labels = encoders.pictures.labels()[:IMAGES]
    found = []
    for one in trainings(encoders.setting, seed):
        _, z = encoders.embed_views(one, split="train", n_views=VIEWS, most=IMAGES, seed=seed)
        bias = prototype_bias(z, labels, n_views=VIEWS, seed=seed)
        found.append((encoders.probe(one), encoders.neighbors(one), bias.bias, bias.printed))
    return {"found": np.array(found)}


def conclude(samples: Samples) -> Findings:
    """Whether bias and accuracy go against one another, and where the base stands."""
    texts = ("linear probe", "nearest neighbours", "bias, equation 16", "bias, equation 51")
    figures = [
        Figure.of(f"{name}: {text}", samples["found"][:, row, column])
        for row, name in enumerate(NAMES)
        for column, text in enumerate(texts)
    ]
    probe, _, bias, printed = samples["found"].mean(axis=0).T
    checks = [
        Check(
            f"correlation of accuracy and bias (equation {number})",
            float(np.corrcoef(probe, values)[0, 1]),
            "at most",
            -0.3,
        )
        for number, values in ((16, bias), (51, printed))
    ]
    checks += [
        Check("accuracy, base less the best other", probe[0] - probe[1:].max(), "more than", 0.0),
        Check("bias (16), base less the least other", bias[0] - bias[1:].min(), "less than", 0.0),
    ]
    return Findings(figures, checks, f"The most accurate is {NAMES[int(probe.argmax())]!r}.")


def draw(samples: Samples) -> Picture:
    """Accuracy against bias, both ways of computing it."""
    figure, panels = canvas(2)
    mean = samples["found"].mean(axis=0)
    for panel, column, text in ((panels[0], 2, "equation 16"), (panels[1], 3, "equation 51")):
        for row, name in enumerate(NAMES):
            x, y = mean[row, column], mean[row, 0]
            panel.plot(x, y, "o", color=COLORS[row])
            panel.annotate(name, (x, y), fontsize=7, xytext=(4, 3), textcoords="offset points")
        panel.margins(x=0.2, y=0.1)
        label(panel, text, "prototype representation bias", "linear probe", legend=False)
    return figure


FIGURE_3 = TrainedReproduction(
    "balanced-3",
    "Across augmentations, a lower prototype representation bias goes with a higher accuracy, and "
    "SimCLR's own policy has the best of both (balanced, figure 3).",
    trainings,
    measure,
    conclude,
    draw,
    {"views": VIEWS, "images": IMAGES, "representation": "the projector's output, unit rows"},
)
