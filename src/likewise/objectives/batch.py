"""What an objective compares: the rows of all ranks, and who is alike among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from likewise.graph import Graph, Pairs
from likewise.information.precision import without_autocast


@dataclass(eq=False)
class Batch:
    """What an objective compares, over the rows of all ranks.

    Rows are sample-major: view v of sample i is row i * views + v.
    """

    z: Tensor
    graph: Graph
    target: Tensor
    """What z is compared with: the teacher's or stopped rows, else z itself."""
    negatives: Tensor | None
    generator: torch.Generator | None
    own: slice
    """The rows that this rank brought: where work over rows is split, its share."""
    alone: bool
    """Whether this rank brought all rows."""
    self_pairs: bool

    @property
    def n_rows(self) -> int:
        """N, the rows of z."""
        return self.z.shape[0]

    @property
    def dim(self) -> int:
        """d, the columns of z."""
        return self.z.shape[1]

    @property
    def views(self) -> int:
        """V, the views of every sample in z."""
        return self.graph.n_views

    @property
    def n_samples(self) -> int:
        """n = N / V."""
        return self.n_rows // self.views

    @property
    def has_teacher(self) -> bool:
        """Whether z is compared with another branch."""
        return self.target is not self.z

    @property
    def target_views(self) -> int:
        """U, the views of every sample in the target."""
        if self.target is self.z:
            return self.graph.n_views
        return self.target.shape[0] // self.n_samples

    @cached_property
    def pairs(self) -> Pairs:
        """Who is compared with whom."""
        return self.graph.pairs(self.target_views, self_pairs=self.self_pairs)

    def sum_of_rows(self) -> Tensor:
        """A number that is not finite where an entry of the rows is not."""
        total = self.z.detach().sum()
        if self.has_teacher:
            total = total + self.target.detach().sum()
        return total if self.negatives is None else total + self.negatives.detach().sum()

    def check_finite(self) -> None:
        """Refuse rows that hold NaN or infinity; on all ranks alike, since all hold all rows."""
        for name in ("z", "target", "negatives"):
            value = getattr(self, name)
            if value is not None and not bool(torch.isfinite(value).all()):
                row = int((~torch.isfinite(value)).any(dim=1).nonzero()[0])
                raise ValueError(
                    f"{name} holds NaN or infinity, first in row {row} of all ranks' rows: lower "
                    "the learning rate, or look at the encoder's output"
                )

    def view(self, index: int) -> Tensor:
        """View `index` of every sample, (n, d)."""
        return self.z.reshape(self.n_samples, self.views, -1)[:, index]

    def target_view(self, index: int) -> Tensor:
        """View `index` of every sample of the target, (n, d)."""
        return self.target.reshape(self.n_samples, self.target_views, -1)[:, index]

    @cached_property
    def branches(self) -> list[tuple[Tensor, Tensor]]:
        """Pairs (Z_u, Z_v) of whole views for objectives that compare two branches.

        Row i of the right one is what row i of the left is alike to: the same sample in another
        view, or by a graph over samples, the average :math:`D^{-1/2} G D^{-1/2} Z_v` over those
        alike. Views are paired u < v; with a teacher, every u with every other v. A graph
        without views pairs the rows with their neighbours, themselves excluded."""
        if self.views == 1 and self.target_views == 1:
            alike = self.graph if self.self_pairs else self.graph.without_diagonal()
            return [(self.z, alike.normalized() @ self.target)]
        alike = self.graph.samples.normalized()
        right = [alike @ self.target_view(v) for v in range(self.target_views)]
        return [
            (self.view(u), right[v])
            for u in range(self.views)
            for v in range(self.target_views)
            if (u != v if self.has_teacher else u < v)
        ]


def unit_rows(z: Tensor) -> Tensor:
    """Rows of norm 1; a zero row stays zero, with a zero gradient (it is similar to nothing)."""
    return _UnitRows.apply(z)


class _UnitRows(torch.autograd.Function):
    """z_i / |z_i| in few launches; differentiable again through the plain form."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        inverse = torch.linalg.vector_norm(z, dim=1, keepdim=True).reciprocal_()
        inverse.nan_to_num_(posinf=0.0)
        unit = z * inverse
        ctx.save_for_backward(z, unit, inverse)
        return unit

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Any) -> Any:
        z, unit, inverse = ctx.saved_tensors
        if torch.is_grad_enabled():
            norms = torch.linalg.vector_norm(z, dim=1, keepdim=True)
            inverse = torch.where(norms > 0, norms, torch.inf).reciprocal()
            unit = z * inverse
        along = torch.linalg.vecdot(unit, gradients[0]).unsqueeze(1)
        return torch.addcmul(gradients[0], unit, along, value=-1.0).mul(inverse)
