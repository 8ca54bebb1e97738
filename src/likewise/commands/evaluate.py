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
    train_labels: Path | None = None,
    test_labels: Path | None = None,
    out: Path | None = None,
    methods: list[Literal["knn", "linear", "few-labels", "clustering"]] | None = None,
    probe: Literal["lbfgs", "sgd", "lars"] = "lbfgs",
    neighbors: list[int] | int | None = None,
    knn_temperature: float = 0.1,
    knn_vote: Literal["weighted", "majority"] = "weighted",
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
        train_labels: a CSV file (key,label) for train, in place of the labels that are there.
        test_labels: a CSV file (key,label) for test; it may be the same.
        out: the JSON file to write; with a run, its evaluation.json by default.
        methods: which scores; by default all.
        probe: how the linear probe is fitted.
        neighbors: k of the kNN classifier, one or several; by default --neighbors '[200, 1]'.
        knn_temperature: T of the weights exp(cos/T) with which neighbours vote.
        knn_vote: by these weights, or each neighbour alike.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        batch_size: images at a time.
        device: where to compute; "auto" is a GPU where there is one.
        workers: threads that decode images; by default one per core, where that is quicker.
        seed: of the few-label draws and of k-means.
    """
    import json

    from rich.console import Console

    from likewise.evaluation import evaluate_embeddings
    from likewise.evaluation.embedded import check_settings, choose_device, open_rows, rows_of
    from likewise.evaluation.sets import no_labels
    from likewise.evaluation.task import number, positive_integer
    from likewise.runs import Run, write_atomically
    from likewise.runs.files import check_file

    console = Console()
    several = [200, 1] if neighbors is None else neighbors
    several = [several] if isinstance(several, int) else list(several)
    try:
        # What is wrong with the call is said before images are embedded, not after.
        if out is not None:
            check_file(out)
        check_settings(batch_size, workers)
        number("knn_temperature", knn_temperature)
        if seed < 0:
            raise ValueError(f"seed is {seed}: give 0 or a greater number")
        if not several:
            raise ValueError("neighbors is empty: give a number of neighbours, or several")
        for k in several:
            positive_integer("neighbors", k)
        place = choose_device(device)
        if run is not None:
            Run.open(run)
        given = {"train": (train, train_labels), "test": (test, test_labels)}
        opened = [
            open_rows(
                run,
                data,
                labels=labels,
                image_column=image_column,
                label_column=label_column,
                console=console,
            )
            for data, labels in given.values()
        ]
        for name, one in zip(given, opened, strict=True):
            if one.labels is None:
                raise no_labels(name)
        parts = [
            rows_of(
                run,
                one,
                batch_size=batch_size,
                device=device,
                workers=workers,
                console=console,
            )
            for one in opened
        ]
        found = evaluate_embeddings(
            *parts,
            methods=tuple(methods) if methods else None,
            probe=probe,
            k=several,
            temperature=knn_temperature,
            vote=knn_vote,
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
        try:
            with write_atomically(out) as aside:
                aside.write_text(json.dumps(found.to_dict(), indent=1) + "\n")
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {error.strerror or error}") from error
        console.print(f"{done} {out}", highlight=False, soft_wrap=True)
    return found
