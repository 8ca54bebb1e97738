"""Second implementations from the formulas: loops and NumPy in float64, no code of the library."""

from __future__ import annotations

import math

import numpy as np


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def orthogonal(dim, seed=0):
    return np.linalg.qr(normal(dim, dim, seed=seed))[0]


def unit(rows):
    rows = np.float64(rows)
    return np.stack([row / max(np.linalg.norm(row), 1e-300) for row in rows])


def exp_entropy(weights):
    total = sum(weights)
    shares = [w / total for w in weights]
    return math.exp(-sum(p * math.log(p) for p in shares if p > 1e-15))


def second_moment(rows):
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for row in np.float64(rows):
        total += np.outer(row, row)
    return total / len(rows)


def centred(rows):
    return np.float64(rows) - np.mean(np.float64(rows), axis=0)


def effective_rank(rows):
    return exp_entropy(np.linalg.eigvalsh(second_moment(rows)).clip(0))


def alignment(z1, z2, alpha):
    pairs = zip(unit(z1), unit(z2), strict=True)
    return np.mean([np.linalg.norm(a - b) ** alpha for a, b in pairs])


def uniformity(z, t):
    z = unit(z)
    potentials = [
        math.exp(-t * np.sum((z[i] - z[j]) ** 2))
        for i in range(len(z))
        for j in range(len(z))
        if i != j
    ]
    return math.log(np.mean(potentials))


def class_means(z, y):
    return {
        c: np.mean([row for row, k in zip(np.float64(z), y, strict=True) if k == c], axis=0)
        for c in sorted(set(y.tolist()))
    }


def scatters(z, y):
    """Within and between, and centred means in the order of the classes."""
    means, overall = class_means(z, y), np.mean(np.float64(z), axis=0)
    within = sum(
        np.outer(r - means[k], r - means[k]) for r, k in zip(np.float64(z), y.tolist(), strict=True)
    ) / len(z)
    apart = np.stack([mean - overall for mean in means.values()])
    between = sum(np.outer(m, m) for m in apart) / len(apart)
    return within, between, apart


def negatives(z1, z2, i):
    """(sample, view, row) of all rows of other samples, in the order of their rows."""
    return [(j, k, z[j]) for j in range(len(z1)) for k, z in enumerate((z1, z2)) if j != i]


def nearest(z1, z2, i):
    found = max(negatives(unit(z1), unit(z2), i), key=lambda item: unit(z1)[i] @ item[2])
    return found[0], found[1]


def info_nce(z1, z2, beta):
    """Loss, invariance, repulsion, expected similarity, entropy: means by loops."""
    one, two = unit(z1), unit(z2)
    parts = []
    for i in range(len(one)):
        others = np.array([one[i] @ row for _, _, row in negatives(one, two, i)])
        weights = np.exp(beta * others)
        shares = weights / weights.sum()
        loss = -math.log(math.exp(beta * one[i] @ two[i]) / weights.sum())
        entropy = -sum(p * math.log(p) for p in shares)
        parts.append((loss, -one[i] @ two[i], others.max(), shares @ others, entropy))
    return np.mean(parts, axis=0)


def column_projection(weight):
    """On col(W), W = weight^T."""
    w = np.float64(weight).T
    return w @ np.linalg.pinv(w)


def fraction_unexplained(moves, weight):
    rest = [
        np.linalg.norm(m - weight.T @ np.linalg.lstsq(weight.T, m, rcond=None)[0]) ** 2
        for m in np.float64(moves)
    ]
    return sum(rest) / sum(np.linalg.norm(m) ** 2 for m in moves)
