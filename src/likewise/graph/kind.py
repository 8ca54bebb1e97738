"""What every kind of graph defines, on tensors; :class:`likewise.Graph` is what a user calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from likewise.graph.base import Graph

TILE_ROWS = 1024
"""Rows of a block where a quantity has no closed form and the matrix is walked in tiles."""


class SymmetricProduct(torch.autograd.Function):
    """G z with the backward G g: a symmetric matrix is its own adjoint, so nothing is saved."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, graph: Kind) -> Tensor:
        """G z."""
        ctx.graph = graph
        product = graph._product(z)
        # The identity hands back z itself: a caller who writes into G z must not write into z.
        return product.clone() if product is z else product

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """G g, differentiable again."""
        return SymmetricProduct.apply(gradients[0], ctx.graph), None


class Kind(ABC):
    """A symmetric matrix in implicit form: the operations that depend on the form."""

    n: int
    """The number of nodes N."""

    answers_numpy: bool = False

    placeless: bool = False
    """Whether the graph holds no arrays that would tie it to a device."""

    is_identity: bool = False
    """Whether this is known to be the identity, without a look at any array."""

    __array_ufunc__ = None  # a NumPy number times a graph is a graph

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the graph's own arrays live."""

    @property
    @abstractmethod
    def nonnegative(self) -> bool:
        """Whether no entry can be negative (then absolute degrees are degrees)."""

    @abstractmethod
    def _product(self, z: Tensor) -> Tensor: ...

    @abstractmethod
    def _block(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor: ...

    @abstractmethod
    def _entries(self, i: Tensor, j: Tensor, dtype: torch.dtype) -> Tensor: ...

    @abstractmethod
    def _subset(self, rows: Tensor) -> Graph: ...

    @abstractmethod
    def _scaled(self, scale: Tensor) -> Graph:
        """diag(scale) G diag(scale)."""

    @abstractmethod
    def _times(self, factor: float) -> Graph: ...

    @abstractmethod
    def _known(self) -> Graph: ...

    @abstractmethod
    def _to(self, device: torch.device) -> Graph: ...

    @abstractmethod
    def _energy(self, z: Tensor, target: Tensor) -> Tensor:
        """sum_ij G_ij |z_i - t_j|^2 from differences, never from 2 - 2 a.b (see ERRATA)."""

    def _centered_energy(self, z: Tensor, target: Tensor) -> Tensor:
        """The same from G z, around the common mean, where no differences can be summed."""
        middle = (z.mean(dim=0) + target.mean(dim=0)).detach() / 2
        z, target = z - middle, target - middle
        degrees = self._remembered_degrees(z.dtype)[:, None]
        product = SymmetricProduct.apply(target, self)
        return (degrees * (z.square() + target.square())).sum() - 2 * (z * product).sum()

    def _diagonal(self, dtype: torch.dtype) -> Tensor:
        nodes = torch.arange(self.n, device=self.device)
        return self._entries(nodes, nodes, dtype)

    def _degrees(self, absolute: bool, dtype: torch.dtype) -> Tensor:
        if not absolute or self.nonnegative:
            return self._product(torch.ones(self.n, 1, dtype=dtype, device=self.device))[:, 0]
        return torch.cat(
            [block.abs().sum(dim=1) for _, block in self._tiles(dtype)]
            or [torch.zeros(0, dtype=dtype, device=self.device)]
        )

    def _negative_entries(self) -> tuple[Tensor, Tensor]:
        """The ordered pairs (i, j) with a negative entry: what a margin has to look at."""
        empty = torch.zeros(0, 2, dtype=torch.long, device=self.device)
        found = [empty]
        if not self.nonnegative:
            for first, block in self._tiles(torch.float64):
                found.append((block < 0).nonzero() + torch.tensor([first, 0], device=self.device))
        i, j = torch.cat(found).unbind(dim=1)
        return i, j

    def _known_nodes(self) -> Tensor:
        """Nodes of which anything is known; the others stay out of a centring."""
        return torch.ones(self.n, dtype=torch.bool, device=self.device)

    def _tiles(self, dtype: torch.dtype) -> Iterator[tuple[int, Tensor]]:
        columns = torch.arange(self.n, device=self.device)
        for rows in columns.split(TILE_ROWS):
            yield int(rows[0]), self._block(rows, columns, dtype)

    def _remember(self, key: tuple[object, ...], compute: Callable[[], Any]) -> Any:
        """A graph does not change: what is computed once from it serves every step."""
        remembered: dict[tuple[object, ...], Any] = self.__dict__.setdefault("_remembered", {})
        if key not in remembered:
            # A validation step under inference mode must not leave tensors that training cannot
            # save for its backward.
            with torch.inference_mode(False):
                remembered[key] = compute()
        return remembered[key]

    def _sample_graph(self) -> Graph | None:
        """The graph over samples of a graph over views, where there is one."""
        return None

    def _remembered_degrees(self, dtype: torch.dtype) -> Tensor:
        degrees: Tensor = self._remember(("degrees", dtype), lambda: self._degrees(False, dtype))
        return degrees

    def __getstate__(self) -> dict[str, Any]:
        # What can be computed again is not worth its bytes in a checkpoint.
        return {key: value for key, value in self.__dict__.items() if key != "_remembered"}
