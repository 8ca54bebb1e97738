"""The labels that go into the graph: folder names, a column or a CSV file, all or a share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.data import Keyed, Source, labelled
from likewise.data.source import count
from likewise.graph import Graph
from likewise.training.recipe import Recipe


@dataclass(frozen=True)
class GivenLabels:
    """Labels by the images that were read.

    values: (n,), -1 where there is none.
    found: how many images have one, those left out by `--label-share` included.
    unmatched: lines of the file that are about no image.
    file: that file; "" for the source's own labels.
    """

    values: NDArray[np.int64]
    found: int
    unmatched: int = 0
    file: str = ""

    @property
    def classes(self) -> int:
        """How many classes there are, by the highest."""
        return int(self.values.max()) + 1

    @property
    def pairs(self) -> int:
        """How many pairs of images have the same label."""
        sizes = np.bincount(self.values[self.values >= 0])
        return int((sizes * (sizes - 1) // 2).sum())

    def graph(self) -> Graph:
        """Alike where labels agree."""
        return Graph.from_labels(torch.from_numpy(self.values))

    def counts(self) -> dict[str, int]:
        """How many images have a label, of how many classes, and what matched no image."""
        used = self.values[self.values >= 0]
        return {
            "labelled": len(used),
            "classes": len(np.unique(used)),
            "unmatched": self.unmatched,
        }

    def text(self) -> str:
        """The same for the user.

        >>> GivenLabels(np.array([0, 0, 1, -1]), found=3).text()
        '3 of 4 images have a label, 2 classes'
        >>> GivenLabels(np.array([0, -1, -1]), found=2, unmatched=1, file="some.csv").text()
        '1 of 3 images has a label (2 are known), 1 class; 1 line of some.csv matches no image'
        """
        counted = self.counts()
        used = counted["labelled"]
        text = f"{used:,} of {count(len(self.values), 'image')} {'has' if used == 1 else 'have'}"
        text += " a label" + (f" ({self.found:,} are known)" if self.found > used else "")
        text += f", {count(counted['classes'], 'class', 'classes')}"
        if self.unmatched:
            match = "matches" if self.unmatched == 1 else "match"
            text += f"; {count(self.unmatched, 'line')} of {self.file} {match} no image"
        return text


def read_labels(
    source: Source, images: Keyed, method: Recipe, config: dict[str, Any]
) -> GivenLabels | None:
    """The labels of `--labels`: those of the source, or of a file, and of these a share; None
    where none are asked for. With the source as `images`, it is seen before anything is decoded
    whether they will do.

    Args:
        source: all images.
        images: those that could be read.
        method: the recipe, which may need labels.
        config: the arguments of the training.
    """
    if config["labels"] is None and not method.needs_labels:
        _check_unused(config)
        return None
    if not isinstance(config["labels"], str | None):
        raise ValueError(
            f"labels is a {type(config['labels']).__name__}: give 'source' or a CSV file, and "
            "labels of your own with the images: likewise.train(open_source(data, labels=...))"
        )
    file = config["labels"] or "source"
    own = file == "source"
    if not own and not Path(file).is_file():
        why = "a folder" if Path(file).is_dir() else "no file"
        raise ValueError(
            f"labels is {file!r}, which is {why}: give a CSV file (key,label), or 'source' for "
            "folder names or a column"
        )
    known = source if own else labelled(source, file)
    if known.labels is None:
        why = f" ({source.why_no_labels})" if source.why_no_labels else ""
        raise ValueError(
            f"the images have no labels{why}: put them into one folder a class, or give --labels "
            "FILE.csv"
        )
    values = np.array(known.labels[known.index_of(images.keys)], dtype=np.int64)
    found = np.flatnonzero(values >= 0)
    if len(found) == 0:
        raise ValueError("labels: no image has one, so there is nothing to put into the graph")
    if config["label_share"] < 1:
        rng = np.random.default_rng([config["seed"], 11])
        kept = rng.permutation(found)[: max(1, round(config["label_share"] * len(found)))]
        values[np.setdiff1d(found, kept)] = -1
    if method.needs_labels and len(np.unique(values[values >= 0])) < 2:
        raise ValueError(f"labels: {method.title} needs at least two classes")
    if method.regresses and config["label_weight"] not in (None, 1):
        raise ValueError(
            f"label_weight is {config['label_weight']}, and {method.title!r} learns labels as they "
            "are: leave it out"
        )
    if own:
        return GivenLabels(values, len(found))
    return GivenLabels(values, len(found), known.unmatched, file)


def _check_unused(config: dict[str, Any]) -> None:
    """Refuse what is about labels where there are none."""
    add = "add --labels (source, or a CSV file)"
    if config["label_weight"] is not None:
        raise ValueError(
            f"label_weight is given without labels or answers: {add}, or --answers (a project of "
            "`likewise ask`)"
        )
    if config["label_share"] < 1:
        raise ValueError(f"label_share is given without labels: {add}")
