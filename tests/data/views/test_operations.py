"""Every operation against torchvision's function of the same name, row by row."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from likewise.data.views import colour, rows, shape
from likewise.data.views.resize import resize_matrix, resized_crops
from tests.data.views import naive

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def numbers(least: float, most: float, n: int = 6) -> Tensor:
    return torch.linspace(least, most, n)


@st.composite
def crops(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int, int, int]], int]:
    height, width = draw(st.integers(8, 40)), draw(st.integers(8, 40))
    boxes = []
    for _ in range(4):
        tall, wide = draw(st.integers(1, height)), draw(st.integers(1, width))
        top, left = draw(st.integers(0, height - tall)), draw(st.integers(0, width - wide))
        boxes.append((top, left, tall, wide))
    return height, width, boxes, draw(st.integers(1, 48))


@settings(max_examples=60, deadline=None)
@given(crops(), st.lists(st.booleans(), min_size=4, max_size=4))
def test_crop(crop, flips) -> None:
    height, width, boxes, size = crop
    images = naive.example_images(2, height, width).double()
    flip = torch.tensor(flips)
    top, left, tall, wide = torch.tensor(boxes).unbind(dim=1)
    vertical = resize_matrix(top, tall, size, height, dtype=torch.float64)
    horizontal = resize_matrix(left, wide, size, width, flip, dtype=torch.float64)
    views = resized_crops(images, vertical, horizontal)
    for row, (box, flipped) in enumerate(zip(boxes, flips, strict=True)):
        expected = F.resized_crop(images[row // 2], *box, [size, size], antialias=True)
        expected = F.hflip(expected) if flipped else expected
        torch.testing.assert_close(views[row], expected, rtol=0, atol=1e-9)


def test_whole_image_at_its_own_size_is_untouched() -> None:
    images = naive.example_images(3, 16)
    matrix = resize_matrix(torch.zeros(3), torch.full((3,), 16), 16, 16)
    torch.testing.assert_close(resized_crops(images, matrix, matrix), images, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("operation", "reference", "least", "most"),
    [
        (colour.brightness, F.adjust_brightness, 0.0, 2.5),
        (colour.contrast, F.adjust_contrast, 0.0, 2.5),
        (colour.saturation, F.adjust_saturation, 0.0, 2.5),
        (colour.hue, F.adjust_hue, -0.5, 0.5),
    ],
)
def test_colour(operation, reference, least, most) -> None:
    images, factors = naive.example_images(6, 17), numbers(least, most)
    expected = [reference(x, f.item()) for x, f in zip(images, factors, strict=True)]
    torch.testing.assert_close(operation(images, factors), torch.stack(expected), **TOLERANCE)


def test_hue_of_random_colours() -> None:
    images = torch.rand(50, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    shift = numbers(-0.5, 0.5, 50)
    expected = [F.adjust_hue(x, s.item()) for x, s in zip(images, shift, strict=True)]
    torch.testing.assert_close(colour.hue(images, shift), torch.stack(expected), **TOLERANCE)


@pytest.mark.parametrize("selects", [True, False])
@pytest.mark.parametrize("names", [("brightness", "contrast", "saturation", "hue"), ("hue",)])
def test_jitter_in_every_order(names, selects, monkeypatch) -> None:
    """Both ways of computing it: chosen rows only, and all rows (as compiled, and on a GPU)."""
    monkeypatch.setattr(rows, "selects_rows", lambda images: selects)
    monkeypatch.setattr(colour, "selects_rows", lambda images: selects)
    orders = [*permutations(range(len(names))), (-1,) * len(names)]
    n = len(orders)
    images = naive.example_images(n, 12)
    generator = torch.Generator().manual_seed(1)
    factors = {name: 0.3 + torch.rand(n, generator=generator) for name in names}
    factors["hue"] = torch.rand(n, generator=generator) - 0.5
    expected = [
        naive.jittered(x, list(order), {name: factors[name][i].item() for name in names})
        for i, (x, order) in enumerate(zip(images, orders, strict=True))
    ]
    made = colour.jitter(images.clone(), torch.tensor(orders), factors)
    torch.testing.assert_close(made, torch.stack(expected), **TOLERANCE)
    assert torch.equal(made[-1], images[-1])


def test_grayscale() -> None:
    images = naive.example_images(3, 12)
    expected = F.rgb_to_grayscale(images, num_output_channels=3)
    torch.testing.assert_close(colour.grayscale(images), expected, **TOLERANCE)


@pytest.mark.parametrize(("size", "kernel"), [(8, 3), (17, 9), (6, 11), (32, 23)])
def test_blur(size, kernel) -> None:
    images, sigmas = naive.example_images(6, size).double(), numbers(0.1, 4.0).double()
    expected = [
        F.gaussian_blur(x, [kernel, kernel], [s.item()] * 2)
        for x, s in zip(images, sigmas, strict=True)
    ]
    made = shape.blur(images, sigmas, kernel)
    torch.testing.assert_close(made, torch.stack(expected), rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", [9, 16])
def test_rotation(size) -> None:
    images, angles = naive.example_images(7, size), torch.tensor([0, 90, -90, 180, 13.7, -45, 300])
    expected = [
        F.rotate(x, a.item(), InterpolationMode.BILINEAR)
        for x, a in zip(images, angles, strict=True)
    ]
    torch.testing.assert_close(shape.rotate(images, angles), torch.stack(expected), **TOLERANCE)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_solarize(threshold) -> None:
    images = naive.example_images(4, 12)
    assert torch.equal(colour.solarize(images, threshold), F.solarize(images, threshold))


def test_cutout() -> None:
    images, fill = naive.example_images(4, 12), (0.1, 0.5, 0.9)
    boxes = [[0, 0, 3, 5], [7, 2, 5, 10], [4, 4, 0, 6], [0, 0, 11, 11]]
    value = torch.tensor(fill)[:, None, None]
    expected = torch.stack([F.erase(x, *box, value) for x, box in zip(images, boxes, strict=True)])
    assert torch.equal(shape.cutout(images, torch.tensor(boxes), fill), expected)


def test_noise_is_scaled_per_row_and_cut_off() -> None:
    images = torch.full((3, 3, 40, 40), 0.5)
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    made = shape.add_noise(images, noise, torch.tensor([0.0, 0.1, 10.0]))
    assert torch.equal(made[0], images[0])
    assert made[1].std().item() == pytest.approx(0.1, rel=0.05)
    assert (made[2].min(), made[2].max()) == (0, 1)


def test_normalized() -> None:
    images, mean, std = naive.example_images(2, 8), (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    made = colour.normalized(images, mean, std)
    torch.testing.assert_close(made, F.normalize(images, list(mean), list(std)))
    assert made.is_contiguous()


def test_on_rows_leaves_the_others_alone() -> None:
    chosen = torch.tensor([True, False, True, False])
    for selected in (chosen, ~chosen, chosen & False, chosen | True):
        images = naive.example_images(4, 8)
        expected = torch.where(rows.column(selected), 1 - images, images)
        assert torch.equal(rows.on_rows(selected, lambda x: 1 - x, images.clone()), expected)
