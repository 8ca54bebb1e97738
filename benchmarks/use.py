"""What the verbs of `docs/use.md` find on Fashion-MNIST, and how long a search of a million takes.

    python benchmarks/use.py --run build/fashion/run --part fashion [--only cluster answers]
    python benchmarks/use.py --part million --place build/use
    python benchmarks/use.py --part page          # docs/benchmarks/use.md from the two above

Every figure is written into docs/benchmarks/use.json as soon as it is known, with a digest of the
encoder; a call that was ended goes on where it was, and figures of another encoder are made again
(`--again`: all). The page is made of that file.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import platform
import shutil
import time
from collections.abc import Callable
from functools import partial
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
from likewise.library.candidates import candidates_of
from likewise.library.contents import glances
from likewise.library.duplicates import DETAIL, STRICT, are_twins, grey_pictures
from likewise.library.residuals import residuals_of
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
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    if given.part == "fashion":
        fashion(given.run, given.only, given.again)
    elif given.part == "million":
        million(given.place, given.rows)
    write_page()


def figures() -> dict[str, Any]:
    return dict(json.loads(FIGURES.read_text())) if FIGURES.is_file() else {}


def keep(name: str, entry: dict[str, Any]) -> None:
    with write_atomically(FIGURES) as aside:
        aside.write_text(json.dumps(figures() | {name: entry}, indent=1) + "\n")


def stamp() -> dict[str, Any]:
    return {"machine": machine(), "load": round(os.getloadavg()[0], 1)}


def measure(name: str, encoder: str, parts: dict[str, Callable[[], dict[str, Any]]]) -> None:
    """Each part that is not known yet of this encoder, kept as soon as it is."""
    entry = figures().get(name, {})
    if entry.get("encoder") != encoder:
        entry = {"encoder": encoder, "parts": {}}
    for part, how in parts.items():
        if part not in entry["parts"]:
            begun = time.perf_counter()
            found = how()
            took = {"took": round(time.perf_counter() - begun, 1)}
            entry["parts"][part] = found | took | stamp()
            keep(name, entry)
            print(name, part, entry["parts"][part], flush=True)


def machine() -> str:
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {platform.machine()}, PyTorch {torch.__version__}"


# --- Fashion-MNIST -----------------------------------------------------------------------------


def fashion(run: Path, only: list[str], again: bool) -> None:
    source = open_source("fashion-mnist:test")
    embedder = embedder_of_run(run, device="cpu")
    z = embedder.rows_of(source)[1]
    y = np.asarray(source.labels)
    pixels = pixels_of(source)
    flat = pixels.reshape(len(pixels), -1).astype(np.float32) / 255
    unit = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    weights = (run / "encoder.safetensors").read_bytes()
    encoder = hashlib.sha256(weights).hexdigest()[:16]
    steps: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
        "run": {"about": lambda: about(run, len(source))},
        "search": {
            "embeddings": lambda: precision(z, y),
            "pixels": lambda: precision(unit, y),
        },
        "duplicates": {
            "thresholds": lambda: thresholds(embedder),
            "pixels and rows": lambda: duplicates(pixels, embedder, by_pixels=True),
            "rows only": lambda: duplicates(pixels, embedder, by_pixels=False),
        },
        "classify": {f"seed {seed}": partial(classify, z, y, seed) for seed in SEEDS},
        "answers": {f"seed {seed}": partial(answers, z, y, seed, "whitened") for seed in SEEDS},
        "plain answers": {
            f"seed {seed}": partial(answers, z, y, seed, "euclidean") for seed in SEEDS
        },
        "cluster": clusters(z, flat, unit, y),
    }
    if unknown := set(only) - steps.keys():
        raise SystemExit(f"only is {sorted(unknown)}: give some of {', '.join(steps)}")
    for name, parts in steps.items():
        if not only or name in (*only, "run"):
            if again and name in (found := figures()):
                keep(name, found[name] | {"encoder": ""})
            measure(name, encoder, parts)


def pixels_of(source: Any) -> np.ndarray:
    return np.stack([source.read(i).numpy()[0] for i in range(len(source))])


def about(run: Path, images: int) -> dict[str, Any]:
    config, summary = Run.open(run).config, Run.open(run).summary
    names = ("data", "recipe", "encoder", "epochs", "batch_size", "image_size", "views", "seed")
    return {
        "path": str(run),
        "images": images,
        "config": {name: config[name] for name in names},
        "labels": config["labels"],
        "knn": summary.get("knn"),
    }


def precision(rows: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    places = search_rows([rows], rows, 11)[1]
    others = [row[row != i][:10] for i, row in enumerate(places)]
    share = float(np.mean([np.mean(y[o] == y[i]) for i, o in enumerate(others)]))
    return {"precision": round(share, 4)}


def clusters(
    z: np.ndarray, flat: np.ndarray, unit: np.ndarray, y: np.ndarray
) -> dict[str, Callable[[], dict[str, Any]]]:
    from sklearn.cluster import HDBSCAN, KMeans
    from sklearn.metrics import adjusted_rand_score

    def score(how: Callable[[], np.ndarray]) -> dict[str, Any]:
        begun = time.perf_counter()
        labels = how()
        return {
            "ari": round(float(adjusted_rand_score(y, labels)), 4),
            "clusters": len(set(labels.tolist()) - {-1}),
            "noise": round(float((labels == -1).mean()), 4),
            "seconds": round(time.perf_counter() - begun, 1),
        }

    def hdbscan(rows: np.ndarray, size: int) -> np.ndarray:
        # "brute" is the same algorithm with a matrix of all distances: trees are slower at 784.
        found = HDBSCAN(min_cluster_size=size, algorithm="brute", n_jobs=1, copy=True)
        return np.asarray(found.fit_predict(rows.astype(np.float64)))

    def kmeans(rows: np.ndarray) -> np.ndarray:
        return np.asarray(KMeans(10, n_init=10, random_state=0).fit_predict(rows))

    parts: dict[str, Callable[[], dict[str, Any]]] = {}
    for where, own, theirs in (("embeddings", z, z), ("pixels", unit, flat)):
        for k in (None, 10):
            words = f"likewise cluster, {'k found' if k is None else 'k = 10'}, {where}"
            parts[words] = partial(score, lambda own=own, k=k: find_clusters(own, k).cluster)
        parts[f"scikit-learn KMeans, k = 10, {where}"] = partial(score, partial(kmeans, theirs))
        for size in (15, 50):
            words = f"scikit-learn HDBSCAN, min {size}, {where}"
            parts[words] = partial(score, partial(hdbscan, theirs, size))
    return parts


def outcome(found: Any, y: np.ndarray, truth_of: np.ndarray) -> dict[str, float]:
    rest = ~found.known
    right = (truth_of[found.label] == y)[rest]
    kept = right[found.confidence[rest] >= 0.8]
    return {
        "accuracy": float(right.mean()),
        "calibration_error": calibration_error(found.confidence[rest], right),
        "expected": found.accuracy.value,
        "inside": float(found.accuracy.low <= right.mean() <= found.accuracy.high),
        "width": found.accuracy.high - found.accuracy.low,
        "kept_at_0.8": float(len(kept) / len(right)),
        "accuracy_at_0.8": float(kept.mean()) if len(kept) else float("nan"),
    }


def classify(z: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """300 labels at random, and 100 more: those that classify proposes, or at random."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    names = [str(c) for c in range(10)]
    order = np.random.default_rng(seed).permutation(len(y))
    known = np.full(len(y), -1)
    known[order[:300]] = y[order[:300]]
    found = classify_rows(z, known, names, ask=100, seed=seed)
    row = outcome(found, y, np.arange(10))
    # Their C is chosen by five folds of the same 300 labels, by what calibration needs.
    chosen = LogisticRegressionCV(
        Cs=np.logspace(-4, 2, 13),
        cv=5,
        scoring="neg_log_loss",
        max_iter=3000,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )
    usual = make_pipeline(StandardScaler(), chosen).fit(z[known >= 0], known[known >= 0])
    rest = known < 0
    guess = usual.predict_proba(z[rest])
    right = usual.classes_[guess.argmax(axis=1)] == y[rest]
    row["logistic_C"] = float(np.ravel(chosen.C_)[0])
    row["logistic_accuracy"] = float(right.mean())
    row["logistic_calibration_error"] = calibration_error(guess.max(axis=1), right)
    for name, more in (("proposed", np.array(found.next)), ("random", order[300:400])):
        again = known.copy()
        again[more] = y[more]
        later = classify_rows(z, again, names, ask=0, seed=seed)
        row[f"accuracy_100_{name}"] = outcome(later, y, np.arange(10))["accuracy"]
    return {name: round(value, 4) for name, value in row.items()}


def answers(z: np.ndarray, y: np.ndarray, seed: int, metric: Any) -> dict[str, Any]:
    """300 yes/no answers to the questions that the default sampler asks, in grids of 15."""
    from likewise.commands.answered import excluded_classes
    from likewise.oracles import PAL, TruthLabeler
    from likewise.oracles.probe import Probe

    probe = Probe(z, metric=metric, seed=seed)
    loop = PAL(z, "default", TruthLabeler(y), grid=15, seed=seed, probe=probe)
    questions = 0
    while loop.beliefs.n_answers < 300:
        loop.run(1, progress=False)
        questions += 1
    labels = loop.beliefs.labels()
    truth_of = np.array([y[np.flatnonzero(labels == c)[0]] for c in range(loop.beliefs.n_classes)])
    names = [f"class {c + 1}" for c in range(len(truth_of))]
    excluded = excluded_classes(loop.beliefs)
    found = classify_rows(z, labels, names, excluded=excluded, chosen=True, ask=0, seed=seed)
    row = outcome(found, y, truth_of)
    row |= {
        "questions": float(questions),
        "answers": float(loop.beliefs.n_answers),
        "placed": float((labels >= 0).sum()),
        "classes": float(len(set(truth_of.tolist()))),
    }
    return {name: round(value, 4) for name, value in row.items()}


def spread(parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    rows = list(parts.values())
    return {
        name: {
            "mean": float(np.mean([row[name] for row in rows])),
            "deviation": float(np.std([row[name] for row in rows])),
        }
        for name in rows[0]
        if isinstance(rows[0][name], float)
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


def with_copies(pixels: np.ndarray, embedder: Any, seed: int) -> tuple[Any, ...]:
    """600 copies after the images: grey pictures, rows, where each copy belongs, and its kind."""
    copies, which, kinds = planted(pixels, 600, seed=seed)
    every = np.concatenate([pixels, copies])
    rows = embedder.rows_of(ArraySource(every))[1]
    wanted = {(int(place), len(pixels) + number): number for number, place in enumerate(which)}
    pictures = grey_pictures(torch.from_numpy(every)[:, None].expand(-1, 3, -1, -1))
    return pictures, rows, wanted, kinds


def thresholds(embedder: Any) -> dict[str, Any]:
    """The thresholds that find copies best among other images: 5,000 of the training set.

    Of those whose F1 is within 0.002 of the best, the smallest: what was found there may be
    easier than elsewhere."""
    source = open_source("fashion-mnist")
    some = source.subset(np.random.default_rng(0).permutation(len(source))[:5000])
    pictures, rows, wanted, _ = with_copies(pixels_of(some), embedder, seed=1)
    pairs = candidates_of(pictures, rows)
    seen = residuals_of(pictures, pairs)
    ends = np.sort(np.stack([pairs.first[seen.pair], pairs.second[seen.pair]]), axis=0)
    planted_one = np.array([tuple(pair) in wanted for pair in ends.T.tolist()])
    scores = {}
    for strict in (0.1, 0.15, 0.2, 0.25, 0.3):
        for detail in (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6):
            twins = are_twins(seen, strict, detail)
            hits = int((twins & planted_one).sum())
            scores[strict, detail] = 2 * hits / (len(wanted) + int(twins.sum()))
    best = max(scores.values())
    chosen = min(pair for pair, score in scores.items() if score >= best - 0.002)
    return {
        "strict": chosen[0],
        "detail": chosen[1],
        "f1": round(scores[chosen], 4),
        "best_f1": round(best, 4),
        "f1_of_defaults": round(scores[STRICT, DETAIL], 4),
    }


def duplicates(pixels: np.ndarray, embedder: Any, *, by_pixels: bool) -> dict[str, Any]:
    pictures, rows, wanted, kinds = with_copies(pixels, embedder, seed=0)
    begun = time.perf_counter(), time.process_time()
    found = duplicates_of_pictures(pictures, rows) if by_pixels else duplicates_of_rows(rows)
    seconds, cores = time.perf_counter() - begun[0], time.process_time() - begun[1]
    pairs = {tuple(pair) for pair in found.pairs.tolist()}
    hits = {wanted[pair] for pair in pairs & wanted.keys()}
    return {
        "planted": len(wanted),
        "recall": round(len(hits) / len(wanted), 4),
        "precision": round(len(hits) / max(len(pairs), 1), 4),
        "pairs": len(pairs),
        "pairs_among_originals": sum(b < len(pixels) for _, b in pairs),
        "seconds": round(seconds, 1),
        "core_seconds": round(cores, 1),
        **{
            f"recall_{kind}": round(float(np.mean([i in hits for i in places])), 4)
            for kind in np.unique(kinds).tolist()
            for places in [np.flatnonzero(kinds == kind)]
        },
    }


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
    keep("search a million", timed_search(index, dim) | stamp())
    keep("add a thousand", added(place, index, photos) | stamp())
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
    found = figures()
    lines = ["# Search, cluster, classify, duplicates: figures", ""]
    if "run" in found:
        encoder = found["run"]["encoder"]
        # Figures of another encoder are not those of this page.
        lines += _fashion_lines({n: e for n, e in found.items() if e.get("encoder") == encoder})
    if "search a million" in found:
        lines += _million_lines(found)
    with write_atomically(PAGE) as aside:
        aside.write_text("\n".join(lines) + "\n")


def _fashion_lines(found: dict[str, Any]) -> list[str]:
    run = found["run"]["parts"]["about"]
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
        f"python benchmarks/use.py --run {run['path']} --part fashion",
        "```",
        f"{run['machine']}; load {_loads(found)}, so seconds are upper bounds where others worked. "
        "`--run` takes any other run.",
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
            *(f"| {name} | {row['precision']:.3f} |" for name, row in _rows(found, "search")),
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
                for name, row in _rows(found, "cluster")
            ),
            "",
        ]
    if "classify" in found:
        lines += _classify_lines(found)
    if "duplicates" in found:
        lines += _duplicates_lines(found)
    return lines


def _rows(found: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    return list(found[name]["parts"].items())


def _loads(found: dict[str, Any]) -> str:
    loads = [part["load"] for entry in found.values() for part in entry.get("parts", {}).values()]
    return f"{min(loads):g} to {max(loads):g}"


def _duplicates_lines(found: dict[str, Any]) -> list[str]:
    parts = dict(found["duplicates"]["parts"])
    other = parts.pop("thresholds")
    return [
        "## Duplicates: planted copies",
        "600 copies are added: crops to 85 to 95 % of the side, JPEG of quality 30 to 80, "
        "rotations by 2 to 8 degrees, 200 of each. Precision counts every other pair as wrong, "
        "also those among the originals, of which some are near-duplicates in truth. Thresholds "
        "were chosen on other images, 5,000 of the training set with 600 copies of their own: the "
        f"smallest within 0.002 of the best F1, {other['best_f1']:.3f}, are {other['strict']:g} "
        f"for the whole and {other['detail']:g} for details; the command has {STRICT:g} and "
        f"{DETAIL:g}.",
        "",
        "| compared by | recall | crops | re-encodings | rotations | precision | pairs among "
        "originals | seconds | of a core |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {row['recall']:.3f} | {row['recall_crop']:.3f} | "
            f"{row['recall_re-encoding']:.3f} | {row['recall_rotation']:.3f} | "
            f"{row['precision']:.3f} | {row['pairs_among_originals']} | {row['seconds']:.0f} | "
            f"{row['core_seconds']:.0f} |"
            for name, row in parts.items()
        ),
        "",
    ]


def _classify_lines(found: dict[str, Any]) -> list[str]:
    labels = spread(found["classify"]["parts"])

    def cell(row: dict[str, Any], name: str) -> str:
        return f"{row[name]['mean']:.3f} ± {row[name]['deviation']:.3f}" if name in row else ""

    columns = ("accuracy", "calibration_error", "expected", "accuracy_at_0.8", "kept_at_0.8")
    lines = [
        "## Classify: 300 simulated answers",
        f"Mean and deviation over {labels['seeds']} seeds, on the images without an answer. The "
        'calibration error is over 15 bins. "Inside" is how often the accuracy lay in the 95 % '
        "interval that was given for it, and that interval's mean width.",
        "",
        "| what was answered | accuracy | calibration error | accuracy that was expected | "
        "accuracy at confidence 0.8 | share of that | inside |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = [("the class of 300 random images", labels)]
    for name, rows_of in (
        ("answers", 'by whitened rows (`Probe(metric="whitened")`)'),
        ("plain answers", "by the rows as they are, as `likewise ask` does"),
    ):
        if name in found:
            own = spread(found[name]["parts"])
            words = (
                f"{own['answers']['mean']:.0f} times yes or no, to {own['questions']['mean']:.0f} "
                f"grids that the default sampler asked {rows_of}; {own['placed']['mean']:.0f} "
                f"images placed, {own['classes']['mean']:.1f} classes found"
            )
            rows.append((words, own))
    for words, row in rows:
        cells = " | ".join(cell(row, name) for name in columns)
        share = (
            f"{round(row['inside']['mean'] * row['seeds'])} of {row['seeds']}, "
            f"{row['width']['mean']:.2f} wide"
        )
        lines.append(f"| {words} | {cells} | {share} |")
    logistic = cell(labels, "logistic_accuracy"), cell(labels, "logistic_calibration_error")
    lines += [
        "",
        "scikit-learn's LogisticRegressionCV (columns standardised, C of 13 from 1e-4 to 100 by "
        "the log loss in five folds) on the same 300 random labels: accuracy "
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
