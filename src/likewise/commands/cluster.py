"""``likewise cluster``: kinds of images that nobody has named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.commands.errors import UsageError

if TYPE_CHECKING:
    from likewise.library.clusters import Clusters


def cluster(
    run: str,
    data: str | None = None,
    *,
    k: int | None = None,
    most: int = 30,
    out: list[str] | None = None,
    sheet: bool = True,
    seed: int = 0,
    encoder: str | None = None,
    pretrained: str | None = None,
    image_size: int | None = None,
    index: Path | None = None,
    rebuild: bool = False,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> Clusters:
    """Put images that are alike together, and find how many kinds there are.

    Args:
        run: a folder that `likewise train` wrote; or an embeddings file of `likewise embed`.
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist". With an embeddings file it is only needed to show
            images.
        k: how many clusters; by default as many as there seem to be.
        most: the largest k to consider.
        out: files to write, by their ending: .csv (key, cluster, confidence), .json, .html.
        sheet: also write a sheet of examples beside a .csv or .json file.
        seed: of what is drawn.
        encoder: any model of timm, or "tiny", in place of a run; `run` is then left out.
        pretrained: weights of `encoder`: "timm", or a file; without, random ones.
        image_size: pixels a side that `encoder` sees.
        index: the folder where embeddings are kept; by default in the run's folder, and without a
            run in the user's cache.
        rebuild: embed all images again.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        batch_size: images at a time.
        device: where to compute; "auto" is a GPU where there is one.
    """
    from rich.console import Console

    from likewise.library import find_clusters, open_collection
    from likewise.library.results import print_clusters, say_written, write_clusters
    from likewise.library.tables import outputs, with_sheet

    try:
        files = outputs(out)
        if sheet:
            with_sheet(files)
        collection = open_collection(
            run,
            data,
            encoder=encoder,
            pretrained=pretrained,
            image_size=image_size,
            index=index,
            rebuild=rebuild,
            image_column=image_column,
            label_column=label_column,
            batch_size=batch_size,
            device=device,
        )
        found = find_clusters(collection.rows, k, most=most, seed=seed)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    print_clusters(found, collection, Console())
    write_clusters(files, collection, found)
    say_written(files)
    return found
