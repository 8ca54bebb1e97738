"""The closed form beside scikit-learn's estimators: fit time, memory, probe accuracy.

    python benchmarks/kernel.py                                     # here, to the screen
    python benchmarks/kernel.py --out docs/benchmarks/kernel.md     # and as a page with a plot

The first table has 5 labels a class and 480 rows without (-1), the others all labels. Every row
of a table is measured in the same run, in a process of its own (so that its peak memory
is its own), on the same data: points of four noisy circles. The probe is a ridge classifier on the
embedding, fitted to the training labels and scored on 2,000 new points.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CLASSES, COMPONENTS, BANDWIDTH, TEST = 4, 5, 0.2, 2000
FEATURES = 1000


def circles(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    points = (1 + labels)[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    return points + 0.1 * rng.normal(size=(n, 2)), labels


def some_labels(y: np.ndarray) -> np.ndarray:
    """Five labels of each class; -1 elsewhere."""
    known = np.concatenate([np.flatnonzero(y == label)[:5] for label in range(CLASSES)])
    return np.where(np.isin(np.arange(len(y)), known), y, -1)


# --- entries: fit on rows and labels, return a function that embeds new rows ----------------------


def likewise(**settings: Any) -> Callable[..., Any]:
    def fit(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        from likewise.kernel import SpectralEmbedding

        model = SpectralEmbedding(CLASSES, bandwidth=BANDWIDTH, n_features=FEATURES, **settings)
        return model.fit(X, y).transform

    return fit


def likewise_known_pairs(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Labels among the labelled, and every row alike to itself; other pairs are unknown."""
    from likewise import Graph
    from likewise.kernel import SpectralEmbedding

    unlabelled = np.flatnonzero(y < 0)
    own = Graph.from_edges(unlabelled, unlabelled, 1.0, n=len(y))
    model = SpectralEmbedding(CLASSES, bandwidth=BANDWIDTH, solver="exact", masked=True)
    return model.fit(X, Graph.from_labels(y) + own).transform


def likewise_neighbours(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The labels beside the graph of the ten nearest neighbours."""
    from likewise import Graph
    from likewise.kernel import SpectralEmbedding

    near = Graph.identity(len(y)) + Graph.from_neighbors(X, 10)
    model = SpectralEmbedding(8, bandwidth=BANDWIDTH, solver="exact")
    return model.fit(X, 0.9 * near.normalized() + 0.1 * Graph.from_labels(y)).transform


def likewise_float32(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    embed = likewise(solver="fourier")(X.astype(np.float32), y)
    return lambda rows: embed(rows.astype(np.float32))


def plain_numpy(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The pencil as one writes it down: (Phi^T G Phi - lambda I, Phi^T Phi), one dense pass."""
    from scipy.linalg import eigh

    rng = np.random.default_rng(0)
    frequencies = rng.normal(size=(2, FEATURES)) / BANDWIDTH / np.abs(rng.normal(size=FEATURES))
    phases = rng.uniform(0, 2 * np.pi, FEATURES).astype(np.float32)
    frequencies = frequencies.astype(np.float32)

    def features(rows: np.ndarray) -> np.ndarray:
        scale = np.float32((2 / FEATURES) ** 0.5)
        return scale * np.cos(rows.astype(np.float32) @ frequencies + phases)

    gram, sums = np.zeros((FEATURES, FEATURES)), np.zeros((CLASSES, FEATURES))
    for start in range(0, len(X), 8192):
        phi = features(X[start : start + 8192])
        gram += phi.T @ phi
        sums += np.eye(CLASSES, dtype=np.float32)[y[start : start + 8192]].T @ phi
    noise = 1e-6 * np.trace(gram) / FEATURES
    values, vectors = eigh(
        sums.T @ sums - 1e-3 * np.eye(FEATURES),
        gram + noise * np.eye(FEATURES),
        subset_by_index=(FEATURES - CLASSES, FEATURES - 1),
    )
    weights = vectors * np.sqrt(np.maximum(values, 0))
    return lambda rows: features(rows) @ weights


def kernel_pca(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.decomposition import KernelPCA

    model = KernelPCA(COMPONENTS, kernel="rbf", gamma=0.5 / BANDWIDTH**2, random_state=0)
    return model.fit(X).transform


def linear_discriminant(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis().fit(X[y >= 0], y[y >= 0]).transform


def nystroem_ridge(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline

    X, y = X[y >= 0], y[y >= 0]
    landmarks = min(FEATURES, len(X))
    features = Nystroem(gamma=0.5 / BANDWIDTH**2, n_components=landmarks, random_state=0)
    return make_pipeline(features, RidgeClassifier(alpha=1e-3)).fit(X, y).decision_function


def laplacian_eigenmaps(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """It embeds what it was fitted to and nothing else: the test points are fitted with the rest,
    and found again by their order."""
    from sklearn.manifold import SpectralEmbedding

    test = circles(TEST, seed=1)[0]
    whole = SpectralEmbedding(COMPONENTS, random_state=0).fit_transform(np.vstack([X, test]))
    return lambda rows: whole[len(X) :] if len(rows) == TEST else whole[: len(X)]


def label_spreading(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.semi_supervised import LabelSpreading

    return LabelSpreading(gamma=0.5 / BANDWIDTH**2).fit(X, y).predict_proba


ENTRIES: dict[str, Callable[..., Any]] = {
    "likewise, exact": likewise(solver="exact"),
    "likewise, nystrom": likewise(solver="nystrom"),
    "likewise, fourier": likewise(solver="fourier"),
    "likewise, fourier, float32 rows": likewise_float32,
    "likewise, masked": likewise_known_pairs,
    "likewise, labels + neighbours": likewise_neighbours,
    "plain NumPy, float32": plain_numpy,
    "scikit-learn SpectralEmbedding": laplacian_eigenmaps,
    "scikit-learn KernelPCA": kernel_pca,
    "scikit-learn LDA": linear_discriminant,
    "scikit-learn Nystroem + ridge": nystroem_ridge,
    "scikit-learn LabelSpreading": label_spreading,
}
FEW_LABELS = [
    "likewise, exact",
    "likewise, masked",
    "likewise, labels + neighbours",
    "scikit-learn LDA",
    "scikit-learn Nystroem + ridge",
    "scikit-learn LabelSpreading",
    "scikit-learn SpectralEmbedding",
    "scikit-learn KernelPCA",
]
SMALL = [
    "likewise, exact",
    "likewise, nystrom",
    "likewise, fourier",
    "scikit-learn SpectralEmbedding",
    "scikit-learn KernelPCA",
    "scikit-learn LDA",
    "scikit-learn Nystroem + ridge",
]
LARGE = [
    "likewise, fourier",
    "likewise, fourier, float32 rows",
    "plain NumPy, float32",
    "scikit-learn LDA",
]
FEW_ROWS = 500
CASES: list[tuple[int, list[str]]] = [
    (FEW_ROWS, FEW_LABELS),
    (2_000, SMALL),
    (20_000, [*LARGE, "likewise, nystrom", "scikit-learn Nystroem + ridge"]),
    (100_000, [*LARGE, "likewise, nystrom", "scikit-learn Nystroem + ridge"]),
    (1_000_000, LARGE),
]


# --- measuring -----------------------------------------------------------------------------------


def measure(name: str, n: int) -> dict[str, float]:
    """In this process: seconds to fit, peak memory, accuracy of a probe."""
    from sklearn.linear_model import RidgeClassifier

    X, y = circles(n, seed=0)
    X_test, y_test = circles(TEST, seed=1)
    y = some_labels(y) if n == FEW_ROWS else y
    fit = ENTRIES[name]
    small = circles(200 if n == FEW_ROWS else 2000, seed=2)
    if name != "scikit-learn SpectralEmbedding":
        fit(*small)  # imports and thread pools are not the fit
    start = time.perf_counter()
    embed = fit(X, y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows = np.flatnonzero(y >= 0)[:20_000]
    probe = RidgeClassifier(alpha=1e-6).fit(
        embed(X)[rows] if n == FEW_ROWS else embed(X[rows]), y[rows]
    )
    return {
        "seconds": seconds,
        "gigabytes": peak,
        "accuracy": float(probe.score(embed(X_test), y_test)),
    }


def apart(name: str, n: int, repeats: int) -> dict[str, float]:
    """The same in processes of its own; the median of the times."""
    found = []
    for _ in range(repeats):
        command = [sys.executable, __file__, "--entry", name, "--rows", str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name} at {n} rows failed:\n{done.stderr[-2000:]}")
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {key: float(np.median([each[key] for each in found])) for key in found[0]}


def costs() -> dict[str, list[tuple[float, float]]]:
    """Seconds of one fit against N at m = 1,000, and against m at N = 20,000."""
    from likewise.kernel import SpectralEmbedding

    curves: dict[str, list[tuple[float, float]]] = {}
    for solver in ("exact", "nystrom", "fourier"):
        sizes = (250, 500, 1000, 2000, 4000) if solver == "exact" else (1000, 4000, 16000, 64000)
        for n in sizes:
            seconds = _seconds(SpectralEmbedding, n, solver, min(FEATURES, n))
            curves.setdefault(f"N/{solver}", []).append((n, seconds))
        if solver != "exact":
            for m in (100, 200, 400, 800, 1600):
                curves.setdefault(f"m/{solver}", []).append(
                    (m, _seconds(SpectralEmbedding, 20_000, solver, m))
                )
    return curves


def _seconds(estimator: Any, n: int, solver: str, m: int) -> float:
    X, y = circles(n, seed=0)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        estimator(CLASSES, bandwidth=BANDWIDTH, solver=solver, n_features=m).fit(X, y)
        times.append(time.perf_counter() - start)
    return min(times)


# --- the page ------------------------------------------------------------------------------------


def page(tables: dict[int, dict[str, dict[str, float]]], image: Path | None) -> str:
    import scipy
    import sklearn
    import torch

    cores = len(os.sched_getaffinity(0))
    lines = [
        "# Closed form: time, memory, accuracy",
        "",
        f"On {cores} cores of {platform.machine()} (torch {torch.__version__}, scikit-learn "
        f"{sklearn.__version__}, scipy {scipy.__version__}). Made by `python benchmarks/kernel.py "
        "--out docs/benchmarks/kernel.md`. Four noisy circles; seconds of one fit "
        "(median of three, of one from 100,000 rows on), peak memory of the whole process "
        "(importing torch and scikit-learn alone takes 0.6 GB), accuracy of a ridge probe on "
        f"2,000 new points. Approximate solvers use {FEATURES:,} features. scikit-learn's "
        "SpectralEmbedding and KernelPCA do not see labels, and the first must see the test "
        "points.",
    ]
    for n, entries in tables.items():
        base = "likewise, exact" if n == FEW_ROWS else "likewise, fourier"
        lines += [
            "",
            f"## {n:,} rows, {'5 labels a class' if n == FEW_ROWS else 'all labels'}",
            "",
            f"| | seconds | time / {base} | GB | probe accuracy |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        ours = entries[base]["seconds"]
        for name, each in entries.items():
            lines.append(
                f"| {name} | {each['seconds']:.3g} | {each['seconds'] / ours:.2f} | "
                f"{each['gigabytes']:.2f} | {each['accuracy']:.3f} |"
            )
    if image is not None:
        lines += [
            "",
            "## Cost against N and m",
            "",
            f"![Seconds of a fit against the number of rows and of features.]({image.as_posix()})",
        ]
    return "\n".join(lines) + "\n"


def plot(curves: dict[str, list[tuple[float, float]]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for name, points in curves.items():
        axis, solver = name.split("/")
        axes["Nm".index(axis)].loglog(*zip(*points, strict=True), marker="o", label=solver)
    axes[0].set(xlabel="N rows (m = 1,000 features)", ylabel="seconds of a fit")
    axes[1].set(xlabel="m features (N = 20,000 rows)")
    for each in axes:
        each.grid(alpha=0.3)
        each.legend(frameon=False)
    figure.tight_layout()
    temporary = path.with_name(f".{path.name}")
    figure.savefig(temporary, dpi=110, format="png")
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the page here, and the plot beside images")
    parser.add_argument("--largest", type=int, default=1_000_000, help="leave out more rows")
    parser.add_argument("--entry", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.entry:
        print(json.dumps(measure(arguments.entry, arguments.rows)))
        return
    tables: dict[int, dict[str, dict[str, float]]] = {}
    for n, names in CASES:
        if n > arguments.largest:
            continue
        for name in names:
            each = apart(name, n, repeats=1 if n >= 100_000 else 3)
            tables.setdefault(n, {})[name] = each
            print(
                f"{n:>9,} {name:34s} {each['seconds']:8.2f} s {each['gigabytes']:6.2f} GB "
                f"{each['accuracy']:.3f}",
                flush=True,
            )
    image = None
    if arguments.out:
        image = Path("../images/kernel_cost.png")
        target = (arguments.out.parent / image).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        plot(costs(), target)
        text = page(tables, image)
        temporary = arguments.out.with_name(f".{arguments.out.name}")
        temporary.write_text(text)
        temporary.replace(arguments.out)


if __name__ == "__main__":
    main()
