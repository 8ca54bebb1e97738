"""What the verbs of `docs/use.md` find on Fashion-MNIST, and how long a search of a million takes.

    python benchmarks/use.py --run build/fashion/run --part fashion
    python benchmarks/use.py --part million --place build/use
    python benchmarks/use.py --part page          # docs/benchmarks/use.md from the two above

Each part writes its figures into docs/benchmarks/use.json; the page is made of these.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import shutil
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import numpy as np
import torch
from PIL import Image

from likewise.data import open_source
from likewise.data.arrays import ArraySource
from likewise.library import (
    Index,
    calibration_error,
    classify_rows,
    duplicates_of_pictures,
    duplicates_of_rows,
    embedder_by_name,
    embedder_of_run,
    find_clusters,
    search_rows,
    storage,
)
from likewise.library.contents import glances
from likewise.library.duplicates import grey_pictures
from likewise.runs import Run, write_atomically

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "use.json"
PAGE = FIGURES.with_suffix(".md")
SEEDS = range(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=("fashion", "million", "page"), default="page")
    parser.add_argument("--run", type=Path, default=Path("build/fashion/run"))
    parser.add_argument("--place", type=Path, default=Path("build/use"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    if given.part == "fashion":
        fashion(given.run, given.only)
    elif given.part == "million":
        million(given.place, given.rows)
    write_page()


def keep(name: str, figures: dict[str, Any]) -> None:
    found = json.loads(FIGURES.read_text()) if FIGURES.is_file() else {}
    stamp = {"machine": machine(), "load": round(os.getloadavg()[0], 1)}
    found[name] = {**figures, **stamp}
    with write_atomically(FIGURES) as aside:
        aside.write_text(json.dumps(found, indent=1) + "\n")
    print(name, json.dumps(figures, indent=1))


def machine() -> str:
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {platform.machine()}, PyTorch {torch.__version__}"


# --- Fashion-MNIST -----------------------------------------------------------------------------


def fashion(run: Path, only: list[str]) -> None:
    source = open_source("fashion-mnist:test")
    embedder = embedder_of_run(run, device="cpu")
    z = embedder.rows_of(source)[1]
    y = np.asarray(source.labels)
    pixels = np.stack([source.read(i).numpy()[0] for i in range(len(source))])
    flat = pixels.reshape(len(pixels), -1).astype(np.float32) / 255
    unit = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    steps = {
        "run": lambda: about(run, len(source)),
        "search": lambda: precision(z, unit, y),
        "cluster": lambda: clusters(z, flat, unit, y),
        "classify": lambda: classify(z, y),
        "answers": lambda: answers(z, y),
        "duplicates": lambda: duplicates(pixels, embedder),
    }
    for name, step in steps.items():
        if not only or name in only:
            keep(name, step())


def about(run: Path, images: int) -> dict[str, Any]:
    config, summary = Run.open(run).config, Run.open(run).summary
    names = ("data", "recipe", "encoder", "epochs", "batch_size", "image_size", "views", "seed")
    return {
        "images": images,
        "config": {name: config[name] for name in names},
        "labels": config["labels"],
        "knn": summary.get("knn"),
    }


def precision(z: np.ndarray, unit: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    found = {}
    for name, rows in (("embeddings", z), ("pixels", unit)):
        places = search_rows([rows], rows, 11)[1]
        others = [row[row != i][:10] for i, row in enumerate(places)]
        found[name] = round(
            float(np.mean([np.mean(y[o] == y[i]) for i, o in enumerate(others)])), 4
        )
    return found


def clusters(z: np.ndarray, flat: np.ndarray, unit: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    from sklearn.cluster import HDBSCAN, KMeans
    from sklearn.metrics import adjusted_rand_score

    found: dict[str, Any] = {}

    def score(name: str, labels: np.ndarray, seconds: float, **more: Any) -> None:
        found[name] = {
            "ari": round(float(adjusted_rand_score(y, labels)), 4),
            "clusters": len(set(labels.tolist()) - {-1}),
            "noise": round(float((labels == -1).mean()), 4),
            "seconds": round(seconds, 1),
            **more,
        }
        print(name, found[name], flush=True)

    for where, own, theirs in (("embeddings", z, z), ("pixels", unit, flat)):
        for k in (None, 10):
            begun = time.perf_counter()
            labels = find_clusters(own, k).cluster
            words = "k found" if k is None else "k = 10"
            score(f"likewise cluster, {words}, {where}", labels, time.perf_counter() - begun)
        begun = time.perf_counter()
        labels = KMeans(10, n_init=10, random_state=0).fit_predict(theirs)
        score(f"scikit-learn KMeans, k = 10, {where}", labels, time.perf_counter() - begun)
        for size in (15, 50):
            begun = time.perf_counter()
            labels = HDBSCAN(min_cluster_size=size, copy=True).fit_predict(theirs)
            score(f"scikit-learn HDBSCAN, min {size}, {where}", labels, time.perf_counter() - begun)
    return found


def outcome(found: Any, y: np.ndarray, truth_of: np.ndarray) -> dict[str, float]:
    rest = ~found.known
    right = (truth_of[found.label] == y)[rest]
    kept = right[found.confidence[rest] >= 0.8]
    return {
        "accuracy": float(right.mean()),
        "calibration_error": calibration_error(found.confidence[rest], right),
        "expected": found.accuracy.value,
        "inside": float(found.accuracy.low <= right.mean() <= found.accuracy.high),
        "kept_at_0.8": float(len(kept) / len(right)),
        "accuracy_at_0.8": float(kept.mean()) if len(kept) else float("nan"),
    }


def classify(z: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """300 labels at random, and 100 more: those that classify proposes, or at random."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    names = [str(c) for c in range(10)]
    rows: list[dict[str, float]] = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        known = np.full(len(y), -1)
        known[order[:300]] = y[order[:300]]
        found = classify_rows(z, known, names, ask=100, seed=seed)
        row = outcome(found, y, np.arange(10))
        usual = make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))
        usual.fit(z[known >= 0], known[known >= 0])
        rest = known < 0
        guess = usual.predict_proba(z[rest])
        right = usual.classes_[guess.argmax(axis=1)] == y[rest]
        row["logistic_accuracy"] = float(right.mean())
        row["logistic_calibration_error"] = calibration_error(guess.max(axis=1), right)
        for name, more in (("proposed", np.array(found.next)), ("random", order[300:400])):
            again = known.copy()
            again[more] = y[more]
            later = classify_rows(z, again, names, ask=0, seed=seed)
            row[f"accuracy_100_{name}"] = outcome(later, y, np.arange(10))["accuracy"]
        print(row, flush=True)
        rows.append(row)
    return spread(rows)


def answers(z: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """300 yes/no answers to the questions that the default sampler asks, in grids of 15."""
    from likewise.oracles import PAL, TruthLabeler

    rows = []
    for seed in SEEDS:
        loop = PAL(z, "default", TruthLabeler(y), grid=15, seed=seed)
        questions = 0
        while loop.beliefs.n_answers < 300:
            loop.run(1)
            questions += 1
        labels = loop.beliefs.labels()
        truth_of = np.array(
            [y[np.flatnonzero(labels == c)[0]] for c in range(loop.beliefs.n_classes)]
        )
        names = [f"class {c + 1}" for c in range(len(truth_of))]
        found = classify_rows(z, labels, names, ask=0, seed=seed)
        row = outcome(found, y, truth_of)
        row |= {
            "questions": float(questions),
            "answers": float(loop.beliefs.n_answers),
            "placed": float((labels >= 0).sum()),
            "classes": float(len(set(truth_of.tolist()))),
        }
        print(row, flush=True)
        rows.append(row)
    return spread(rows)


def spread(rows: list[dict[str, float]]) -> dict[str, Any]:
    return {
        name: {
            "mean": round(float(np.mean([row[name] for row in rows])), 4),
            "deviation": round(float(np.std([row[name] for row in rows])), 4),
        }
        for name in rows[0]
    } | {"seeds": len(rows)}


def planted(images: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copies of n images: crops to 85-95 %, JPEG of quality 30-80, rotations by 2-8 degrees."""
    rng = np.random.default_rng(seed)
    which = rng.permutation(len(images))[:n]
    copies, kinds = [], []
    side = images.shape[1]
    for number, place in enumerate(which):
        image = Image.fromarray(images[place])
        kind = ("crop", "re-encoding", "rotation")[number % 3]
        if kind == "crop":
            inner = side * rng.uniform(0.85, 0.95)
            x, y = rng.uniform(0, side - inner, 2)
            box = (x, y, x + inner, y + inner)
            image = image.resize((side, side), Image.Resampling.BICUBIC, box=box)
        elif kind == "re-encoding":
            file = io.BytesIO()
            image.save(file, "JPEG", quality=int(rng.integers(30, 80)))
            image = Image.open(file)
        else:
            angle = rng.choice([-1, 1]) * rng.uniform(2, 8)
            image = image.rotate(angle, Image.Resampling.BICUBIC)
        copies.append(np.array(image))
        kinds.append(kind)
    return np.stack(copies), which, np.array(kinds)


def duplicates(pixels: np.ndarray, embedder: Any) -> dict[str, Any]:
    copies, which, kinds = planted(pixels, 600, seed=0)
    every = np.concatenate([pixels, copies])
    rows = embedder.rows_of(ArraySource(every))[1]
    n = len(pixels)
    wanted = {(int(place), n + number): number for number, place in enumerate(which)}
    result = {}
    pictures = grey_pictures(torch.from_numpy(every)[:, None].expand(-1, 3, -1, -1))
    for name, how in (
        ("pixels and rows", lambda: duplicates_of_pictures(pictures, rows)),
        ("rows only", lambda: duplicates_of_rows(rows)),
    ):
        begun = time.perf_counter()
        found = how()
        seconds = time.perf_counter() - begun
        pairs = {tuple(pair) for pair in found.pairs.tolist()}
        hits = {wanted[pair] for pair in pairs & wanted.keys()}
        natural = sum(b < n for _, b in pairs)
        result[name] = {
            "planted": len(wanted),
            "recall": round(len(hits) / len(wanted), 4),
            "precision": round(len(hits) / max(len(pairs), 1), 4),
            "pairs": len(pairs),
            "pairs_among_originals": natural,
            "seconds": round(seconds, 1),
            **{
                f"recall_{kind}": round(float(np.mean([i in hits for i in places])), 4)
                for kind in np.unique(kinds).tolist()
                for places in [np.flatnonzero(kinds == kind)]
            },
        }
        print(name, result[name], flush=True)
    return result


# --- a million rows ----------------------------------------------------------------------------


def million(place: Path, n: int) -> None:
    torch.set_num_threads(2)
    shutil.rmtree(place, ignore_errors=True)
    embedder = embedder_by_name("resnet18", image_size=32, device="cpu")
    dim = embedder.encoder.dim
    photos = place / "photos"
    begun = time.perf_counter()
    for number in range(n):
        if number % 1000 == 0:
            folder = photos / f"{number // 1000:04}"
            folder.mkdir(parents=True)
        # Empty: whoever read one of them would find it broken.
        os.close(os.open(folder / f"{number:07}.png", os.O_CREAT))
    print("files", round(time.perf_counter() - begun, 1), flush=True)
    time.sleep(3)
    source = open_source(str(photos), label_column=None)
    index = Index(place / "index", embedder)
    index.path.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for _ in range(4):
        rows = rng.standard_normal((n // 4, dim), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        index.about.rows.append(storage.add_rows(index.path, rows))
    digest = rng.integers(0, 2**63, (n, 2)).astype(np.uint64)
    seen = glances(source)
    assert seen is not None
    items = storage.Items(source.keys, np.arange(n), seen, digest)
    storage.write_items(index.path, index.about, items)
    index = Index(place / "index", embedder)
    keep("search a million", timed_search(index, dim))
    keep("add a thousand", added(place, index, photos))
    shutil.rmtree(place)


def timed_search(index: Index, dim: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    queries = rng.standard_normal((21, dim), dtype=np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    times, cores = [], []
    for query in queries:
        begun, used = time.perf_counter(), time.process_time()
        near, places = index.search(query[None], 20)
        times.append(time.perf_counter() - begun)
        cores.append(time.process_time() - used)
    # Against every similarity in float64, of the last query.
    rows = index.rows()
    truth = np.concatenate(
        [rows[i : i + 50_000].astype(np.float64) @ queries[-1] for i in range(0, len(rows), 50_000)]
    )
    best = np.argsort(-truth)[:20]
    return {
        "rows": len(index),
        "dim": dim,
        "first_seconds": round(times[0], 3),
        "median_seconds": round(float(np.median(times[1:])), 3),
        "fastest_seconds": round(min(times[1:]), 3),
        "core_seconds": round(float(np.median(cores[1:])), 3),
        "exact": bool(np.array_equal(best, places[0])),
    }


def added(place: Path, index: Index, photos: Path) -> dict[str, Any]:
    folder = photos / "new"
    folder.mkdir()
    rng = np.random.default_rng(2)
    for number in range(1000):
        image = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(image).save(folder / f"{number}.png")
    begun = time.perf_counter()
    alone = Index(place / "alone", index.embedder).update(open_source(str(folder)))
    of_alone = time.perf_counter() - begun
    before = {path.name: path.stat().st_mtime_ns for path in index.path.glob("rows-*.npy")}
    begun = time.perf_counter()
    source = open_source(str(photos))
    listed = time.perf_counter() - begun
    again = Index(index.path, index.embedder)
    opened = time.perf_counter() - begun - listed
    changes = again.update(source)
    after = {path.name: path.stat().st_mtime_ns for path in index.path.glob("rows-*.npy")}
    new = [path for path in index.path.glob("rows-*.npy") if path.name not in before]
    return {
        "images": len(source),
        "embedded": changes.embedded,
        "unchanged": changes.unchanged,
        "old_rows_untouched": all(after[name] == when for name, when in before.items()),
        "bytes_of_new_rows": sum(path.stat().st_size for path in new),
        "seconds_to_list_the_folder": round(listed, 1),
        "seconds_to_open_the_index": round(opened, 1),
        "seconds_of_the_update": round(changes.seconds, 1),
        "seconds_of_a_thousand_alone": round(of_alone, 1),
        "embedded_alone": alone.embedded,
    }


# --- the page ----------------------------------------------------------------------------------


def write_page() -> None:
    found = json.loads(FIGURES.read_text()) if FIGURES.is_file() else {}
    lines = ["# Search, cluster, classify, duplicates: figures", ""]
    if "run" in found:
        lines += _fashion_lines(found)
    if "search a million" in found:
        lines += _million_lines(found)
    with write_atomically(PAGE) as aside:
        aside.write_text("\n".join(lines) + "\n")


def _fashion_lines(found: dict[str, Any]) -> list[str]:
    run = found["run"]
    config = run["config"]
    size = config["image_size"]
    lines = [
        f"On the {run['images']:,} test images of Fashion-MNIST (Debian's package "
        "`dataset-fashion-mnist`), "
        f"with an encoder that `likewise train` made of `{config['data']}` "
        f"{'without labels' if run['labels'] is None else 'with labels'}: recipe "
        f"`{config['recipe']}`, encoder `{config['encoder']}`, {config['epochs']} epochs, batch "
        f"{config['batch_size']}, {size} x {size} pixels, views `{config['views']}`, seed "
        f"{config['seed']}. Labels serve to score, and to answer where it says so.",
        "",
        "```",
        "python benchmarks/use.py --run build/fashion/run --part fashion",
        "```",
        f"{run['machine']}; the machine had other work to do (load {run['load']:g} and more), so "
        "seconds are upper bounds.",
        "",
    ]
    if "search" in found:
        lines += [
            "## Search: precision at 10",
            "The share of the ten nearest images that have the class of the query, over all images "
            "as queries.",
            "",
            "| rows | precision at 10 |",
            "| --- | ---: |",
            *(f"| {name} | {found['search'][name]:.3f} |" for name in ("embeddings", "pixels")),
            "",
        ]
    if "cluster" in found:
        lines += [
            "## Cluster: adjusted Rand index",
            "Against the ten classes. What HDBSCAN takes for noise counts as one more cluster.",
            "",
            "| method | ARI | clusters | noise | seconds |",
            "| --- | ---: | ---: | ---: | ---: |",
            *(
                f"| {name} | {row['ari']:.3f} | {row['clusters']} | {row['noise']:.1%} | "
                f"{row['seconds']:.1f} |"
                for name, row in found["cluster"].items()
                if isinstance(row, dict)
            ),
            "",
        ]
    if "classify" in found:
        lines += _classify_lines(found)
    if "duplicates" in found:
        lines += [
            "## Duplicates: planted copies",
            "600 copies are added: crops to 85 to 95 % of the side, JPEG of quality 30 to 80, "
            "rotations by 2 to 8 degrees, 200 of each. Precision counts every other pair as wrong, "
            "also those among the originals, of which some are near-duplicates in truth.",
            "",
            "| compared by | recall | crops | re-encodings | rotations | precision | pairs among "
            "originals | seconds |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(
                f"| {name} | {row['recall']:.3f} | {row['recall_crop']:.3f} | "
                f"{row['recall_re-encoding']:.3f} | {row['recall_rotation']:.3f} | "
                f"{row['precision']:.3f} | {row['pairs_among_originals']} | {row['seconds']:.0f} |"
                for name, row in found["duplicates"].items()
                if isinstance(row, dict)
            ),
            "",
        ]
    return lines


def _classify_lines(found: dict[str, Any]) -> list[str]:
    labels = found["classify"]

    def cell(row: dict[str, Any], name: str) -> str:
        return f"{row[name]['mean']:.3f} ± {row[name]['deviation']:.3f}" if name in row else ""

    columns = ("accuracy", "calibration_error", "expected", "accuracy_at_0.8", "kept_at_0.8")
    lines = [
        "## Classify: 300 simulated answers",
        f"Mean and deviation over {labels['seeds']} seeds, on the images without an answer. The "
        'calibration error is over 15 bins. "Inside" is how often the accuracy lay in the 95 % '
        "interval that was given for it.",
        "",
        "| what was answered | accuracy | calibration error | accuracy that was expected | "
        "accuracy at confidence 0.8 | share of that | inside |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = [("the class of 300 random images", labels)]
    if "answers" in found:
        own = found["answers"]
        words = (
            f"{own['answers']['mean']:.0f} times yes or no, to {own['questions']['mean']:.0f} "
            f"grids that the default sampler asked; {own['placed']['mean']:.0f} images placed, "
            f"{own['classes']['mean']:.1f} classes found"
        )
        rows.append((words, own))
    for words, row in rows:
        cells = " | ".join(cell(row, name) for name in columns)
        share = f"{round(row['inside']['mean'] * row['seeds'])} of {row['seeds']}"
        lines.append(f"| {words} | {cells} | {share} |")
    logistic = cell(labels, "logistic_accuracy"), cell(labels, "logistic_calibration_error")
    lines += [
        "",
        "scikit-learn's LogisticRegression (columns standardised, C = 1) on the same 300 random "
        "labels: accuracy "
        f"{logistic[0]}, calibration error {logistic[1]}. With 100 more labels: accuracy "
        f'{cell(labels, "accuracy_100_proposed")} where `classify` chose them ("ask next"), '
        f"{cell(labels, 'accuracy_100_random')} where they were drawn.",
        "",
    ]
    return lines


def _million_lines(found: dict[str, Any]) -> list[str]:
    row = found["search a million"]
    lines = [
        "## A million rows",
        "```",
        "python benchmarks/use.py --part million",
        "```",
        f"Search among {row['rows']:,} x {row['dim']} random rows in an index of four files, exact "
        "(the 20 nearest are those of float64 over all rows: "
        f"{'yes' if row['exact'] else 'NO'}): {row['median_seconds']:.2f} s a query (median of 20; "
        f"fastest {row['fastest_seconds']:.2f} s; the first, which reads the disk, "
        f"{row['first_seconds']:.1f} s), {row['core_seconds']:.2f} s of processor time. "
        f"{row['machine']}, load {row['load']:g} by others while it ran.",
    ]
    if "add a thousand" in found:
        more = found["add a thousand"]
        lines += [
            "",
            f"A folder of {more['images'] - 1000:,} files with their index gets 1,000 more: "
            f"{more['embedded']:,} images are embedded, {more['unchanged']:,} are not read (they "
            "are empty files: reading one would find it broken), the old rows "
            f"{'stay untouched' if more['old_rows_untouched'] else 'ARE REWRITTEN'}, "
            f"{more['bytes_of_new_rows'] / 1e6:.1f} MB of rows are written. The update takes "
            f"{more['seconds_of_the_update']:.1f} s, where the 1,000 alone in an index of their "
            f"own take {more['seconds_of_a_thousand_alone']:.1f} s; the difference is comparing "
            "the size and time of a million files and writing their list. Listing the folder takes "
            f"{more['seconds_to_list_the_folder']:.1f} s, opening the index "
            f"{more['seconds_to_open_the_index']:.1f} s (load {more['load']:g}).",
        ]
    return lines


if __name__ == "__main__":
    main()
