"""Encoders: any timm model, or our own tiny one, from images to pooled features."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from likewise.models.stem import (
    Stem,
    is_resnet,
    is_transformer,
    resolve_stem,
    shrink_resnet_stem,
    small_patch,
)
from likewise.models.tiny import TinyConvNet
from likewise.models.weights import METADATA_KEY, check_file, load_weights, read_config
from likewise.objectives.base import one_of

TINY = "tiny"


class Encoder(nn.Module):
    """A model without its classifier: images (n, channels, s, s) to features (n, dim).

    Made by :func:`build_encoder`.

    Attributes:
        model: the timm model (or the tiny one), with its own parameter names.
        name: its name.
        dim: the width of the features.
        config: what ``build_encoder(**config)`` needs to build it again, without weights.
        weights: where its weights came from, in words.
    """

    def __init__(self, model: nn.Module, *, dim: int, config: dict[str, Any], weights: str) -> None:
        super().__init__()
        self.model = model
        self.dim = dim
        self.config = config
        self.weights = weights

    @property
    def name(self) -> str:
        """The name that it was built by."""
        return str(self.config["name"])

    def forward(self, images: Tensor) -> Tensor:
        """Pooled features, a row per image."""
        features: Tensor = self.model(images)
        return features

    def metadata(self) -> dict[str, str]:
        """The safetensors metadata that makes a file of weights a Likewise encoder file.

        ``safetensors.torch.save_file(encoder.state_dict(), path, metadata=encoder.metadata())``
        writes what :func:`load_encoder` reads.
        """
        return {METADATA_KEY: json.dumps(self.config)}

    def extra_repr(self) -> str:
        """Name, width and the origin of the weights."""
        return f"{self.name}, dim={self.dim}, weights={self.weights!r}"


def build_encoder(
    name: str,
    *,
    stem: Stem = "auto",
    pretrained: bool | str | Path = False,
    image_size: int = 32,
    in_channels: int = 3,
    seed: int | None = None,
) -> Encoder:
    """An encoder by name.

    Args:
        name: any name of timm ("resnet18", "vit_tiny_patch16_224", "convnext_tiny"), or "tiny",
            a convolutional network of 278,000 parameters for small images on a CPU.
        stem: "small" is for small images: a ResNet then begins with a 3x3 convolution of stride 1
            and has no max-pool, a vision transformer has at least 8 x 8 patches (4 pixels wide at
            32). "original" is timm's. "auto" is "small" for these two where images have at most
            64 pixels a side and `pretrained` is not True.
        pretrained: True for timm's own weights of that name; or a file: .safetensors, .pt, .pth,
            .ckpt, or the encoder file of a Likewise run. Every tensor has to fit.
        image_size: pixels a side. Networks without attention take other sizes, too.
        in_channels: channels of an image.
        seed: of random weights; default: PyTorch's global state, as it is.

    >>> encoder = build_encoder("tiny", image_size=32, seed=0)
    >>> encoder(torch.zeros(5, 3, 32, 32)).shape, encoder.dim
    (torch.Size([5, 128]), 128)
    """
    _check_arguments(name, stem, image_size, in_channels)
    file = None if isinstance(pretrained, bool) else check_file(pretrained)
    published = pretrained is True
    if name == TINY:
        stem = _tiny_stem(stem, published)
    else:
        _check_published(name, published)
        stem = resolve_stem(name, stem, image_size, published_weights=published)
    config = {"name": name, "stem": stem, "image_size": image_size, "in_channels": in_channels}
    if file is not None:
        _check_same_encoder(file, config)
    # Weights are drawn on the CPU: the state of GPUs is left alone.
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        model = TinyConvNet(in_channels) if name == TINY else _from_timm(config, published)
    dim = _measure(model, config)
    weights = load_weights(model, file) if file else f"timm {name}" if published else "random"
    return Encoder(model, dim=dim, config=config, weights=weights)


def load_encoder(path: Path | str) -> Encoder:
    """The encoder of a Likewise encoder file, as it was saved.

    >>> import tempfile
    >>> from safetensors.torch import save_file
    >>> path = Path(tempfile.mkdtemp()) / "encoder.safetensors"
    >>> encoder = build_encoder("tiny", seed=0)
    >>> save_file(encoder.state_dict(), path, metadata=encoder.metadata())
    >>> load_encoder(path)
    Encoder(
      tiny, dim=128, weights='30 tensors from encoder.safetensors' ...
    """
    config = read_config(path)
    if config is None:
        raise ValueError(
            f"{path} does not say which encoder it holds: "
            "use build_encoder(name, pretrained=path) with its name"
        )
    return build_encoder(**config, pretrained=path)


def _check_arguments(name: str, stem: str, image_size: int, in_channels: int) -> None:
    one_of("stem", stem, ("auto", "small", "original"))
    for argument, value, least in (("image_size", image_size, 8), ("in_channels", in_channels, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{argument} is {value!r}: give a whole number of at least {least}")
    if name == TINY:
        return
    import timm

    if not isinstance(name, str) or not timm.is_model(name):
        raise ValueError(f"encoder is {name!r}: {_suggestion(str(name))}")
    architecture = name.split(".")[0]
    if architecture != name and not timm.is_model_pretrained(name):
        raise ValueError(
            f"encoder is {name!r}: {architecture!r} has no weights of that tag: give one of "
            f"{', '.join([architecture, *timm.list_pretrained(architecture + '.*')])}"
        )


def _suggestion(name: str) -> str:
    import timm

    known = [TINY, *timm.list_models()]
    near = difflib.get_close_matches(name.lower(), known, n=5, cutoff=0.5)
    rest = f"there are {len(known):,}, see timm.list_models()"
    return f"the closest names are {', '.join(near)}; {rest}" if near else f"no such name; {rest}"


def _tiny_stem(stem: Stem, published: bool) -> Stem:
    if published:
        raise ValueError("pretrained is True: 'tiny' has no published weights: give a file")
    if stem == "small":
        raise ValueError("stem is 'small': 'tiny' has one stem only: give 'auto'")
    return "original"


def _check_published(name: str, published: bool) -> None:
    import timm

    if published and not timm.is_model_pretrained(name):
        raise ValueError(
            f"pretrained is True, but timm has no weights of {name!r}: "
            "give a file, or pretrained=False"
        )


def _check_same_encoder(file: Path, config: dict[str, Any]) -> None:
    saved = read_config(file)
    if saved is None:
        return
    for key in ("name", "stem", "in_channels"):
        if saved[key] != config[key]:
            raise ValueError(
                f"{key} is {config[key]!r}, but {file} holds an encoder with {saved[key]!r}: "
                f"give {key}={saved[key]!r}, or use load_encoder(path)"
            )


def _from_timm(config: dict[str, Any], published: bool) -> nn.Module:
    """The timm model without its classifier, with the stem that `config` says."""
    import timm

    name, size, small = config["name"], config["image_size"], config["stem"] == "small"
    options = {"num_classes": 0, "in_chans": config["in_channels"], **size_arguments(config)}
    try:
        model: nn.Module = timm.create_model(name, pretrained=published, **options)
    except OSError as error:  # of the download: connection, offline mode, disk
        raise ValueError(
            f"pretrained is True, but timm's weights of {name!r} are not in the local cache and "
            "could not be downloaded: give a file, or pretrained=False "
            f"({type(error).__name__}: {error})"
        ) from error
    except (RuntimeError, ValueError, AssertionError) as error:
        raise ValueError(_does_not_take(name, size, error)) from error
    if small and is_resnet(name):
        shrink_resnet_stem(model, config["in_channels"])
    return model


def size_arguments(config: dict[str, Any]) -> dict[str, Any]:
    """What timm has to be told of the size of images, for models that are built for one.

    >>> size_arguments({"name": "resnet18", "image_size": 96, "stem": "original"})
    {}
    >>> size_arguments({"name": "vit_tiny_patch16_224", "image_size": 96, "stem": "original"})
    {'img_size': 96, 'dynamic_img_size': True}
    """
    import timm

    name, size = config["name"], config["image_size"]
    arguments: dict[str, Any] = {}
    published_as = timm.get_pretrained_cfg(name)
    if published_as is not None and published_as.fixed_input_size:
        arguments["img_size"] = size
    if is_transformer(name):
        arguments["dynamic_img_size"] = True  # crops of another size
        if config["stem"] == "small":
            arguments["patch_size"] = small_patch(size)
    return arguments


def _measure(model: nn.Module, config: dict[str, Any]) -> int:
    """The width of the features: one blank image is passed through, in eval mode."""
    name, size, channels = config["name"], config["image_size"], config["in_channels"]
    patch = getattr(getattr(model, "patch_embed", None), "patch_size", None)
    if isinstance(patch, tuple) and size % patch[0]:
        raise ValueError(
            f"image_size is {size}: {name!r} cuts images into patches of {patch[0]} pixels: "
            f"give a multiple, such as {-(-size // patch[0]) * patch[0]}"
        )
    model.eval()
    try:
        with torch.no_grad():
            features = model(torch.zeros(1, channels, size, size))
    except (RuntimeError, ValueError, AssertionError, IndexError) as error:
        raise ValueError(_does_not_take(name, size, error)) from error
    model.train()
    if not isinstance(features, Tensor) or features.ndim != 2:
        raise ValueError(f"encoder is {name!r}: it does not pool to one row an image: use another")
    return int(features.shape[1])


def _does_not_take(name: str, size: int, error: Exception) -> str:
    return (
        f"image_size is {size}: {name!r} cannot be built for it: give a larger size, or another "
        f"encoder ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
    )
