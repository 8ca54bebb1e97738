"""A policy says how views are made: which operations, how often and how strongly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

PerView = float | tuple[float, ...]
"""One number for all views, or one per view; views beyond the last begin again with the first."""
Range = tuple[float, float]

PROBABILITIES = ("flip", "jitter", "grayscale", "blur", "solarize", "cutout", "noise")
AMOUNTS = ("rotation", "brightness", "contrast", "saturation", "hue", "noise_deviation")
POSITIVE_RANGES = ("crop_ratio", "blur_sigma", "cutout_ratio")
SHARES = ("crop_scale", "cutout_scale", "local_crop_scale")


@dataclass(frozen=True)
class Policy:
    """How views are made. Plain values: it prints, compares, and saves as YAML.

    Operations come in the order of the fields, as in the published pipelines, and mean what
    torchvision's functions of that name mean. What is 0 (or None) is not done and costs nothing.
    Probabilities and amounts may differ between views: ``blur=(1.0, 0.1)`` blurs view 0 always
    and view 1 one time in ten, view 2 again always.

    >>> policy = Policy(crop_scale=(0.08, 1.0), flip=0.5)
    >>> policy.with_(crop_scale=(0.2, 1.0)).crop_scale
    (0.2, 1.0)
    >>> Policy.from_dict(policy.to_dict()) == policy
    True
    """

    crop_scale: Range | None = None
    """Random resized crop: the share of the image's area, drawn uniformly. None: whole image."""
    crop_ratio: Range = (3 / 4, 4 / 3)
    """Width by height of the crop, drawn log-uniformly."""
    flip: PerView = 0.0
    """Probability of a horizontal flip."""
    rotation: PerView = 0.0
    """Degrees d: rotated about the centre by an angle from (-d, d); black comes in."""
    jitter: PerView = 0.0
    """Probability of the colour jitter: the next four, in random order."""
    brightness: PerView = 0.0
    """b: factor drawn from (max(0, 1 - b), 1 + b)."""
    contrast: PerView = 0.0
    """As brightness."""
    saturation: PerView = 0.0
    """As brightness."""
    hue: PerView = 0.0
    """h: shift drawn from (-h, h), in turns of the colour wheel; at most 0.5."""
    grayscale: PerView = 0.0
    """Probability that the colours go."""
    blur: PerView = 0.0
    """Probability of a Gaussian blur."""
    blur_sigma: Range = (0.1, 2.0)
    """Width of the blur in pixels, drawn uniformly."""
    blur_kernel: float = 0.1
    """A share of the view's side (below 1; made odd, at least 3), or an odd number of pixels."""
    solarize: PerView = 0.0
    """Probability that bright pixels are inverted."""
    solarize_threshold: float = 0.5
    """From which value on a pixel, 0 to 1, is bright."""
    cutout: PerView = 0.0
    """Probability that a box is erased (filled with the mean colour)."""
    cutout_scale: Range = (0.02, 0.33)
    """The box's share of the area."""
    cutout_ratio: Range = (0.3, 3.3)
    """Height by width of the box, drawn log-uniformly."""
    noise: PerView = 0.0
    """Probability of Gaussian noise on every pixel."""
    noise_deviation: PerView = 0.05
    """Its standard deviation; pixels are from 0 to 1 and are cut off there."""
    local_views: int = 0
    """Multi-crop: how many small views come after the full-size ones."""
    local_size: float = 3 / 7
    """Their side, as a share of the full size (SwAV: 96 of 224)."""
    local_crop_scale: Range = (0.05, 0.14)
    """Their `crop_scale`."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):  # as YAML and JSON give it
                value = tuple(value)
                object.__setattr__(self, field.name, value)
            _check(field.name, value)
        if self.uses("jitter") and not any(
            self.uses(name) for name in ("brightness", "contrast", "saturation", "hue")
        ):
            raise ValueError(
                f"jitter is {self.jitter} but nothing is jittered: "
                "give brightness, contrast, saturation or hue, or jitter=0"
            )

    def uses(self, name: str) -> bool:
        """Whether any view has this operation (its probability or amount is not 0)."""
        value = getattr(self, name)
        return any(value) if isinstance(value, tuple) else bool(value)

    def per_view(self, name: str, first: int, views: int) -> float | list[float]:
        """The values of views `first` to `first + views`: a number where they agree.

        >>> Policy(blur=(1.0, 0.1)).per_view("blur", 0, 3)
        [1.0, 0.1, 1.0]
        """
        value = getattr(self, name)
        if not isinstance(value, tuple):
            return float(value)
        values = [float(value[v % len(value)]) for v in range(first, first + views)]
        return values[0] if len(set(values)) == 1 else values

    def kernel_size(self, size: int) -> int:
        """The odd number of pixels that the blur spans in a view of `size` pixels.

        >>> [Policy().kernel_size(size) for size in (32, 96, 224)]
        [3, 9, 23]
        """
        if self.blur_kernel >= 1:
            return int(self.blur_kernel)
        return 2 * max(1, round((self.blur_kernel * size - 1) / 2)) + 1

    def with_(self, **changes: Any) -> Policy:
        """This policy with some fields changed."""
        _known(changes)
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for YAML and JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Policy:
        """The policy that :meth:`to_dict` wrote; fields left out keep their defaults."""
        _known(values)
        return cls(**values)


def _known(values: Mapping[str, Any]) -> None:
    names = [field.name for field in fields(Policy)]
    for name in values:
        if name not in names:
            raise ValueError(f"{name!r} is no field of a policy: give one of {', '.join(names)}")


def _check(name: str, value: Any) -> None:
    if name in PROBABILITIES or name in AMOUNTS:
        _check_per_view(name, value)
    elif name in SHARES or name in POSITIVE_RANGES:
        if value is not None or name != "crop_scale":
            _check_range(name, value)
    elif not _is_number(value):
        raise ValueError(f"{name} is {value!r}: give a number")
    elif name == "local_views" and (value < 0 or value != int(value)):
        raise ValueError(f"local_views is {value!r}: give a whole number, 0 for none (SwAV has 6)")
    elif name == "local_size" and not 0 < value <= 1:
        raise ValueError(f"local_size is {value}: give a share of the size, above 0, up to 1")
    elif name == "solarize_threshold" and not 0 <= value <= 1:
        raise ValueError(f"solarize_threshold is {value}: give a value from 0 to 1 (BYOL has 0.5)")
    elif name == "blur_kernel" and not (0 < value < 1 or (value >= 3 and value % 2 == 1)):
        raise ValueError(
            f"blur_kernel is {value}: give a share of the side, above 0 and below 1 "
            "(SimCLR has 0.1), or an odd number of pixels from 3 on"
        )


def _check_per_view(name: str, value: Any) -> None:
    numbers = value if isinstance(value, tuple) else (value,)
    if not numbers or not all(_is_number(number) for number in numbers):
        raise ValueError(f"{name} is {value!r}: give a number, or one number per view")
    for number in numbers:
        if name in PROBABILITIES and not 0 <= number <= 1:
            raise ValueError(f"{name} is {value}: give a probability, from 0 to 1")
        if number < 0:
            raise ValueError(f"{name} is {value}: give 0 (nothing) or a positive number")
        if name == "hue" and number > 0.5:
            raise ValueError(f"hue is {value}: give at most 0.5, half a turn of the colour wheel")


def _check_range(name: str, value: Any) -> None:
    pair = isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))
    if not pair or not 0 < value[0] <= value[1]:
        raise ValueError(f"{name} is {value!r}: give (least, most), both positive")
    if name in SHARES and value[1] > 1:
        raise ValueError(f"{name} is {value!r}: give shares of the area, at most 1")


def _is_number(value: Any) -> bool:
    # bool is an int in Python, and `flip: true` in a YAML file would pass for 1.0.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
