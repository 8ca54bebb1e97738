"""What is known about who is alike among the images: labels, a graph, answers, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from likewise.data import Images, Source, StreamedImages, labelled
from likewise.graph import Graph
from likewise.runs import Run
from likewise.training.recipe import Recipe

ANSWERS = "answers.jsonl"
"""The answers that a run was trained on, in its folder: whoever resumes it trains on the same."""


def known_graph(
    source: Source,
    images: Images | StreamedImages,
    method: Recipe,
    config: dict[str, Any],
    run: Run,
    *,
    graph: Any,
    graph_of_answers: Callable[..., Graph] | None,
    take: bool,
) -> tuple[Graph, int | None]:
    """Who is alike among the images that could be read, and how many classes labels name, if any.

    With labels or answers it is (1 - w) I + w G; w goes into `config` where it was not given.

    Args:
        source: all images.
        images: those that could be read.
        method: the recipe, which may need labels.
        config: the arguments of the training.
        run: its run, whose folder keeps the answers.
        graph: what was given from Python, over the source.
        graph_of_answers: reads a project of answers; see :func:`likewise.training.session.prepare`.
        take: whether the run's copy of the answers is to be written.
    """
    if config.get("answers") is not None:
        _check_answers(graph, method, config)
        assert graph_of_answers is not None
        said = graph_of_answers(source, config["answers"], run.path / ANSWERS, take=take)
        config["answers"] = without_password(config["answers"])
        return mixed(_of_images(said, source, images), config["label_weight"]), None
    labels, classes = _labels(source, images, method, config)
    if graph is not None or run.has_graph:
        return _given(graph, source, images, run, config), classes
    if labels is None or config["label_weight"] == 0:
        return Graph.identity(len(images)), classes
    return mixed(Graph.from_labels(torch.from_numpy(labels)), config["label_weight"]), classes


def mixed(known: Graph, weight: float) -> Graph:
    """(1 - w) I + w G: what is known, beside that an image is alike to its own views.

    >>> mixed(Graph.from_labels(torch.tensor([0, 0, -1])), 0.25).dense()
    tensor([[1.0000, 0.2500, 0.0000],
            [0.2500, 1.0000, 0.0000],
            [0.0000, 0.0000, 0.7500]])
    """
    return known if weight == 1 else (1 - weight) * Graph.identity(known.n) + weight * known


def without_password(project: str) -> str:
    """The URL of a database as it may be written down.

    >>> without_password("postgresql://ada:secret@host/animals")
    'postgresql://ada@host/animals'
    """
    return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1@", project)


def _check_answers(graph: Any, method: Recipe, config: dict[str, Any]) -> None:
    if graph is not None or config["labels"] is not None:
        other = "labels" if graph is None else "graph"
        raise ValueError(f"both answers and {other} are given: train on one of them")
    if method.needs_labels:
        raise ValueError(
            f"recipe {config['recipe']!r} needs labels, and answers say who is alike: give another "
            "recipe, such as simclr"
        )
    if config["label_weight"] is None:
        config["label_weight"] = 0.5


def _labels(
    source: Source, images: Images | StreamedImages, method: Recipe, config: dict[str, Any]
) -> tuple[np.ndarray | None, int | None]:
    """The labels of the graph with their number of classes, by the images that were read."""
    wanted = config["labels"]
    if wanted is None and not method.needs_labels:
        if config["label_weight"]:
            raise ValueError(
                "label_weight is given without labels: add --labels source, or a CSV file"
            )
        return None, None
    if config["label_weight"] is None:
        config["label_weight"] = 1.0 if method.needs_labels else 0.5
    known = source if wanted in (None, "source") else labelled(source, wanted)
    if known.labels is None:
        raise ValueError(
            "the images have no labels: put them into one folder a class, or give --labels FILE.csv"
        )
    return _share(known.labels[known.index_of(images.keys)], method, config)


def _share(labels: np.ndarray, method: Recipe, config: dict[str, Any]) -> tuple[np.ndarray, int]:
    """The labels that go into the graph: a share of those given, and how many classes they name."""
    labels = np.array(labels, dtype=np.int64)
    known = np.flatnonzero(labels >= 0)
    if len(known) == 0:
        raise ValueError("labels: no image has one, so there is nothing to put into the graph")
    if config["label_share"] < 1:
        rng = np.random.default_rng([config["seed"], 11])
        kept = rng.permutation(known)[: max(1, round(config["label_share"] * len(known)))]
        hidden = np.setdiff1d(known, kept)
        labels[hidden] = -1
    classes = int(labels.max()) + 1
    if method.needs_labels and len(np.unique(labels[labels >= 0])) < 2:
        raise ValueError(f"labels: {method.title} needs at least two classes")
    return labels, classes


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
