"""What near-duplicates do to self-supervision, and how a graph undoes it.

Self-supervised learning takes every other image of a batch for a different one. A twin is not: it
is a false negative, and the hardest of all, since it lies next to its image.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.data import Source
from likewise.data.keys import Keyed
from likewise.graph import Graph
from likewise.library.duplicates import SIDE, Duplicates, duplicates_of_pictures, grey_pictures
from likewise.library.exact import Rows


@dataclass(frozen=True)
class Effect:
    """What twins do in one batch of self-supervised training.

    Attributes:
        images: how many there are.
        with_twin: how many have a twin.
        pairs: of twins.
        batch_size: images of a batch.
        false_negatives: pairs of twins that a batch is expected to hold.
        meets: the chance that an image with a twin meets one in its batch.
        weight: how many average negatives a twin weighs in the denominator of InfoNCE,
            exp((s_twin - s_average) / T); None where there are no rows.
        temperature: T.
    """

    images: int
    with_twin: int
    pairs: int
    batch_size: int
    false_negatives: float
    meets: float
    weight: float | None
    temperature: float

    def text(self) -> str:
        """In words."""
        if not self.pairs:
            return "no near-duplicates: nothing is taken for a negative that is none"
        share = self.with_twin / self.images
        text = (
            f"{self.with_twin:,} of {self.images:,} images ({share:.1%}) have a twin. In a batch "
            f"of {self.batch_size:,}, self-supervised training takes {self.false_negatives:.2g} "
            f"pairs of twins for negatives, and an image with a twin meets one with a chance of "
            f"{self.meets:.1%}"
        )
        if self.weight is not None:
            text += (
                f"; there it weighs as much as {self.weight:.1f} average negatives (temperature "
                f"{self.temperature:g})"
            )
        return text + ". `likewise train --merge-duplicates` makes them positives."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(vars(self))


def effect_of(
    found: Duplicates,
    n: int,
    rows: Rows | None = None,
    *,
    batch_size: int = 256,
    temperature: float = 0.5,
    seed: int = 0,
) -> Effect:
    """What the twins among n images do in a batch.

    Of B images drawn without replacement, a given pair is drawn whole with probability
    B (B - 1) / (n (n - 1)), and an image of a group of g that is in the batch meets none of the
    g - 1 others with probability C(n - g, B - 1) / C(n - 1, B - 1).
    """
    pairs = found.all_pairs()
    batch = min(batch_size, n)
    both = batch * (batch - 1) / (n * (n - 1)) if n > 1 else 0.0
    with_twin = sum(len(group) for group in found.groups)
    meets = sum(len(group) * _meets(n, len(group), batch) for group in found.groups)
    weight = None
    if rows is not None and len(pairs):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(n, size=(2, 20_000))
        usual = np.einsum("md,md->m", rows[a[a != b]], rows[b[a != b]])
        twins = np.einsum("md,md->m", rows[pairs[:, 0]], rows[pairs[:, 1]])
        # Against the mean of exp(s / T): that is what the denominator adds up.
        weight = float(np.exp(twins / temperature).mean() / np.exp(usual / temperature).mean())
    return Effect(
        n,
        with_twin,
        len(pairs),
        batch,
        len(pairs) * both,
        meets / with_twin if with_twin else 0.0,
        weight,
        temperature,
    )


def _meets(n: int, group: int, batch: int) -> float:
    """1 - C(n - g, B - 1) / C(n - 1, B - 1), without large numbers."""
    missed = 1.0
    for other in range(1, group):
        missed *= max(n - batch - other + 1, 0) / (n - other)
    return 1.0 - missed


def twin_graph(n: int, group_of: NDArray[np.int64]) -> Graph:
    """Edges of weight 1 between all images of a group: to be added to the identity.

    >>> twin_graph(4, np.array([-1, 0, 0, -1])).dense().int().tolist()[1]
    [0, 0, 1, 0]
    """
    inside = np.flatnonzero(group_of >= 0)
    order = inside[np.argsort(group_of[inside], kind="stable")]
    i, j = [], []
    for group in np.split(order, np.flatnonzero(np.diff(group_of[order])) + 1):
        first, second = np.triu_indices(len(group), 1)
        i.append(group[first])
        j.append(group[second])
    ends = [torch.from_numpy(np.concatenate(side).astype(np.int64)) for side in (i, j)]
    return Graph.from_edges(ends[0], ends[1], 1.0, n=n)


def find_twins(pixels: torch.Tensor) -> NDArray[np.int64]:
    """(n,) the group of every image uint8 (n, 3, s, s), found by its pixels; -1: no twin."""
    return duplicates_of_pictures(grey_pictures(pixels.cpu())).group_of(len(pixels))


def twins_of_source(source: Source) -> tuple[list[str], NDArray[np.int64]]:
    """The same for a source: keys of what can be read, and groups."""
    from likewise.data import load_images

    images = load_images(source, SIDE)
    return images.keys, find_twins(images.pixels)


def read_groups(path: Path | str, items: Keyed) -> NDArray[np.int64]:
    """(n,) groups from a CSV that `likewise duplicates` wrote: columns group and key."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"duplicates is {str(path)!r}: there is no such file")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        if not {"group", "key"} <= set(rows.fieldnames or ()):
            raise ValueError(
                f"{path} has no columns group and key: give a CSV file of `likewise duplicates`"
            )
        named = [(row["group"], row["key"]) for row in rows]
    places = {key: place for place, key in enumerate(items.keys)}
    found = np.full(len(items), -1, dtype=np.int64)
    numbers: dict[str, int] = {}
    for group, key in named:
        if key in places:
            found[places[key]] = numbers.setdefault(group, len(numbers))
    if named and not numbers:
        raise ValueError(
            f"none of the {len(named):,} keys of {path} is among the images: it has "
            f"{named[0][1]!r}, they have {items.keys[0]!r}"
        )
    return found
