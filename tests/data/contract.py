"""What every source promises. Each kind's test class inherits it and says how to build one."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from likewise.data import BrokenImage, Source, StreamedImages, load_images, open_source


class SourceContract:
    """Inherit, and override `make` and `expected`. The source has at least four images."""

    def make(self, folder: Path) -> Source:
        """The SOURCE, made in an empty folder; always the same."""
        raise NotImplementedError

    def expected(self, index: int) -> np.ndarray:
        """The PIXELS of an image, uint8 (H, W, 3), made without the library."""
        raise NotImplementedError

    @pytest.fixture
    def source(self, tmp_path: Path) -> Source:
        return self.make(tmp_path)

    # --- images -----------------------------------------------------------------------------

    def test_reads_what_is_there(self, source: Source) -> None:
        for index in range(len(source)):
            image = source.read(index)
            assert image.dtype == torch.uint8
            np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), self.expected(index))

    def test_what_was_read_may_be_changed(self, source: Source) -> None:
        before = source.read(0).clone()
        source.read(0).zero_()
        assert torch.equal(source.read(0), before)

    def test_last_by_negative_index(self, source: Source) -> None:
        assert torch.equal(source.read(-1), source.read(len(source) - 1))

    def test_index_outside(self, source: Source) -> None:
        for index in (len(source), -len(source) - 1):
            with pytest.raises(IndexError, match=f"index {index} is outside"):
                source.read(index)

    def test_failure_is_a_broken_image(self, source: Source, monkeypatch) -> None:
        def fail(row: int, enough: int) -> torch.Tensor:
            raise OSError("the disk\n  is gone")

        monkeypatch.setattr(source, "_read", fail)
        with pytest.raises(BrokenImage, match="the disk is gone") as caught:
            source.read(1)
        assert caught.value.key == source.keys[1]
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.key, again.reason) == (caught.value.key, "the disk is gone")

    # --- keys -------------------------------------------------------------------------------

    def test_keys_are_unique_text(self, source: Source) -> None:
        assert all(isinstance(key, str) and key for key in source.keys)
        assert len(set(source.keys)) == len(source.keys) == len(source)

    def test_opened_again_it_is_the_same(self, source: Source, tmp_path: Path) -> None:
        again = self.make(tmp_path)
        assert again.keys == source.keys
        assert again.class_names == source.class_names
        np.testing.assert_array_equal(again.labels, source.labels)

    def test_index_of_keys(self, source: Source) -> None:
        backwards = source.keys[::-1]
        expected = np.arange(len(source))[::-1]
        np.testing.assert_array_equal(source.index_of(backwards), expected)
        assert source.index_of(source.keys[2]) == 2
        with pytest.raises(ValueError, match="1 of 2 keys are not here, 'no such key'"):
            source.index_of([source.keys[0], "no such key"])

    def test_fingerprint_follows_keys_only(self, source: Source) -> None:
        same = source.with_labels(np.zeros(len(source), dtype=int), ["only"])
        assert same.fingerprint() == source.fingerprint()
        order = np.arange(len(source))[::-1]
        changed = {source.subset(order).fingerprint(), source.subset(order[1:]).fingerprint()}
        assert len(changed | {source.fingerprint()}) == 3

    # --- subsets and labels -------------------------------------------------------------------

    def test_subset(self, source: Source) -> None:
        mask = np.arange(len(source)) % 2 == 1
        every = range(len(source))
        kinds = [([3, 0], [3, 0]), (torch.tensor([2, -1]), [2, every[-1]]), (mask, every[1::2])]
        for indices, chosen in [*kinds, (slice(1, 3), [1, 2]), ([], [])]:
            subset = source.subset(indices)
            assert type(subset) is type(source)
            assert subset.keys == [source.keys[i] for i in chosen]
            if source.labels is not None:
                np.testing.assert_array_equal(subset.labels, source.labels[list(chosen)])
            for place, index in enumerate(chosen):
                assert torch.equal(subset.read(place), source.read(index))

    def test_subset_of_a_subset(self, source: Source) -> None:
        subset = source.subset([3, 1, 0])
        inner = subset.subset([2, 0])
        assert inner.keys == [source.keys[0], source.keys[3]]
        assert torch.equal(inner.read(1), source.read(3))
        assert inner.index_of(source.keys[3]) == 1
        assert subset.index_of(source.keys[3]) == 0

    def test_subset_refuses_bad_indices(self, source: Source) -> None:
        with pytest.raises(ValueError, match="twice"):
            source.subset([1, 1])
        with pytest.raises(IndexError, match="outside"):
            source.subset([len(source)])
        with pytest.raises(ValueError, match="mask of 2"):
            source.subset(np.array([True, False]))
        with pytest.raises(ValueError, match="float64"):
            source.subset([0.5])

    def test_with_labels(self, source: Source) -> None:
        before = None if source.labels is None else source.labels.copy()
        labels = np.arange(len(source)) % 3 - 1
        other = source.with_labels(labels, ["a", "b"])
        assert other.labels is not None and other.labels.dtype == np.int64
        np.testing.assert_array_equal(other.labels, labels)
        assert other.class_names == ["a", "b"] and other.keys == source.keys
        assert torch.equal(other.read(1), source.read(1))
        np.testing.assert_array_equal(source.labels, before)
        assert source.with_labels(None, None).labels is None

    def test_with_labels_refuses_bad_ones(self, source: Source) -> None:
        n = len(source)
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            source.with_labels([0, 1], ["a", "b"])
        with pytest.raises(ValueError, match="label 2 is none of 2 classes"):
            source.with_labels([2] * n, ["a", "b"])
        with pytest.raises(ValueError, match="label -2 is none"):
            source.with_labels([-2] * n, ["a", "b"])
        with pytest.raises(ValueError, match="float64"):
            source.with_labels([0.5] * n, ["a", "b"])
        with pytest.raises(ValueError, match="'a' is given twice"):
            source.with_labels([0] * n, ["a", "a"])

    # --- what uses a source -------------------------------------------------------------------

    def test_pickles(self, source: Source) -> None:
        source.index_of(source.keys[0])  # fills a cache, which does not travel
        for part in (source, source.subset([2, 0])):
            again = pickle.loads(pickle.dumps(part))
            assert again.keys == part.keys and again.fingerprint() == part.fingerprint()
            assert torch.equal(again.read(0), part.read(0))
            assert again.index_of(part.keys[1]) == 1

    def test_description(self, source: Source) -> None:
        assert source.description.startswith(f"{len(source):,} images in {source.place} (")
        assert source.description in repr(source)

    def test_opening_a_source_gives_it_back(self, source: Source) -> None:
        assert open_source(source) is source

    def test_loads_and_streams_the_same_pixels(self, source: Source) -> None:
        images = load_images(source, 5)
        assert images.keys == source.keys and not images.broken
        assert images.pixels.shape == (len(source), 3, 5, 5)
        pixels, indices = StreamedImages(source, 5)[[2, 0]]
        assert torch.equal(pixels, images.pixels[[2, 0]]) and indices.tolist() == [2, 0]

    def test_streams_through_worker_processes(self, source: Source) -> None:
        images = StreamedImages(source, 5)
        loader = DataLoader(images, sampler=[[0, 3], [1]], batch_size=None, num_workers=1)
        batches = [(pixels.clone(), indices.tolist()) for pixels, indices in loader]
        assert [indices for _, indices in batches] == [[0, 3], [1]]
        assert torch.equal(batches[0][0], images[[0, 3]][0])
