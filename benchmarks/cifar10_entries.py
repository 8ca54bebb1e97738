"""The trainings of benchmarks/cifar10.py: which recipe, how long, on which graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cifar10_screen as screen

from likewise.training import RECIPES

PARTS = ("short", "variants", "long", "labels", "spectrum", "weights", "screen")
SHORT = tuple(RECIPES)
"""Before benchmarks/cifar10_screen.py adds those that it compares."""

LONG = ("simclr", "balanced", "vicreg", "matrix-ssl")
SHARES = (0.01, 0.1, 1.0)
"""Of the labels that are put into the graph."""

EPOCHS = (2, 10, 30)
"""Of the spectrum: those of pal C.3, and a longer setting."""

SMALL_HEAD: dict[str, Any] = {
    "optimizer": "adamw",
    "lr": 1e-3,
    "weight_decay": 5e-4,
    "batch_size": 256,
    "views": "small",
}
"""The spectrum's own setting: SGD diverges with K = 16 outputs, and under strong views two epochs
show nothing but the views."""

WEIGHT = 0.9
"""Of the labels, however many there are; `weights` holds others."""

SEEDS = (0, 1, 2)
"""Of the spectrum, where a seed draws which labels are known, too, and of SimCLR's 200 epochs."""

OTHER_WEIGHTS = {
    # share, weight, sampler: epochs
    (0.01, 0.5, "shuffled"): (2,),
    (0.01, 0.99, "shuffled"): (2, 10),
    (0.01, 0.97, "graph-aware"): (2, 30),
    (0.01, 0.99, "graph-aware"): (2, 10, 30),
    (0.01, 0.999, "graph-aware"): (2,),
    (0.1, 0.1, "shuffled"): (2,),
    (0.1, 0.5, "shuffled"): (2, 10),
    (0.1, 0.9, "shuffled"): (2, 10),
    (0.1, 0.99, "shuffled"): (2,),
    (0.1, 0.02, "graph-aware"): (2,),
    (0.1, 0.1, "graph-aware"): (2, 10),
    (0.1, 0.5, "graph-aware"): (2, 10),
    (0.1, 0.99, "graph-aware"): (2,),
    (1.0, 0.5, "shuffled"): (2, 10, 30),
    (1.0, 1.0, "shuffled"): (2,),
}
FEWER_KNOWN = ((0.01, 0.9, 0.125), (0.01, 0.97, 0.25), (0.01, 0.99, 0.125), (0.01, 0.99, 0.25))
"""Share of the labels, weight, and the part of a batch that is drawn from them; 30 epochs."""


@dataclass(frozen=True)
class Entry:
    """One training: a recipe, how long, and what is known of the labels."""

    part: str
    name: str
    recipe: str
    epochs: int
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def key(self) -> str:
        seed = f"-seed-{self.seed}" if self.seed else ""
        return f"{self.part}-{self.name}-{self.epochs}{seed}"

    @property
    def file(self) -> str:
        return f"{self.key.replace(' ', '_').replace('%', 'percent')}.json"


def entries(part: str) -> list[Entry]:
    """The trainings of a part of the benchmark."""
    if part == "short":
        return [Entry(part, name, name, 20) for name in SHORT]
    if part == "long":
        again = (Entry(part, "simclr", "simclr", 200, seed=seed) for seed in SEEDS[1:])
        return [*(Entry(part, name, name, 200) for name in LONG), *again]
    if part == "labels":
        return [
            Entry(part, _share(share), "simclr", 20, {"labels": "source", "label_share": share})
            for share in SHARES
        ]
    if part == "variants":
        return variants()
    if part == "screen":
        trainings = (screen.training(row) for row in screen.pattern())
        return [
            Entry(part, f"row {number:02d}", recipe, screen.EPOCHS, options)
            for number, (recipe, options) in enumerate(trainings)
        ]
    if part == "weights":
        return [
            on_labels(part, share, weight, sampler, epochs)
            for (share, weight, sampler), all_epochs in OTHER_WEIGHTS.items()
            for epochs in all_epochs
        ] + [
            on_labels(part, share, weight, "graph-aware", 30, known_share=known)
            for share, weight, known in FEWER_KNOWN
        ]
    return spectrum()


def variants() -> list[Entry]:
    """Settings beside those of the recipes."""
    adamw = {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 1e-4}
    sgd = {"optimizer": "sgd", "lr": 0.24, "weight_decay": 1e-5}
    part = "variants"
    return [
        *simclr_before(part),
        *(
            Entry(part, f"matrix-ssl, d = {d}", "matrix-ssl", 20, {"projector": [512, 512, d]})
            for d in (32, 64)
        ),
        *(
            Entry(
                part,
                f"matrix-ssl, d = {d}, AdamW",
                "matrix-ssl",
                20,
                {"projector": [512, 512, d], **adamw},
            )
            for d in (16, 64)
        ),
        Entry(part, "mec, SGD", "mec", 20, sgd),
        Entry(part, "supervised-graph, lr 0.001", "supervised-graph", 20, {"lr": 1e-3}),
        Entry(
            part,
            "supervised-mse, SGD",
            "supervised-mse",
            20,
            {"optimizer": "sgd", "lr": 0.12, "weight_decay": 5e-4},
        ),
    ]


def simclr_before(part: str) -> list[Entry]:
    """What SimCLR reached with the recipe of before the screening, and near it."""
    name = screen.before()
    views = {"views": screen.VIEWS_BEFORE}
    published = {"views": "simclr"}
    slow = {**published, "lr": 0.24}
    settings: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
        ("", (20, 40, 200), views),
        (", projector 2048", (40,), {**views, "projector": [2048, 128]}),
        (", projector 2048, 2048", (40,), {**views, "projector": [2048, 2048, 128]}),
        (", weight decay 0.001", (40,), {**views, "weight_decay": 1e-3}),
        (", weight decay 0.0002", (40,), {**views, "weight_decay": 2e-4}),
        (", temperature 0.15", (40,), {**views, "objective": {"temperature": 0.15}}),
        (", temperature 0.25", (200,), {**views, "objective": {"temperature": 0.25}}),
        (", temperature 0.3", (200,), {**views, "objective": {"temperature": 0.3}}),
        (
            ", temperature 0.25, projector 2048",
            (200,),
            {**views, "objective": {"temperature": 0.25}, "projector": [2048, 128]},
        ),
        (", crops from 0.3", (40,), {"views": {"base": "simclr", "crop_scale": [0.3, 1.0]}}),
        (", views simclr", (20, 200), published),
        (", views simclr, lr 0.24", (20, 200), slow),
        (
            ", views simclr, lr 0.24, temperature 0.5",
            (20,),
            {**slow, "objective": {"temperature": 0.5}},
        ),
        *(
            (f", {_share(share)}", (20,), {**views, "labels": "source", "label_share": share})
            for share in SHARES
        ),
    ]
    return [
        *(
            Entry(part, f"{name}{setting}", name, epochs, options)
            for setting, all_epochs, options in settings
            for epochs in all_epochs
        ),
        *(Entry(part, name, name, 200, views, seed) for seed in SEEDS[1:]),
    ]


def spectrum() -> list[Entry]:
    """From the views alone to plain regression on the labels, as pal C.3."""
    found = []
    for seed in SEEDS:
        for epochs in EPOCHS:
            views = {**SMALL_HEAD, **_head()}
            found += [
                Entry("spectrum", "self-supervised", "vicreg", epochs, views, seed),
                *(
                    on_labels("spectrum", share, WEIGHT, _sampler(share), epochs, seed=seed)
                    for share in SHARES
                ),
                Entry(
                    "spectrum", "supervised MSE", "supervised-mse", epochs, dict(SMALL_HEAD), seed
                ),
            ]
    return found


def on_labels(
    part: str,
    share: float,
    weight: float,
    sampler: str,
    epochs: int,
    *,
    known_share: float = 0.5,
    seed: int = 0,
) -> Entry:
    """VICReg with a share of the labels in the graph."""
    labels = {
        "labels": "source",
        "label_share": share,
        "label_weight": weight,
        "sampler": sampler,
    }
    name = _share(share)
    if part == "weights":
        name = f"{name}, weight {weight:g}, {sampler}"
    if known_share != 0.5:
        labels["known_share"] = known_share
        name = f"{name}, known share {known_share:g}"
    return Entry(part, name, "vicreg", epochs, {**SMALL_HEAD, **_head(), **labels}, seed)


def _share(share: float) -> str:
    return f"{share:.0%} of the labels".replace("%", " %")


def _sampler(share: float) -> str:
    return "graph-aware" if share < 1 else "shuffled"


def _head() -> dict[str, Any]:
    # pal C.3: two layers with batch norm, K = 16 outputs, 4 K hidden units.
    return {
        "projector": [64, 16],
        "objective": {
            "invariance_weight": 25.0,
            "variance_weight": 25.0,
            "covariance_weight": 25.0,
        },
    }
