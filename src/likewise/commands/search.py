"""``likewise search``: the images nearest to an image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.commands.errors import UsageError

if TYPE_CHECKING:
    from likewise.library.search import Found


def search(
    run: str,
    data: str | None = None,
    *,
    query: list[str] | None = None,
    like: list[str] | None = None,
    unlike: list[str] | None = None,
    unlike_weight: float = 0.5,
    top: int = 20,
    out: list[str] | None = None,
    method: Literal["auto", "exact", "faiss"] = "auto",
    encoder: str | None = None,
    pretrained: str | None = None,
    image_size: int | None = None,
    index: Path | None = None,
    rebuild: bool = False,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> list[Found]:
    """Find the images most like an image, or like some and unlike others.

    Only new or changed images are embedded; what changed is said. Up to a million images the
    search is exact.

    Args:
        run: a folder that `likewise train` wrote; or an embeddings file of `likewise embed`.
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist". With an embeddings file it is only needed to show
            images.
        query: image files, or keys of images; each is looked for by itself.
        like: files or keys that are looked for together.
        unlike: what their hits should not be like.
        unlike_weight: how much `unlike` counts against `like`.
        top: hits of each.
        out: files to write, by their ending: .html (a sheet with thumbnails), .csv, .json.
        method: "auto" is exact up to a million images, and FAISS beyond, where it is installed.
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

    from likewise.library import open_collection, search_images
    from likewise.library.results import print_hits, say_written, write_hits
    from likewise.library.tables import outputs

    try:
        files = outputs(out)
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
        found = search_images(
            collection,
            query or [],
            like=like or [],
            unlike=unlike or [],
            top=top,
            unlike_weight=unlike_weight,
            method=method,
        )
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    print_hits(found, Console())
    write_hits(files, collection, found)
    say_written(files)
    return found
