"""Images in arrays, and in .npy, .npz and .pt files."""

import pickle

import numpy as np
import pytest
import torch

from likewise.data import ArraySource, open_source
from tests.data import contract
from tests.data.pictures import pixels

N = 5
STACK = np.stack([pixels(seed) for seed in range(N)])
LABELS = np.array([0, 1, -1, 1, 0])


class OfTheStack(contract.SourceContract):
    def expected(self, index):
        return STACK[index]


class TestChannelsLast(OfTheStack):
    def make(self, folder):
        return open_source(STACK, labels=LABELS)


class TestChannelsFirst(OfTheStack):
    def make(self, folder):
        return open_source(STACK.transpose(0, 3, 1, 2))


class TestTensor(OfTheStack):
    def make(self, folder):
        return open_source(torch.from_numpy(STACK).permute(0, 3, 1, 2))


class TestFloats(OfTheStack):
    def make(self, folder):
        return open_source(STACK / 255)


class TestHalfPrecision(contract.SourceContract):
    levels = torch.linspace(0, 1, 6 * 7).reshape(1, 6, 7).repeat(N, 1, 1)

    def make(self, folder):
        return open_source(self.levels.bfloat16().requires_grad_())

    def expected(self, index):
        grey = (self.levels[index].bfloat16().double() * 255).round().numpy().astype(np.uint8)
        return np.stack([grey] * 3, axis=-1)


class TestGrey(contract.SourceContract):
    def make(self, folder):
        return open_source(STACK[..., 0])

    def expected(self, index):
        return np.stack([STACK[index, ..., 0]] * 3, axis=-1)


class TestOneChannel(TestGrey):
    def make(self, folder):
        return open_source(STACK[..., :1])


class TestNpy(OfTheStack):
    def make(self, folder):
        np.save(folder / "x.npy", STACK)
        return open_source(folder / "x.npy")

    def test_stays_on_the_disk(self, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros((200, 64, 64, 3), np.uint8))
        assert len(pickle.dumps(open_source(tmp_path / "x.npy"))) < 20_000

    def test_fortran_order(self, tmp_path):
        np.save(tmp_path / "x.npy", np.asfortranarray(STACK))
        source = pickle.loads(pickle.dumps(open_source(tmp_path / "x.npy")))
        np.testing.assert_array_equal(source.read(3).permute(1, 2, 0).numpy(), STACK[3])


class TestNpz(OfTheStack):
    def make(self, folder):
        np.savez(folder / "x.npz", x=STACK, y=LABELS, other=np.zeros(3))
        return open_source(folder / "x.npz")

    def test_labels(self, source):
        assert source.labels.tolist() == LABELS.tolist()
        assert source.class_names == ["0", "1"]


class TestPtPair(OfTheStack):
    def make(self, folder):
        torch.save((torch.from_numpy(STACK), torch.from_numpy(LABELS)), folder / "x.pt")
        return open_source(folder / "x.pt")

    def test_labels(self, source):
        assert source.labels.tolist() == LABELS.tolist()


class TestPtDictionary(OfTheStack):
    def make(self, folder):
        torch.save(
            {"images": torch.from_numpy(STACK), "names": ["b", "a", "", "a", "b"]}, folder / "x.pt"
        )
        return open_source(folder / "x.pt", label_column="names")

    def test_labels(self, source):
        assert source.labels.tolist() == [1, 0, -1, 0, 1]
        assert source.class_names == ["a", "b"]


def test_a_slice_of_a_memory_map_pickles_its_own_rows(tmp_path):
    np.save(tmp_path / "x.npy", STACK)
    part = np.load(tmp_path / "x.npy", mmap_mode="r")[2:]
    source = pickle.loads(pickle.dumps(open_source(part)))
    np.testing.assert_array_equal(source.read(0).permute(1, 2, 0).numpy(), STACK[2])


class TestBadArrays:
    @pytest.mark.parametrize(
        "shape", [(4,), (4, 3), (4, 5, 6, 7), (4, 5, 6, 2), (4, 0, 6), (2,) * 5]
    )
    def test_shape(self, shape):
        with pytest.raises(ValueError, match=r"has shape .*\(N, H, W\), \(N, H, W, 3\)"):
            open_source(np.zeros(shape, np.uint8))

    def test_ambiguous(self):
        with pytest.raises(ValueError, match=r"may be \(N, 3, H, W\) or \(N, H, W, 3\)"):
            open_source(np.zeros((4, 3, 8, 3), np.uint8))

    @pytest.mark.parametrize("kind", [np.int64, np.uint16, bool])
    def test_type(self, kind):
        with pytest.raises(ValueError, match="give uint8"):
            open_source(np.zeros((4, 8, 8), kind))

    @pytest.mark.parametrize(
        ("low", "high", "remedy"), [(0, 255, "x / 255"), (-1, 1, r"\(x \+ 1\) / 2")]
    )
    def test_range(self, low, high, remedy):
        array = np.linspace(low, high, 4 * 64).reshape(4, 8, 8)
        with pytest.raises(ValueError, match=f"floats from {low} to {high}.*{remedy}"):
            open_source(array)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, value):
        array = np.zeros((4, 8, 8))
        array[3, 2, 1] = value
        with pytest.raises(ValueError, match="NaN or infinity"):
            open_source(array)

    def test_empty(self):
        with pytest.raises(ValueError, match="an array has no images"):
            open_source(np.zeros((0, 8, 8), np.uint8))

    def test_labels_of_another_number(self):
        with pytest.raises(ValueError, match=r"labels have shape \(4,\): give one for each of 5"):
            open_source(STACK, labels=[0] * 4)

    def test_keys_of_another_number(self):
        with pytest.raises(ValueError, match="keys are 1 for 5 images"):
            ArraySource(STACK, keys=["a"])

    def test_repeated_keys(self):
        with pytest.raises(ValueError, match="'a' is the key of two items"):
            ArraySource(STACK, keys=["a", "b", "c", "d", "a"])


class TestBadFiles:
    def test_python_objects_are_not_loaded(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        torch.save({"x": STACK.tolist().append}, tmp_path / "x.pt")
        for name in ("x.npy", "x.pt"):
            with pytest.raises(ValueError, match=f"{name} cannot be read"):
                open_source(tmp_path / name)

    @pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.pt"])
    @pytest.mark.parametrize("data", [b"", b"nothing of the kind", b"PK\x03\x04 damaged"])
    def test_damaged(self, tmp_path, name, data):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name} cannot be read"):
            open_source(tmp_path / name)

    def test_several_arrays_of_images(self, tmp_path):
        np.savez(tmp_path / "x.npz", train=STACK, test=STACK[:2])
        with pytest.raises(
            ValueError, match=r"2 arrays that may be images \(train, test.*image_column"
        ):
            open_source(tmp_path / "x.npz")
        assert len(open_source(tmp_path / "x.npz", image_column="test")) == 2

    def test_no_images(self, tmp_path):
        np.savez(tmp_path / "x.npz", y=LABELS)
        with pytest.raises(ValueError, match=r"0 arrays that may be images \(none, of y\)"):
            open_source(tmp_path / "x.npz")
        torch.save({"step": 3, "image": "a"}, tmp_path / "x.pt")
        with pytest.raises(ValueError, match="holds a str"):
            open_source(tmp_path / "x.pt", image_column="image")

    def test_no_such_name(self, tmp_path):
        np.savez(tmp_path / "x.npz", x=STACK)
        with pytest.raises(ValueError, match="label_column is 'z': .* has x"):
            open_source(tmp_path / "x.npz", label_column="z")

    def test_names_for_a_file_without(self, tmp_path):
        np.save(tmp_path / "x.npy", STACK)
        with pytest.raises(ValueError, match="has no names"):
            open_source(tmp_path / "x.npy", image_column="x")

    def test_labels_of_another_number(self, tmp_path):
        np.savez(tmp_path / "x.npz", x=STACK, y=LABELS[:2])
        with pytest.raises(ValueError, match=r"labels of shape \(2,\) for 5 images"):
            open_source(tmp_path / "x.npz")
        assert open_source(tmp_path / "x.npz", label_column="none").labels is None

    def test_three_things(self, tmp_path):
        torch.save((torch.zeros(1), torch.zeros(1), torch.zeros(1)), tmp_path / "x.pt")
        with pytest.raises(ValueError, match="holds 3 things"):
            open_source(tmp_path / "x.pt")
