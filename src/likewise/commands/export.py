"""``likewise export``: the encoder, for use without Likewise."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from likewise.commands.errors import UsageError


def export(
    run: Path,
    *,
    format: Literal["safetensors", "timm", "onnx"] = "safetensors",
    out: Path | None = None,
) -> Path:
    """Write the encoder of a run for use elsewhere.

    "safetensors" is one file of weights under timm's names; "timm" a folder for
    `timm.create_model("local-dir:FOLDER", ...)`; "onnx" one file that takes any number of images.

    Args:
        run: a folder that `likewise train` wrote.
        format: what to write.
        out: the file or folder to write; by default beside the run's own files.
    """
    from rich.console import Console
    from safetensors import SafetensorError

    from likewise.runs import Run
    from likewise.runs.export import DEFAULTS, write_export
    from likewise.runs.files import check_file

    try:
        opened = Run.open(run)
        path = Path(out or opened.path / DEFAULTS[format])
        if format != "timm":
            check_file(path)
        done = "replaced" if path.exists() else "wrote"
        write_export(opened, format, path)
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error
    except (OSError, SafetensorError) as error:
        # safetensors says that the disk is full with an exception of its own.
        raise UsageError(f"{path} cannot be written: {error}") from error
    Console(stderr=True).print(f"{done} {path}", highlight=False, soft_wrap=True)
    return path
