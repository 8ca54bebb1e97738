"""Data and second implementations that the tests of this room share."""

from __future__ import annotations

import math

import numpy as np


def blobs(n, classes=4, dim=6, spread=1.0, seed=0):
    """Rows around one centre a class (the same centres for every seed), and their labels."""
    centres = np.random.default_rng(99).normal(size=(classes, dim))
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return (centres[y] + spread * rng.normal(size=(n, dim))).astype(np.float32), y


def cosine(a, b):
    norms = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 0.0


def naive_votes(bank, labels, queries, k, temperature, majority=False, own=False, classes=None):
    """Shares of the vote by loops, in float64; equally similar rows by their number."""
    bank, queries = np.float64(bank), np.float64(queries)
    classes = max(labels) + 1 if classes is None else classes
    answers = []
    for i, query in enumerate(queries):
        near = []
        for j, row in enumerate(bank):
            if labels[j] >= 0 and not (own and i == j):
                near.append((-cosine(query, row), j))
        votes = [0.0] * classes
        for similarity, j in sorted(near)[:k]:
            votes[labels[j]] += 1.0 if majority else math.exp(-similarity / temperature)
        answers.append([vote / sum(votes) for vote in votes])
    return np.array(answers)


def rotation(dim, seed=3):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0].astype(np.float32)
