"""How few yes/no answers it takes: samplers of Likewise beside full labels and beside peers.

    python benchmarks/oracles.py digits                                  # to the screen
    python benchmarks/oracles.py digits --out docs/benchmarks/oracles    # .json, .md and .svg
    python benchmarks/oracles.py embeddings --train train.parquet --test test.parquet

Peers (`pip install modAL-python scikit-activeml cobras-ts tornado`) that are not there are left
out, and the page says so. One thread. Everything that is compared sees the same splits: a seed is
a split of the digits into 1,297 to ask about and 500 to test on.

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
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from likewise.oracles import Answer, AnswerTime, ExactBeliefs, Pair, TruthLabeler
from likewise.oracles.curves import COLORS, drawing, line_over
from likewise.oracles.pal import PAL, match_classes
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import Captcha, Default, build_sampler
from likewise.oracles.splits import Split, full_label_accuracy, labelled_split
from likewise.runs.files import write_atomically

GRID = 15
PEERS = ("COBRAS", "modAL uncertainty", "scikit-activeml margin", "scikit-activeml TypiClust")
"""Where one of these fails, the page says so and the rest goes on."""
Curve = list[float]  # the accuracy after 1, 2, ... questions
Run = Callable[..., Iterator[tuple[float, float]]]  # accuracy and a person's seconds, a question
UNTIMED = float("nan")
"""The model of a person's time knows yes and no, not "which of ten is it?"."""


def logistic(X: np.ndarray, y: np.ndarray) -> Any:
    return LogisticRegression(max_iter=300).fit(X, y)


# --- ours ---------------------------------------------------------------------------------------


def ours(sampler: str, grid: int, budget: int, **options: Any) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        pal = PAL(
            split.X,
            build_sampler(sampler, **options),
            TruthLabeler(split.y),
            grid=grid,
            seed=seed,
            probe=probe,
            test=(split.test_rows, split.test_labels),
            truth=split.y,
        )
        for _ in range(budget):
            step = pal.step()
            if step is None:
                return
            yield step.accuracy or 0.0, step.seconds

    return run


def algorithm_3(
    budget: int, *, central: bool = False, low_margin: bool = False, own_probe: bool = False
) -> Run:
    """As printed: templates for free, random candidates, the last class deduced; a logistic
    regression on the known items (or our probe). Or low-margin candidates, with the same."""

    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        rng = np.random.default_rng(seed)
        classes = np.unique(split.y)
        templates = [int(rng.choice(np.flatnonzero(split.y == c))) for c in classes]
        beliefs = ExactBeliefs(len(split.X), closed_classes=len(classes))
        beliefs.add(Answer(a, b, -1.0) for a in templates for b in templates if a < b)
        sampler = build_sampler("margin") if low_margin else Captcha(discover=False)
        pal = PAL(
            split.X,
            sampler,
            TruthLabeler(split.y),
            beliefs=beliefs,
            grid=GRID,
            seed=seed,
            probe=probe,
            test=(split.test_rows, split.test_labels),
            truth=split.y,
        )
        for _ in range(budget):
            step = pal.step()
            if step is None:
                return
            if own_probe:
                yield step.accuracy or 0.0, step.seconds
                continue
            known = beliefs.labels() >= 0
            model = logistic(split.X[known], split.y[known])
            yield float(model.score(split.test_rows, split.test_labels)), step.seconds

    return run


# --- full labels --------------------------------------------------------------------------------


def random_labels(budget: int, *, own_probe: bool = False) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        order = np.random.default_rng(seed).permutation(len(split.X))
        n_classes = int(split.y.max()) + 1
        for k in range(1, budget + 1):
            known = order[:k]
            if own_probe:
                labels = np.full(len(split.X), -1)
                labels[known] = split.y[known]
                guess = probe.fit(labels, n_classes).of(split.test_rows).argmax(axis=1)
                yield float(np.mean(guess == split.test_labels)), UNTIMED
            elif len(np.unique(split.y[known])) < 2:
                yield float(np.mean(split.test_labels == split.y[known[0]])), UNTIMED
            else:
                model = logistic(split.X[known], split.y[known])
                yield float(model.score(split.test_rows, split.test_labels)), UNTIMED

    return run


def one_of_each(split: Split, seed: int) -> np.ndarray:
    """Peers start from one labelled item of each class; these labels count."""
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(np.flatnonzero(split.y == c)) for c in np.unique(split.y)])


def modal(budget: int) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        from modAL.models import ActiveLearner, learners
        from modAL.uncertainty import uncertainty_sampling
        from sklearn.utils import check_X_y

        def check(X: Any, y: Any, force_all_finite: bool = True, **options: Any) -> Any:
            return check_X_y(X, y, ensure_all_finite=force_all_finite, **options)

        # modAL 0.4.2.1 calls it by the name that it had before scikit-learn 1.6.
        learners.check_X_y = check
        first = one_of_each(split, seed)
        learner = ActiveLearner(
            estimator=LogisticRegression(max_iter=300),
            query_strategy=uncertainty_sampling,
            X_training=split.X[first],
            y_training=split.y[first],
        )
        left = np.setdiff1d(np.arange(len(split.X)), first)
        yield from [(0.0, UNTIMED)] * (len(first) - 1)
        yield float(learner.score(split.test_rows, split.test_labels)), UNTIMED
        for _ in range(budget - len(first)):
            place = np.atleast_1d(learner.query(split.X[left])[0])
            learner.teach(split.X[left[place]], split.y[left[place]])
            left = np.delete(left, place)
            yield float(learner.score(split.test_rows, split.test_labels)), UNTIMED

    return run


def activeml(budget: int, strategy: str) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        from skactiveml.classifier import SklearnClassifier
        from skactiveml.pool import TypiClust, UncertaintySampling

        labels = np.full(len(split.X), np.nan)
        classifier = SklearnClassifier(
            LogisticRegression(max_iter=300), classes=np.unique(split.y), random_state=seed
        )
        if strategy == "margin":
            query = UncertaintySampling(method="margin_sampling", random_state=seed)
            first = one_of_each(split, seed)
            labels[first] = split.y[first]
            yield from [(0.0, UNTIMED)] * (len(first) - 1)
        else:
            query = TypiClust(random_state=seed)
        while True:
            known = ~np.isnan(labels)
            if known.any():
                classifier.fit(split.X, labels)
                yield float(classifier.score(split.test_rows, split.test_labels)), UNTIMED
            if known.sum() >= budget:
                return
            options = {"clf": classifier, "fit_clf": False} if strategy == "margin" else {}
            place = query.query(X=split.X, y=labels, **options)
            labels[place] = split.y[place]

    return run


# --- pairs by peers -----------------------------------------------------------------------------


def cobras(budget: int) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        if not hasattr(np, "int"):
            np.int = int  # type: ignore[attr-defined]  # COBRAS 0.1.3 is older than NumPy 1.24
        from cobras_ts.cobras_kmeans import COBRAS_kmeans

        class Truth:
            def query_points(self, a: int, b: int) -> bool:
                return bool(split.y[a] == split.y[b])

            def continue_cluster_process(self) -> bool:
                return True

            def update_clustering(self, clustering: object) -> None:
                pass

            update_clustering_detailed = update_clustering

        np.random.seed(seed)  # noqa: NPY002 - its k-means takes the global state
        _, clusterings, _, _, _ = COBRAS_kmeans(split.X, Truth(), budget).cluster()
        last: tuple[Any, float] = (None, 0.0)
        for clustering in clusterings[:budget]:
            found = np.unique(np.asarray(clustering), return_inverse=True)[1]
            if last[0] is None or not np.array_equal(found, last[0]):
                names = match_classes(found, split.y, int(found.max()) + 1)
                model = KNeighborsClassifier(5).fit(split.X, found)
                guess = [names.get(int(c)) for c in model.predict(split.test_rows)]
                last = (found, float(np.mean(np.array(guess, dtype=object) == split.test_labels)))
            yield last[1], AnswerTime().seconds(Pair(0, 1), 0)

    return run


# --- the whole partition ------------------------------------------------------------------------


def partition(split: Split, seed: int, probe: Probe, grid: int) -> dict[str, float]:
    pal = PAL(split.X, Default("partition"), TruthLabeler(split.y), grid=grid, seed=seed)
    history = pal.run(10 * len(split.X), progress=False)
    labels = pal.beliefs.labels()
    found = np.array([len(np.unique(split.y[labels == c])) for c in range(pal.beliefs.n_classes)])
    assert (labels >= 0).all() and (found == 1).all(), "the partition is not the true one"
    return {
        "answers per item": pal.beliefs.n_answers / len(split.X),
        "questions": float(len(history)),
        "seconds": float(history.column("seconds").sum()),
    }


# --- the run ------------------------------------------------------------------------------------


def entries(budget: int) -> dict[str, dict[str, Run]]:
    """What is counted, and who is counted by it."""
    classic = ("margin", "uncertainty", "expected-change", "disagreement", "pruning")
    return {
        f"grids of {GRID}": {
            "default": ours("default", GRID, budget),
            "default, full grids": ours("default", GRID, budget, fill=True),
            **{name: ours(name, GRID, budget) for name in classic},
            "captcha, classes discovered": ours("captcha", GRID, 2 * budget),
            "captcha, guided, discovered": ours(
                "captcha", GRID, 2 * budget, guided=True, central=True
            ),
            "neighbors": ours("neighbors", GRID, budget),
            "random": ours("random", GRID, budget),
            "algorithm 3 as printed, free templates": algorithm_3(3 * budget),
            "algorithm 3, free templates, our probe": algorithm_3(budget, own_probe=True),
            "low margin, free templates, our probe": algorithm_3(
                budget, low_margin=True, own_probe=True
            ),
        },
        "single pairs": {
            "default": ours("default", 1, 3 * budget),
            "margin": ours("margin", 1, 6 * budget),
            "uncertainty": ours("uncertainty", 1, 6 * budget),
            "captcha, classes discovered": ours("captcha", 1, 6 * budget),
            "random": ours("random", 1, 6 * budget),
            "COBRAS": cobras(12 * budget),
        },
        "full labels": {
            "random, our probe": random_labels(4 * budget, own_probe=True),
            "random, logistic regression": random_labels(6 * budget),
            "modAL uncertainty": modal(6 * budget),
            "scikit-activeml margin": activeml(6 * budget, "margin"),
            "scikit-activeml TypiClust": activeml(3 * budget, "typiclust"),
        },
    }


def needed(curve: Curve, level: float) -> int | None:
    reached = np.flatnonzero(np.array(curve) >= level)
    return int(reached[0]) + 1 if len(reached) else None


def measure(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {
        "part": args.part,
        "machine": f"{platform.machine()}, one thread",
        "seeds": args.seeds,
        "levels": [],
        "results": {},
        "absent": {},
        "partition": {},
    }
    began = time.perf_counter()
    for seed in range(args.seeds):
        source = "digits" if args.part == "digits" else args.train
        split = labelled_split(source, args.test, seed=seed)
        full = full_label_accuracy(split)
        found["levels"].append(0.95 * full)
        probe = Probe(split.X, seed=seed)
        found["items"], found["tests"] = len(split.X), len(split.test_rows)
        for kind, rows in entries(args.budget).items():
            for name, run in rows.items():
                if (kind, name) in found["absent"] or (args.only and args.only not in name):
                    continue
                at = time.perf_counter()
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        # A run that has reached the level has said what is asked of it, but the
                        # curve goes on a little for the plot.
                        steps = list(until(run(split, seed, probe), 0.95 * full))
                except Exception as error:
                    if name not in PEERS:
                        raise
                    found["absent"][kind, name] = f"{type(error).__name__}: {error}"
                    continue
                rows_ = found["results"].setdefault(kind, {})
                row = rows_.setdefault(name, {"curves": [], "person": [], "seconds": 0.0})
                curve = [round(accuracy, 4) for accuracy, _ in steps]
                row["curves"].append(curve)
                reached = needed(curve, 0.95 * full)
                spent = sum(person for _, person in steps[:reached])
                untold = reached is None or spent != spent
                row["person"].append(None if untold else round(spent, 1))
                row["seconds"] += time.perf_counter() - at
        if args.part == "digits" and not args.only:
            for kind, grid in (("single pairs", 1), (f"grids of {GRID}", GRID)):
                scores = partition(split, seed, probe, grid)
                found["partition"].setdefault(kind, []).append(scores)
        print(f"seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)
    found["wall"] = time.perf_counter() - began
    found["absent"] = [[kind, name, why] for (kind, name), why in found["absent"].items()]
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


# --- what it says -------------------------------------------------------------------------------


def table(found: dict[str, Any], kind: str) -> list[str]:
    lines = [
        f"| {kind} | to the level | a person's seconds | seeds that reached it | range | "
        "last accuracy | s a run |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in found["results"].get(kind, {}).items():
        counts = [needed(c, x) for c, x in zip(row["curves"], found["levels"], strict=True)]
        reached = [count for count in counts if count is not None]
        last = np.mean([curve[-1] if curve else 0.0 for curve in row["curves"]])
        budget = max(len(curve) for curve in row["curves"])
        if len(reached) == len(counts):
            text, spread = f"{np.mean(reached):.1f}", f"{min(reached)}–{max(reached)}"
            timed = None not in row["person"]
            person = f"{np.mean(row['person']):.0f}" if timed else "–"
        else:
            text, spread = f"more than {budget}", f"{min(reached)}–" if reached else "–"
            person = "–"
        lines.append(
            f"| {name} | {text} | {person} | {len(reached)} of {len(counts)} | {spread} | "
            f"{last:.3f} | {row['seconds'] / len(counts):.2f} |"
        )
    return lines


def report(found: dict[str, Any], command: str, image: str | None) -> str:
    level = np.mean(found["levels"])
    lines = [
        "# Oracles: how few answers it takes",
        "",
        f"On {found['machine']}; {found['seeds']} seeds, {found['wall'] / 60:.0f} minutes in all. "
        f"Made by `{command}`. {found['part']}: {found['items']:,} items to ask about, "
        f"{found['tests']:,} to test on, a new split with every seed; answers without mistakes. "
        f"The level is 95 % of what a logistic regression with all labels reaches: {level:.3f} on "
        "average, and each seed has its own.",
        "",
        "Accuracy is that of the classifier that a method hands out after a question: label "
        "propagation on what is known (our samplers), a logistic regression on the known items "
        "(algorithm 3 as printed, and those who give full labels) or the 5 nearest neighbours "
        "on the clusters (COBRAS). Our samplers start from nothing and find the classes while "
        "asking; a found class is matched with a true one, one to one, for scoring only. Where "
        'rows say "free templates", one item of each class is given and not counted. A person\'s '
        "seconds are those of the model `AnswerTime`, not measured. A mean "
        'stands only where all seeds reached the level; "last accuracy" is the mean where '
        "the runs ended, which is a third beyond the level.",
        "",
    ]
    if found["part"] == "digits":
        lines += [
            "The constants of the default sampler and of the probe were chosen on five splits of "
            "these digits (seeds 0 to 4); docs/oracles.md has its figures on others.",
            "",
        ]
    if image:
        lines += [f'<img src="{image}" alt="accuracy against questions" width="920">', ""]
    for kind in found["results"]:
        lines += [f"## {kind.capitalize()}", "", *table(found, kind), ""]
    if found["partition"]:
        lines += [
            "## Every item placed",
            "",
            '`Default(goal="partition")` until nothing is left to ask; the partition is then the '
            "true one. With n items and C classes no method needs fewer than n - C + C (C - 1) / 2 "
            f"answers, here {(found['items'] - 10 + 45) / found['items']:.3f} an item.",
            "",
            "| asked as | answers an item | range | questions | hours of a person (model) |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for kind, scores in found["partition"].items():
            per = [score["answers per item"] for score in scores]
            lines.append(
                f"| {kind} | {np.mean(per):.3f} | {min(per):.3f}–{max(per):.3f} | "
                f"{np.mean([score['questions'] for score in scores]):.0f} | "
                f"{np.mean([score['seconds'] for score in scores]) / 3600:.2f} |"
            )
        lines.append("")
    for kind, name, why in found["absent"]:
        lines.append(f"Not measured: {name} ({kind}): {why}.")
    return "\n".join(lines).rstrip() + "\n"


def plot(found: dict[str, Any]) -> str:
    """Panels side by side as one SVG; every curve keeps its last value."""
    shown = {
        f"grids of {GRID}": ("default", "margin", "captcha, classes discovered", "random"),
        "single pairs": ("default", "margin", "COBRAS", "random"),
        "full labels": tuple(found["results"].get("full labels", {})),
    }
    panels, x = [], 0
    level = float(np.mean(found["levels"]))
    for kind, names in shown.items():
        rows = found["results"].get(kind, {})
        lines = [
            line_over(name, [np.arange(1, len(c) + 1) for c in curves], curves)
            for name in names
            if name in rows
            for curves in [rows[name]["curves"]]
        ]
        if not lines:
            continue
        legend = "".join(
            f'<text x="250" y="{150 + 16 * k}" font-size="11" fill="{COLORS[k % len(COLORS)]}">'
            f"{line.name}</text>"
            for k, line in enumerate(lines)
        )
        inner = drawing(lines, kind, "test accuracy", level)
        panels.append(f'<g transform="translate({x} 0)">{inner}{legend}</g>')
        x += 470
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {x} 310" font-family="sans-serif">'
        f'<rect width="{x}" height="310" fill="#fff"/>{"".join(panels)}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("digits", "embeddings"))
    parser.add_argument("--train", help="labelled embeddings to ask about")
    parser.add_argument("--test", help="labelled embeddings to test on")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=40, help="grids of a run (others follow)")
    parser.add_argument("--only", help="only methods whose name holds this")
    parser.add_argument("--out", type=Path, help="write .json, .md and .svg of this name")
    args = parser.parse_args()
    if args.part == "embeddings" and not args.train:
        parser.error("give --train (and --test): files that likewise embed wrote")
    found = measure(args)
    command = f"python benchmarks/oracles.py {args.part}" + (
        f" --out {args.out}" if args.out else ""
    )
    image = None
    if args.out:
        image = f"{args.out.name}.svg"
        with write_atomically(args.out.with_suffix(".svg")) as aside:
            aside.write_text(plot(found))
        with write_atomically(args.out.with_suffix(".json")) as aside:
            aside.write_text(json.dumps(found) + "\n")
        with write_atomically(args.out.with_suffix(".md")) as aside:
            aside.write_text(report(found, command, image))
    print(report(found, command, image))


if __name__ == "__main__":
    main()
