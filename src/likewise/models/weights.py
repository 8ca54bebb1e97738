"""Weights from a file: read them, find the encoder in them, refuse what does not fit."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")

METADATA_KEY = "likewise_encoder"
"""Where a Likewise encoder file keeps ``encoder.config`` as JSON (safetensors metadata)."""

# Where files keep the state dict, and what stands before the encoder's own names in it.
_SECTIONS = ("state_dict", "model", "encoder", "state")
_PREFIXES = ("", "model.", "encoder.model.", "encoder.", "module.", "module.encoder.", "backbone.")
_CLASSIFIERS = ("fc.", "classifier.", "head.", "head_dist.", "last_linear.")
_SHOWN = 4


def check_file(path: Path | str) -> Path:
    """`path`, or an error that says why no weights can be read there."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"pretrained is {str(path)!r}: give True for timm's own weights, or a file that ends "
            f"in {', '.join(SUFFIXES)}"
        )
    if not path.is_file():
        raise ValueError(f"pretrained is {str(path)!r}: there is no such file")
    return path


def read_weights(path: Path | str) -> dict[str, Tensor]:
    """The tensors of a .safetensors, .pt, .pth, .ckpt or .bin file, on the CPU, by name.

    Python objects are not unpickled: a file may come from anywhere.
    """
    path = check_file(path)
    if path.suffix == ".safetensors":
        import safetensors
        import safetensors.torch

        try:
            return dict(safetensors.torch.load_file(path))
        except safetensors.SafetensorError as error:
            raise ValueError(f"{path} is no safetensors file, or half of one: {error}") from error
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(
            f"{path} cannot be read: it is broken, or holds Python objects beside tensors: save "
            f"a state dict alone ({str(error).splitlines()[0]})"
        ) from error
    while isinstance(found, Mapping):
        section = next((s for s in _SECTIONS if isinstance(found.get(s), Mapping)), None)
        if section is None:
            break
        found = found[section]
    if not isinstance(found, Mapping) or not any(isinstance(v, Tensor) for v in found.values()):
        raise ValueError(f"{path} holds no state dict: save model.state_dict()")
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def read_config(path: Path | str) -> dict[str, Any] | None:
    """The arguments of `build_encoder` that a Likewise encoder file has; None of other files."""
    path = check_file(path)
    if path.suffix != ".safetensors":
        return None
    import safetensors

    try:
        with safetensors.safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(METADATA_KEY)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is no safetensors file, or half of one: {error}") from error
    return None if text is None else dict(json.loads(text))


def load_weights(model: nn.Module, path: Path | str) -> str:
    """Load a file into `model`: every tensor of the model, each in its shape; or an error.

    Names may have a prefix (``module.``, ``backbone.``, ``encoder.model.``, ...); a classifier is
    dropped, and so is what a training file holds beside the encoder. Nothing is loaded in part.

    Returns:
        What was loaded and dropped, in words.
    """
    wanted = model.state_dict()
    found = {
        name.replace("_orig_mod.", ""): value  # of a compiled module
        for name, value in read_weights(path).items()
    }
    prefix = max(_PREFIXES, key=lambda p: sum(p + name in found for name in wanted))
    under = {name[len(prefix) :]: v for name, v in found.items() if name.startswith(prefix)}
    extra = {name for name in under if name not in wanted}
    classifier = {name for name in extra if name.startswith(_CLASSIFIERS)}
    # Counters of batch norm: files of old PyTorch lack them, and nothing depends on them.
    missing = [
        name for name in wanted if name not in under and not name.endswith("num_batches_tracked")
    ]
    wrong = [name for name in wanted if name in under and under[name].shape != wanted[name].shape]
    if missing or wrong or extra - classifier:
        raise ValueError(_misfit(path, wanted, under, missing, wrong, sorted(extra - classifier)))
    fitting = {name: under[name] for name in wanted if name in under}
    model.load_state_dict(fitting, strict=False)  # the counters alone may be missing
    beside = len(found) - len(under)
    return (
        f"{len(fitting)} tensors from {Path(path).name}"
        + (f", {len(classifier)} of a classifier dropped" if classifier else "")
        + (f", {beside} of other parts left out" if beside else "")
    )


def _misfit(
    path: Path | str,
    wanted: Mapping[str, Tensor],
    found: Mapping[str, Tensor],
    missing: list[str],
    wrong: list[str],
    extra: list[str],
) -> str:
    """Why the file does not fit, and what may help."""
    lines = [f"pretrained is {str(path)!r}, whose weights do not fit the encoder:"]
    for name in wrong[:_SHOWN]:
        lines.append(
            f"{name} is {tuple(found[name].shape)} in the file "
            f"and {tuple(wanted[name].shape)} in the encoder;"
        )
    odd = {"lacks": missing, "has, in addition,": extra, "has other shapes for": wrong}
    for what, names in odd.items():
        if names and not (names is wrong and len(wrong) <= _SHOWN):
            shown = ", ".join(names[:_SHOWN])
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"the file {what} {shown}{more};")
    of_stem = [name for name in (*wrong, *missing, *extra) if _is_stem(name)]
    lines.append(
        "the stem differs: give stem='original' or stem='small', and the in_channels and "
        "image_size of the file"
        if of_stem and len(of_stem) == len(wrong) + len(missing) + len(extra)
        else "give the encoder that the file was made with"
    )
    return " ".join(lines)


def _is_stem(name: str) -> bool:
    return name.startswith(("conv1.", "maxpool.", "patch_embed.", "pos_embed", "stem."))
