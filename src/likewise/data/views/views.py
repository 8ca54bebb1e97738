"""Views of images: random crops, flips, colours, ..., made in batches on the training device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from likewise.data.views import colour, shape
from likewise.data.views.draw import GroupDraw
from likewise.data.views.parameters import Parameters
from likewise.data.views.pixels import check_pixels, check_size, check_statistics, unit_floats
from likewise.data.views.policies import find_policy
from likewise.data.views.policy import Policy
from likewise.data.views.resize import centre_square, resize_matrix, resized_crops
from likewise.data.views.rows import on_rows
from likewise.information.precision import without_autocast


class Views:
    """Makes V views of every image of a batch, each with parameters of its own.

    ``draw`` makes the random parameters, ``apply`` makes the views from pixels and parameters.
    ``apply`` has no randomness and no branch on data, and can be compiled as a whole::

        views = Views("simclr", 32, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
        make = torch.compile(views.apply, fullgraph=True, dynamic=False)
        parameters = views.draw(len(pixels), generator=generator, device=pixels.device)
        (images,) = make(pixels, parameters)

    Rows are sample-major: view v of sample i is row ``i * V + v``.

    Args:
        policy: a :class:`Policy`, the name of one, or a mapping (see :func:`find_policy`).
        size: side of the views in pixels.
        n_views: how many full-size views; the policy's local views (multi-crop) come on top.
        mean: of the data per channel, on the scale 0 to 1.
        std: standard deviation of the data per channel; what comes out is (x - mean) / std.
        canvas: side of the images, or (height, width), where it is not `size`.

    >>> views = Views("multi-crop", 32, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    >>> views.crops, views.n_views
    (((2, 32), (6, 14)), 8)
    >>> pixels = torch.zeros(5, 3, 32, 32, dtype=torch.uint8)
    >>> [tuple(x.shape) for x in views(pixels, generator=torch.Generator().manual_seed(0))]
    [(10, 3, 32, 32), (30, 3, 14, 14)]
    """

    def __init__(
        self,
        policy: Policy | Mapping[str, Any] | str,
        size: int,
        n_views: int = 2,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        canvas: int | tuple[int, int] | None = None,
    ) -> None:
        self.size = size = check_size("size", size)
        if n_views < 1:
            raise ValueError(f"n_views is {n_views}: give at least 1 (most methods use 2)")
        self.policy = find_policy(policy, size)
        self.mean, self.std = check_statistics(mean, std)
        canvas = size if canvas is None else canvas
        height, width = canvas if isinstance(canvas, tuple) else (canvas, canvas)
        self.canvas = check_size("canvas", height), check_size("canvas", width)
        crops = [(n_views, size)]
        if self.policy.local_views:
            crops.append((self.policy.local_views, max(1, round(self.policy.local_size * size))))
        self.crops: tuple[tuple[int, int], ...] = tuple(crops)
        """(views, side in pixels) of each group; `apply` gives one tensor per group."""
        self.n_views = sum(views for views, _ in crops)
        """V, the views of a sample in all groups together."""
        for _, side in crops:
            kernel = self.policy.kernel_size(side)
            if self.policy.uses("blur") and kernel // 2 >= side:
                raise ValueError(
                    f"blur_kernel is {kernel} pixels, too wide for views of {side}: "
                    f"give at most {2 * side - 1}, or blur=0"
                )

    def draw(
        self, n: int, *, generator: torch.Generator, device: torch.device | str | None = None
    ) -> Parameters:
        """Random parameters for all views of `n` samples.

        Args:
            generator: the same state gives the same parameters. It may be on the CPU, whatever
                the device.
            device: where the parameters are wanted; default the generator's.
        """
        if n < 1:
            raise ValueError(f"n is {n}: give the number of samples, at least 1")
        where = generator.device if device is None else torch.device(device)
        groups: list[dict[str, Tensor]] = []
        first = 0
        for views, side in self.crops:
            scale = self.policy.local_crop_scale if groups else self.policy.crop_scale
            draw = GroupDraw(self.policy, n, first, views, generator)
            groups.append(draw.parameters(scale, self.canvas, side, where))
            first += views
        return Parameters(n, tuple(groups))

    @without_autocast
    def apply(self, pixels: Tensor, parameters: Parameters) -> list[Tensor]:
        """The views: per crop size one tensor (n * V, 3, side, side), float32, normalised.

        Args:
            pixels: uint8 (n, 3, height, width).
            parameters: what :meth:`draw` gave for n samples.
        """
        check_pixels(pixels, self.canvas)
        if parameters.n != len(pixels):
            raise ValueError(
                f"parameters are for {parameters.n} samples but pixels hold {len(pixels)}: "
                "draw for as many as there are"
            )
        images = unit_floats(pixels)
        return [
            self._group(images, views, side, drawn)
            for (views, side), drawn in zip(self.crops, parameters.groups, strict=True)
        ]

    def __call__(self, pixels: Tensor, *, generator: torch.Generator) -> list[Tensor]:
        """Draw and apply."""
        check_pixels(pixels, self.canvas)
        drawn = self.draw(len(pixels), generator=generator, device=pixels.device)
        return self.apply(pixels, drawn)

    def join(self, groups: Sequence[Tensor]) -> Tensor:
        """Rows of the groups (n * V_g, ...), say embeddings, as (n * V, ...), sample-major.

        >>> views = Views("multi-crop", 32, mean=(0.5,) * 3, std=(0.25,) * 3)
        >>> full, local = torch.arange(4), -torch.arange(12)
        >>> views.join([full, local])
        tensor([  0,   1,   0,  -1,  -2,  -3,  -4,  -5,   2,   3,  -6,  -7,  -8,  -9, -10, -11])
        """
        parts = [
            rows.unflatten(0, (-1, views))
            for rows, (views, _) in zip(groups, self.crops, strict=True)
        ]
        return torch.cat(parts, dim=1).flatten(0, 1)

    def _group(self, images: Tensor, views: int, side: int, drawn: dict[str, Tensor]) -> Tensor:
        """One group of views, by the operations that have parameters."""
        x = self._cropped(images, views, side, drawn)
        if "rotation" in drawn:
            x = shape.rotate(x, drawn["rotation"])
        if "order" in drawn:
            factors = {name: drawn[name] for name in colour.JITTER if name in drawn}
            x = colour.jitter(x, drawn["order"], factors)
        if "grayscale" in drawn:
            x = on_rows(drawn["grayscale"], colour.grayscale, x)
        if "blur" in drawn:
            blur = partial(shape.blur, kernel=self.policy.kernel_size(side))
            x = on_rows(drawn["blur"], blur, x, drawn["blur_sigma"])
        if "solarize" in drawn:
            solarize = partial(colour.solarize, threshold=self.policy.solarize_threshold)
            x = on_rows(drawn["solarize"], solarize, x)
        if "cutout" in drawn:
            x = shape.cutout(x, drawn["cutout"], self.mean)
        if "noise" in drawn:
            x = shape.add_noise(x, drawn["noise"], drawn["noise_deviation"])
        return colour.normalized(x, self.mean, self.std)

    def _cropped(self, images: Tensor, views: int, side: int, drawn: dict[str, Tensor]) -> Tensor:
        """Crop, resize and flip."""
        height, width = self.canvas
        flip = drawn.get("flip")
        if "crop" not in drawn and height == width == side:
            x = images.repeat_interleave(views, dim=0)
            return x if flip is None else on_rows(flip, lambda rows: rows.flip(-1), x)
        if "crop" in drawn:
            top, left, tall, wide = drawn["crop"].unbind(dim=1)
        else:
            rows = torch.ones(len(images) * views, dtype=torch.long, device=images.device)
            top, left, tall = (rows * number for number in centre_square(height, width))
            wide = tall
        vertical = resize_matrix(top, tall, side, height)
        horizontal = resize_matrix(left, wide, side, width, flip)
        return resized_crops(images, vertical, horizontal)
