"""What the verdict says of small trained runs whose state is known by how they were made.

    python benchmarks/verdict.py --folder build/verdict

Trains a tiny encoder on cluttered digits under settings that are meant to be healthy, collapsed,
too weak or too strong in their augmentation, and prints the figures of the last look and the
verdict on them. A run that is in the folder already is not trained again.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import likewise
from likewise.data.views import POLICIES, Policy
from likewise.diagnostics import verdict
from likewise.training import RECIPES
from likewise.training.records import evidence_of, read_records

# SimSiam without the stopped gradient and without the predictor: nothing holds the rows apart.
RECIPES["simsiam-unstopped"] = replace(RECIPES["simsiam"], teacher="none", predictor=None)
# A crop of 1 to 5 % of the picture does not show which digit it is.
POLICIES["slivers"] = POLICIES["digits"].with_(crop_scale=(0.01, 0.05), brightness=0.8, hue=0.5)
POLICIES["hardly"] = Policy(brightness=0.05, jitter=1.0)

DEMO: dict[str, Any] = {"optimizer": "adamw", "lr": 0.01, "weight_decay": 1e-4, "batch_size": 128}
SIMCLR: dict[str, Any] = {
    "recipe": "simclr", "objective": {"temperature": 0.2}, "projector": [64],
}  # fmt: skip
WIDE: dict[str, Any] = {"projector": [256, 256], "lr": 0.002}
SMALL: dict[str, Any] = {"data": "digits:test", "epochs": 20}
CASES: dict[str, dict[str, Any]] = {
    "healthy: SimCLR": {**SIMCLR, "epochs": 50},
    "healthy: SimCLR, wide projector": {**SIMCLR, "projector": [256, 128], "epochs": 30},
    "healthy: VICReg": {**WIDE, "recipe": "vicreg", "epochs": 30},
    "collapse: SimSiam without stop-gradient": {**WIDE, **SMALL, "recipe": "simsiam-unstopped"},
    "too weak: hardly any augmentation": {**SIMCLR, **SMALL, "views": "hardly"},
    "too strong: slivers": {**SIMCLR, **SMALL, "views": "slivers"},
    "begun: SimCLR, 1 epoch": {**SIMCLR, **SMALL, "epochs": 1},
    "collapse: no spread term": {
        **WIDE, **SMALL, "recipe": "vicreg",
        "objective": {"variance_weight": 0.0, "covariance_weight": 0.0},
    },
    "collapse: no covariance term": {
        **WIDE, **SMALL, "recipe": "vicreg", "objective": {"covariance_weight": 0.0},
    },
    "begun: SimSiam, 200 steps": {**WIDE, **SMALL, "recipe": "simsiam", "epochs": 40},
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/verdict"))
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    lines = ["| run | kNN | spread | rank | of | noise | confusion | verdict |"]
    lines.append("| --- |" + " ---: |" * 6 + " --- |")
    for name, settings in CASES.items():
        if given.only not in name:
            continue
        folder = given.folder / name.replace(" ", "-").replace(":", "").replace(",", "")
        if not (folder / "summary.json").is_file():
            likewise.train(
                out=folder, encoder="tiny", device="cpu", logger=["csv"],
                monitor_every=settings["epochs"], **{"data": "digits", **DEMO, **settings},
            )  # fmt: skip
        seen = evidence_of(read_records(folder)[-1])
        knn = likewise.Run.open(folder).summary["knn"]
        cells = (
            name,
            f"{knn:.2f}",
            f"{seen.spread:.2f}",
            f"{seen.effective_rank:.1f} / {seen.encoder_rank:.1f}",
            f"{seen.dim} / {seen.encoder_dim}",
            f"{seen.noise:.2f} / {seen.encoder_noise:.2f}",
            f"{seen.confusion:.2f}",
            ", ".join(verdict(seen).names),
        )
        lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
