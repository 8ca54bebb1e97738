import gzip
import struct

import numpy as np
import pytest

from likewise.data import fashion_mnist, open_source


def write_idx(path, array):
    head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    for part, n in (("train", 12), ("t10k", 5)):
        images = random.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", images)
        labels = np.arange(n, dtype=np.uint8) % 10
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", labels)
        np.save(tmp_path / f"{part}.npy", images)
    return tmp_path


def test_images_and_labels_are_those_of_the_files(folder, monkeypatch):
    monkeypatch.setenv("LIKEWISE_FASHION_MNIST", str(folder))
    for name, part in (("fashion-mnist", "train"), ("fashion-mnist:test", "t10k")):
        source = open_source(name)
        images = np.load(folder / f"{part}.npy")
        assert len(source) == len(images)
        for row, image in enumerate(images):
            assert np.array_equal(source.read(row).numpy(), np.stack([image] * 3))
        assert source.class_names[source.labels[3]] == "dress"


def test_what_is_missing_or_broken_is_said(folder, tmp_path_factory):
    with pytest.raises(ValueError, match="dataset-fashion-mnist"):
        fashion_mnist("train", folder=tmp_path_factory.mktemp("empty"))
    file = folder / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ValueError, match="no IDX file"):
        fashion_mnist("test", folder=folder)
    with pytest.raises(ValueError, match="fashion-mnist:test"):
        open_source("fashion-mnist:valid")
