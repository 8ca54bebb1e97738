"""What is drawn: ranges, probabilities, orders, boxes."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, ks_2samp
from torch import Tensor
from torchvision.transforms import RandomResizedCrop

from likewise.data.views import Policy, Views
from likewise.data.views.draw import GroupDraw

MANY = 6000
EVERYTHING = Policy(
    crop_scale=(0.2, 0.9),
    flip=0.3,
    rotation=20.0,
    jitter=0.8,
    brightness=0.4,
    contrast=1.5,
    saturation=0.2,
    hue=0.1,
    grayscale=0.2,
    blur=(1.0, 0.1),
    blur_sigma=(0.5, 1.5),
    solarize=(0.0, 0.2),
    cutout=0.4,
    noise=0.25,
    noise_deviation=0.02,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(policy: Policy, n: int = MANY, size: int = 8, seed: int = 0, **more) -> dict[str, Tensor]:
    views = Views(policy, size, mean=(0.5,) * 3, std=(0.25,) * 3, **more)
    return views.draw(n, generator=seeded(seed)).groups[0]


@pytest.fixture(scope="module")
def everything() -> dict[str, Tensor]:
    return drawn(EVERYTHING)


def assert_share(values: Tensor, share: float) -> None:
    """Within five standard deviations of a binomial share; exact where it is 0 or 1."""
    allowed = 5 * math.sqrt(share * (1 - share) / values.numel())
    assert abs(values.double().mean().item() - share) <= allowed


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("flip", (0.3, 0.3)),
        ("grayscale", (0.2, 0.2)),
        ("blur", (1.0, 0.1)),
        ("solarize", (0.0, 0.2)),
    ],
)
def test_probabilities_per_view(everything, name, shares) -> None:
    for v, share in enumerate(shares):
        assert_share(everything[name][v::2], share)


def test_probabilities_of_jitter_cutout_and_noise(everything) -> None:
    assert_share(everything["order"][:, 0] >= 0, 0.8)
    # A box without height is drawn now and then, at this size: 2 % of 64 pixels.
    assert (everything["cutout"][:, 2] > 0).double().mean().item() == pytest.approx(0.4, abs=0.03)
    assert_share(everything["noise_deviation"] > 0, 0.25)
    assert everything["noise_deviation"].unique().tolist() == pytest.approx([0, 0.02])
    assert everything["noise"].shape == (2 * MANY, 3, 8, 8)
    assert everything["noise"].std().item() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("rotation", -20, 20),
        ("brightness", 0.6, 1.4),
        ("contrast", 0.0, 2.5),
        ("saturation", 0.8, 1.2),
        ("hue", -0.1, 0.1),
        ("blur_sigma", 0.5, 1.5),
    ],
)
def test_uniform_in_range(everything, name, least, most) -> None:
    values = everything[name].double()
    assert least <= values.min() and values.max() <= most
    counts = torch.histc(values, 20, least, most)
    assert chisquare(counts.numpy()).pvalue > 1e-4


def test_every_order_is_equally_likely(everything) -> None:
    orders = everything["order"][everything["order"][:, 0] >= 0]
    assert torch.equal(orders.sort(dim=1).values, torch.arange(4).expand_as(orders))
    _, counts = orders.unique(dim=0, return_counts=True)
    assert len(counts) == 24
    assert chisquare(counts.numpy()).pvalue > 1e-4


def test_what_is_not_used_is_not_drawn() -> None:
    assert drawn(Policy(), 4) == {}
    assert list(drawn(Policy(flip=0.5), 4)) == ["flip"]
    assert list(drawn(Policy(jitter=1.0, hue=0.1), 4)) == ["hue", "order"]
    # Only the second view solarizes: with one view there is nothing to draw.
    assert drawn(Policy(solarize=(0.0, 0.2)), 4, n_views=1) == {}


def crop_by_loops(
    share: list[float], shape: list[float], place: list[float], policy: Policy, canvas
) -> list[int]:
    """RandomResizedCrop.get_params on given random numbers."""
    height, width = canvas
    scale, ratio = policy.crop_scale, policy.crop_ratio
    assert scale is not None
    for a, r in zip(share, shape, strict=True):
        area = height * width * (scale[0] + (scale[1] - scale[0]) * a)
        low, high = math.log(ratio[0]), math.log(ratio[1])
        aspect = math.exp(low + (high - low) * r)
        wide, tall = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < wide <= width and 0 < tall <= height:
            top, left = int(place[0] * (height - tall + 1)), int(place[1] * (width - wide + 1))
            return [top, left, tall, wide]
    if width / height < ratio[0]:
        wide, tall = width, round(width / ratio[0])
    elif width / height > ratio[1]:
        wide, tall = round(height * ratio[1]), height
    else:
        wide, tall = width, height
    return [(height - tall) // 2, (width - wide) // 2, tall, wide]


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(3, 60), st.integers(3, 60)),
    st.sampled_from([(0.08, 1.0), (0.9, 1.0), (1.0, 1.0), (0.25, 0.25)]),
    st.sampled_from([(3 / 4, 4 / 3), (1.0, 1.0), (3.0, 5.0)]),
    st.integers(0, 100),
)
def test_crop_boxes_by_loops(canvas, scale, ratio, seed) -> None:
    policy, n, views = Policy(crop_scale=scale, crop_ratio=ratio), 20, 2
    boxes = GroupDraw(policy, n, 0, views, seeded(seed)).crop(scale, *canvas)
    generator = seeded(seed)
    tries = torch.rand(n, views, 2, 10, generator=generator)
    places = torch.rand(n, views, 2, generator=generator)
    wrong = 0
    for i in range(n):
        for v in range(views):
            share, shape = tries[i, v].tolist()
            expected = crop_by_loops(share, shape, places[i, v].tolist(), policy, canvas)
            wrong += boxes[i, v].tolist() != expected
    # A side within float32 rounding of half a pixel may round the other way.
    assert wrong <= 1


def test_crop_boxes_are_distributed_as_torchvisions() -> None:
    canvas, scale, ratio = (24, 32), (0.08, 1.0), (3 / 4, 4 / 3)
    boxes = drawn(Policy(crop_scale=scale), n=2000, canvas=canvas)["crop"]
    image = torch.zeros(3, *canvas)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = torch.tensor(
            [RandomResizedCrop.get_params(image, list(scale), list(ratio)) for _ in range(4000)]
        )
    for coordinate in range(4):
        result = ks_2samp(boxes[:, coordinate].numpy(), theirs[:, coordinate].numpy())
        assert result.pvalue > 1e-3, coordinate
    area, their_area = boxes[:, 2] * boxes[:, 3], theirs[:, 2] * theirs[:, 3]
    assert ks_2samp(area.numpy(), their_area.numpy()).pvalue > 1e-3


def cutout_by_loops(
    share: list[float], shape: list[float], place: list[float], policy: Policy, size: int
) -> list[int] | None:
    """RandomErasing.get_params on given random numbers; None where no box fits."""
    scale, ratio = policy.cutout_scale, policy.cutout_ratio
    for a, r in zip(share, shape, strict=True):
        area = size * size * (scale[0] + (scale[1] - scale[0]) * a)
        low, high = math.log(ratio[0]), math.log(ratio[1])
        aspect = math.exp(low + (high - low) * r)
        tall, wide = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if tall < size and wide < size:
            return [
                int(place[0] * (size - tall + 1)),
                int(place[1] * (size - wide + 1)),
                tall,
                wide,
            ]
    return None


@pytest.mark.parametrize("scale", [(0.02, 0.33), (0.5, 1.0), (1.0, 1.0)])
def test_cutout_boxes_by_loops(scale) -> None:
    policy, n, size = Policy(cutout=1.0, cutout_scale=scale), 200, 16
    boxes = GroupDraw(policy, n, 0, 1, seeded()).cutout(size)[:, 0]
    generator = seeded()
    tries = torch.rand(n, 1, 2, 10, generator=generator)[:, 0]
    torch.rand(n, 1, generator=generator)  # whether it happens: always
    places = torch.rand(n, 1, 2, generator=generator)[:, 0]
    wrong = 0
    for i in range(n):
        share, shape = tries[i].tolist()
        expected = cutout_by_loops(share, shape, places[i].tolist(), policy, size)
        wrong += boxes[i, 2].item() != 0 if expected is None else boxes[i].tolist() != expected
    assert wrong <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30))
def test_boxes_lie_inside(seed, height, width) -> None:
    views = Views(EVERYTHING, 6, mean=(0.5,) * 3, std=(0.25,) * 3, canvas=(height, width))
    group = views.draw(30, generator=seeded(seed)).groups[0]
    for box, size, least in (("crop", (height, width), 1), ("cutout", (6, 6), 0)):
        corner, sides = group[box][:, :2], group[box][:, 2:]
        assert (corner >= 0).all() and (sides >= least).all()
        assert (corner + sides <= torch.tensor(size)).all()
