"""Drawing the parameters of views: small tensors, one row per view, from one generator."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from likewise.data.views.colour import JITTER
from likewise.data.views.policy import Policy, Range

TRIES = 10
"""How many boxes are drawn, of which the first that fits is taken, as in torchvision."""


class GroupDraw:
    """The draw for one group of views: those of one size.

    Everything is drawn on the generator's device, in a fixed order, as (n, V, ...).

    Args:
        policy: how the views are made.
        n: samples.
        first: the number of the group's first view among all views.
        views: V, how many views the group has.
        generator: where the randomness comes from.
    """

    def __init__(
        self, policy: Policy, n: int, first: int, views: int, generator: torch.Generator
    ) -> None:
        self.policy, self.n, self.first, self.views = policy, n, first, views
        self.generator = generator

    def parameters(
        self, crop_scale: Range | None, canvas: tuple[int, int], size: int, device: torch.device
    ) -> dict[str, Tensor]:
        """By name (n * V, ...), sample-major, on `device`; only what this group's views use."""
        drawn: dict[str, Tensor] = {}
        if crop_scale is not None:
            drawn["crop"] = self.crop(crop_scale, *canvas)
        if self.used("flip"):
            drawn["flip"] = self.happens("flip")
        if self.used("rotation"):
            drawn["rotation"] = self.around_zero("rotation")
        if self.used("jitter"):
            drawn.update(self.jitter())
        if self.used("grayscale"):
            drawn["grayscale"] = self.happens("grayscale")
        if self.used("blur"):
            least, most = self.policy.blur_sigma
            drawn["blur"] = self.happens("blur")
            drawn["blur_sigma"] = least + (most - least) * self.uniform()
        if self.used("solarize"):
            drawn["solarize"] = self.happens("solarize")
        if self.used("cutout"):
            drawn["cutout"] = self.cutout(size)
        if self.used("noise"):
            deviation = self.setting("noise_deviation")
            drawn["noise_deviation"] = self.happens("noise") * deviation
            drawn["noise"] = self.normal(3, size, size, device=device)
        return {name: x.flatten(0, 1).to(device, non_blocking=True) for name, x in drawn.items()}

    def used(self, name: str) -> bool:
        """Whether any view of this group has the operation."""
        value = self.policy.per_view(name, self.first, self.views)
        return any(value) if isinstance(value, list) else value > 0

    def setting(
        self, name: str, bound: Callable[[float], float] = lambda amount: amount
    ) -> Tensor | float:
        """`bound` of the policy's value: a number, or (V,) where the views differ."""
        value = self.policy.per_view(name, self.first, self.views)
        if isinstance(value, list):
            return torch.tensor([bound(amount) for amount in value], device=self.generator.device)
        return bound(value)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers from [0, 1): (n, V, *shape)."""
        generator = self.generator
        whole = (self.n, self.views, *shape)
        return torch.rand(whole, generator=generator, device=generator.device)

    def normal(self, *shape: int, device: torch.device) -> Tensor:
        """Standard normal numbers (n, V, *shape), made on `device`, for they are many."""
        generator = self.generator
        if generator.device.type != device.type:
            seed = torch.randint(2**62, (), generator=generator, device=generator.device)
            generator = torch.Generator(device).manual_seed(int(seed))
        whole = (self.n, self.views, *shape)
        return torch.randn(whole, generator=generator, device=generator.device)

    def happens(self, name: str) -> Tensor:
        """True with the policy's probability: (n, V)."""
        return self.uniform() < self.setting(name)

    def around_zero(self, name: str) -> Tensor:
        """Uniform in (-a, a), where a is the policy's amount: (n, V)."""
        return (2 * self.uniform() - 1) * self.setting(name)

    def around_one(self, name: str) -> Tensor:
        """Uniform in (max(0, 1 - a), 1 + a), where a is the policy's amount: (n, V)."""
        least = self.setting(name, lambda amount: max(0.0, 1.0 - amount))
        most = self.setting(name, lambda amount: 1.0 + amount)
        return least + (most - least) * self.uniform()

    def jitter(self) -> dict[str, Tensor]:
        """The factors by name, and "order" (n, V, k): places among them, -1 for nothing."""
        names = [name for name in JITTER if self.used(name)]
        factors = {
            name: self.around_zero(name) if name == "hue" else self.around_one(name)
            for name in names
        }
        order = self.uniform(len(names)).argsort(dim=-1)
        return {**factors, "order": torch.where(self.happens("jitter")[..., None], order, -1)}

    def crop(self, scale: Range, height: int, width: int) -> Tensor:
        """Boxes (n, V, 4) of top, left, height, width, as torchvision's RandomResizedCrop.

        Uniform in area and log-uniform in ratio; the first of ten that fits, and where none does
        the largest one in the middle with the nearest ratio.
        """
        ratio = self.policy.crop_ratio
        share, shape = self.uniform(2, TRIES).unbind(dim=2)
        tall, wide = box_sides(share, shape, scale, ratio, height * width)
        fits = (tall > 0) & (tall <= height) & (wide > 0) & (wide <= width)
        fallback_tall = round(width / ratio[0]) if width / height < ratio[0] else height
        fallback_wide = round(height * ratio[1]) if width / height > ratio[1] else width
        tall = _first(tall, fits, fallback_tall)
        wide = _first(wide, fits, fallback_wide)
        room = _room(tall, wide, height, width)
        corner = torch.where(fits.any(dim=-1)[..., None], _corner(self.uniform(2), room), room // 2)
        return torch.cat([corner, tall[..., None], wide[..., None]], dim=-1)

    def cutout(self, size: int) -> Tensor:
        """Boxes (n, V, 4) of top, left, height, width, as torchvision's RandomErasing.

        Smaller than the view; 0 high where the policy's probability says so, and where none of
        ten boxes fits.
        """
        share, shape = self.uniform(2, TRIES).unbind(dim=2)
        policy = self.policy
        # RandomErasing's ratio is height by width, RandomResizedCrop's is width by height.
        wide, tall = box_sides(share, shape, policy.cutout_scale, policy.cutout_ratio, size**2)
        fits = (tall < size) & (wide < size)
        tall, wide = _first(tall, fits, 0), _first(wide, fits, 0)
        tall = torch.where(self.happens("cutout"), tall, 0)
        corner = _corner(self.uniform(2), _room(tall, wide, size, size))
        return torch.cat([corner, tall[..., None], wide[..., None]], dim=-1)


def box_sides(
    share: Tensor, shape: Tensor, scale: Range, ratio: Range, area: int
) -> tuple[Tensor, Tensor]:
    """Height and width, in whole pixels, from uniform numbers in [0, 1).

    Args:
        share: the area lies this far between the bounds of `scale`, which are shares of `area`.
        shape: the logarithm of width / height lies this far between those of `ratio`.

    >>> box_sides(torch.tensor(1.0), torch.tensor(1.0), (0.1, 0.5), (0.5, 2.0), 16)
    (tensor(2), tensor(4))
    """
    pixels = area * (scale[0] + (scale[1] - scale[0]) * share)
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = torch.exp(low + (high - low) * shape)
    return (pixels / aspect).sqrt().round().long(), (pixels * aspect).sqrt().round().long()


def _first(candidates: Tensor, fits: Tensor, fallback: int) -> Tensor:
    """Along the last dimension the first candidate that fits."""
    chosen = fits.to(torch.uint8).argmax(dim=-1, keepdim=True)
    return torch.where(fits.any(dim=-1), candidates.gather(-1, chosen).squeeze(-1), fallback)


def _room(tall: Tensor, wide: Tensor, height: int, width: int) -> Tensor:
    """How far a box can move down and to the right: (..., 2)."""
    return torch.stack([height - tall, width - wide], dim=-1)


def _corner(place: Tensor, room: Tensor) -> Tensor:
    """Top and left, all alike likely, from uniform numbers in [0, 1)."""
    # A number just below 1 can round up to 1 when it is multiplied.
    return (place * (room + 1)).long().minimum(room)
