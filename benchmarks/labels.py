"""What some labels in the graph bring, and how much they should weigh: digits on a CPU.

    python benchmarks/labels.py --out docs/benchmarks/labels.md

SimCLR with the tiny encoder on the built-in cluttered digits, 36 epochs, one seed: with no labels,
with a share of them, and with all, at the default weight and sampler and at others. Printed is the
accuracy of a linear probe and of nearest neighbours on digits that were not trained on; both are
fitted to the labels of all training images, so that only the encoders differ. A training runs on
one thread, and --jobs of them side by side; one that has its JSON file in --results is not run
again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import likewise
from likewise.data import load_images, open_source
from likewise.evaluation import knn_accuracy, linear_probe
from likewise.runs import embed_images, write_atomically

SETTINGS = {
    # share of the labels, sampler: weights; None is the default, by which what is known weighs as
    # much as the views
    (0.0, ""): (None,),
    (0.05, "graph-aware"): (None, 0.1, 0.5, 0.7),
    (0.15, "graph-aware"): (None,),
    (0.3, "graph-aware"): (None, 0.1, 0.5),
    (0.3, "shuffled"): (None,),
    (0.6, "graph-aware"): (None,),
    (0.6, "shuffled"): (None,),
    (1.0, "shuffled"): (None, 0.01, 0.1, 0.5),
}


def measure(
    share: float, weight: float | None, sampler: str, epochs: int, seed: int
) -> dict[str, Any]:
    """Train on a share of the labels (0: none), and score the encoder."""
    torch.set_num_threads(1)
    given: dict[str, Any] = {}
    if share:
        given = {"labels": "source", "label_share": share, "label_weight": weight}
        given["sampler"] = sampler
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        run = likewise.train(
            "digits",
            out=Path(folder) / "run",
            recipe="simclr",
            encoder="tiny",
            epochs=epochs,
            seed=seed,
            device="cpu",
            monitor_every=0,
            diagnose_every=0,
            logger=["csv"],
            **given,
        )
        encoder, preparation = run.encoder("cpu")
        used = run.config["label_weight"]
    rows, labels = [], []
    for name in ("digits", "digits:test"):
        images = load_images(open_source(name), preparation.size)
        rows.append(
            embed_images(
                encoder,
                images,
                size=preparation.size,
                mean=preparation.mean,
                std=preparation.std,
                batch_size=500,
            )
        )
        labels.append(torch.as_tensor(np.asarray(images.labels)))
    return {
        "share": share,
        "weight": used,
        "usual": weight is None,
        "sampler": sampler,
        "linear": linear_probe(rows[0], labels[0], rows[1], labels[1]).accuracy,
        "neighbors": knn_accuracy(rows[0], labels[0], rows[1], labels[1], k=20),
    }


def kept(folder: Path, share: float, weight: float | None, sampler: str, seed: int) -> Path:
    """The file of one training's figures."""
    weighs = "default" if weight is None else f"{weight:g}"
    return folder / f"{share:g}-{sampler or 'views'}-{weighs}-{seed}.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=36)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("build/labels"))
    parser.add_argument("--out", type=Path, help="the page")
    given = parser.parse_args()
    settings = [(*key, weight) for key, weights in SETTINGS.items() for weight in weights]
    files = {
        (share, weight, sampler): kept(given.results, share, weight, sampler, given.seed)
        for share, sampler, weight in settings
    }
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        futures = {
            pool.submit(measure, *one, given.epochs, given.seed): file
            for one, file in files.items()
            if not file.is_file()
        }
        for future in as_completed(futures):
            with write_atomically(futures[future]) as aside:
                aside.write_text(json.dumps(future.result(), indent=1) + "\n")
    lines = [
        "# Labels in the graph",
        " ".join(__doc__.split("\n\n")[2].split()),
        "",
        "    python benchmarks/labels.py --out docs/benchmarks/labels.md",
        "",
        f"{given.epochs} epochs, seed {given.seed}, torch {torch.__version__}. By default the "
        "sampler is graph-aware for the shares that have such a row, and shuffled for all labels.",
        "",
        "| labels | sampler | weight | linear | kNN-20 |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for file in files.values():
        one = json.loads(file.read_text())
        usual = " (default)" if one["usual"] and one["share"] else ""
        weight = "" if one["weight"] is None else f"{one['weight']:g}{usual}"
        share = f"{one['share']:.0%}" if one["share"] else "none"
        lines.append(
            f"| {share} | {one['sampler']} | {weight} "
            f"| {one['linear']:.1%} | {one['neighbors']:.1%} |"
        )
    print("\n".join(lines[-len(files) - 2 :]))
    if given.out is not None:
        with write_atomically(given.out) as aside:
            aside.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
