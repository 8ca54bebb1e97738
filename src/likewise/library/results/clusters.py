"""Clusters: as lines, CSV, JSON and a sheet of examples."""

from __future__ import annotations

import numpy as np
from rich.console import Console

from likewise.data.source import count
from likewise.library.clusters import Clusters
from likewise.library.collection import Collection
from likewise.library.results.shared import (
    Files,
    head_of,
    notes_of,
    write_sheets,
)
from likewise.library.sheet import Section, Sheet, Tile
from likewise.library.tables import write_csv, write_json

GROUPS_SHOWN = 200
TILES_SHOWN = 24


def print_clusters(found: Clusters, collection: Collection, console: Console) -> None:
    """How many clusters, how large, and how they agree with labels, where there are some."""
    how = "as many as there seem to be" if found.found else "as asked"
    console.print(
        f"{count(found.k, 'cluster')} ({how}), of {', '.join(map(str, found.sizes))} images",
        *found.notes,
        *agreement(found, collection),
        sep="\n",
        highlight=False,
        soft_wrap=True,
    )


def agreement(found: Clusters, collection: Collection) -> list[str]:
    """A line on how clusters and labels agree, where images bring labels along."""
    if collection.labels is None:
        return []
    known = collection.labels >= 0
    if len(np.unique(collection.labels[known])) < 2:
        return []
    from sklearn.metrics import adjusted_rand_score

    score = adjusted_rand_score(collection.labels[known], found.cluster[known])
    return [f"with the {count(int(known.sum()), 'label')}: adjusted Rand index {score:.3f}"]


def write_clusters(files: Files, collection: Collection, found: Clusters) -> None:
    """Clusters as files."""
    for path in files[".csv"]:
        rows = (
            (key, cluster + 1, f"{sure:.4f}")
            for key, cluster, sure in zip(
                collection.keys, found.cluster, found.confidence, strict=True
            )
        )
        write_csv(path, ("key", "cluster", "confidence"), rows)
    for path in files[".json"]:
        items = {
            key: int(cluster) + 1
            for key, cluster in zip(collection.keys, found.cluster, strict=True)
        }
        content = {**head_of(collection), **found.to_dict(), "cluster_of": items}
        write_json(path, content)
    if not files[".html"]:
        return
    sections = []
    for number, size in enumerate(found.sizes):
        inside = found.cluster == number
        tiles = [
            Tile(collection.keys[place], collection.label_of(place) or "")
            for place in found.examples(collection.rows, number)
        ]
        note = f"{size / len(collection):.1%} of all; the most typical first"
        loose = float(found.confidence[inside].mean())
        note += f"; {loose:.0%} of the neighbours of its images are in it"
        sections.append(Section(f"Cluster {number + 1}: {count(size, 'image')}", tiles, note))
    notes = [*notes_of(collection), *found.notes, *agreement(found, collection)]
    title = f"{count(found.k, 'cluster')} of {count(len(collection), 'image')}"
    write_sheets(files, collection, Sheet(title, notes, sections=sections))
