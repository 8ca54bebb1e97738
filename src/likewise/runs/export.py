"""The encoder of a run in the formats of others."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from likewise.runs.files import write_atomically
from likewise.runs.run import Preparation, Run

if TYPE_CHECKING:
    from likewise.models import Encoder

Format = Literal["safetensors", "timm", "onnx"]
DEFAULTS: dict[str, str] = {
    "safetensors": "model.safetensors",
    "timm": "timm",
    "onnx": "model.onnx",
}


def write_export(run: Run, format: Format, out: Path) -> Path:
    """Write the encoder of `run` as `format` to `out`, whole or not at all."""
    encoder, preparation = run.encoder()
    if format == "safetensors":
        _write_safetensors(encoder, out)
    elif format == "timm":
        _write_timm(encoder, preparation, out)
    elif format == "onnx":
        _write_onnx(encoder, preparation, out)
    else:
        raise ValueError(f"format is {format!r}: give one of {', '.join(DEFAULTS)}")
    return out


def _weights(encoder: Encoder) -> dict[str, torch.Tensor]:
    return {name: value.contiguous() for name, value in encoder.model.state_dict().items()}


def _write_safetensors(encoder: Encoder, out: Path) -> None:
    from safetensors.torch import save_file

    with write_atomically(out) as aside:
        save_file(_weights(encoder), aside, metadata=encoder.metadata())


def _write_timm(encoder: Encoder, preparation: Preparation, out: Path) -> None:
    """A folder as the Hugging Face hub holds them: config.json and model.safetensors."""
    from safetensors.torch import save_file

    from likewise.models.encoder import size_arguments
    from likewise.models.stem import is_resnet

    if encoder.name == "tiny":
        raise ValueError(
            "the encoder is 'tiny', which timm does not have: export safetensors or onnx"
        )
    if encoder.config["stem"] == "small" and is_resnet(encoder.name):
        # timm has no argument for it: a folder that timm cannot load would be no export.
        raise ValueError(
            "the encoder begins with a stem for small images, which timm cannot build: export "
            "safetensors or onnx, or train with --stem original"
        )
    size = preparation.size
    config: dict[str, Any] = {
        "architecture": encoder.name,
        "num_classes": 0,
        "num_features": encoder.dim,
        "model_args": size_arguments(encoder.config),
        "pretrained_cfg": {
            "input_size": [3, size, size],
            "mean": list(preparation.mean),
            "std": list(preparation.std),
            "interpolation": "bilinear",
            "crop_pct": 1.0,
            "num_classes": 0,
        },
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        save_file(_weights(encoder), aside / "model.safetensors")
        (aside / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        if out.exists():
            raise ValueError(f"{out} exists already: remove it, or give another --out")
        aside.chmod(0o755)
        aside.rename(out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


class _Prepared(torch.nn.Module):
    """Images with values from 0 to 1 go in: the file needs no word about mean and deviation."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, encoder: Encoder, preparation: Preparation) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("mean", torch.tensor(preparation.mean)[:, None, None])
        self.register_buffer("std", torch.tensor(preparation.std)[:, None, None])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.encoder((images - self.mean) / self.std)
        return features


def _write_onnx(encoder: Encoder, preparation: Preparation, out: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "ONNX export needs onnx and onnxscript: pip install '.[onnx]' in the checkout"
        ) from error
    example = torch.rand(2, 3, preparation.size, preparation.size)
    batch = torch.export.Dim("batch", min=1)
    with write_atomically(out) as aside:
        torch.onnx.export(
            _Prepared(encoder, preparation).eval(),
            (example,),
            str(aside),
            input_names=["images"],
            output_names=["features"],
            dynamic_shapes={"images": {0: batch}},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
