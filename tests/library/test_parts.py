"""Subsets and splits: balanced, typical, diverse; twins in one part, strata shared alike."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.library import choose_subset, split_items
from likewise.library.subsets import shares_of
from tests.library.test_clusters import blobs


class TestSubset:
    @pytest.mark.parametrize("method", ["typical", "diverse", "random", "balanced"])
    @pytest.mark.parametrize("size", [1, 7, 60])
    def test_takes_as_many_as_asked_each_once(self, method, size):
        rows, labels = blobs(3, 20)
        found = choose_subset(rows, size, method=method, groups=labels)
        assert len(set(found.tolist())) == size
        assert np.array_equal(found, choose_subset(rows, size, method=method, groups=labels))

    def test_diverse_is_farthest_first(self):
        rows, _ = blobs(3, 12)
        found = choose_subset(rows, 8, method="diverse").tolist()
        for number in range(1, 8):

            def nearest(i, taken=tuple(found[:number])):
                return max(float(rows[i] @ rows[j]) for j in taken)

            left = [i for i in range(36) if i not in found[:number]]
            assert nearest(found[number]) == pytest.approx(min(map(nearest, left)), abs=1e-6)

    def test_typical_has_every_kind(self):
        rows, labels = blobs(5, 30)
        assert set(labels[choose_subset(rows, 5)]) == set(range(5))

    def test_balanced_has_as_many_of_each_from_the_first_on(self):
        rows, labels = blobs(4, 30)
        labels[labels == 3] = np.where(np.arange(30) < 2, 3, -1)  # a rare class; others unlabelled
        found = choose_subset(rows, 14, method="balanced", groups=labels)
        assert np.bincount(labels[found]).tolist() == [4, 4, 4, 2]
        assert len(set(labels[found[:4]])) == 4

    @pytest.mark.parametrize("size", [0, 61])
    def test_refuses_sizes_that_cannot_be(self, size):
        with pytest.raises(ValueError, match=f"size is {size}"):
            choose_subset(blobs(3, 20)[0], size)

    def test_shares_are_as_equal_as_can_be(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            available = rng.integers(1, 20, 5)
            size = int(rng.integers(1, available.sum() + 1))
            shares = shares_of(size, available)
            assert shares.sum() == size and (shares <= available).all()
            open_ = shares < available
            assert not open_.any() or shares[open_].min() >= shares.max() - 1


class TestSplit:
    def test_twins_stay_together_and_strata_are_shared_alike(self):
        rng = np.random.default_rng(0)
        strata = rng.integers(4, size=800)
        twins = np.full(800, -1)
        for number in range(60):
            twins[rng.permutation(800)[:3]] = number
        parts = split_items(twins, strata, {"test": 0.2, "validation": 0.1}, seed=1)
        for number in range(60):
            assert len(set(parts[twins == number])) <= 1
        for stratum in range(4):
            inside = parts[strata == stratum]
            assert (inside == "test").mean() == pytest.approx(0.2, abs=0.05)
            assert (inside == "validation").mean() == pytest.approx(0.1, abs=0.04)
        assert (parts == "train").mean() == pytest.approx(0.7, abs=0.02)

    def test_many_small_strata_do_not_all_round_alike(self):
        parts = split_items(np.full(300, -1), np.repeat(np.arange(100), 3), {"test": 0.2})
        assert (parts == "test").mean() == pytest.approx(0.2, abs=0.03)

    def test_another_seed_is_another_split(self):
        first, again, other = (
            split_items(np.full(100, -1), np.zeros(100, int), {"test": 0.3}, seed=seed)
            for seed in (0, 0, 1)
        )
        assert np.array_equal(first, again) and not np.array_equal(first, other)

    @pytest.mark.parametrize("shares", [{"test": 0.0}, {"test": 1.2}, {"test": 0.6, "val": 0.5}])
    def test_refuses_shares_that_leave_nothing(self, shares):
        with pytest.raises(ValueError, match="share between|leave some"):
            split_items(np.full(4, -1), np.zeros(4, int), shares)
