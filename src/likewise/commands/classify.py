"""``likewise classify``: a label and an honest confidence for every image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.commands.errors import UsageError, needs

if TYPE_CHECKING:
    from likewise.library.classify import Labelled


def classify(
    run: str,
    data: str | None = None,
    *,
    answers: str | None = None,
    labels: str | None = None,
    threshold: float = 0.5,
    ask: int = 15,
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
) -> Labelled:
    """Label all images from answers or labels of some, with calibrated confidence.

    Says which accuracy to expect, with an interval, and what to ask next to raise it.

    Args:
        run: a folder that `likewise train` wrote; or an embeddings file of `likewise embed`.
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist". With an embeddings file it is only needed to show
            images.
        answers: a project of `likewise ask` (its file, or the URL of its database), or a file of
            answers (.jsonl).
        labels: labels of some images: a CSV file (key,label), or "source" for those that the
            images bring along.
        threshold: below this confidence no label is given.
        ask: how many images to propose for the next questions.
        out: files to write, by their ending: .csv (key, label, confidence, ...), .json, .html.
        seed: of the folds that confidence is calibrated on.
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
    if answers is not None and not answers.endswith(".jsonl"):
        needs("--answers", "annotate", "sqlalchemy")
    from rich.console import Console

    from likewise.commands.answered import what_is_known
    from likewise.library import classify_rows, open_collection
    from likewise.library.results import print_labels, say_written, write_labels
    from likewise.library.tables import outputs

    try:
        files = outputs(out)
        if (answers is None) == (labels is None):
            raise ValueError("give --answers or --labels: what is known of some images")
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
        known = what_is_known(collection, answers, labels)
        found = classify_rows(
            collection.rows,
            known.labels,
            known.names,
            excluded=known.excluded,
            chosen=known.chosen,
            threshold=threshold,
            ask=ask,
            seed=seed,
        )
    except (ValueError, OSError, ImportError) as error:
        raise UsageError(str(error)) from error
    print_labels(found, collection, Console())
    write_labels(files, collection, found)
    say_written(files)
    return found
