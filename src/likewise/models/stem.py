"""How an encoder begins: large strides for photographs, none for small images."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

Stem = Literal["auto", "small", "original"]

SMALL_IMAGE = 64
"""Up to this many pixels an image is small."""

# timm's modules whose models are plain vision transformers with a free patch size.
_TRANSFORMERS = ("vision_transformer", "deit")


def is_resnet(name: str) -> bool:
    """Whether a timm name belongs to timm's ResNets (ResNeXt, Wide and SE variants included).

    >>> is_resnet("resnet18"), is_resnet("vit_tiny_patch16_224")
    (True, False)
    """
    return _is_in_modules(name, "resnet")


def is_transformer(name: str) -> bool:
    """Whether a timm name is a plain vision transformer.

    >>> is_transformer("vit_tiny_patch16_224"), is_transformer("convnext_tiny")
    (True, False)
    """
    return _is_in_modules(name, *_TRANSFORMERS)


def _is_in_modules(name: str, *modules: str) -> bool:
    from timm.models import is_model_in_modules

    return bool(is_model_in_modules(name, modules))


def resolve_stem(name: str, stem: Stem, image_size: int, *, published_weights: bool) -> Stem:
    """ "small" or "original": what "auto" means here, and whether what was asked can be had.

    Args:
        name: a timm name.
        stem: "auto" is "small" for ResNets and vision transformers on small images.
        image_size: pixels a side.
        published_weights: timm's own weights are to be loaded; they have the original stem.

    >>> resolve_stem("resnet18", "auto", 32, published_weights=False)
    'small'
    >>> resolve_stem("resnet18", "auto", 224, published_weights=False)
    'original'
    """
    can_be_small = is_resnet(name) or is_transformer(name)
    if stem == "auto":
        small = can_be_small and image_size <= SMALL_IMAGE and not published_weights
        return "small" if small else "original"
    if stem == "small" and not can_be_small:
        raise ValueError(
            f"stem is 'small' for {name!r}: only ResNets and vision transformers have one: "
            "give stem='original', or another encoder such as 'resnet18'"
        )
    if stem == "small" and published_weights:
        raise ValueError(
            f"stem is 'small' with pretrained=True: timm's weights of {name!r} have the original "
            "stem: give stem='original', or pretrained=False"
        )
    return stem


def shrink_resnet_stem(model: Any, in_channels: int) -> None:
    """Give a timm ResNet the CIFAR stem: one 3x3 convolution of stride 1 and no max-pool.

    SimCLR appendix B.9: at 32 pixels the original stem leaves an 8 x 8 map before the first block.
    """
    convolution = nn.Conv2d(in_channels, model.bn1.num_features, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    model.conv1 = convolution
    model.maxpool = nn.Identity()


def small_patch(image_size: int) -> int:
    """The patch of a vision transformer on small images: at least 8 x 8 patches, no remainder.

    >>> [small_patch(size) for size in (16, 28, 32, 48, 64)]
    [2, 2, 4, 6, 8]
    """
    return max(p for p in range(1, max(image_size // 8, 1) + 1) if image_size % p == 0)
