r"""Contrastive objectives: attract who is alike, repel the rest through a log-sum-exp.

All are one formula on the pairs A of the graph (A^+ and A^- its positive and negative part, the
row itself excluded), the similarity s and the inverse temperature :math:`\alpha = 1/\tau`:

.. math::
    \frac{c}{N} \sum_i \Big[ -\alpha \sum_j A^+_{ij} s_{ij}
        + \lambda\, d_i \log \sum_k w_{ik} e^{\alpha s_{ik}} \Big],
    \qquad d_i = \sum_j A^+_{ij},

and differ in c, :math:`\lambda` and who is in the denominator (w).
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import torch
from torch import Tensor

from likewise.distributed import sum_over_ranks
from likewise.graph import Pairs
from likewise.objectives.base import Batch, Objective, Reduction, one_of, unit_rows
from likewise.objectives.denominators import (
    DENOMINATORS,
    Denominator,
    DenominatorWeights,
    PositiveWeights,
)
from likewise.objectives.pairwise import row_kernel_sum, row_logsumexp

Similarity = Literal["cosine", "dot", "distance", "squared-distance"]
SIMILARITIES = ("cosine", "dot", "distance", "squared-distance")
Positives = Literal["sum", "mean", "log-mean", "average"]
POSITIVES = ("sum", "mean", "log-mean", "average")


class ContrastiveOptions(TypedDict, total=False):
    """What all contrastive objectives take beside their own parameters."""

    similarity: Similarity
    positives: Positives
    unknown: Literal["negative", "ignore"]
    batch_negatives: bool
    reduction: Reduction


class Contrastive(Objective):
    r"""The formula that the contrastive objectives share; use one of those.

    Args:
        inverse_temperature: :math:`\alpha`.
        weight: :math:`\lambda`, how much the repulsion weighs against the attraction.
        divide: whether the value is divided by :math:`\alpha` (as in ``balanced`` eq. 17).
        denominator: who is repelled. With m images in two views: "other-view" the other images in
            the positive's view (m - 1; ``balanced`` eq. 12-14), "negatives" the other images in
            both views (2(m - 1), decoupled), "all" these and the positive (2m - 1, NT-Xent),
            "all-and-self" (2m, ``pal`` theorem 1 as printed).
        similarity: s: cosine, dot product, minus the distance, or minus its square.
        positives: how several positives combine: "sum" :math:`\sum_j A_{ij} \log p_{ij}` with the
            graph as given (``pal`` theorem 1), "mean" the weighted mean of the logs (SupCon's
            L_out), "log-mean" the log of the weighted mean (SupCon's L_in), "average" the
            similarity to the average of the positives (``balanced`` section 5.5).
        unknown: "negative" repels a pair of which nothing is known, "ignore" leaves it out.
        batch_negatives: False keeps only the queue in the denominator (MoCo), beside the positive.

    At call time, ``temperature=`` gives one temperature per row of z in place of :math:`1/\alpha`.
    """

    accepts_negatives = True

    def __init__(
        self,
        inverse_temperature: float,
        weight: float,
        *,
        divide: bool,
        denominator: Denominator,
        similarity: Similarity = "cosine",
        positives: Positives = "sum",
        unknown: Literal["negative", "ignore"] = "negative",
        batch_negatives: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.inverse_temperature = inverse_temperature
        self.weight = weight
        self.divide = divide
        self.denominator = one_of("denominator", denominator, DENOMINATORS)
        self.similarity = one_of("similarity", similarity, SIMILARITIES)
        self.positives = one_of("positives", positives, POSITIVES)
        self.unknown = one_of("unknown", unknown, ("negative", "ignore"))
        self.batch_negatives = batch_negatives

    def extra_repr(self) -> str:
        """The parameters, for print(objective)."""
        return (
            f"inverse_temperature={self.inverse_temperature:g}, weight={self.weight:g}, "
            f"denominator={self.denominator!r}, similarity={self.similarity!r}, "
            f"positives={self.positives!r}"
        )

    def _terms(
        self, batch: Batch, temperature: Tensor | None = None, **extra: Any
    ) -> dict[str, Tensor]:
        if extra:
            raise TypeError(f"unknown argument {next(iter(extra))!r}")
        whole = batch.own == slice(0, batch.n_rows)
        rows = self._anchors(batch)
        z = unit_rows(batch.z) if self.similarity == "cosine" else batch.z
        target = z
        if batch.has_teacher:
            target = unit_rows(batch.target) if self.similarity == "cosine" else batch.target
        negatives = batch.negatives
        if negatives is not None and self.similarity == "cosine":
            negatives = unit_rows(negatives)
        queries = z if whole and rows is None else z[batch.own]
        numbers = None if whole else torch.arange(batch.own.start, batch.own.stop, device=z.device)
        if rows is not None:
            numbers = rows[(rows >= batch.own.start) & (rows < batch.own.stop)]
            queries = z[numbers]
        scale = self._scale(temperature, batch, numbers)
        attraction, repulsion = z.new_zeros(()), z.new_zeros(())
        for columns in self._column_groups(batch):
            pull, push = self._parts(batch, queries, target, negatives, numbers, columns, scale)
            attraction, repulsion = attraction + pull, repulsion + push
        factor = 1.0
        if self.reduction == "mean":
            factor /= batch.n_rows if rows is None else len(rows)
        return {
            "attraction": factor * sum_over_ranks(attraction),
            "repulsion": factor * self.weight * sum_over_ranks(repulsion),
        }

    def _anchors(self, batch: Batch) -> Tensor | None:
        """The rows that are compared with others; None means all."""
        return None

    def _scale(
        self, temperature: Tensor | None, batch: Batch, numbers: Tensor | None
    ) -> float | Tensor:
        """alpha, or one alpha per row where a temperature per sample is given."""
        if temperature is None:
            return self.inverse_temperature
        own = batch.own.stop - batch.own.start
        if temperature.shape != (own,) or not bool((temperature > 0).all()):
            raise ValueError(
                f"temperature has shape {tuple(temperature.shape)} for {own} rows of z: give one "
                "number above 0 per row"
            )
        scale = temperature.to(batch.z).reciprocal()
        return scale if numbers is None else scale[numbers - batch.own.start]

    def _column_groups(self, batch: Batch) -> list[Tensor | None]:
        """The columns that share a denominator: all, or one view at a time."""
        if self.denominator != "other-view":
            return [None]
        if batch.target_views == 1 and batch.views == 1:
            raise ValueError(
                "denominator is 'other-view', but the graph has one view of every sample: use "
                "graph.views(2), or denominator='negatives'"
            )
        columns = torch.arange(len(batch.target), device=batch.z.device)
        return [columns[view :: batch.target_views] for view in range(batch.target_views)]

    def _parts(
        self,
        batch: Batch,
        queries: Tensor,
        target: Tensor,
        negatives: Tensor | None,
        numbers: Tensor | None,
        columns: Tensor | None,
        scale: float | Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The sums over this rank's rows of both parts."""
        pairs = batch.pairs
        if columns is not None:
            # Row and column in the same view are compared in no group.
            view = int(columns[0])
            everyone = numbers if numbers is not None else _all_rows(batch)
            keep = everyone % batch.views != view
            scale = scale[keep] if isinstance(scale, Tensor) else scale
            numbers, queries = everyone[keep], queries[keep]
        keys = target if columns is None else target[columns]
        degrees, sums = self._positive_sums(pairs, target, numbers, columns)
        alike = degrees > 0
        divisor = scale if self.divide else 1.0
        share = torch.ones_like(degrees)
        if self.positives == "sum":
            share = degrees
        safe = torch.where(alike, degrees, 1.0)
        if self.positives == "log-mean":
            weights = PositiveWeights(pairs, numbers, columns)
            logits = row_logsumexp(queries, keys, scale=scale, kernel=self._kernel, weights=weights)
            logits = torch.where(alike, logits, 0.0) - safe.log()
        elif self.positives == "average":
            mean = sums / safe[:, None]
            logits = scale * self._similarities(queries, mean)
        elif self._kernel == "dot":
            logits = scale * (queries * sums).sum(dim=1) / safe * share
        else:
            weights = PositiveWeights(pairs, numbers, columns)
            logits = row_kernel_sum(
                queries, keys, scale=scale, kernel=self._kernel, weights=weights
            )
            logits = logits / safe * share
        attraction = -(torch.where(alike, logits, 0.0) / divisor).sum()

        if negatives is not None:
            keys = torch.cat([keys, negatives])
        known = batch.graph.known().pairs(batch.target_views, self_pairs=True)
        weights = DenominatorWeights(
            pairs,
            known if self.unknown == "ignore" else None,
            self.denominator,  # type: ignore[arg-type]
            rows=numbers,
            columns=columns,
            in_batch=self.batch_negatives,
        )
        logs = row_logsumexp(queries, keys, scale=scale, kernel=self._kernel, weights=weights)
        # Nobody to attract, or nobody to repel: the row contributes nothing.
        counted = alike & torch.isfinite(logs)
        repulsion = (share * torch.where(counted, logs, 0.0) / divisor).sum()
        return attraction, repulsion

    @property
    def _kernel(self) -> Literal["dot", "distance", "squared-distance"]:
        return "dot" if self.similarity == "cosine" else self.similarity  # type: ignore[return-value]

    def _similarities(self, first: Tensor, second: Tensor) -> Tensor:
        """s between two lists of rows, row by row."""
        if self.similarity == "cosine":
            second = unit_rows(second)
        if self._kernel == "dot":
            return (first * second).sum(dim=1)
        squares = (first - second).square().sum(dim=1)
        if self._kernel == "squared-distance":
            return -squares
        return -torch.where(squares > 0, squares, 1.0).sqrt() * (squares > 0)

    def _positive_sums(
        self, pairs: Pairs, target: Tensor, numbers: Tensor | None, columns: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """d_i = sum_j A+_ij and sum_j A+_ij t_j for the rows `numbers`, by a graph product."""
        if columns is not None:
            # Other views count 0: they belong to another denominator.
            mask = torch.zeros(len(target), 1, dtype=target.dtype, device=target.device)
            mask[columns] = 1.0
            target = target * mask
            degrees = (pairs @ mask)[:, 0]
        else:
            degrees = pairs.row_sums(target.dtype)
        sums = pairs @ target
        if not pairs.nonnegative:
            rows, others, weight = pairs.negative_pairs(target.dtype)
            sums = sums.index_add(0, rows, weight[:, None] * target[others])
            if columns is not None:
                weight = weight * mask[others, 0]
            degrees = degrees.index_add(0, rows, weight)
        # Differences of exact sums: what is left of a zero is round-off.
        degrees = torch.where(degrees > 1e-6 * degrees.abs().max(), degrees, 0.0)
        return (degrees, sums) if numbers is None else (degrees[numbers], sums[numbers])


def _all_rows(batch: Batch) -> Tensor:
    return torch.arange(batch.n_rows, device=batch.z.device)
