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
    labels: Path | None = None,
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
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist".
        out: the Parquet file to write (NAME.parquet).
        labels: a CSV file (key,label) of labels to write, in place of those that the images have.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        batch_size: images at a time.
        device: where to compute; "auto" is a GPU where there is one.
        workers: threads that decode images; by default one per core, where that is quicker.
    """
    from rich.console import Console

    from likewise.evaluation import write_embeddings
    from likewise.evaluation.embedded import embed_source
    from likewise.runs.files import check_file

    console = Console(stderr=True)
    try:
        if out is not None:
            check_file(out)
            if Path(out).suffix != ".parquet":
                raise ValueError(f"out is {out}: embeddings are Parquet, so give a name.parquet")
        found = embed_source(
            run,
            data,
            labels=labels,
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
        try:
            write_embeddings(out, found)
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {error.strerror or error}") from error
        rows, dim = found.rows.shape
        console.print(
            f"{done} {out}: {rows:,} embeddings of {dim} numbers", highlight=False, soft_wrap=True
        )
    return found
