"""Every recipe on CIFAR-10 with a ResNet-18: kNN, linear probe, effective rank and seconds.

    python benchmarks/cifar10.py --data ../shared/data/cifar10 --part short --out build/cifar10
    python benchmarks/cifar10.py --data ../shared/data/cifar10 --part long --out build/cifar10
    python benchmarks/cifar10.py --data ../shared/data/cifar10 --part spectrum --out build/cifar10
    python benchmarks/cifar10.py --out build/cifar10 --page docs/benchmarks/cifar10.md

An entry that has its JSON file in --out is not run again, one that was stopped goes on from its
checkpoint, and --limit stops before a time limit: call it as often as it takes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import likewise
from likewise.data import Images, Source, load_images, open_source
from likewise.evaluation import knn_accuracy, linear_probe
from likewise.information import effective_rank
from likewise.runs import embed_images, write_atomically
from likewise.training import RECIPES

BATCH = 512
PARTS = ("short", "variants", "long", "spectrum")
LONG = ("simclr", "balanced", "vicreg", "matrix-ssl")


NOISE = (
    "the loss wants the cross-covariance of two views to be {target}, so that with rows of length "
    "1 and views that agree on r dimensions only a share {share} of their energy may lie there, "
    "and the rest has to lie where views differ (docs/theory.md, eq. 22 of matrix-ssl). After 20 "
    "epochs r is a few dozen at most."
)
WHY = {
    "matrix-ssl": NOISE.format(target="I / d with d = 512", share="r / 512"),
    "mec": NOISE.format(target="at most 0.06 I (where its series is greatest)", share="0.06 r"),
}
"""Why a recipe is weak at 20 epochs, where that is understood."""


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


def entries(part: str) -> list[Entry]:
    """The trainings of a part of the benchmark."""
    if part == "short":
        return [
            Entry(part, name, name, 20)
            for name, recipe in RECIPES.items()
            if not recipe.needs_labels
        ]
    if part == "long":
        return [Entry(part, name, name, 200) for name in LONG]
    if part == "variants":
        slow: dict[str, Any] = {"lr": 0.24}
        warm = {**slow, "objective": {"temperature": 0.5}}
        return [
            Entry(part, "simclr, temperature 0.5, learning rate 0.24", "simclr", 20, warm),
            Entry(part, "simclr, learning rate 0.24", "simclr", 20, slow),
            Entry(part, "simclr, learning rate 0.24", "simclr", 200, slow),
            Entry(part, "simclr, views simclr-mild", "simclr", 20, {"views": "simclr-mild"}),
            Entry(part, "simclr, views simclr-mild", "simclr", 200, {"views": "simclr-mild"}),
        ]
    graphs: dict[str, tuple[str, dict[str, Any]]] = {
        "self-supervised": ("vicreg", {}),
        "1 % of the labels": ("vicreg", {"labels": "source", "label_share": 0.01}),
        "10 % of the labels": ("vicreg", {"labels": "source", "label_share": 0.1}),
        "100 % of the labels": ("vicreg", {"labels": "source"}),
        "supervised MSE": ("supervised-mse", {}),
    }
    shared = {"optimizer": "sgd", "lr": 0.24, "weight_decay": 5e-4}
    found = []
    for epochs in (2, 10, 30):
        for name, (recipe, options) in graphs.items():
            # pal C.3: two layers with batch norm, K = 16 outputs, 4 K hidden units.
            head = {} if recipe == "supervised-mse" else {"projector": [64, 16]}
            found.append(Entry(part, name, recipe, epochs, {**shared, **head, **options}))
    return found


def decoded(source: Source) -> Images:
    """All images, decoded in as many processes as there are cores."""
    parts = np.array_split(np.arange(len(source)), os.cpu_count() or 1)
    with multiprocessing.get_context("fork").Pool(len(parts)) as pool:
        pixels = pool.map(_decode, [source.subset(part) for part in parts])
    return Images(
        torch.from_numpy(np.concatenate(pixels)), source.keys, source.labels, source.class_names
    )


def _decode(part: Source) -> np.ndarray:
    torch.set_num_threads(1)
    return load_images(part, 32, workers=1).pixels.numpy()


class Data:
    """Both halves of CIFAR-10, decoded once for all entries."""

    def __init__(self, folder: Path) -> None:
        started = time.monotonic()
        self.parts = {}
        for name in ("train", "test"):
            self.parts[name] = decoded(open_source(folder / f"{name}.parquet"))
        arrays = self.parts["train"]
        self.source = open_source(arrays.pixels.numpy(), labels=arrays.labels)
        print(f"decoded in {time.monotonic() - started:.1f} s", flush=True)


def features(run: likewise.Run, data: Data) -> dict[str, torch.Tensor]:
    """The encoder's rows of both halves."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder, preparation = run.encoder(device)
    encoder = encoder.to(memory_format=torch.channels_last)
    rows = {}
    for name, images in data.parts.items():
        rows[name] = embed_images(
            encoder,
            images.to(device),
            size=preparation.size,
            mean=preparation.mean,
            std=preparation.std,
            batch_size=2048,
        ).to(device)
    return rows


def keep_embeddings(rows: dict[str, torch.Tensor], data: Data, stem: Path) -> None:
    """Both halves on the first 128 principal components of the training images, in half precision,
    for benchmarks that only need the embedding (benchmarks/oracles.py)."""
    mean = rows["train"].mean(dim=0)
    centred = (rows["train"] - mean).double()
    axes = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, -128:].flip(1).float()
    for name, half in rows.items():
        reduced = ((half - mean) @ axes).half().cpu().numpy()
        path = stem.with_name(f"{stem.name}-{name}.npz")
        with write_atomically(path) as aside, aside.open("wb") as file:
            np.savez(file, embedding=reduced, label=np.asarray(data.parts[name].labels))


def scores(rows: dict[str, torch.Tensor], data: Data) -> dict[str, float]:
    """kNN with k = 200 and k = 1, linear probe and effective rank of the encoder's rows."""
    device = rows["train"].device
    labels = {
        name: torch.as_tensor(np.asarray(images.labels)).to(device)
        for name, images in data.parts.items()
    }
    bank, queries = rows["train"], rows["test"]
    centred = queries - queries.mean(dim=0)
    started = time.monotonic()
    probe = linear_probe(bank, labels["train"], queries, labels["test"])
    return {
        "knn200": knn_accuracy(bank, labels["train"], queries, labels["test"], k=200),
        "knn1": knn_accuracy(bank, labels["train"], queries, labels["test"], k=1),
        "linear": probe.accuracy,
        "probe_seconds": time.monotonic() - started,
        "effective_rank": float(effective_rank(centred.T @ centred / len(centred))),
        "dim": bank.shape[1],
    }


def measure(
    entry: Entry, data: Data, out: Path, *, embeddings: bool = False, side_by_side: bool = False
) -> dict[str, Any]:
    """Train (or go on), score, and give the figures."""
    folder = out / "runs" / entry.key
    started = time.monotonic()
    resumed = (folder / "checkpoints" / "last.ckpt").is_file()
    if resumed:
        run = likewise.train(data.source, resume=folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        options = dict(entry.options)
        epochs = entry.epochs
        views = RECIPES[entry.recipe].n_views
        if views > 2:
            # An epoch is 2 x 50,000 views, however many of them one image gives.
            epochs = max(1, round(entry.epochs * 2 / views))
            options.setdefault("batch_size", max(64, BATCH * 2 // views))
        options.setdefault("batch_size", BATCH)
        run = likewise.train(
            data.source,
            out=folder,
            recipe=entry.recipe,
            encoder="resnet18",
            epochs=epochs,
            monitor_every=0,
            checkpoint_minutes=1.0,
            logger=["csv"],
            **options,
        )
    trained = time.monotonic() - started
    rows = features(run, data)
    if embeddings:
        keep_embeddings(rows, data, out / entry.key)
    found = {
        **asdict(entry),
        **scores(rows, data),
        "seconds": run.summary["seconds"],
        "images_per_second": run.summary["images_per_second"],
        "wall_seconds": trained,
        "resumed": resumed,
        "side_by_side": side_by_side,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "torch": torch.__version__,
    }
    with write_atomically(out / f"{entry.key.replace(' ', '_').replace('%', 'percent')}.json") as f:
        f.write_text(json.dumps(found, indent=1) + "\n")
    return found


def page(out: Path, path: Path) -> None:
    """The Markdown page of all that is in `out`."""
    found = [json.loads(file.read_text()) for file in sorted(out.glob("*.json"))]
    if not found:
        raise SystemExit(f"{out} holds no results: run the parts first")
    machines = sorted({f"{entry['device']}, torch {entry['torch']}" for entry in found})
    lines = [
        "# CIFAR-10",
        "ResNet-18 with a 3x3 stem and no max-pool, batch 512, on the JPEG copy (quality 75) of "
        "CIFAR-10, on which accuracies are several points below those on the original images. "
        f"Measured on: {'; '.join(machines)}. An epoch is 2 x 50,000 views. Seconds are those of "
        "training, compilation included, where a training had the device for itself and was not "
        "interrupted (for speed see throughput.md). Linear: logistic regression on frozen "
        "features, its penalty chosen on a tenth of the training images; kNN: cosine, temperature "
        "0.1; effective rank: of the covariance of the test features, of 512.",
        "",
        "    python benchmarks/cifar10.py --data ../shared/data/cifar10 --out build/cifar10 "
        f"--part {'|'.join(PARTS)}",
        "    python benchmarks/cifar10.py --out build/cifar10 --page docs/benchmarks/cifar10.md",
        "",
    ]
    titles = {
        "short": "Every recipe, 20 epochs",
        "variants": "Other settings",
        "long": "200 epochs",
        "spectrum": "From self-supervised to supervised: the same training with another graph",
    }
    for part, title in titles.items():
        rows = [entry for entry in found if entry["part"] == part]
        if rows:
            lines += [f"## {title}", *_table(rows, part), ""]
    weak = [entry for entry in found if entry["part"] == "short" and entry["linear"] < 0.55]
    for entry in weak:
        why = WHY.get(entry["name"], "not explained yet.")
        lines += [f"{entry['name']} is below 55 % ({entry['linear']:.1%}): {why}", ""]
    lines += missing({entry["part"] + entry["name"] + str(entry["epochs"]) for entry in found})
    with write_atomically(path) as aside:
        aside.write_text("\n".join(lines).rstrip() + "\n")


def missing(there: set[str]) -> list[str]:
    """What of the benchmark has not been run yet, so that nobody takes the page for all of it."""
    names = [
        f"{entry.name} ({entry.epochs} epochs)"
        for part in PARTS
        for entry in entries(part)
        if entry.part + entry.name + str(entry.epochs) not in there
    ]
    return ["## Not measured yet", ", ".join(names) + "."] if names else []


def _table(rows: list[dict[str, Any]], part: str) -> list[str]:
    if part == "spectrum":
        order = [entry.name for entry in entries("spectrum") if entry.epochs == 2]
        epochs = sorted({row["epochs"] for row in rows})
        by = {(row["name"], row["epochs"]): row["linear"] for row in rows}
        lines = ["| graph | " + " | ".join(f"{e} epochs" for e in epochs) + " |"]
        lines.append("| --- |" + " ---: |" * len(epochs))
        for name in order:
            cells = [f"{by[name, e]:.1%}" if (name, e) in by else "" for e in epochs]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        return lines
    lines = [
        "| recipe | epochs | seconds | kNN-200 | kNN-1 | linear | effective rank |",
        "| --- |" + " ---: |" * 6,
    ]
    for row in sorted(rows, key=lambda row: -row["linear"]):
        lines.append(
            f"| {row['name']} | {row['epochs']} | {_seconds(row)} "
            f"| {row['knn200']:.1%} | {row['knn1']:.1%} | {row['linear']:.1%} "
            f"| {row['effective_rank']:.0f} |"
        )
    return lines


def _seconds(row: dict[str, Any]) -> str:
    return "" if row["resumed"] or row["side_by_side"] else f"{row['seconds']:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/cifar10"))
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--only", nargs="*", help="names of entries, such as simclr")
    parser.add_argument("--epochs", type=int, help="in place of the part's own, to try it out")
    parser.add_argument("--out", type=Path, default=Path("build/cifar10"))
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--embeddings", action="store_true", help="keep both halves' embeddings")
    parser.add_argument(
        "--side-by-side", action="store_true", help="the device is shared: seconds mean nothing"
    )
    given = parser.parse_args()
    started = time.monotonic()
    if given.part:
        data = Data(given.data)
        longest = 0.0
        for entry in entries(given.part):
            if given.epochs:
                entry = Entry(entry.part, entry.name, entry.recipe, given.epochs, entry.options)
            if given.only and entry.name not in given.only:
                continue
            name = f"{entry.key.replace(' ', '_').replace('%', 'percent')}.json"
            if (given.out / name).is_file():
                continue
            if time.monotonic() - started + longest > given.limit:
                print("stopped before the limit; call again to go on", flush=True)
                return
            begun = time.monotonic()
            found = measure(
                entry, data, given.out, embeddings=given.embeddings, side_by_side=given.side_by_side
            )
            longest = max(longest, time.monotonic() - begun)
            shown = ("knn200", "linear", "effective_rank", "seconds", "images_per_second")
            figures = {name: round(found[name], 3) for name in shown}
            wall = round(found["wall_seconds"], 1)
            print(entry.key, {**figures, "wall": wall}, flush=True)
    if given.page:
        page(given.out, given.page)


if __name__ == "__main__":
    main()
