"""``likewise train``: from a folder of images to an encoder."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

from likewise.commands.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from likewise.data import Source
    from likewise.graph import Graph
    from likewise.runs import Run


P = ParamSpec("P")


def going_on(train: Callable[P, Run]) -> Callable[P, Run]:
    """See whether what stands beside `resume` fits the run. It is seen here, where it is known what
    was given: `epochs=100` is a wish, also where 100 is the default."""

    @functools.wraps(train)
    def train_or_go_on(*args: P.args, **kwargs: P.kwargs) -> Run:
        given: dict[str, Any] = {**dict(zip(("data",), args, strict=False)), **kwargs}
        if given.get("resume") is None:
            return train(*args, **kwargs)
        from likewise.training.processes import is_first_process
        from likewise.training.resuming import is_finished, open_resumed

        try:
            run = open_resumed(given["resume"], given)
        except (ValueError, OSError) as error:
            raise UsageError(str(error)) from error
        if not is_finished(run):
            return train(*args, **kwargs)
        if is_first_process(run.config["devices"] * run.config["nodes"]):
            print(f"{run.path} is finished already: nothing is changed", file=sys.stderr)
        return run

    return train_or_go_on


@going_on
def train(
    data: str | None = None,
    *,
    out: Path | None = None,
    recipe: str = "simclr",
    encoder: str = "auto",
    stem: Literal["auto", "small", "original"] = "auto",
    pretrained: str | None = None,
    image_size: int | None = None,
    canvas: int | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    labels: str | None = None,
    label_weight: float | None = None,
    label_share: float = 1.0,
    answers: str | None = None,
    merge_duplicates: bool = False,
    duplicates: str | None = None,
    graph: object = None,
    views: dict[str, Any] | str | None = None,
    n_views: int | None = None,
    objective: dict[str, Any] | None = None,
    projector: list[int] | None = None,
    epochs: int = 100,
    batch_size: int = 256,
    micro_batch: int | None = None,
    sampler: Literal["auto", "shuffled", "graph-aware"] = "auto",
    known_share: float = 0.5,
    optimizer: Literal["sgd", "lars", "adamw"] | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    warmup_epochs: float | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    devices: int = 1,
    nodes: int = 1,
    precision: Literal["auto", "32", "bf16", "16"] = "auto",
    compile: bool | None = None,
    deterministic: bool = False,
    workers: int | None = None,
    stream: bool | None = None,
    monitor_every: int | None = None,
    diagnose_every: int | None = None,
    checkpoint_minutes: float = 5.0,
    checkpoint_steps: int | None = None,
    log_every: int = 20,
    logger: list[Literal["csv", "tensorboard", "wandb", "mlflow"]] | None = None,
    seed: int = 0,
    force: bool = False,
    resume: Path | None = None,
) -> Run:
    """Train an encoder on images, from who is alike.

    Without labels, every image is alike to its own views only. With labels, the graph is
    (1 - w) I + w G, where G holds which images have the same label; with answers, G is what they
    say and imply: +1 alike, -1 different. The run's folder holds the
    encoder, the checkpoint, the figures and the arguments, all of them. From Python, `data` may be
    an array or a Source, too.

    Args:
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist".
        out: the folder of the run; it must not hold another one.
        recipe: the method; `likewise recipes` lists them. Your own, in Python, gets its name in
            `likewise.training.RECIPES` first.
        encoder: any model of timm, "tiny" (for a CPU), or "auto".
        stem: how the encoder begins: "small" is for images of up to 64 pixels, where it is the
            default of ResNets and vision transformers; timm cannot load a ResNet that has it.
        pretrained: start from these weights: "timm" for the model's own, or a file.
        image_size: pixels a side that the encoder sees; by default from the images.
        canvas: pixels a side that are kept of an image (its middle), for crops to be cut from. By
            default the image size, and an eighth more where images are large; with more, small
            crops of large images show more, and take more memory.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        labels: put labels into the graph: "source" (folder names or column) or a CSV (key,label).
        label_weight: w, between 0 and 1, of labels or answers. By default 1 / (1 + k), where k is
            how many others of a random batch are, on average, known to be alike to an image or
            different from it (1 for recipes that need labels).
        label_share: use this share of the labels, drawn at random by the seed.
        answers: put what people answered into the graph: a project of `likewise ask` (its file,
            the URL of its database, or an export of it, .jsonl). A snapshot is kept in the run's
            folder.
        merge_duplicates: find near-duplicates by their pixels, and put them into the graph as
            alike: without, self-supervision takes a twin for a negative.
        duplicates: near-duplicates to merge, from a CSV file that `likewise duplicates` wrote.
        graph: in Python only: a Graph over the images, in the order of their keys, in place of I
            and of labels: edges, partial labels, sums, whatever is known.
        views: the augmentation policy, in place of the recipe's: its name, or fields over those of
            one: --views '{"base": "simclr", "rotation": 10}' (without base: over the recipe's).
            From Python, a Policy, too.
        n_views: views of every image in a batch, in place of the recipe's.
        objective: arguments of the objective, over the recipe's:
            --objective '{"temperature": 0.2}'.
        projector: widths of the projector, in place of the recipe's: --projector '[2048, 128]'.
        epochs: passes over the images; what does not fill a last batch is left out of an epoch,
            other images each time.
        batch_size: images (not views) of a step, over all processes.
        micro_batch: embed so many views at a time: a large batch in little memory, at the cost of a
            second forward. The loss is that of the whole batch; batch norm sees the parts.
        sampler: batches at random, or such that both ends of what is known meet.
        known_share: the part of such a batch that is drawn from what is known; the rest is drawn
            from all images.
        optimizer: in place of the recipe's.
        lr: peak learning rate, in place of the recipe's (which grows with the batch).
        weight_decay: in place of the recipe's.
        warmup_epochs: in which the learning rate rises; by default 5 % of the epochs, at most 10.
        device: where to compute; "auto" is a GPU where there is one.
        devices: processes on this machine, one a device.
        nodes: machines; start the same command on each, by torchrun, by Slurm, or by hand (docs).
        precision: "auto" is bf16 on a GPU that has it.
        compile: compile networks and views; by default on a GPU.
        deterministic: the same figures at every run on a GPU, too, more slowly.
        workers: processes that decode images.
        stream: decode images in every epoch anew; by default only where memory is too small.
        monitor_every: epochs between two looks at rank and kNN accuracy; 0 for none.
        diagnose_every: epochs between two looks at collapse and its causes, for `likewise report`;
            by default twenty times in a run, and less often where that would take more than 1 % of
            the time; 0 for none.
        checkpoint_minutes: the least time between two checkpoints; a first one is written with the
            first epoch that ends after a minute, one when you press Ctrl-C, and one at the end.
        checkpoint_steps: a checkpoint every so many steps, whatever the time.
        log_every: steps between two looks at the loss; every epoch ends with one.
        logger: where figures go (default: csv and, where it is installed, tensorboard).
        seed: the same seed on the same machine gives the same encoder.
        force: train even where the estimate says that memory will not suffice; with resume, also
            where the images have other pixels than before.
        resume: go on with the run in this folder; all other arguments come from it. What cannot be
            written down (arrays, a Source, a graph) is given again.
    """
    arguments = dict(locals())
    from likewise.training.session import prepare
    from likewise.training.stopping import Stopped

    try:
        prepared = prepare(**arguments, graph_of_answers=_graph_of_answers)
    except (ValueError, OSError, ImportError) as error:
        raise UsageError(str(error)) from error
    try:
        return prepared.train()
    except Stopped as stopped:
        raise Interrupted(stopped.number) from stopped
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error


def _graph_of_answers(
    source: Source, project: str, kept: Path, *, take: bool
) -> tuple[Graph, int, int]:
    """What people answered, as a graph; see :func:`likewise.annotate.project.training_graph`."""
    from likewise.annotate.project import training_graph

    return training_graph(source, project, kept, take=take)
