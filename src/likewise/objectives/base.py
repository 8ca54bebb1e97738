"""The contract of every objective: objective(z, graph) -> scalar."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from likewise.distributed import gather_rows, rank, row_counts
from likewise.graph import Graph, Pairs

Reduction = Literal["mean", "sum"]
Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True)
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
    self_pairs: bool

    @property
    def n_rows(self) -> int:
        """N, the rows of z."""
        return len(self.z)

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
        return len(self.target) // self.n_samples

    @cached_property
    def pairs(self) -> Pairs:
        """Who is compared with whom."""
        return self.graph.pairs(self.target_views, self_pairs=self.self_pairs)

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


class Objective(nn.Module, ABC):
    """A loss on embeddings and a similarity graph.

    ``objective(z, graph)`` is the value, ``objective.terms(z, graph)`` its named weighted parts.
    Matrices are formed in float32 at least, whatever autocast says. Under several processes every
    rank passes its own rows and the graph over the global batch in rank order, and receives the
    global loss (see :mod:`likewise.distributed`).

    Args:
        reduction: "mean" divides sums over samples by n and sums over pairs by n^2; "sum" keeps
            the raw sums. Sums over dimensions are kept by both.
    """

    self_pairs: ClassVar[bool] = False
    """Whether a row is paired with itself."""
    accepts_target: ClassVar[bool] = True
    accepts_negatives: ClassVar[bool] = False
    extra_arguments: ClassVar[tuple[str, ...]] = ()
    """What a call takes beyond the contract."""

    check_finite: bool = True
    """Refuse NaN in the input with a clear error; False saves a GPU synchronisation."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum"):
            raise ValueError(f"reduction is {reduction!r}: give 'mean' or 'sum'")
        self.reduction = reduction

    def forward(
        self,
        z: Tensor,
        graph: Graph,
        *,
        target: Tensor | None = None,
        negatives: Tensor | None = None,
        generator: torch.Generator | None = None,
        **extra: Any,
    ) -> Tensor:
        """The value of the objective.

        Args:
            z: one row per node of the graph (its own rows on every rank), sample-major.
            graph: who is alike, over the rows of all ranks.
            target: what z is compared with where a method has another branch: the teacher's or
                the stopped embeddings, n x U rows. Default: z itself.
            negatives: rows that are alike to nobody (a queue), equal on all ranks.
            generator: drives what is random, with the same state on all ranks.
            extra: what one objective takes beyond the contract (see its docstring).
        """
        terms = self.terms(
            z, graph, target=target, negatives=negatives, generator=generator, **extra
        )
        return _total(terms)

    def terms(
        self,
        z: Tensor,
        graph: Graph,
        *,
        target: Tensor | None = None,
        negatives: Tensor | None = None,
        generator: torch.Generator | None = None,
        **extra: Any,
    ) -> dict[str, Tensor]:
        """The named parts of the value, weighted: their sum is the value."""
        self._check(z, graph, target, negatives)
        for name in extra:
            if name not in self.extra_arguments:
                raise TypeError(f"{type(self).__name__} takes no argument {name!r}")
        inputs = {"z": z, "target": target, "negatives": negatives}
        try:
            with _without_autocast(z.device.type):
                batch = self._collect(z, graph, target, negatives, generator)
                terms = self._terms(batch, **extra)
        except (ArithmeticError, RuntimeError, ValueError):
            # A factorisation that fails on NaN says so in its own words: say what was given.
            self._check_finite(inputs)
            raise
        # NaN in, NaN out: the value tells, and only if it does are the rows looked at.
        look = self.check_finite and not torch.compiler.is_compiling()
        if look and not math.isfinite(float(_total(terms).detach())):
            self._check_finite(inputs)
        return terms

    @abstractmethod
    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        """The weighted parts, on the global batch in float32 or float64."""

    def _collect(
        self,
        z: Tensor,
        graph: Graph,
        target: Tensor | None,
        negatives: Tensor | None,
        generator: torch.Generator | None,
    ) -> Batch:
        counts = row_counts(z)
        rows = gather_rows(at_least_float32(z), counts)
        if graph.n != len(rows):
            across = f" on {len(counts)} ranks" if len(counts) > 1 else ""
            raise ValueError(
                f"z has {len(rows)} rows{across}, but the graph has {graph.n} nodes: give one "
                "row per node; for v views of every sample use graph.views(v)"
            )
        if len(rows) < 2:
            raise ValueError("z has 1 row: an objective compares rows, give a batch of at least 2")
        other = rows if target is None else gather_rows(at_least_float32(target).to(rows.dtype))
        samples = len(rows) // graph.n_views
        if len(other) % samples:
            raise ValueError(
                f"target has {len(other)} rows for {samples} samples: give the same number of "
                "views of every sample, sample-major"
            )
        first = sum(counts[: rank()])
        return Batch(
            z=rows,
            graph=graph.to(z.device),
            target=other,
            negatives=None if negatives is None else at_least_float32(negatives).to(rows.dtype),
            generator=generator,
            own=slice(first, first + counts[rank()]),
            self_pairs=self.self_pairs,
        )

    def _check(
        self, z: Tensor, graph: Graph, target: Tensor | None, negatives: Tensor | None
    ) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(
                f"graph is a {type(graph).__name__}: give a likewise.Graph, for example "
                "Graph.identity(n).views(2) or Graph.from_labels(y)"
            )
        if target is not None and not self.accepts_target:
            raise ValueError(
                f"{type(self).__name__} compares z with the graph itself: it takes no target"
            )
        if negatives is not None and not self.accepts_negatives:
            raise ValueError(f"{type(self).__name__} has no use for negatives: leave them out")
        for name, value in (("z", z), ("target", target), ("negatives", negatives)):
            if value is None:
                continue
            if not isinstance(value, Tensor) or value.ndim != 2 or not value.is_floating_point():
                kind = (
                    f"shape {tuple(value.shape)} and dtype {value.dtype}"
                    if isinstance(value, Tensor)
                    else f"type {type(value).__name__}"
                )
                raise ValueError(f"{name} has {kind}: give a floating tensor of (rows, dimensions)")
            if value.shape[1] != z.shape[1] or value.shape[1] == 0:
                raise ValueError(
                    f"{name} has {value.shape[1]} dimensions and z has {z.shape[1]}: give the "
                    "same number, at least 1"
                )

    def _check_finite(self, inputs: dict[str, Tensor | None]) -> None:
        for name, value in inputs.items():
            if value is not None and not bool(torch.isfinite(value).all()):
                raise ValueError(
                    f"{name} holds NaN or infinity: lower the learning rate, or look at the "
                    "encoder's output"
                )


def _total(terms: dict[str, Tensor]) -> Tensor:
    first, *others = terms.values()
    return sum(others, first)


def _without_autocast(device_type: str) -> AbstractContextManager[object]:
    # Entering autocast costs as much as a small kernel: only where there is one to leave.
    if not torch.is_autocast_enabled(device_type):
        return nullcontext()
    return torch.autocast(device_type=device_type, enabled=False)


def at_least_float32(tensor: Tensor) -> Tensor:
    """Half precision becomes float32; float32 and float64 stay."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


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
    def backward(ctx: Any, *gradients: Any) -> Any:
        z, unit, inverse = ctx.saved_tensors
        if torch.is_grad_enabled():
            norms = torch.linalg.vector_norm(z, dim=1, keepdim=True)
            inverse = torch.where(norms > 0, norms, torch.inf).reciprocal()
            unit = z * inverse
        along = torch.linalg.vecdot(unit, gradients[0]).unsqueeze(1)
        return torch.addcmul(gradients[0], unit, along, value=-1.0).mul(inverse)


def positive(name: str, value: float, *, zero: bool = False) -> float:
    """`value`, or an error that names it: it must be a number above 0 (or 0 where allowed)."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(
            f"{name} is {value!r}: give a number {'of at least' if zero else 'above'} 0"
        )
    return float(value)


def one_of(name: str, value: Choice, options: tuple[str, ...]) -> Choice:
    """`value`, or an error that names it and lists the options."""
    if value not in options:
        raise ValueError(f"{name} is {value!r}: give one of {', '.join(map(repr, options))}")
    return value
