"""``likewise duplicates``: the same picture again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.commands.errors import UsageError

if TYPE_CHECKING:
    from likewise.library.duplicates import Duplicates


def duplicates(
    run: str,
    data: str | None = None,
    *,
    strict: float = 0.2,
    train_batch: int = 256,
    temperature: float = 0.5,
    out: list[str] | None = None,
    encoder: str | None = None,
    pretrained: str | None = None,
    image_size: int | None = None,
    index: Path | None = None,
    rebuild: bool = False,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> Duplicates:
    """Find near-duplicates (crops, re-encodings, small rotations), in groups.

    Says what they do to self-supervision, which takes a twin for a negative; the CSV file can be
    given to `likewise train --duplicates`.

    Args:
        run: a folder that `likewise train` wrote; or an embeddings file of `likewise embed`.
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist". With an embeddings file it is only needed to show
            images.
        strict: how much closer than its neighbours a twin has to be: smaller finds fewer.
        train_batch: the batch of the training that is spoken of.
        temperature: the temperature of that training.
        out: files to write, by their ending: .html (a sheet of groups), .csv (group, key), .json.
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

    from likewise.library import find_duplicates, open_collection
    from likewise.library.results import print_duplicates, say_written, write_duplicates
    from likewise.library.tables import outputs
    from likewise.library.twins import effect_of

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
        found = find_duplicates(collection, strict=strict)
        effect = effect_of(
            found,
            len(collection),
            collection.rows,
            batch_size=train_batch,
            temperature=temperature,
        )
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    print_duplicates(found, effect, Console())
    write_duplicates(files, collection, found, effect)
    say_written(files)
    return found
