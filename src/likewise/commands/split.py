"""``likewise split``: training and test images with no twin across."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from likewise.commands.errors import UsageError


def split(
    run: str,
    data: str | None = None,
    *,
    test: float = 0.2,
    validation: float = 0.0,
    labels: str | None = None,
    duplicates: bool = True,
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
) -> dict[str, str]:
    """Split images into parts, so that near-duplicates stay together and kinds are shared alike.

    Args:
        run: a folder that `likewise train` wrote; or an embeddings file of `likewise embed`.
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist". With an embeddings file it is only needed to show
            images.
        test: share of the test images.
        validation: share of the validation images.
        labels: what is shared out alike: a CSV file (key,label), or "source" for the labels that
            the images bring along; by default clusters are found.
        duplicates: whether to keep near-duplicates in one part.
        out: files to write, by their ending: .csv (key, part, group, twins), .json, .html.
        seed: of the order.
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
    import numpy as np
    from rich.console import Console

    from likewise.commands.answered import strata
    from likewise.library import find_duplicates, open_collection, split_items
    from likewise.library.results import print_split, say_written, write_split
    from likewise.library.tables import outputs

    try:
        files = outputs(out)
        shares = {"test": test, **({"validation": validation} if validation else {})}
        split_items(np.zeros(1, np.int64), np.zeros(1, np.int64), shares)  # only the check
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
        groups, names = strata(collection, labels, seed=seed)
        twins = np.full(len(collection), -1)
        if duplicates:
            twins = find_duplicates(collection).group_of(len(collection))
        parts = split_items(twins, groups, shares, seed=seed)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    print_split(parts, groups, names, twins, Console())
    write_split(files, collection, parts, groups, names, twins)
    say_written(files)
    return dict(zip(collection.keys, parts.tolist(), strict=True))
