"""Every recipe on CIFAR-10 with a ResNet-18: kNN, linear probe, effective rank and seconds.

    python benchmarks/cifar10.py --data ../shared/data/cifar10 --part short --out build/cifar10
    python benchmarks/cifar10.py --data ../shared/data/cifar10 --part long --out build/cifar10
    python benchmarks/cifar10.py --data ../shared/data/cifar10 --part spectrum --out build/cifar10
    python benchmarks/cifar10.py ... --part variants | labels | weights | screen
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
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cifar10_entries import PARTS, Entry, entries
from cifar10_page import write_page

import likewise
from likewise.data import Images, Source, load_images, open_source
from likewise.evaluation import knn_accuracy, linear_probe
from likewise.information import effective_rank
from likewise.runs import embed_images, write_atomically
from likewise.training import RECIPES

BATCH = 512


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


def held_out_accuracy(rows: torch.Tensor, labels: torch.Tensor, penalty: float) -> float:
    """The probe's accuracy on training images, of which it is fitted to four fifths at a time.

    Settings are compared by it: test images choose nothing then, and five times as many images
    tell settings apart that the test images do not.
    """
    fold = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0)) % 5
    right = 0.0
    for part in range(5):
        out = (fold == part).to(rows.device)
        probe = linear_probe(rows[~out], labels[~out], rows[out], labels[out], penalty=penalty)
        right += probe.accuracy * int(out.sum())
    return right / len(rows)


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
        "held_out": held_out_accuracy(bank, labels["train"], probe.settings["penalty"]),
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
        views = options.get("n_views", RECIPES[entry.recipe].n_views)
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
            seed=entry.seed,
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
    with write_atomically(out / entry.file) as aside:
        aside.write_text(json.dumps(found, indent=1) + "\n")
    return found


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
                entry = replace(entry, epochs=given.epochs)
            if given.only and entry.name not in given.only:
                continue
            if (given.out / entry.file).is_file():
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
        write_page(given.out, given.page)


if __name__ == "__main__":
    main()
