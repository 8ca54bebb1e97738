"""``likewise evaluate``: honest scores of a run or of an embeddings file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.commands.errors import UsageError

if TYPE_CHECKING:
    from likewise.evaluation import Evaluation


def evaluate(
    run: Path | None = None,
    *,
    train: str,
    test: str,
    out: Path | None = None,
    methods: list[Literal["knn", "linear", "few-labels", "clustering"]] | None = None,
    probe: Literal["lbfgs", "sgd", "lars"] = "lbfgs",
    neighbors: int = 200,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 512,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    workers: int | None = None,
    seed: int = 0,
) -> Evaluation:
    """Score a representation on labelled images: kNN, linear probe, few labels, clusters.

    Labels are used here and nowhere else: scores are those of rows that the encoder gives.

    Args:
        run: a folder that `likewise train` wrote; leave it out where train and test are embeddings.
        train: labelled images (or a file that `likewise embed` wrote) to learn the probes on.
        test: labelled images (or such a file) to score on.
        out: the JSON file to write; with a run, its evaluation.json by default.
        methods: which scores; by default all.
        probe: how the linear probe is fitted.
        neighbors: k of the kNN classifier.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        batch_size: images at a time.
        device: where to compute; "auto" is a GPU where there is one.
        workers: processes that decode images.
        seed: of the few-label draws and of k-means.
    """
    import json

    from rich.console import Console

    from likewise.evaluation import evaluate_embeddings
    from likewise.evaluation.embedded import choose_device, rows_of
    from likewise.runs import write_atomically

    console = Console()
    try:
        place = choose_device(device)
        parts = [
            rows_of(
                run,
                given,
                image_column=image_column,
                label_column=label_column,
                batch_size=batch_size,
                device=device,
                workers=workers,
                console=console,
            )
            for given in (train, test)
        ]
        found = evaluate_embeddings(
            *parts,
            methods=tuple(methods) if methods else None,
            probe=probe,
            k=neighbors,
            seed=seed,
            device=place,
        )
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    console.print(found.table())
    if out is None and run is not None:
        out = Path(run) / "evaluation.json"
    if out is not None:
        done = "replaced" if Path(out).exists() else "wrote"
        with write_atomically(out) as aside:
            aside.write_text(json.dumps(found.to_dict(), indent=1) + "\n")
        console.print(f"{done} {out}", highlight=False, soft_wrap=True)
    return found
