"""Labelled rows to simulate with: scikit-learn's digits, or an embeddings file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TEST_DIGITS = 500


@dataclass(frozen=True)
class Split:
    """Rows to ask about with the classes that answer, and others to measure on."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    test_rows: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def labelled_split(data: str, test: str | None = None, *, seed: int = 0) -> Split:
    """Rows with labels, in two parts.

    Args:
        data: "digits" (1,297 and 500 of scikit-learn's, pixels between 0 and 1), or a file of
            labelled embeddings: what `likewise embed` wrote (.parquet), or an .npz file with the
            arrays `embedding` (n, d), in any precision, and `label` (n,), -1 where unknown.
        test: another such file; by default a quarter of `data` at random.
        seed: of the split.

    >>> split = labelled_split("digits")
    >>> split.X.shape, split.test_rows.shape
    ((1297, 64), (500, 64))
    """
    if data == "digits":
        from sklearn.datasets import load_digits

        if test is not None:
            raise ValueError(f"test is {test}: digits bring their own 500 test items")
        X, y = load_digits(return_X_y=True)
        return _cut((X / 16).astype(np.float32), y.astype(np.int64), TEST_DIGITS, seed)
    X, y = _labelled(data)
    if test is None:
        return _cut(X, y, max(len(X) // 4, 1), seed)
    return Split(X, y, *_labelled(test))


def full_label_accuracy(split: Split, most: int = 100_000) -> float:
    """The accuracy of a logistic regression that sees all labels (of at most so many rows)."""
    from sklearn.linear_model import LogisticRegression

    X, y = split.X, split.y
    if len(X) > most:
        drawn = np.random.default_rng(0).choice(len(X), most, replace=False)
        X, y = X[drawn], y[drawn]
    model = LogisticRegression(max_iter=3000 if len(X) <= 5000 else 500).fit(X, y)
    return float(model.score(split.test_rows, split.test_labels))


def _cut(X: NDArray[np.float32], y: NDArray[np.int64], test: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(X))
    kept, tested = order[: len(X) - test], order[len(X) - test :]
    return Split(X[kept], y[kept], X[tested], y[tested])


def _labelled(path: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if not Path(path).exists():
        raise ValueError(
            f"data is {path!r}: give 'digits', or a file of embeddings that likewise embed wrote"
        )
    rows, labels = _arrays(path) if Path(path).suffix == ".npz" else _embeddings(path)
    if labels is None or (labels < 0).all():
        raise ValueError(f"{path} has no labels: a simulation needs them to answer")
    known = labels >= 0
    return rows[known], labels[known]


def _embeddings(path: str) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
    from likewise.evaluation.embeddings import read_embeddings

    embeddings = read_embeddings(path)
    return embeddings.rows, embeddings.labels


def _arrays(path: str) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
    with np.load(path) as held:
        if "embedding" not in held:
            raise ValueError(f"{path} holds {sorted(held)}: name the rows `embedding`")
        rows = held["embedding"].astype(np.float32)
        labels = held["label"].astype(np.int64) if "label" in held else None
    if rows.ndim != 2 or (labels is not None and labels.shape != (len(rows),)):
        shape = None if labels is None else labels.shape
        raise ValueError(
            f"{path}: embedding has shape {rows.shape} and label {shape}: give (n, d) and (n,)"
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{path}: embedding holds numbers that are not finite")
    return rows, labels
