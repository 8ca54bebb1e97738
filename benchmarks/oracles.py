"""How few yes/no answers it takes: samplers of Likewise beside full labels and beside peers.

    python benchmarks/oracles.py digits                                  # to the screen
    python benchmarks/oracles.py digits --out docs/benchmarks/oracles    # and into the page
    python benchmarks/oracles.py embeddings --name cifar10 --train train.npz --test test.npz
    python benchmarks/oracles.py noise --out docs/benchmarks/oracles
    python benchmarks/oracles.py scale --out docs/benchmarks/oracles
    python benchmarks/oracles.py page --out docs/benchmarks/oracles      # from what was measured

With --out PAGE a command writes its figures into PAGE-NAME.json (after every seed), its plot into
PAGE-NAME.svg, and then puts PAGE.md together again from all the JSON files that there are.

Peers (`pip install modAL-python scikit-activeml cobras-ts tornado`) that are not there are left
out, and the page says so. One thread. Everything that is compared sees the same data: for digits, a
seed is a split into 1,297 to ask about and 500 to test on; embeddings have their own test file, and
a seed is that of the questions.

The level is 95 % of the accuracy of a logistic regression with all labels. Accuracy is that of the
classifier which a method itself hands out: our probe for our samplers, a logistic regression for
those who label, the 5 nearest neighbours on COBRAS' clusters. Classes that were found by asking are
matched with true ones, one to one, for scoring only. Those who give full labels answer "which of
the ten is it?", which takes a person longer than a yes or no, and are told the list of classes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from oracles_methods import GRID, PEERS, of_digits, of_embeddings, partition
from oracles_page import needed, write_page

from likewise.oracles import ExactBeliefs, NoisyBeliefs, TruthLabeler
from likewise.oracles.answers import Answer, read_answers, write_answers
from likewise.oracles.pal import PAL, match_classes
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import Default
from likewise.oracles.splits import Split, full_label_accuracy, labelled_split
from likewise.runs.files import write_atomically

Save = Callable[[dict[str, Any]], None]
RATES = (0.05, 0.10)
PER_ITEM = 2.2
"""Answers an item that a noisy session may take."""


def over_seeds(
    args: argparse.Namespace, one: Callable[..., dict[str, Any]], *more: Any
) -> Iterator[dict[str, Any]]:
    """What `one(args, seed, *more)` finds for every seed, in processes side by side."""
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    if args.jobs == 1:
        yield from (one(args, seed, *more) for seed in seeds)
        return
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(one, args, seed, *more) for seed in seeds]
        for future in as_completed(futures):
            yield future.result()


# --- accuracy against questions -----------------------------------------------------------------


def curves(args: argparse.Namespace, save: Save) -> dict[str, Any]:
    """Digits, or embeddings of anything."""
    found: dict[str, Any] = {
        "name": args.name,
        "kind": "curves",
        "seeds": 0,
        "levels": [],
        "results": {},
        "absent": [],
        "partition": {},
    }
    began = time.perf_counter()
    full = None
    if args.part != "digits":  # the same for all seeds
        full = full_label_accuracy(labelled_split(args.train, args.test))
        print(f"all labels: {full:.4f}, the level: {0.95 * full:.4f}", flush=True)
    for one in over_seeds(args, curves_of_seed, full):
        found["seeds"] += 1
        found["levels"].append(one["level"])
        found |= {name: one[name] for name in ("items", "tests")}
        if not args.parts:  # else some of it was done before
            found["wall"] = time.perf_counter() - began
        found["absent"] += [row for row in one["absent"] if row not in found["absent"]]
        for kind, scores in one["partition"].items():
            found["partition"].setdefault(kind, []).append(scores)
        for kind, rows in one["results"].items():
            for name, row in rows.items():
                kept = (
                    found["results"]
                    .setdefault(kind, {})
                    .setdefault(name, {"curves": [], "person": [], "seconds": 0.0})
                )
                kept["curves"].append(row["curve"])
                kept["person"].append(row["person"])
                kept["seconds"] += row["seconds"]
        save(found | {"results": complete(found)})
    return found | {"results": complete(found)}


def complete(found: dict[str, Any]) -> dict[str, Any]:
    """The rows that every seed has."""
    return {
        kind: {name: row for name, row in rows.items() if len(row["curves"]) == found["seeds"]}
        for kind, rows in found["results"].items()
    }


def curves_of_seed(args: argparse.Namespace, seed: int, full: float | None) -> dict[str, Any]:
    digits = args.part == "digits"
    split = labelled_split("digits" if digits else args.train, args.test, seed=seed)
    full = full_label_accuracy(split) if full is None else full
    level = 0.95 * full
    at = time.process_time()
    probe = Probe(split.X, seed=seed, metric="euclidean" if digits else "whitened")
    if not args.assemble:
        probe.field  # noqa: B018 - computed once, for all who use it
    found: dict[str, Any] = {
        "level": level,
        "index": time.process_time() - at,
        "items": len(split.X),
        "tests": len(split.test_rows),
        "results": {},
        "absent": [],
        "partition": {},
    }
    part = None
    if args.parts:
        part = args.parts / f"{args.name}-{seed}-{args.budget}.json"
        if part.exists():
            found["results"] = json.loads(part.read_text())
    methods = of_digits(args.budget) if digits else of_embeddings(args.budget)
    for kind, rows in methods.items():
        for name, run in rows.items():
            if args.only and args.only not in name:
                continue
            if args.assemble or name in found["results"].get(kind, {}):
                continue
            at = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    # A run that has reached the level has said what is asked of it, but the
                    # curve goes on a little for the plot.
                    steps = list(until(run(split, seed, probe), level))
            except Exception as error:
                if name not in PEERS:
                    raise
                found["absent"].append([kind, name, f"{type(error).__name__}: {error}"])
                continue
            curve = [round(accuracy, 4) for accuracy, _ in steps]
            reached = needed(curve, level)
            spent = sum(person for _, person in steps[:reached])
            untold = reached is None or spent != spent
            found["results"].setdefault(kind, {})[name] = {
                "curve": curve,
                "person": None if untold else round(spent, 1),
                "seconds": time.process_time() - at,
            }
            best, took = max(curve, default=0.0), time.process_time() - at
            print(f"{seed}: {kind}, {name}: {reached} ({best:.3f}, {took:.0f} s)", flush=True)
            if part:
                with write_atomically(part) as aside:
                    aside.write_text(json.dumps(found["results"]))
    if digits and not args.only:
        for kind, grid in (("single pairs", 1), (f"grids of {GRID}", GRID)):
            found["partition"][kind] = partition(split, seed, probe, grid)
    return found


def until(
    steps: Iterator[tuple[float, float]], level: float, more: float = 0.3
) -> Iterator[tuple[float, float]]:
    """Steps, to a third beyond where accuracy first reaches a level."""
    stop: float = np.inf
    for k, step in enumerate(steps, start=1):
        yield step
        if step[0] >= level and np.isinf(stop):
            stop = k * (1 + more) + 3
        if k >= stop:
            return


# --- people who err -----------------------------------------------------------------------------


def noise(args: argparse.Namespace, save: Save) -> dict[str, Any]:
    """Every digit is to be placed, by people who err at a rate that nobody is told."""
    found: dict[str, Any] = {"name": "noise", "kind": "noise", "seeds": 0, "results": {}}
    began = time.perf_counter()
    for one in over_seeds(args, noise_of_seed):
        found["seeds"] += 1
        found["wall"] = time.perf_counter() - began
        for rate, ways in one.items():
            for way, scores in ways.items():
                found["results"].setdefault(rate, {}).setdefault(way, []).append(scores)
        save(found)
    return found


def noise_of_seed(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    split = labelled_split("digits", seed=seed)
    found: dict[str, Any] = {}
    for rate in RATES:
        ways = found.setdefault(f"{rate:.0%}", {})
        for way, run in (("beliefs alone", through_beliefs), ("the loop", through_loop)):
            if args.only and args.only not in way:
                continue
            at = time.process_time()
            labeler = TruthLabeler(split.y, false_yes=rate, false_no=rate, seed=seed)
            beliefs = run(split, labeler, seed)
            ways[way] = score(beliefs, split.y) | {"seconds": time.process_time() - at}
            print(f"{seed}: {rate:.0%}, {way}: {ways[way]}", flush=True)
        if not args.only:
            ways["union-find"] = union_find(split, rate, seed)
    return found


def union_find(split: Split, rate: float, seed: int) -> dict[str, float]:
    """Answers taken for true, with questions for that."""
    from sklearn.metrics import adjusted_rand_score

    labeler = TruthLabeler(split.y, false_yes=rate, false_no=rate, seed=seed)
    pal = PAL(split.X, Default("partition"), labeler, grid=GRID, seed=seed)
    while pal.beliefs.n_answers <= PER_ITEM * len(split.X) - GRID and pal.step() is not None:
        pass
    groups = pal.beliefs.groups()
    alone = np.where(groups >= 0, groups, len(groups) + np.arange(len(groups)))
    found = np.unique(alone, return_inverse=True)[1]
    names = match_classes(found, split.y, int(found.max()) + 1)
    wrong = np.array([names.get(int(c)) for c in found], dtype=object) != split.y
    return {
        "error": float(wrong.mean()),
        "answers per item": pal.beliefs.n_answers / len(split.X),
        "classes": float(pal.beliefs.n_groups),
        "ARI": float(adjusted_rand_score(split.y, alone)),
    }


def through_loop(split: Split, labeler: TruthLabeler, seed: int) -> NoisyBeliefs:
    """The PAL loop with the default sampler, in grids."""
    pal = PAL(split.X, "default", labeler, beliefs="noisy", grid=GRID, seed=seed)
    assert isinstance(pal.beliefs, NoisyBeliefs)
    while pal.beliefs.n_answers <= PER_ITEM * len(split.X) - GRID and pal.step() is not None:
        pass
    return pal.beliefs


def through_beliefs(split: Split, labeler: TruthLabeler, seed: int) -> NoisyBeliefs:
    """What the beliefs themselves want to hear, pair by pair; kernel ridge regression is their
    prior, each item left out of its own prediction."""
    beliefs = NoisyBeliefs(len(split.X), confidence=0.97)
    budget, fitted = int(PER_ITEM * len(split.X)), 0
    while beliefs.n_answers < budget:
        most = min(60 if fitted else 15, budget - beliefs.n_answers)
        wishes = beliefs.reasks(most, annotators=labeler.annotators)
        if not wishes:
            break
        beliefs.add([a for wish in wishes for a in labeler.answer(wish.question).answers])
        posterior = beliefs.posterior()
        likely = (posterior.max(axis=1) >= 0.9) & beliefs.asked()
        ready = beliefs.unseen < 0.06 and likely.sum() >= 6 * beliefs.n_classes
        if ready and beliefs.n_answers >= 1.1 * fitted:
            labels = np.where(likely, posterior.argmax(axis=1), -1)
            beliefs.set_prior(left_out(split.X, labels, beliefs.n_classes))
            fitted = beliefs.n_answers
    return beliefs


def left_out(X: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    known = np.flatnonzero(labels >= 0)
    squares = (X**2).sum(axis=1)
    away = squares[:, None] + squares[known] - 2 * X @ X[known].T
    kernel = np.exp(-np.maximum(away, 0) / (0.3 * np.median(away)))
    inverse = np.linalg.inv(kernel[known] + 0.05 * np.eye(len(known)))
    weights = inverse @ np.eye(classes)[labels[known]]
    scores = kernel @ weights
    scores[known] = np.eye(classes)[labels[known]] - weights / np.diag(inverse)[:, None]
    return np.maximum(scores, 0) + 0.02


def score(beliefs: NoisyBeliefs, y: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import adjusted_rand_score

    guess = beliefs.predictions()
    names = match_classes(guess, y, beliefs.n_classes)
    wrong = np.array([names.get(int(c)) for c in guess], dtype=object) != y
    groups = ExactBeliefs(len(y)).add(beliefs.answers).groups()
    alone = np.where(groups >= 0, groups, len(y) + np.arange(len(y)))
    rates = next(iter(beliefs.rates().values()))
    return {
        "error": float(wrong.mean()),
        "answers per item": beliefs.n_answers / len(y),
        "classes": float(beliefs.n_classes),
        "ARI": float(adjusted_rand_score(y, guess)),
        "ARI of union-find": float(adjusted_rand_score(y, alone)),
        "false yes": rates[0],
        "false no": rates[1],
    }


# --- a million ----------------------------------------------------------------------------------


def scale(args: argparse.Namespace, save: Save) -> dict[str, Any]:
    """Choosing a question among many rows, and loading many answers: seconds of one core, which
    do not depend on who else uses the machine."""
    n, d, classes = args.items, 512, 100
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(classes, d)).astype(np.float32)
    y = rng.integers(0, classes, n)
    X = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 50_000):  # noise in one go would take twice the memory
        part = slice(start, start + 50_000)
        X[part] = centers[y[part]] + 1.5 * rng.standard_normal((len(y[part]), d), np.float32)
    found: dict[str, Any] = {"name": "scale", "kind": "scale", "items": n, "dimensions": d}
    at = time.process_time()
    probe = Probe(X, metric="whitened")
    probe.field  # noqa: B018
    for smoothness, _ in probe.ways:
        probe.kernel(smoothness)
    found["index"] = time.process_time() - at
    for kind, grid in (("grid", GRID), ("pair", 1)):
        pal = PAL(X, "default", TruthLabeler(y), grid=grid, probe=probe)
        seconds = []
        for _ in range(args.questions):
            at = time.process_time()
            question = pal.sampler.propose(pal.state)
            seconds.append(time.process_time() - at)
            assert question is not None
            pal.beliefs.add(pal.labeler.answer(question).answers)
        found[kind] = {
            "median": float(np.median(seconds)),
            "largest": max(seconds),
            "questions": len(seconds),
            "classes": pal.beliefs.n_classes,
        }
        print(kind, found[kind], flush=True)
    del X, probe, pal
    exemplars = rng.choice(n, classes, replace=False)
    items = np.setdiff1d(np.arange(n), exemplars)
    items = rng.choice(items, n, replace=True)
    facts = [
        Answer(int(e), int(i), 1.0 if y[e] == y[i] else -1.0, f"annotator-{k % 5}", float(k))
        for k, (e, i) in enumerate(zip(rng.choice(exemplars, n), items, strict=True))
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        write_answers(path, facts)
        at = time.process_time()
        answers = read_answers(path)
        found["read"] = time.process_time() - at
    at = time.process_time()
    beliefs = ExactBeliefs(n).add(answers)
    beliefs.labels()
    found["load"], found["answers"] = time.process_time() - at, len(answers)
    save(found)
    return found


# --- the command --------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("digits", "embeddings", "noise", "scale", "page"))
    parser.add_argument("--train", help="labelled embeddings to ask about (.npz or .parquet)")
    parser.add_argument("--test", help="labelled embeddings to test on")
    parser.add_argument("--name", help="of the data, for the page")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--parts", type=Path, help="keep every seed's rows in this folder, and go on from there"
    )
    parser.add_argument(
        "--assemble", action="store_true", help="measure nothing: what --parts holds"
    )
    parser.add_argument("--jobs", type=int, default=1, help="seeds side by side")
    parser.add_argument("--budget", type=int, help="grids of a run (others follow); 40 or 200")
    parser.add_argument("--items", type=int, default=1_000_000, help="of scale")
    parser.add_argument("--questions", type=int, default=40, help="of scale")
    parser.add_argument("--only", help="only methods whose name holds this")
    parser.add_argument("--out", type=Path, help="the page, without .md")
    args = parser.parse_args()
    if args.part == "embeddings":
        if not (args.train and args.test and args.name):
            parser.error("give --name, --train and --test: labelled embeddings")
    else:
        args.name = args.part
    args.budget = args.budget or (200 if args.part == "embeddings" else 40)
    # Without --assemble, the same command measures what the parts do not hold.
    given = [word for word in sys.argv[1:] if word != "--assemble"]
    command = "python benchmarks/oracles.py " + " ".join(given)

    def save(found: dict[str, Any]) -> None:
        found |= {"command": command, "machine": f"{platform.machine()}, one thread"}
        if not args.out:
            return
        base = args.out.parent / f"{args.out.name}-{args.name}"
        with write_atomically(base.with_suffix(".json")) as aside:
            aside.write_text(json.dumps(found) + "\n")
        write_page(args.out)

    if args.part == "page":
        write_page(args.out)
        return
    run = {"noise": noise, "scale": scale}.get(args.part, curves)
    found = run(args, save)
    print(json.dumps({k: v for k, v in found.items() if k != "results"}, default=str))


if __name__ == "__main__":
    main()
