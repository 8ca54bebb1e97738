"""Images in memory, and images that are streamed."""

import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from likewise.data import Images, StreamedImages, images, load_images, open_source
from likewise.data.resizing import canvas
from tests.data.pictures import encoded, pixels, smooth, write

N = 150
BROKEN = {"003.jpg", "070.jpg", "149.jpg"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """150 images of several sizes, three of which are broken in different ways."""
    folder = tmp_path_factory.mktemp("photos")
    for seed in range(N):
        write(folder / f"{seed:03d}.jpg", seed, height=10 + seed % 3, width=12)
    whole = encoded(pixels(0, 64, 64), "JPEG")
    (folder / "003.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "070.jpg").write_bytes(b"")
    (folder / "149.jpg").write_text("this is no image")
    return folder


@pytest.fixture
def source(folder):
    return open_source(folder, labels=np.arange(N) % 5)


class TestLoad:
    @pytest.mark.parametrize("workers", [0, 1, 3])
    def test_broken_ones_are_left_out_and_said(self, source, workers):
        loaded = load_images(source, 10, workers=workers)
        assert set(loaded.broken) == BROKEN
        assert "truncated" in loaded.broken["003.jpg"]
        assert "cannot identify" in loaded.broken["149.jpg"]
        assert loaded.keys == [key for key in source.keys if key not in BROKEN]
        assert len(loaded) == len(loaded.pixels) == N - 3
        for key in ("000.jpg", "004.jpg", "071.jpg", "148.jpg"):
            place, index = loaded.index_of(key), source.index_of(key)
            assert torch.equal(loaded.pixels[place], canvas(source.read(index), 10))
            assert loaded.labels[place] == index % 5
        assert "3 broken left out" in repr(loaded)

    @pytest.mark.parametrize("workers", [1, 2])
    def test_progress(self, source, workers):
        seen = []
        load_images(source, 8, workers=workers, progress=lambda *at: seen.append(at))
        assert [done for done, _ in seen] == sorted({done for done, _ in seen})
        assert seen[-1] == (N, N) and len(seen) > 1

    def test_threads_where_decoding_is_slow(self, source, monkeypatch):
        monkeypatch.setattr(images, "SLOW", 0.0)
        monkeypatch.setattr(images, "_cores", lambda: 2)
        assert torch.equal(load_images(source, 8).pixels, load_images(source, 8, workers=1).pixels)

    def test_a_large_jpeg_is_nearly_the_same(self, tmp_path):
        for name in ("a", "b"):
            Image.fromarray(smooth(480, 640)).save(tmp_path / f"{name}.jpg", quality=95)
        source = open_source(tmp_path)
        exact = canvas(source.read(0), 32).int()
        assert (load_images(source, 32).pixels[0].int() - exact).abs().float().mean() < 1

    def test_bombs_are_broken(self, tmp_path, monkeypatch):
        for name in ("a.png", "b.png"):
            write(tmp_path / name)
        write(tmp_path / "bomb.png", height=40, width=40)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 200)
        loaded = load_images(open_source(tmp_path), 4)
        assert "decompression bomb" in loaded.broken["bomb.png"] and len(loaded) == 2

    def test_all_broken(self, folder):
        source = open_source(folder)
        source = source.subset(source.index_of(sorted(BROKEN)))
        with pytest.raises(ValueError, match=r"3 of 3 images in .* leaves 0.*003.jpg: .*truncated"):
            load_images(source, 8)

    def test_too_few(self, source):
        with pytest.raises(ValueError, match="has 1 image: give at least 2"):
            load_images(source.subset([0]), 8)
        with pytest.raises(ValueError, match="1 of 2 images .* which leaves 1: give at least 2"):
            load_images(source.subset([0, 3]), 8)
        assert len(load_images(source.subset([0]), 8, at_least=1)) == 1
        with pytest.raises(ValueError, match="has 0 images"):
            load_images(source.subset([]), 8, at_least=0)

    def test_more_than_memory(self, source, monkeypatch):
        monkeypatch.setattr(images, "available_memory", lambda: 10_000)
        with pytest.raises(
            ValueError, match=r"150 images of 32 x 32 take 450.0 KiB.*StreamedImages"
        ):
            load_images(source, 32)

    @pytest.mark.parametrize(("change", "match"), [({"size": 0}, "size"), ({"workers": -1}, "-1")])
    def test_bad_arguments(self, source, change, match):
        with pytest.raises(ValueError, match=match):
            load_images(source, **{"size": 8, **change})


class TestImages:
    @pytest.fixture
    def loaded(self, source):
        return load_images(source, 8)

    def test_subset(self, loaded):
        subset = loaded.subset([5, 2])
        assert subset.keys == [loaded.keys[5], loaded.keys[2]]
        assert torch.equal(subset.pixels, loaded.pixels[[5, 2]])
        assert subset.labels.tolist() == loaded.labels[[5, 2]].tolist()

    def test_with_labels(self, loaded):
        other = loaded.with_labels([0] * len(loaded), ["one"])
        assert other.class_names == ["one"] and other.pixels is loaded.pixels
        assert other.broken == loaded.broken and other.fingerprint() == loaded.fingerprint()

    def test_to(self, loaded):
        assert loaded.to("meta").pixels.device.type == "meta"
        assert loaded.pixels.device.type == "cpu"

    @pytest.mark.gpu
    def test_on_a_gpu(self, loaded):
        there = loaded.to("cuda")
        assert torch.equal(there.subset([1, 0]).pixels.cpu(), loaded.pixels[[1, 0]])

    def test_bad_pixels(self):
        with pytest.raises(ValueError, match=r"give uint8 \(N, 3, S, S\)"):
            Images(torch.zeros(2, 3, 4, 4), ["a", "b"])
        with pytest.raises(ValueError, match="2 images have 1 keys"):
            Images(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), ["a"])


class TestStream:
    def test_agrees_with_loading(self, source):
        loaded, streamed = load_images(source, 8), StreamedImages(source, 8)
        whole = [index for index, key in enumerate(source.keys) if key not in BROKEN]
        pixels_, indices = streamed[whole]
        assert torch.equal(pixels_, loaded.pixels) and indices.tolist() == whole
        assert streamed.broken_count == 0
        assert streamed.keys == source.keys and streamed.fingerprint() == source.fingerprint()

    def test_one_index(self, source):
        image, index = StreamedImages(source, 8)[5]
        assert image.shape == (3, 8, 8) and index.item() == 5

    def test_the_next_readable_one_takes_the_place(self, source):
        streamed = StreamedImages(source, 8)
        shown, indices = streamed[[2, 3, 149]]
        assert indices.tolist() == [2, 4, 0]
        assert torch.equal(shown[1:], streamed[[4, 0]][0])
        assert set(streamed.broken) == {"003.jpg", "149.jpg"} and streamed.broken_count == 2

    def test_nobody_is_in_a_batch_twice(self, source):
        """3, 70 and 149 are broken; two who have half of a batch each do not choose the same."""
        streamed = StreamedImages(source, 8)
        batch = [3, 4, 70, 5, 149, 0]
        parts = [
            streamed.without_repeats(batch, range(3 * turn, 3 * turn + 3), turn, 2)
            for turn in (0, 1)
        ]
        shown = torch.cat([indices for _, indices in parts]).tolist()
        assert shown == [6, 4, 72, 5, 1, 0]
        assert torch.equal(torch.cat([pixels for pixels, _ in parts]), streamed[shown][0])

    def test_where_nobody_is_left_it_is_grey(self, source):
        few = StreamedImages(source.subset([2, 3]), 8)
        pixels, shown = few.without_repeats([1, 0], range(2))
        assert shown.tolist() == [1, 0]
        assert pixels[0].unique().tolist() == [128] and torch.equal(pixels[1], few[0][0])

    def test_a_disk_that_is_gone_is_not_grey(self, tmp_path):
        for name in ("a.png", "b.png", "c.png"):
            write(tmp_path / name)
        streamed = StreamedImages(open_source(tmp_path), 4)
        for name in ("a.png", "b.png", "c.png"):
            (tmp_path / name).unlink()
        with pytest.raises(ValueError, match="images in a row cannot be read"):
            streamed.without_repeats([0, 1], range(2))

    @pytest.mark.parametrize("context", ["fork", "spawn"])
    def test_workers_count_what_is_broken(self, source, context):
        streamed = StreamedImages(source, 8)
        batches = [[0, 3], [70, 71], [70, 149]]
        loader = DataLoader(
            streamed,
            sampler=batches,
            batch_size=None,
            num_workers=2,
            multiprocessing_context=context,
        )
        shown = [indices.tolist() for _, indices in loader]
        assert shown == [[0, 4], [71, 71], [71, 0]]
        assert streamed.broken_count == 3 and set(streamed.broken) == BROKEN

    def test_read_again_by_now(self, tmp_path):
        for name in ("a.png", "b.png", "c.png"):
            write(tmp_path / name)
        whole = (tmp_path / "b.png").read_bytes()
        (tmp_path / "b.png").write_bytes(b"")
        streamed = StreamedImages(open_source(tmp_path), 4)
        streamed[[1]]
        (tmp_path / "b.png").write_bytes(whole)
        assert "can be by now" in streamed.broken["b.png"]

    def test_all_broken(self, folder):
        source = open_source(folder)
        source = source.subset(source.index_of(sorted(BROKEN)))
        with pytest.raises(ValueError, match="3 of 3 images .* cannot be read"):
            StreamedImages(source, 8)

    def test_broken_later(self, tmp_path):
        for name in ("a.png", "b.png"):
            write(tmp_path / name)
        streamed = StreamedImages(open_source(tmp_path), 4)
        for name in ("a.png", "b.png"):
            (tmp_path / name).unlink()
        with pytest.raises(ValueError, match="2 images in a row cannot be read, from 'b.png' on"):
            streamed[[1]]

    def test_too_few(self, source):
        with pytest.raises(ValueError, match="has 1 image: give at least 2"):
            StreamedImages(source.subset([0]), 8)

    def test_bad_arguments(self, source):
        with pytest.raises(ValueError, match="size is 0"):
            StreamedImages(source, 0)
        with pytest.raises(IndexError, match="index 150 is outside"):
            StreamedImages(source, 8)[[150]]

    def test_labels_may_be_replaced(self, source):
        streamed = StreamedImages(source, 8).with_labels([1] * N, ["a", "b"])
        assert streamed.labels.tolist() == [1] * N
        assert torch.equal(streamed[[7]][0], pickle.loads(pickle.dumps(streamed))[[7]][0])
