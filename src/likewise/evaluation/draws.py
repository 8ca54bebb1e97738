"""Draw rows of every class, the same ones for the same seed."""

from __future__ import annotations

import torch
from torch import Tensor


def places_in_class(labels: Tensor, seed: int) -> Tensor:
    """The place of every row in a random order of its own class: 0, 1, 2, ... within each class.

    Drawn on the CPU, so that all devices draw alike. Rows whose place is below m are m rows of
    each class; smaller draws are part of larger ones.

    >>> places = places_in_class(torch.tensor([0, 1, 0, 1, 1]), seed=0)
    >>> sorted(places[[0, 2]].tolist()), sorted(places[[1, 3, 4]].tolist())
    ([0, 1], [0, 1, 2])
    """
    known = labels.cpu()
    n = len(known)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    order = order[known[order].argsort(stable=True)]
    sizes = torch.unique_consecutive(known[order], return_counts=True)[1]
    first = torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    places = torch.empty(n, dtype=torch.int64)
    places[order] = torch.arange(n) - first
    return places.to(labels.device)
