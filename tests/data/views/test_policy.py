"""Policies: as published, changed, saved, refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml

from likewise.data.views import POLICIES, Policy, find_policy, plain_policy


@pytest.mark.parametrize(
    ("name", "flip", "crop", "strength"),
    [
        ("large", 0.5, (0.08, 1.0), 0.5),
        ("moderate", 0.5, (0.5, 1.0), 0.25),
        ("small", 0.0, (0.9, 1.0), 0.05),
    ],
)
def test_geometry_table_2(name, flip, crop, strength) -> None:
    policy = POLICIES[name]
    assert (policy.flip, policy.grayscale, policy.jitter) == (flip, 0.2, 0.8)
    assert policy.crop_scale == crop
    for amount in (policy.brightness, policy.contrast, policy.saturation):
        assert amount == pytest.approx(0.8 * strength)
    assert policy.hue == pytest.approx(0.2 * strength)
    unused = ("rotation", "blur", "solarize", "cutout", "noise", "local_views")
    assert not any(policy.uses(operation) for operation in unused)


def test_byol_is_asymmetric() -> None:
    policy = POLICIES["byol"]
    assert policy.per_view("blur", 0, 2) == [1.0, 0.1]
    assert policy.per_view("solarize", 0, 2) == [0.0, 0.2]
    assert policy.per_view("jitter", 0, 2) == 0.8


def test_digits_are_not_mirrored() -> None:
    assert not POLICIES["digits"].uses("flip")


def test_views_beyond_the_last_begin_again() -> None:
    policy = Policy(blur=(1.0, 0.1, 0.5))
    assert policy.per_view("blur", 0, 5) == [1.0, 0.1, 0.5, 1.0, 0.1]
    assert policy.per_view("blur", 2, 3) == [0.5, 1.0, 0.1]
    assert policy.per_view("blur", 4, 1) == 0.1


@pytest.mark.parametrize("name", POLICIES)
def test_survives_yaml(name) -> None:
    policy = POLICIES[name].with_(blur_sigma=(0.3, 0.7), cutout=(0.1, 0.9))
    assert Policy.from_dict(yaml.safe_load(yaml.safe_dump(policy.to_dict()))) == policy


def test_simclr_follows_the_size() -> None:
    assert find_policy("simclr", 32) == POLICIES["simclr"]
    assert find_policy("simclr", 64) == POLICIES["simclr-imagenet"]
    own = Policy(flip=0.5)
    assert find_policy(own, 224) is own


def test_with_changes_one_field_only() -> None:
    changed = POLICIES["simclr"].with_(crop_scale=[0.2, 1.0])
    assert changed.crop_scale == (0.2, 1.0)
    assert changed.with_(crop_scale=(0.08, 1.0)) == POLICIES["simclr"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"flip": 1.5}, r"flip is 1.5: give a probability, from 0 to 1"),
        ({"blur": (0.5, -0.1)}, r"blur is \(0.5, -0.1\): give a probability"),
        ({"jitter": float("nan"), "hue": 0.1}, "jitter is nan: give a number"),
        ({"flip": True}, "flip is True: give a number"),
        ({"grayscale": "often"}, "grayscale is 'often': give a number"),
        ({"grayscale": ()}, r"grayscale is \(\): give a number"),
        ({"hue": 0.6, "jitter": 1.0}, "hue is 0.6: give at most 0.5"),
        ({"rotation": -3.0}, "rotation is -3.0: give 0"),
        ({"jitter": 0.8}, "jitter is 0.8 but nothing is jittered"),
        ({"crop_scale": (1.0, 0.08)}, r"crop_scale is \(1.0, 0.08\): give \(least, most\)"),
        ({"crop_scale": (0.5, 1.2)}, "crop_scale .* at most 1"),
        ({"crop_scale": 0.5}, "crop_scale is 0.5: give"),
        ({"crop_ratio": None}, "crop_ratio is None: give"),
        ({"blur_sigma": (0.0, 1.0)}, "blur_sigma .* both positive"),
        ({"blur_kernel": 4}, "blur_kernel is 4: .* odd"),
        ({"blur_kernel": 0.0}, "blur_kernel is 0.0"),
        ({"solarize_threshold": 128}, "solarize_threshold is 128: give a value from 0 to 1"),
        ({"local_views": 1.5}, "local_views is 1.5: give a whole number"),
        ({"local_size": 2.0}, "local_size is 2.0: give a share"),
        ({"local_size": "half"}, "local_size is 'half': give a number"),
    ],
)
def test_refuses(values, message) -> None:
    with pytest.raises(ValueError, match=message):
        Policy(**values)


def test_refuses_unknown_names() -> None:
    with pytest.raises(
        ValueError,
        match=r"policy is 'simclrr' .did you mean 'simclr'.*: give one of none, small, .*byol",
    ):
        find_policy("simclrr", 32)
    with pytest.raises(ValueError, match=r"'crop' is no field of a policy: give one of crop_scale"):
        Policy().with_(crop=(0.2, 1.0))
    with pytest.raises(ValueError, match="'colour' is no field"):
        Policy.from_dict({"colour": 1})
    with pytest.raises(ValueError, match="'colour' is no field"):
        find_policy({"base": "simclr", "colour": 1}, 32)
    with pytest.raises(ValueError, match="policy is 'simclrr'"):
        find_policy({"base": "simclrr"}, 32)
    with pytest.raises(ValueError, match="base is 3"):
        find_policy({"base": 3}, 32)


def test_a_mapping_is_fields_over_those_of_a_policy() -> None:
    own = find_policy({"base": "simclr", "rotation": 10, "crop_scale": [0.2, 1.0]}, 32)
    assert own == POLICIES["simclr"].with_(rotation=10, crop_scale=(0.2, 1.0))
    assert find_policy({"base": "simclr"}, 224) == POLICIES["simclr-imagenet"]
    assert find_policy(own.to_dict(), 224) == own
    assert find_policy({"flip": 0.5}, 32) == Policy(flip=0.5)


@pytest.mark.parametrize(
    "policy",
    [
        "byol",
        {"base": "byol", "crop_scale": (0.2, 1.0)},
        POLICIES["byol"].with_(rotation=np.float64(10.0)),
    ],
)
def test_what_is_written_down_is_read_back(policy: Any) -> None:
    written = yaml.safe_load(yaml.safe_dump(plain_policy(policy)))
    assert find_policy(written, 32) == find_policy(policy, 32)
