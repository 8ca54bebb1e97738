"""Whole views: against torchvision, sample-major, repeatable, compiled; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.data.views import POLICIES, Parameters, Policy, Views, prepare, view_sheet
from tests.data.views import naive
from tests.data.views.test_draw import EVERYTHING, seeded

STATISTICS: dict[str, Any] = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3)}


def make(policy: Policy | str = "simclr", size: int = 16, n_views: int = 2, **more: Any) -> Views:
    return Views(policy, size, n_views, **STATISTICS, **more)


def assert_same(first: list[Tensor], second: list[Tensor]) -> None:
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("policy", [*POLICIES, "everything"])
@pytest.mark.parametrize(("canvas", "n_views"), [(16, 2), ((24, 20), 3)])
def test_agrees_with_torchvision(policy, canvas, n_views) -> None:
    views = make(EVERYTHING if policy == "everything" else policy, 16, n_views, canvas=canvas)
    pixels = naive.example_pixels(12, *views.canvas)
    before = pixels.clone()
    parameters = views.draw(12, generator=seeded())
    made = views.apply(pixels, parameters)
    for group, expected in zip(made, naive.all_views(views, pixels, parameters), strict=True):
        # Where rounding decides whether a pixel is bright, solarize turns it over.
        far = (group - expected).abs() > 5e-5
        assert far.double().mean() <= (1e-3 if views.policy.uses("solarize") else 0)
        assert group.dtype == torch.float32 and group.is_contiguous()
    assert torch.equal(pixels, before)


def test_rows_are_sample_major() -> None:
    """Images of one colour stay of one colour under crops."""
    values = torch.tensor([10, 90, 170, 250], dtype=torch.uint8)
    pixels = values[:, None, None, None].expand(4, 3, 16, 16)
    views = make(Policy(crop_scale=(0.1, 1.0), local_views=3))
    for (count, _), images in zip(views.crops, views(pixels, generator=seeded()), strict=True):
        expected = values.repeat_interleave(count) / 255
        shown = images[:, 0].mean(dim=(1, 2)) * 0.2 + 0.4
        torch.testing.assert_close(shown, expected, rtol=0, atol=1e-5)


def test_asymmetric_views_alternate() -> None:
    views = make(Policy(solarize=(0.0, 1.0), solarize_threshold=0.0), n_views=4)
    pixels = naive.example_pixels(5, 16)
    (images,) = views(pixels, generator=seeded())
    plain = prepare(pixels, 16, **STATISTICS)
    inverted = prepare(255 - pixels, 16, **STATISTICS)
    for v, expected in enumerate([plain, inverted, plain, inverted]):
        torch.testing.assert_close(images[v::4], expected)


def test_same_seed_same_views() -> None:
    views, pixels = make(EVERYTHING), naive.example_pixels(6, 16)
    first = views(pixels, generator=seeded(3))
    assert_same(first, views(pixels, generator=seeded(3)))
    assert not torch.equal(first[0], views(pixels, generator=seeded(4))[0])


def test_views_differ_from_each_other_and_from_batch_to_batch() -> None:
    views, generator = make("simclr"), seeded()
    pixels = naive.example_pixels(1, 16).expand(6, 3, 16, 16)
    (first,), (second,) = views(pixels, generator=generator), views(pixels, generator=generator)
    assert len(torch.cat([first, second]).unique(dim=0)) == 24


def test_global_random_state_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    make(EVERYTHING)(naive.example_pixels(2, 16), generator=seeded())
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("policy", ["byol", "multi-crop", "everything"])
def test_ranks_take_rows_of_the_global_draw(policy) -> None:
    views = make(EVERYTHING if policy == "everything" else policy)
    pixels = naive.example_pixels(7, 16)
    drawn = views.draw(7, generator=seeded())
    whole = views.apply(pixels, drawn)
    parts = [
        views.apply(pixels[samples], drawn.rows(samples)) for samples in (slice(0, 4), slice(4, 7))
    ]
    for g, images in enumerate(whole):
        joined = torch.cat([part[g] for part in parts])
        torch.testing.assert_close(joined, images, rtol=1e-5, atol=1e-5)


def test_multi_crop_sizes_and_join() -> None:
    views = make("multi-crop", 28)
    assert views.crops == ((2, 28), (6, 12)) and views.n_views == 8
    full, local = views(naive.example_pixels(3, 28), generator=seeded())
    assert full.shape == (6, 3, 28, 28) and local.shape == (18, 3, 12, 12)
    scale = views.draw(500, generator=seeded()).groups[1]["crop"][:, 2:].prod(dim=1) / 28**2
    assert scale.min() > 0.04 and scale.max() < 0.16
    rows = [
        torch.tensor([[i, v] for i in range(3) for v in numbers])
        for numbers in ((0, 1), range(2, 8))
    ]
    expected = torch.tensor([[i, v] for i in range(3) for v in range(8)])
    assert torch.equal(views.join(rows), expected)


def test_per_view_settings_count_local_views_too() -> None:
    views = make(Policy(grayscale=(0.0, 0.0, 1.0, 0.0), local_views=2))
    full, local = views.draw(5, generator=seeded()).groups
    assert "grayscale" not in full
    assert local["grayscale"].view(5, 2).tolist() == [[True, False]] * 5


@pytest.mark.parametrize("canvas", [16, 40, (16, 30)])
def test_no_policy_is_what_evaluation_prepares(canvas) -> None:
    views = make("none", 16, 1, canvas=canvas)
    pixels = naive.example_pixels(3, *views.canvas)
    (images,) = views(pixels, generator=seeded())
    torch.testing.assert_close(images, prepare(pixels, 16, **STATISTICS), rtol=1e-5, atol=1e-5)


def test_flip_without_crop() -> None:
    pixels = naive.example_pixels(3, 16)
    (images,) = make(Policy(flip=1.0), 16, 1)(pixels, generator=seeded())
    assert torch.equal(images, prepare(pixels.flip(-1), 16, **STATISTICS))


def test_autocast_does_not_reach_the_views() -> None:
    views, pixels = make("byol"), naive.example_pixels(4, 16)
    drawn = views.draw(4, generator=seeded())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = views.apply(pixels, drawn)
    assert_same(made, views.apply(pixels, drawn))


def test_parameters_move_with_to() -> None:
    drawn = make(EVERYTHING).draw(3, generator=seeded())
    moved = drawn.to("meta")
    assert isinstance(moved, Parameters) and moved.n == 3
    assert all(values.device.type == "meta" for values in moved.groups[0].values())


def test_everything_is_one_graph() -> None:
    """`fullgraph` refuses a break; without a code generator it is quick to test."""
    views = make(EVERYTHING.with_(local_views=1, local_size=0.5), 12)
    pixels = naive.example_pixels(8, 12)
    drawn = views.draw(8, generator=seeded())
    traced = torch.compile(views.apply, fullgraph=True, dynamic=False, backend="aot_eager")
    for made, expected in zip(traced(pixels, drawn), views.apply(pixels, drawn), strict=True):
        torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-5)


def test_compiled_is_the_same() -> None:
    """Crop, flip, and an order of two operations: the code generator takes long for more."""
    policy = Policy(crop_scale=(0.1, 1.0), flip=0.5, jitter=0.8, contrast=0.4, hue=0.1)
    views, pixels = make(policy, 12), naive.example_pixels(8, 12)
    drawn = views.draw(8, generator=seeded())
    compiled = torch.compile(views.apply, fullgraph=True, dynamic=False)
    (made,), (expected,) = compiled(pixels, drawn), views.apply(pixels, drawn)
    torch.testing.assert_close(made, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("compiled", [False, True])
def test_cuda_agrees_with_the_cpu(compiled) -> None:
    views, pixels = make(EVERYTHING), naive.example_pixels(64, 16)
    drawn = views.draw(64, generator=seeded())
    apply = torch.compile(views.apply, fullgraph=True, dynamic=False) if compiled else views.apply
    for made, expected in zip(
        apply(pixels.cuda(), drawn.to("cuda")), views.apply(pixels, drawn), strict=True
    ):
        assert ((made.cpu() - expected).abs() > 1e-4).double().mean() <= 1e-3


@pytest.mark.gpu
def test_a_cpu_generator_serves_cuda() -> None:
    views = make(EVERYTHING)
    here = views.draw(8, generator=seeded()).groups[0]
    there = views.draw(8, generator=seeded(), device="cuda").groups[0]
    assert all(values.is_cuda for values in there.values())
    assert all(torch.equal(there[k].cpu(), here[k]) for k in here if k != "noise")


def test_sheet_shows_image_and_views() -> None:
    pixels = naive.example_pixels(3, 16)
    views = make(Policy(flip=1.0, local_views=1, local_size=0.5, local_crop_scale=(1.0, 1.0)))
    sheet = view_sheet(views, pixels, seeded())
    assert sheet.dtype == torch.uint8 and sheet.shape == (3, 2 + 3 * 18, 2 + 3 * 18 + 10)
    for i in range(3):
        top = 2 + 18 * i
        assert torch.equal(sheet[:, top : top + 16, 2:18], pixels[i])
        assert torch.equal(sheet[:, top : top + 16, 20:36], pixels[i].flip(-1))
    assert (sheet[:, 10:18, 56:] == 255).all()  # below a small view it is white


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size is 0: give a whole number of pixels"),
        ({"size": 32.0}, "size is 32.0: give a whole number"),
        ({"n_views": 0}, "n_views is 0: give at least 1"),
        ({"canvas": 0}, "canvas is 0: give a whole number"),
        ({"policy": "simclrr"}, "policy is 'simclrr' .did you mean 'simclr'.*: give one of none"),
        ({"policy": Policy(blur=0.5, blur_kernel=33)}, "blur_kernel is 33 .* at most 31"),
    ],
)
def test_refuses_settings(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        ((0.5,), (0.25,) * 3, r"mean is \(0.5,\): give three numbers"),
        ((0.5,) * 3, (0.25, 0.0, 0.25), "std is .*: give positive numbers"),
        ((0.5,) * 3, (0.25, float("nan"), 0.25), "std is .*: give three numbers"),
    ],
)
def test_refuses_statistics(mean, std, message) -> None:
    with pytest.raises(ValueError, match=message):
        Views("simclr", 16, mean=mean, std=std)
    with pytest.raises(ValueError, match=message):
        prepare(naive.example_pixels(1, 16), 16, mean, std)


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (torch.zeros(2, 3, 16, 16), "pixels are torch.float32: give torch.uint8"),
        (torch.zeros(2, 1, 16, 16).byte(), r"shape \(2, 1, 16, 16\): give \(n, 3, height, width\)"),
        (torch.zeros(3, 16, 16).byte(), r"shape \(3, 16, 16\): give \(n, 3, height, width\)"),
        (torch.zeros(0, 3, 16, 16).byte(), "give at least one image"),
        (torch.zeros(2, 3, 16, 20).byte(), r"16 x 20 .* 16 x 16: give canvas=\(16, 20\)"),
    ],
)
def test_refuses_pixels(pixels, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()(pixels, generator=seeded())


def test_refuses_numbers_that_do_not_fit() -> None:
    views = make()
    with pytest.raises(ValueError, match="n is 0: give the number of samples"):
        views.draw(0, generator=seeded())
    with pytest.raises(ValueError, match="parameters are for 3 samples but pixels hold 2"):
        views.apply(naive.example_pixels(2, 16), views.draw(3, generator=seeded()))
    with pytest.raises(ValueError, match="size is -1"):
        prepare(naive.example_pixels(2, 16), -1, **STATISTICS)
