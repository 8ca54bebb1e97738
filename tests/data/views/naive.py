"""Views one image at a time, by torchvision's functions on the same parameters."""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from likewise.data.views import Parameters, Views

ADJUST = {
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation,
    "hue": F.adjust_hue,
}


def example_pixels(n: int, height: int, width: int | None = None, seed: int = 0) -> Tensor:
    """Smooth random colours, with grey, black, white and pure patches, which are special cases."""
    generator = torch.Generator().manual_seed(seed)
    width = height if width is None else width
    coarse = torch.randint(0, 256, (n, 3, 5, 5), generator=generator).float()
    pixels = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear")
    pixels[:, :, : height // 4, : width // 4] = pixels[:, :1, : height // 4, : width // 4]
    for corner, colour in enumerate([(0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 200, 200)]):
        pixels[:, :, -1 - corner, : width // 2] = torch.tensor(colour).float()[None, :, None]
    return pixels.to(torch.uint8)


def example_images(n: int, height: int, width: int | None = None, seed: int = 0) -> Tensor:
    return example_pixels(n, height, width, seed).float() / 255


def jittered(image: Tensor, order: list[int], factors: dict[str, float]) -> Tensor:
    names = list(factors)
    for place in order:
        if place >= 0:
            image = ADJUST[names[place]](image, factors[names[place]])
    return image


def one_view(views: Views, image: Tensor, size: int, drawn: dict[str, Tensor]) -> Tensor:
    """`image` (3, H, W) from 0 to 1; `drawn` is one row of the parameters."""
    policy = views.policy
    if "crop" in drawn:
        top, left, height, width = drawn["crop"].tolist()
        image = F.resized_crop(image, top, left, height, width, [size, size], antialias=True)
    else:
        image = F.center_crop(image, [min(image.shape[1:])] * 2)
        image = F.resize(image, [size, size], antialias=True)
    if "flip" in drawn and drawn["flip"]:
        image = F.hflip(image)
    if "rotation" in drawn:
        image = F.rotate(image, drawn["rotation"].item(), InterpolationMode.BILINEAR)
    if "order" in drawn:
        factors = {name: drawn[name].item() for name in ADJUST if name in drawn}
        image = jittered(image, drawn["order"].tolist(), factors)
    if "grayscale" in drawn and drawn["grayscale"]:
        image = F.rgb_to_grayscale(image, num_output_channels=3)
    if "blur" in drawn and drawn["blur"]:
        kernel = policy.kernel_size(size)
        image = F.gaussian_blur(image, [kernel, kernel], [drawn["blur_sigma"].item()] * 2)
    if "solarize" in drawn and drawn["solarize"]:
        image = F.solarize(image, policy.solarize_threshold)
    if "cutout" in drawn:
        fill = torch.tensor(views.mean)[:, None, None]
        image = F.erase(image, *drawn["cutout"].tolist(), fill)
    if "noise" in drawn:
        image = (image + drawn["noise"] * drawn["noise_deviation"]).clamp(0, 1)
    return F.normalize(image, list(views.mean), list(views.std))


def all_views(views: Views, pixels: Tensor, parameters: Parameters) -> list[Tensor]:
    made = []
    for (count, size), group in zip(views.crops, parameters.groups, strict=True):
        rows = []
        for i, image in enumerate(pixels.float() / 255):
            for v in range(count):
                row = {name: values[i * count + v] for name, values in group.items()}
                rows.append(one_view(views, image, size, row))
        made.append(torch.stack(rows))
    return made
