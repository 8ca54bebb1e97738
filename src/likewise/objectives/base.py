"""The contract of every objective: objective(z, graph) -> scalar."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from numbers import Real
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from likewise.distributed import gather_rows, rank, row_counts, world_size
from likewise.graph import Graph
from likewise.information.precision import at_least_float32
from likewise.objectives.batch import Batch

Reduction = Literal["mean", "sum"]
Choice = TypeVar("Choice", bound=str)


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
        value: Tensor = self._evaluate(self._total, z, graph, target, negatives, generator, extra)
        return value

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
        terms: dict[str, Tensor] = self._evaluate(
            self._terms, z, graph, target, negatives, generator, extra
        )
        return terms

    def _evaluate(
        self,
        compute: Callable[..., Any],
        z: Tensor,
        graph: Graph,
        target: Tensor | None,
        negatives: Tensor | None,
        generator: torch.Generator | None,
        extra: dict[str, Any],
    ) -> Any:
        """What `compute` makes of the batch: the value, or its parts."""
        self._check(z, graph, target, negatives)
        for name in extra:
            if name not in self.extra_arguments:
                raise TypeError(f"{type(self).__name__} takes no argument {name!r}")
        with _without_autocast(z.device.type):
            batch = self._collect(z, graph, target, negatives, generator)
            try:
                result = compute(batch, **extra)
            except (ArithmeticError, RuntimeError, ValueError):
                # A factorisation that fails on NaN says so in its own words: say what was given.
                batch.check_finite()
                raise
        if self.check_finite and not torch.compiler.is_compiling():
            # One number is read back: NaN in the value, or in rows that it does not depend on.
            number = (_sum(result) if isinstance(result, dict) else result).detach()
            if not self._reads_all_rows:
                number = number + batch.sum_of_rows()
            if not math.isfinite(float(number)):
                batch.check_finite()
        return result

    def _total(self, batch: Batch, **extra: Any) -> Tensor:
        """The sum of the parts, in one step where an objective has one."""
        return _sum(self._terms(batch, **extra))

    @abstractmethod
    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        """The weighted parts, on the global batch in float32 or float64."""

    @property
    def _reads_all_rows(self) -> bool:
        """Whether NaN in any row makes the value NaN, whatever the graph."""
        return False

    def _collect(
        self,
        z: Tensor,
        graph: Graph,
        target: Tensor | None,
        negatives: Tensor | None,
        generator: torch.Generator | None,
    ) -> Batch:
        alone = world_size() == 1
        counts = (z.shape[0],) if alone else row_counts(z)
        rows = at_least_float32(z)
        rows = rows if alone else gather_rows(rows, counts)
        n_rows = rows.shape[0]
        if graph.n != n_rows:
            across = f" on {len(counts)} ranks" if len(counts) > 1 else ""
            raise ValueError(
                f"z has {n_rows} rows{across}, but the graph has {graph.n} nodes: give one "
                "row per node; for v views of every sample use graph.views(v)"
            )
        if n_rows < 2:
            raise ValueError("z has 1 row: an objective compares rows, give a batch of at least 2")
        other = rows
        if target is not None:
            other = gather_rows(at_least_float32(target).to(rows.dtype))
            samples = n_rows // graph.n_views
            if other.shape[0] % samples:
                raise ValueError(
                    f"target has {other.shape[0]} rows for {samples} samples: give the same "
                    "number of views of every sample, sample-major"
                )
        own = 0 if alone else rank()
        first = sum(counts[:own])
        if target is not None and not self.self_pairs and other.shape[0] == n_rows == graph.n:
            self._check_compared(graph)
        return Batch(
            z=rows,
            graph=graph.to(z.device),
            target=other,
            negatives=None if negatives is None else at_least_float32(negatives).to(rows.dtype),
            generator=generator,
            own=slice(first, first + counts[own]),
            alone=alone,
            self_pairs=self.self_pairs,
        )

    def _check_compared(self, graph: Graph) -> None:
        if graph.n_views == 1 and graph.pairs(1).empty and graph.trace() > 0:
            raise ValueError(
                "target has one view of every sample, the same as z, and a row is not compared "
                "with its own view: pass two views in z and in target, with graph.views(2)"
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


def _sum(terms: dict[str, Tensor]) -> Tensor:
    first, *others = terms.values()
    return sum(others, first)


def _without_autocast(device_type: str) -> AbstractContextManager[object]:
    # Entering autocast costs as much as a small kernel: only where there is one to leave.
    if not torch.is_autocast_enabled(device_type):
        return nullcontext()
    return torch.autocast(device_type=device_type, enabled=False)


def positive(name: str, value: float, *, zero: bool = False) -> float:
    """`value`, or an error that names it: it must be a number above 0 (or 0 where allowed)."""
    number = isinstance(value, Real) and not isinstance(value, bool)
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
