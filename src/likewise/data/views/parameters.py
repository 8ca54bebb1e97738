"""What is random about a batch of views, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Parameters:
    """All that is random about the views of n samples.

    The same parameters give the same views on any device, and several processes that draw for the
    global batch take their own rows of it.

    Args:
        n: samples.
        groups: one dictionary per crop size; name of the parameter to a tensor (n * V, ...),
            sample-major. What the policy does not use is not there.
    """

    n: int
    groups: tuple[dict[str, Tensor], ...]

    def rows(self, samples: slice) -> Parameters:
        """The parameters of some samples: what one process takes of the draw of all.

        >>> everyone = Parameters(4, ({"rotation": torch.arange(8)},))
        >>> everyone.rows(slice(1, 3)).groups[0]["rotation"]
        tensor([2, 3, 4, 5])
        """
        taken = range(self.n)[samples]

        def part(values: Tensor) -> Tensor:
            return values.unflatten(0, (self.n, -1))[samples].flatten(0, 1)

        groups = ({name: part(values) for name, values in g.items()} for g in self.groups)
        return Parameters(len(taken), tuple(groups))

    def to(self, device: torch.device | str) -> Parameters:
        """The same parameters on another device."""

        def moved(values: Tensor) -> Tensor:
            return values.to(device, non_blocking=True)

        groups = ({name: moved(values) for name, values in g.items()} for g in self.groups)
        return Parameters(self.n, tuple(groups))
