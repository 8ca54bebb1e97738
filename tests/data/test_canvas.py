"""The canvas, against torchvision and Pillow."""

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.data import available_memory, bytes_needed, canvas, fits_in_memory, memory
from tests.data.pictures import pixels, smooth


def tensor(picture):
    return torch.from_numpy(picture).permute(2, 0, 1)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (32, 57), (80, 32)])
def test_the_right_size_is_left_bit_for_bit(height, width):
    image = tensor(pixels(0, height, width))
    top, left = (height - 32) // 2, (width - 32) // 2
    assert torch.equal(canvas(image, 32), image[:, top : top + 32, left : left + 32])


@pytest.mark.parametrize(
    ("height", "width"), [(100, 100), (64, 97), (131, 60), (20, 30), (7, 50), (240, 33)]
)
@pytest.mark.parametrize("picture", [pixels, lambda seed, *size: smooth(*size)])
def test_is_resize_and_centre_crop_of_torchvision(height, width, picture):
    from torchvision.transforms.v2 import CenterCrop, Compose, Resize

    image = tensor(picture(1, height, width))
    expected = Compose([Resize(32, antialias=True), CenterCrop(32)])(image)
    assert torch.equal(canvas(image, 32), expected)


def test_is_nearly_that_of_pillow():
    picture = pixels(2, 90, 90)
    expected = np.asarray(Image.fromarray(picture).resize((32, 32), Image.BILINEAR)).astype(int)
    assert np.abs(canvas(tensor(picture), 32).permute(1, 2, 0).numpy() - expected).max() <= 1


@pytest.mark.parametrize(("height", "width"), [(1, 100_000), (100_000, 1), (2, 2), (1, 1)])
def test_extreme_shapes(height, width):
    image = torch.full((3, height, width), 9, dtype=torch.uint8)
    assert torch.equal(canvas(image, 16), torch.full((3, 16, 16), 9, dtype=torch.uint8))


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "32", None])
def test_bad_size(size):
    with pytest.raises(ValueError, match="side of the canvas in pixels"):
        canvas(tensor(pixels(0)), size)


@pytest.mark.parametrize("image", [torch.zeros(3, 4, 4), torch.zeros(4, 4, 3).byte()])
def test_bad_image(image):
    with pytest.raises(ValueError, match=r"give uint8 \(3, H, W\)"):
        canvas(image, 8)


class TestMemory:
    def test_bytes_are_those_of_the_tensor(self):
        assert bytes_needed(7, 9) == torch.zeros(7, 3, 9, 9, dtype=torch.uint8).nbytes

    def test_share_of_what_is_free(self, monkeypatch):
        monkeypatch.setattr(memory, "available_memory", lambda device: bytes_needed(100, 8))
        assert fits_in_memory(60, 8) and not fits_in_memory(61, 8)

    def test_copies_share_what_there_is(self, monkeypatch):
        def busy(device):
            raise AssertionError("what is free differs between processes that ask")

        monkeypatch.setattr(memory, "available_memory", busy)
        monkeypatch.setattr(memory, "total_memory", lambda device: bytes_needed(100, 8))
        assert fits_in_memory(30, 8, copies=2, of_all=True)
        assert not fits_in_memory(31, 8, copies=2, of_all=True)

    def test_every_process_streams_or_none(self, monkeypatch):
        from likewise.training.images import _fit
        from likewise.training.machine import Machine

        monkeypatch.setattr(memory, "total_memory", lambda device: bytes_needed(100, 8))
        found = []
        for free in (10**9, 0):
            monkeypatch.setattr(memory, "available_memory", lambda device, free=free: free)
            found.append([_fit(25, 8, Machine(devices=n)) for n in (1, 2, 3)])
        assert found == [[True, True, False], [False, True, False]]

    def test_of_this_machine(self):
        free = available_memory()
        assert free is not None and 2**20 < free < 2**60

    @pytest.mark.gpu
    def test_of_a_gpu(self):
        assert available_memory("cuda") == pytest.approx(torch.cuda.mem_get_info()[0], rel=0.1)
