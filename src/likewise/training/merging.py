"""Near-duplicates in the graph: a twin is a positive, not a false negative."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console

from likewise.data import Images, Source, StreamedImages, load_images
from likewise.data.source import count
from likewise.graph import Graph
from likewise.library.duplicates import SIDE
from likewise.library.twins import find_twins, read_groups, twin_graph
from likewise.training.recipe import Recipe


def with_twins(
    known: Graph,
    source: Source,
    images: Images | StreamedImages,
    method: Recipe,
    config: dict[str, Any],
    console: Console | None = None,
) -> Graph:
    """The graph with edges between near-duplicates, where they are asked for.

    Where the graph has (1 - w) I, it gets (1 - w) (I + T), T being 1 between twins: an image is
    alike to its twins as it is to its own views. They are those of a file that `likewise
    duplicates` wrote, or are found by the pixels.
    """
    file = config["duplicates"]
    if not (config["merge_duplicates"] or file):
        return known
    if method.needs_labels:
        raise ValueError(
            f"recipe {config['recipe']!r} learns from labels alone, and takes no duplicates: leave "
            "--merge-duplicates out, or give another recipe, such as simclr"
        )
    weight = 1 - (config["label_weight"] or 0.0)
    if weight == 0:
        raise ValueError(
            "label_weight is 1, which leaves no room for duplicates: give a smaller one"
        )
    if file:
        groups = read_groups(file, images)
    else:
        held = images if isinstance(images, Images) else load_images(_same(source, images), SIDE)
        groups = find_twins(held.pixels)
    inside = int((groups >= 0).sum())
    if console is not None:
        console.print(
            f"{count(int(groups.max(initial=-1)) + 1, 'group')} of near-duplicates, of "
            f"{count(inside, 'image')}, are put into the graph",
            highlight=False,
        )
    if not inside:
        return known
    return known + weight * twin_graph(len(images), groups)


def _same(source: Source, images: Images | StreamedImages) -> Source:
    if len(source) == len(images):
        return source
    return source.subset(np.asarray(source.index_of(images.keys)))
