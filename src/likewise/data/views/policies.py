"""The policies by name, each as published."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from likewise.data.views.policy import Policy

LARGE_IMAGE = 64
"""From this size on `simclr` is SimCLR's policy for ImageNet: stronger colours, and blur."""


def distorted(policy: Policy, strength: float) -> Policy:
    """`policy` with SimCLR's colour distortion of strength s (its appendix A).

    >>> distorted(Policy(), 0.5).brightness, distorted(Policy(), 0.5).hue
    (0.4, 0.1)
    """
    most = round(0.8 * strength, 6)
    return policy.with_(
        jitter=0.8,
        brightness=most,
        contrast=most,
        saturation=most,
        hue=round(0.2 * strength, 6),
        grayscale=0.2,
    )


POLICIES: dict[str, Policy] = {
    # Resized and normalised only: for evaluation.
    "none": Policy(),
    # `geometry` table 2.
    "small": distorted(Policy(crop_scale=(0.9, 1.0)), 0.05),
    "moderate": distorted(Policy(crop_scale=(0.5, 1.0), flip=0.5), 0.25),
    "large": distorted(Policy(crop_scale=(0.08, 1.0), flip=0.5), 0.5),
    # Chen et al., 2020 (SimCLR): appendix B.9 for CIFAR-10, appendix A for ImageNet.
    "simclr": distorted(Policy(crop_scale=(0.08, 1.0), flip=0.5), 0.5),
    # Ours, for small images: no tiny crops, stronger colours and more of them left, and blur and
    # solarisation as BYOL has them, each chosen by what it brings (docs/benchmarks/cifar10.md).
    "simclr-tuned": distorted(
        Policy(crop_scale=(0.2, 1.0), flip=0.5, blur=0.5, solarize=(0.0, 0.2)), 0.8
    ).with_(grayscale=0.1),
    "simclr-imagenet": distorted(Policy(crop_scale=(0.08, 1.0), flip=0.5, blur=0.5), 1.0),
    # Chen et al., 2020 (MoCo v2), and SimSiam after it.
    "moco-v2": Policy(
        crop_scale=(0.2, 1.0),
        flip=0.5,
        jitter=0.8,
        brightness=0.4,
        contrast=0.4,
        saturation=0.4,
        hue=0.1,
        grayscale=0.2,
        blur=0.5,
    ),
    # Grill et al., 2020 (BYOL), table 6, and Barlow Twins after it.
    "byol": Policy(
        crop_scale=(0.08, 1.0),
        flip=0.5,
        jitter=0.8,
        brightness=0.4,
        contrast=0.4,
        saturation=0.2,
        hue=0.1,
        grayscale=0.2,
        blur=(1.0, 0.1),
        solarize=(0.0, 0.2),
    ),
    # Caron et al., 2020 (SwAV): 2 views of 224 pixels and 6 of 96.
    "multi-crop": distorted(
        Policy(
            crop_scale=(0.14, 1.0),
            flip=0.5,
            blur=0.5,
            local_views=6,
            local_crop_scale=(0.05, 0.14),
        ),
        1.0,
    ),
    # Ours: a mirrored 2 is no 2, and a 6 turned far enough is a 9.
    "digits": Policy(
        crop_scale=(0.3, 1.0),
        jitter=1.0,
        brightness=0.4,
        contrast=0.4,
        saturation=0.4,
        hue=0.5,
        grayscale=0.4,
    ),
}


def find_policy(policy: Policy | Mapping[str, Any] | str, size: int) -> Policy:
    """The policy of that name for views of `size` pixels; a policy is returned as it is.

    "simclr" is what SimCLR did for CIFAR-10 below 64 pixels, and for ImageNet from there on.
    A mapping holds fields, as :meth:`Policy.to_dict` writes them; those that it leaves out are
    those of `base`, the name of a policy, or without one their defaults.

    >>> find_policy("simclr", 32).blur, find_policy("simclr", 224).blur
    (0.0, 0.5)
    >>> own = find_policy({"base": "simclr", "rotation": 10}, 32)
    >>> own == POLICIES["simclr"].with_(rotation=10)
    True
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        base = policy.get("base", "none")
        if not isinstance(base, str):
            raise ValueError(f"base is {base!r}: give the name of a policy")
        fields = {str(name): value for name, value in policy.items() if name != "base"}
        return find_policy(base, size).with_(**fields)
    if not isinstance(policy, str) or policy not in POLICIES:
        near = difflib.get_close_matches(str(policy), POLICIES, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"policy is {policy!r}{meant}: give one of {', '.join(POLICIES)}, or a Policy of your "
            "own"
        )
    if policy == "simclr" and size >= LARGE_IMAGE:
        policy = "simclr-imagenet"
    return POLICIES[policy]


def plain_policy(policy: Policy | Mapping[str, Any] | str) -> dict[str, Any] | str:
    """The same as YAML and JSON have it, for :func:`find_policy` to read.

    >>> plain_policy({"base": "simclr", "crop_scale": (0.2, 1.0)})
    {'base': 'simclr', 'crop_scale': [0.2, 1.0]}
    """
    if isinstance(policy, str):
        return policy
    values = policy.to_dict() if isinstance(policy, Policy) else dict(policy)
    # By way of JSON: a tuple becomes a list, and a number of NumPy's a plain one.
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain
