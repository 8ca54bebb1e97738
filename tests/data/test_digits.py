"""The built-in digits."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from likewise.data import digits, load_images, open_source
from likewise.data.built_in import _place
from tests.data import contract

TRAIN, TEST = 1437, 360


class TestDigits(contract.SourceContract):
    def make(self, folder):
        return digits("test", copies=1).subset(range(6))

    def expected(self, index):
        return digits("test", copies=1).read(index).permute(1, 2, 0).numpy()


def base(source):
    return {int(key.split("-")[0]) for key in source.keys}


def test_no_digit_is_in_both_parts():
    train, test = open_source("digits"), open_source("digits:test")
    assert len(base(train)) == TRAIN and len(base(test)) == TEST
    assert not base(train) & base(test)
    images = load_digits().images
    shown = [{images[i].tobytes() for i in base(source)} for source in (train, test)]
    assert not shown[0] & shown[1]


def test_keys_name_the_digit():
    source = digits(copies=3)
    target = load_digits().target
    assert len(source) == 3 * TRAIN
    for index in (0, 1, 2, 500, -1):
        assert source.labels[index] == target[int(source.keys[index].split("-")[0])]


def test_deterministic_by_seed():
    first, again, other = (digits("test", copies=1, seed=seed) for seed in (0, 0, 1))
    assert first.keys == other.keys
    assert all(torch.equal(first.read(i), again.read(i)) for i in range(20))
    assert not any(torch.equal(first.read(i), other.read(i)) for i in range(20))


def test_copies_differ():
    source = digits("test")
    assert source.keys[0].split("-")[0] == source.keys[1].split("-")[0]
    assert not torch.equal(source.read(0), source.read(1))


def test_digits_are_seen_on_every_canvas():
    """Light and dark differ by more than noise and background would."""
    pixels = load_images(digits("test"), 32).pixels.double() / 255
    grey = (pixels * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1).flatten(1)
    assert (grey.quantile(0.98, 1) - grey.quantile(0.02, 1)).min() > 0.3


def test_placing_agrees_with_loops():
    """Each pixel of the canvas, turned and scaled back into the shape, between four of its."""
    size, shapes = 16, torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(0))
    options = {"width": (0.4, 0.7), "angle": 30.0}
    ink = _place(shapes, size, np.random.default_rng(5), **options)
    random = np.random.default_rng(5)
    scale, turn = random.uniform(0.4, 0.7, 3), np.deg2rad(random.uniform(-30, 30, 3))
    centre = random.uniform(-1, 1, (3, 2)) * (1 - scale[:, None])
    for n in range(3):
        cosine, sine = np.cos(turn[n]), np.sin(turn[n])
        for row in range(size):
            for column in range(size):
                x = (2 * column + 1) / size - 1 - centre[n, 0]
                y = (2 * row + 1) / size - 1 - centre[n, 1]
                u = ((cosine * x + sine * y) / scale[n] + 1) * 4 - 0.5
                v = ((cosine * y - sine * x) / scale[n] + 1) * 4 - 0.5
                value = 0.0
                for i in range(8):
                    for j in range(8):
                        near = max(0.0, 1 - abs(v - i)) * max(0.0, 1 - abs(u - j))
                        value += near * shapes[n, i, j].item()
                assert ink[n, 0, row, column].item() == pytest.approx(min(1, 1.2 * value), abs=1e-4)


@pytest.mark.parametrize("size", [16, 48])
def test_size(size):
    assert digits("test", copies=1, size=size).read(3).shape == (3, size, size)


def test_pixels_are_a_poor_representation():
    train, test = (load_images(open_source(f"digits:{part}"), 32) for part in ("train", "test"))
    rows = [images.pixels.flatten(1).numpy().astype(np.float32) for images in (train, test)]
    score = KNeighborsClassifier(5).fit(rows[0], train.labels).score(rows[1], test.labels)
    assert 0.15 < score < 0.35


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"split": "dev"}, "split is 'dev'"),
        ({"copies": 0}, "copies is 0"),
        ({"size": 8}, "size is 8"),
    ],
)
def test_bad_arguments(arguments, match):
    with pytest.raises(ValueError, match=match):
        digits(**arguments)
