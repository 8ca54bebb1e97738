"""``likewise embed``: a row of numbers for every image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.commands.errors import UsageError

if TYPE_CHECKING:
    from likewise.evaluation import Embeddings


def embed(
    run: Path,
    data: str,
    *,
    out: Path | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    workers: int | None = None,
) -> Embeddings:
    """Embed images with a trained encoder: key, embedding and, where known, label.

    From Python `out` may be left out: the embeddings are returned.

    Args:
        run: a folder that `likewise train` wrote.
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset, or
            "digits".
        out: the Parquet file to write (NAME.parquet).
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        batch_size: images at a time.
        device: where to compute; "auto" is a GPU where there is one.
        workers: processes that decode images.
    """
    from rich.console import Console

    from likewise.evaluation import write_embeddings
    from likewise.evaluation.embedded import embed_source

    console = Console(stderr=True)
    if out is not None and Path(out).suffix != ".parquet":
        raise UsageError(f"out is {out}: embeddings are Parquet, so give a name.parquet")
    if out is not None and Path(out).is_dir():
        raise UsageError(f"out is {out}, a folder: give the name of a file")
    try:
        found = embed_source(
            run,
            data,
            image_column=image_column,
            label_column=label_column,
            batch_size=batch_size,
            device=device,
            workers=workers,
            console=console,
        )
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    if out is not None:
        done = "replaced" if Path(out).exists() else "wrote"
        write_embeddings(out, found)
        rows, dim = found.rows.shape
        console.print(
            f"{done} {out}: {rows:,} embeddings of {dim} numbers", highlight=False, soft_wrap=True
        )
    return found
