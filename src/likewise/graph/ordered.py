"""The absolute loss on real labels: not of low rank, but a product along the sorted line."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.graph.base import Graph


class AbsoluteDifferenceGraph(Graph):
    """:math:`G_{ij} = w\\, s_i s_j (c - |y_i - y_j|)`.

    With y sorted, sum_j |y_i - y_j| z_j needs only the running sums of z and of y z, so that a
    product costs O(N log N + N d).
    """

    def __init__(
        self,
        values: Tensor,
        offset: float = 0.0,
        weight: float = 1.0,
        scale: Tensor | None = None,
    ) -> None:
        self.n = len(values)
        self.values = values
        self.offset = offset
        self.weight = weight
        self.scale = scale
        self._order = torch.argsort(values)

    @property
    def device(self) -> torch.device:
        """Where the values live."""
        return self.values.device

    @property
    def nonnegative(self) -> bool:
        """Whether the offset is above every difference."""
        spread = float(self.values.max() - self.values.min())
        return self.weight >= 0 and self.offset >= spread

    def _product(self, z: Tensor) -> Tensor:
        scale = None if self.scale is None else self.scale.to(z.dtype)[:, None]
        x = (z if scale is None else z * scale)[self._order]
        # Running sums of a million terms lose digits in float32; y is centred for the same reason.
        x = x.to(torch.float64)
        y = (self.values - self.values.mean()).to(torch.float64)[self._order][:, None]
        below, below_y = x.cumsum(dim=0), (x * y).cumsum(dim=0)
        total, total_y = below[-1:], below_y[-1:]
        absolute = y * (2 * below - total) - (2 * below_y - total_y)
        product = torch.empty_like(x)
        product[self._order] = self.weight * (self.offset * total - absolute)
        product = product.to(z.dtype)
        return product if scale is None else product * scale

    def _block(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        difference = (self.values[rows, None] - self.values[columns]).abs().to(dtype)
        block = self.weight * (self.offset - difference)
        if self.scale is not None:
            block = block * self.scale[rows, None].to(dtype) * self.scale[columns].to(dtype)
        return block

    def _entries(self, i: Tensor, j: Tensor, dtype: torch.dtype) -> Tensor:
        difference = (self.values[i] - self.values[j]).abs().to(dtype)
        entries = self.weight * (self.offset - difference)
        if self.scale is not None:
            entries = entries * self.scale[i].to(dtype) * self.scale[j].to(dtype)
        return entries

    def _subset(self, rows: Tensor) -> Graph:
        scale = None if self.scale is None else self.scale[rows]
        return AbsoluteDifferenceGraph(self.values[rows], self.offset, self.weight, scale)

    def _scaled(self, scale: Tensor) -> Graph:
        scale = scale if self.scale is None else self.scale * scale
        return AbsoluteDifferenceGraph(self.values, self.offset, self.weight, scale)

    def _times(self, factor: float) -> Graph:
        return AbsoluteDifferenceGraph(self.values, self.offset, self.weight * factor, self.scale)

    def _known(self) -> Graph:
        from likewise.graph.factored import ones

        return ones(self.n, self.device)

    def _to(self, device: torch.device) -> Graph:
        scale = None if self.scale is None else self.scale.to(device)
        return AbsoluteDifferenceGraph(self.values.to(device), self.offset, self.weight, scale)

    def _energy(self, z: Tensor, target: Tensor) -> Tensor:
        return self._centered_energy(z, target)
