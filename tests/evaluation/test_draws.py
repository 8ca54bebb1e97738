"""What is drawn by chance: folds, held-out rows, rows of a silhouette; and by which seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score

from likewise.evaluation import clustering_scores, evaluate_embeddings, linear_probe
from likewise.evaluation import penalty as penalties
from tests.evaluation.blobs import blobs

Z, Y = blobs(120, spread=0.8)


def test_below_5000_rows_each_of_five_fifths_is_held_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, y = blobs(200, 4, 6, spread=3.0)
    seen: list[tuple[int, ...]] = []
    choose = penalties._choose

    def chosen(z, labels, n, several, held_out):
        sizes = [torch.bincount(labels[out], minlength=n).tolist() for out in held_out]
        assert torch.stack(list(held_out)).sum(dim=0).tolist() == [1] * len(z)
        # Of eleven rows a class gives the odd one to another fold than the next class.
        seen.extend(map(tuple, sizes))
        return choose(z, labels, n, several, held_out)

    monkeypatch.setattr(penalties, "_choose", chosen)
    keep = np.concatenate([np.flatnonzero(y == c)[:11] for c in range(4)])
    found = linear_probe(rows[keep], y[keep], rows, y)
    assert len(seen) == 5
    assert max(map(sum, seen)) - min(map(sum, seen)) <= 1
    total = sum(found.settings["held_out_errors"].values())
    assert total > 0 and all(
        abs(44 * share - round(44 * share)) < 1e-9
        for share in found.settings["held_out_errors"].values()
    )


def test_the_seed_draws_the_rows_of_the_silhouette() -> None:
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    for seed in (0, 1):
        order = torch.randperm(120, generator=torch.Generator().manual_seed(seed))[:30].numpy()
        expected = silhouette_score(unit[order], Y[order], metric="cosine")
        found = clustering_scores(Z, Y, silhouette_rows=30, seed=seed)
        assert found.silhouette == pytest.approx(expected, abs=1e-5)


def test_the_seed_reaches_every_draw() -> None:
    rows, y = blobs(150, 5, 6, spread=4.0)

    def found(seed: int):
        return evaluate_embeddings(rows, y, methods=("knn", "clustering"), k=1, seed=seed)

    one, other = found(0), found(3)
    # Other rows are held out, and k-means starts elsewhere.
    assert one.clustering.settings["seed"] == 0
    assert other.clustering.settings["seed"] == 3
    test = evaluate_embeddings(
        rows[50:], y[50:], rows[:50], y[:50], methods=("clustering",), seed=3
    )
    alone = clustering_scores(rows[:50], y[:50], seed=3)
    assert (test.clustering.nmi, test.clustering.settings) == (alone.nmi, alone.settings)
    assert one.knn[1].accuracy != other.knn[1].accuracy
