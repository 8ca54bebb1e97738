"""What is known about who is alike among the images: labels, a graph, answers, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.data import Images, Source, StreamedImages
from likewise.data.source import count
from likewise.graph import Graph
from likewise.runs import Run
from likewise.training.batches import ShuffledBatches, plan_batches
from likewise.training.batches.knowledge import random_pair
from likewise.training.given_labels import GivenLabels, read_labels
from likewise.training.processes import is_first_process
from likewise.training.recipe import Recipe
from likewise.training.signed_pairs import signed_pairs

ANSWERS = "answers.jsonl"
"""The answers that a run was trained on, in its folder: whoever resumes it trains on the same."""

MOST = 0.99
"""The largest label weight by default: however little is known, the views keep some weight."""

MOST_SHUFFLED = 0.5
"""The same where known pairs are not brought together: with more, views of unlabelled images, which
are most of a batch, would hardly count."""

GraphOfAnswers = Callable[..., tuple[Graph, int, int]]
"""Reads a project: the graph, how many answers are about the images, and how many about others."""


@dataclass(frozen=True)
class Known:
    """Who is alike among the images that could be read, and where that is known from.

    graph: over these images.
    labels: (n,) class indices of those that are known, -1 for others; None without labels.
    classes: how many classes labels name, if any.
    text: what labels or answers say, for the user; "" without them.
    counts: the same for summary.json.
    answers: what is to be kept of them in the run's folder; None where that is there already.
    """

    graph: Graph
    labels: NDArray[np.int64] | None = None
    classes: int | None = None
    text: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    answers: bytes | None = None


def known_graph(
    source: Source,
    images: Images | StreamedImages,
    method: Recipe,
    config: dict[str, Any],
    run: Run,
    *,
    graph: Any,
    graph_of_answers: GraphOfAnswers | None,
    resume: bool,
) -> Known:
    """What is known about the images: labels, answers, a graph, or nothing.

    With labels or answers the graph is (1 - w) I + w G; w goes into `config` where it was not
    given. Nothing is written.

    Args:
        source: all images.
        images: those that could be read.
        method: the recipe, which may need labels.
        config: the arguments of the training.
        run: its run, whose folder keeps the answers.
        graph: what was given from Python, over the source.
        graph_of_answers: reads a project of answers; see :func:`likewise.training.session.prepare`.
        resume: whether the run goes on, with the answers that it began with.
    """
    if config["answers"] is not None:
        _check_answers(graph, method, config)
        assert graph_of_answers is not None
        return _answered(source, images, config, run, graph_of_answers, resume)
    labels = _labels(source, images, method, config)
    classes = None if labels is None else labels.classes
    if graph is not None or run.has_graph:
        return Known(_given(graph, source, images, run, config), classes=classes)
    if labels is None:
        return Known(Graph.identity(len(images)))
    said = mixed(labels.graph(), config["label_weight"])
    return Known(said, labels.values, classes, labels.text(), labels.counts())


def mixed(known: Graph, weight: float) -> Graph:
    """(1 - w) I + w G: what is known, beside that an image is alike to its own views.

    >>> mixed(Graph.from_labels(torch.tensor([0, 0, -1])), 0.25).dense()
    tensor([[1.0000, 0.2500, 0.0000],
            [0.2500, 1.0000, 0.0000],
            [0.0000, 0.0000, 0.7500]])
    """
    if weight in (0, 1):
        return known if weight else Graph.identity(known.n)
    return (1 - weight) * Graph.identity(known.n) + weight * known


def usual_weight(pairs: int, n: int, batch_size: int, *, shuffled: bool = False) -> float:
    """w by default: in a random batch the known pairs of w G sum to what (1 - w) I does.

    A sample has k partners in it on average of whom something is known, so that w = 1 / (1 + k).
    A few labels get much weight, and all labels little for each pair (``pal`` figure 4: with too
    much, labels do harm).

    Args:
        pairs: how many pairs of two samples are known.
        n: how many samples there are.
        batch_size: samples in a batch.
        shuffled: whether batches are drawn without a look at what is known.

    >>> usual_weight(10 * 5_000 * 4_999 // 2, 50_000, 256)  # all labels of ten even classes
    0.0377
    >>> usual_weight(0, 50_000, 256)
    0.99
    """
    partners = 2 * pairs * random_pair(n, batch_size) / batch_size
    return min(MOST_SHUFFLED if shuffled else MOST, float(f"{1 / (1 + partners):.3g}"))


def _usual_weight(known: Graph, pairs: int, config: dict[str, Any]) -> float:
    """The weight by default, for batches as they will be drawn: which pairs meet in them does not
    hang on the weight."""
    n, batch_size = known.n, config["batch_size"]
    plan = plan_batches(
        mixed(known, 0.5),
        n,
        batch_size,
        sampler=config["sampler"],
        known_share=config["known_share"],
    )
    shuffled = isinstance(plan, ShuffledBatches)
    return usual_weight(pairs, n, batch_size, shuffled=shuffled)


def without_password(project: str) -> str:
    """The URL of a database as it may be written down.

    >>> without_password("postgresql://ada:secret@host/animals")
    'postgresql://ada@host/animals'
    >>> without_password("postgresql://ada:with/slash@host:5433/animals")
    'postgresql://ada@host:5433/animals'
    >>> without_password("postgresql://host/animals?user=ada&password=secret&port=5433")
    'postgresql://host/animals?user=ada&port=5433'
    """
    scheme, separator, rest = project.partition("://")
    if not separator:
        return project
    place, question, options = re.sub(r"^([^/:@]*):[^@]*@", r"\1@", rest).partition("?")
    kept = [option for option in options.split("&") if "password=" not in option]
    return scheme + separator + place + question * bool(kept) + "&".join(kept)


def _check_answers(graph: Any, method: Recipe, config: dict[str, Any]) -> None:
    if graph is not None or config["labels"] is not None:
        other = "labels" if graph is None else "graph"
        raise ValueError(f"both answers and {other} are given: train on one of them")
    if method.needs_labels:
        raise ValueError(
            f"recipe {config['recipe']!r} needs labels, and answers say who is alike: give another "
            "recipe, such as simclr"
        )


def _answered(
    source: Source,
    images: Images | StreamedImages,
    config: dict[str, Any],
    run: Run,
    graph_of_answers: GraphOfAnswers,
    resume: bool,
) -> Known:
    """What people answered, read once by the first process and kept for all others."""
    project, kept = config["answers"], run.path / ANSWERS
    snapshot = None
    if resume and not kept.is_file():
        raise ValueError(
            f"{kept} is missing, so that this run cannot go on: put it back, or start a new run"
        )
    if resume or not is_first_process(config["devices"] * config["nodes"]):
        said, about, elsewhere = graph_of_answers(source, project, kept, take=False)
    else:
        # Into a folder of its own: that of the run is made when everything has been checked.
        with TemporaryDirectory(prefix="likewise-answers-") as folder:
            aside = Path(folder) / ANSWERS
            said, about, elsewhere = graph_of_answers(source, project, aside, take=True)
            snapshot = aside.read_bytes()
    config["answers"] = without_password(project)
    said = _of_images(said, source, images)
    alike, different = signed_pairs(said)
    if config["label_weight"] is None:
        config["label_weight"] = _usual_weight(said, alike + different, config)
    others = f" ({elsewhere:,} more about other images)" if elsewhere else ""
    return Known(
        mixed(said, config["label_weight"]),
        text=(
            f"{count(about, 'answer')} about these images{others}: {count(alike, 'pair')} alike, "
            f"{different:,} different, asked or implied"
        ),
        counts={
            "answers": about,
            "answers_elsewhere": elsewhere,
            "alike": alike,
            "different": different,
        },
        answers=snapshot,
    )


def _labels(
    source: Source, images: Images | StreamedImages, method: Recipe, config: dict[str, Any]
) -> GivenLabels | None:
    """The labels of the graph, where there are to be any; their weight goes into `config`."""
    labels = read_labels(source, images, method, config)
    if labels is not None and config["label_weight"] is None:
        config["label_weight"] = (
            1.0 if method.needs_labels else _usual_weight(labels.graph(), labels.pairs, config)
        )
    return labels


def _given(
    graph: Any, source: Source, images: Images | StreamedImages, run: Run, config: dict[str, Any]
) -> Graph:
    """The graph that was given from Python, over the images that could be read."""
    if graph is None:
        raise ValueError(
            f"{run.path} was trained on a graph given in Python: resume it there, with "
            "likewise.train(resume=..., graph=...)"
        )
    if not isinstance(graph, Graph):
        raise ValueError(f"graph is a {type(graph).__name__}: give a likewise.Graph")
    if graph.n != len(source):
        raise ValueError(
            f"graph has {graph.n} nodes for {len(source)} images: give one node an image, in the "
            "order of the source's keys"
        )
    if config["labels"] is not None or config["label_weight"]:
        raise ValueError("both graph and labels are given: put the labels into the graph")
    return _of_images(graph, source, images)


def _of_images(graph: Graph, source: Source, images: Images | StreamedImages) -> Graph:
    """A graph over the source, on the images that could be read."""
    if len(images) == len(source):
        return graph
    return graph.subset(torch.from_numpy(source.index_of(images.keys)))
