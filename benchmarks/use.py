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
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import numpy as np
import torch
from PIL import Image
from use_figures import figures, keep, measure
from use_million import million
from use_page import write_page

from likewise.data import open_source
from likewise.data.arrays import ArraySource
from likewise.library import (
    calibration_error,
    classify_rows,
    duplicates_of_pictures,
    duplicates_of_rows,
    embedder_of_run,
    find_clusters,
    search_rows,
)
from likewise.library.candidates import candidates_of
from likewise.library.duplicates import DETAIL, STRICT, are_twins, grey_pictures
from likewise.library.residuals import residuals_of
from likewise.runs import Run

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


if __name__ == "__main__":
    main()
