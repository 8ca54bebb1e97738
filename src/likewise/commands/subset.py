"""``likewise subset``: a few images that stand for many."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from likewise.commands.errors import UsageError


def subset(
    run: str,
    data: str | None = None,
    *,
    size: int,
    method: Literal["typical", "diverse", "balanced", "random"] = "typical",
    labels: str | None = None,
    out: list[str] | None = None,
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
) -> list[str]:
    """Choose images to label or to train on: typical, diverse, or the same number of every kind.

    Args:
        run: a folder that `likewise train` wrote; or an embeddings file of `likewise embed`.
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist". With an embeddings file it is only needed to show
            images.
        size: how many images.
        method: "typical" ones stand for many others, "diverse" ones are least like each other,
            "balanced" takes as many of every class (or of every cluster, where there are no
            labels), "random" draws.
        labels: for "balanced": a CSV file (key,label), or "source" for the labels that the images
            bring along; by default clusters are found.
        out: files to write, by their ending: .csv (order, key, group), .json, .html.
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

    from likewise.commands.answered import strata
    from likewise.library import choose_subset, open_collection
    from likewise.library.results import say_written, write_subset
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
        groups, names = None, None
        if method == "balanced":
            groups, names = strata(collection, labels, seed=seed)
        places = choose_subset(collection.rows, size, method=method, groups=groups, seed=seed)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    Console().print(f"{size:,} of {len(collection):,} images, {method}", highlight=False)
    write_subset(files, collection, places, method, groups, names)
    say_written(files)
    return [collection.keys[place] for place in places]
