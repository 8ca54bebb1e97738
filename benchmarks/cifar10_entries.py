"""The trainings of benchmarks/cifar10.py: which recipe, how long, on which graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from likewise.training import RECIPES

PARTS = ("short", "variants", "long", "spectrum", "weights")
LONG = ("simclr", "balanced", "vicreg", "matrix-ssl")
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

WEIGHTS = {0.01: 0.99, 0.1: 0.9, 1.0: 0.5}
"""The label weight for each share of the labels; `weights` holds others."""

OTHER_WEIGHTS = {
    # share, weight, sampler: epochs
    (0.01, 0.5, "shuffled"): (2,),
    (0.01, 0.99, "shuffled"): (2, 10),
    (0.01, 0.9, "graph-aware"): (2, 10),
    (0.01, 0.97, "graph-aware"): (2,),
    (0.01, 0.999, "graph-aware"): (2,),
    (0.1, 0.1, "shuffled"): (2,),
    (0.1, 0.5, "shuffled"): (2, 10),
    (0.1, 0.9, "shuffled"): (2, 10),
    (0.1, 0.99, "shuffled"): (2,),
    (0.1, 0.02, "graph-aware"): (2,),
    (0.1, 0.1, "graph-aware"): (2, 10),
    (0.1, 0.5, "graph-aware"): (2, 10),
    (0.1, 0.99, "graph-aware"): (2,),
    (1.0, 1.0, "shuffled"): (2,),
}


@dataclass(frozen=True)
class Entry:
    """One training: a recipe, how long, and what is known of the labels."""

    part: str
    name: str
    recipe: str
    epochs: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.part}-{self.name}-{self.epochs}"

    @property
    def file(self) -> str:
        return f"{self.key.replace(' ', '_').replace('%', 'percent')}.json"


def entries(part: str) -> list[Entry]:
    """The trainings of a part of the benchmark."""
    if part == "short":
        return [Entry(part, name, name, 20) for name in RECIPES if not RECIPES[name].needs_labels]
    if part == "long":
        return [Entry(part, name, name, 200) for name in LONG]
    if part == "variants":
        return variants()
    if part == "weights":
        return [
            on_labels(part, share, weight, sampler, epochs)
            for (share, weight, sampler), all_epochs in OTHER_WEIGHTS.items()
            for epochs in all_epochs
        ]
    return spectrum()


def variants() -> list[Entry]:
    """Settings beside those of the recipes."""
    published = {"views": "simclr"}
    slow = {**published, "lr": 0.24}
    warm = {**slow, "objective": {"temperature": 0.5}}
    adamw = {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 1e-4}
    sgd = {"optimizer": "sgd", "lr": 0.24, "weight_decay": 1e-5}
    part = "variants"
    return [
        Entry(part, "simclr, views simclr", "simclr", 20, published),
        Entry(part, "simclr, views simclr", "simclr", 200, published),
        Entry(part, "simclr, views simclr, lr 0.24", "simclr", 20, slow),
        Entry(part, "simclr, views simclr, lr 0.24", "simclr", 200, slow),
        Entry(part, "simclr, views simclr, lr 0.24, temperature 0.5", "simclr", 20, warm),
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
    ]


def spectrum() -> list[Entry]:
    """From the views alone to plain regression on the labels, as pal C.3."""
    found = []
    for epochs in EPOCHS:
        found += [
            Entry("spectrum", "self-supervised", "vicreg", epochs, {**SMALL_HEAD, **_head()}),
            *(
                on_labels(
                    "spectrum", share, weight, "graph-aware" if share < 1 else "shuffled", epochs
                )
                for share, weight in WEIGHTS.items()
            ),
            Entry("spectrum", "supervised MSE", "supervised-mse", epochs, dict(SMALL_HEAD)),
        ]
    return found


def on_labels(part: str, share: float, weight: float, sampler: str, epochs: int) -> Entry:
    """VICReg with a share of the labels in the graph."""
    labels = {
        "labels": "source",
        "label_share": share,
        "label_weight": weight,
        "sampler": sampler,
    }
    name = f"{share:.0%} of the labels".replace("%", " %")
    if part == "weights":
        name = f"{name}, weight {weight:g}, {sampler}"
    return Entry(part, name, "vicreg", epochs, {**SMALL_HEAD, **_head(), **labels})


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
