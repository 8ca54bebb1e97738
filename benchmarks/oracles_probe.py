"""What the probe of the oracles makes of few random labels, beside a logistic regression.

    python benchmarks/oracles_probe.py

Digits of scikit-learn: 1,297 to draw labels from, 500 to test on, mean over the splits of --seeds.
Prints the table of docs/oracles.md.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import LogisticRegression

from likewise.oracles.probe import Probe
from likewise.oracles.splits import Split, full_label_accuracy, labelled_split

COUNTS = (1, 3, 5, 10, 30)
CLASSES = 10


def few_labels(split: Split, count: int, seed: int) -> np.ndarray:
    """So many labels of every class, drawn at random; -1 where none was."""
    labels = np.full(len(split.y), -1)
    rng = np.random.default_rng([seed, count])
    for number in range(CLASSES):
        drawn = rng.choice(np.flatnonzero(split.y == number), count, replace=False)
        labels[drawn] = number
    return labels


def logistic(split: Split, labels: np.ndarray) -> float:
    known = labels >= 0
    model = LogisticRegression(max_iter=3000).fit(split.X[known], labels[known])
    return float(model.score(split.test_rows, split.test_labels))


def propagation(split: Split, labels: np.ndarray, **options: object) -> float:
    fitted = Probe(split.X, neighbors=6, **options).fit(labels, CLASSES)  # type: ignore[arg-type]
    return float((fitted.of(split.test_rows).argmax(axis=1) == split.test_labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    seeds = range(parser.parse_args().seeds)
    splits = [labelled_split("digits", seed=seed) for seed in seeds]
    methods = {
        "logistic regression": logistic,
        "the probe": propagation,
        **{
            f"the same with a = {a:g} always": lambda split, labels, a=a: propagation(
                split, labels, ways=((a, 1.0),)
            )
            for a in (0.9, 0.99)
        },
    }
    full = np.mean([full_label_accuracy(split) for split in splits])
    print(f"a logistic regression with all labels: {full:.3f}; {len(splits)} splits\n")
    print("| labels a class | " + " | ".join(map(str, COUNTS)) + " |")
    print("| --- |" + " ---: |" * len(COUNTS))
    for name, accuracy in methods.items():
        cells = [
            np.mean(
                [
                    accuracy(split, few_labels(split, count, seed))
                    for seed, split in zip(seeds, splits, strict=True)
                ]
            )
            for count in COUNTS
        ]
        print(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
