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

from dataclasses import replace
from typing import Any, Literal, TypedDict

import torch
from torch import Tensor

from likewise.distributed import sum_over_ranks
from likewise.objectives.base import Objective, Reduction, one_of
from likewise.objectives.batch import Batch, unit_rows
from likewise.objectives.comparison import Comparison
from likewise.objectives.denominators import DENOMINATORS, Denominator, DenominatorWeights
from likewise.objectives.small_batch import cosine_contrast
from likewise.pairwise import reductions
from likewise.pairwise.products import Precision
from likewise.pairwise.reductions import PairWeights, row_kernel_sum, row_logsumexp
from likewise.pairwise.tiles import is_safe

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
    precision: Precision
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
        precision: how tiles of float32 are multiplied on an NVIDIA GPU: "split" on tensor cores
            in three parts, with the accuracy of float32, "ieee" in float32 itself.

    At call time, ``temperature=`` gives one temperature per row of z in place of :math:`1/\alpha`.
    """

    accepts_negatives = True
    extra_arguments = ("temperature",)

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
        precision: Precision = "split",
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
        self.precision = one_of("precision", precision, ("split", "ieee"))

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
        comparisons = self._comparisons(batch, temperature)
        attraction = sum(map(self._attraction, comparisons), batch.z.new_zeros(()))
        repulsion = sum(map(self._repulsion, comparisons), batch.z.new_zeros(()))
        factor = self._factor(batch)
        return {
            "attraction": sum_over_ranks(attraction) * factor,
            "repulsion": sum_over_ranks(repulsion) * (factor * self.weight),
        }

    def _total(self, batch: Batch, temperature: Tensor | None = None, **extra: Any) -> Tensor:
        if temperature is not None or not self._is_small(batch):
            return super()._total(batch, temperature=temperature)
        alpha = self.inverse_temperature
        factor = self._factor(batch) / (alpha if self.divide else 1.0)
        return cosine_contrast(
            batch.z,
            batch.pairs,
            alpha,
            self._whole_denominator(batch),
            factors=(factor * alpha, factor * self.weight),
            plain=lambda z: super(Contrastive, self)._total(replace(batch, z=z, target=z)),
        )

    def _factor(self, batch: Batch) -> float:
        """1 / N for means over anchors."""
        if self.reduction == "sum":
            return 1.0
        return 1.0 / (batch.n_samples if self._first_view else batch.n_rows)

    def _whole_denominator(self, batch: Batch) -> PairWeights | None:
        """Who stands in the denominator of all rows; the graph remembers it."""
        key = ("denominator", self.denominator, self.unknown, self.batch_negatives)
        weights: PairWeights | None = batch.graph._remember(
            key, lambda: self._candidates(batch).simplest(batch.n_rows)
        )
        return weights

    def _is_small(self, batch: Batch) -> bool:
        """Whether unit rows are compared among themselves, few enough to hold every pair."""
        return (
            self.similarity == "cosine"
            and self._sums_positives(batch)
            and self.denominator != "other-view"
            and not (self._first_view and batch.views > 1)
            and not batch.has_teacher
            and batch.negatives is None
            and batch.alone
            and batch.n_rows**2 <= reductions.DENSE_LIMIT
            and is_safe(self.inverse_temperature, batch.z.dtype)
            and batch.pairs.nonnegative
        )

    def _sums_positives(self, batch: Batch) -> bool:
        """Whether positives are summed, or there is one for every row, of weight 1."""
        if self.positives == "mean" and batch.views == 2:
            samples = batch.graph._sample_graph()
            return samples is not None and samples.is_identity
        return self.positives == "sum"

    @property
    def _reads_all_rows(self) -> bool:
        # Everybody stands in everybody's denominator.
        everybody = self.unknown == "negative" and self.batch_negatives
        return everybody and self._kernel == "dot" and self.denominator in ("all", "all-and-self")

    @property
    def _first_view(self) -> bool:
        """Whether only the first view of every sample is an anchor."""
        return False

    def _comparisons(self, batch: Batch, temperature: Tensor | None) -> list[Comparison]:
        """This rank's anchors against everybody, or against one view at a time."""
        cosine = self.similarity == "cosine"
        z = unit_rows(batch.z) if cosine else batch.z
        target = z
        if batch.has_teacher:
            target = unit_rows(batch.target) if cosine else batch.target
        negatives = batch.negatives
        if negatives is not None and cosine:
            negatives = unit_rows(negatives)
        rows = None
        if batch.own != slice(0, batch.n_rows) or (self._first_view and batch.views > 1):
            rows = torch.arange(batch.own.start, batch.own.stop, device=z.device)
            if self._first_view:
                rows = rows[rows % batch.views == 0]
        whole = Comparison(
            batch=batch,
            queries=z if rows is None else z[rows],
            target=target,
            keys=target,
            negatives=negatives,
            rows=rows,
            columns=None,
            scale=self._scale(temperature, batch, rows),
        )
        if self.denominator != "other-view":
            return [whole]
        if batch.target_views == 1 and batch.views == 1:
            raise ValueError(
                "denominator is 'other-view', but the graph has one view of every sample: use "
                "graph.views(2), or denominator='negatives'"
            )
        views = [whole.against_view(view) for view in range(batch.target_views)]
        total = z.new_zeros(batch.n_rows)
        for each in views:
            total.index_add_(0, each.numbers, each.degrees)
        return [replace(each, all_degrees=total[each.numbers]) for each in views]

    def _scale(
        self, temperature: Tensor | None, batch: Batch, rows: Tensor | None
    ) -> float | Tensor:
        """alpha, or one alpha per row where a temperature per sample is given."""
        if temperature is None:
            return self.inverse_temperature
        own = batch.own.stop - batch.own.start
        if not isinstance(temperature, Tensor):
            raise ValueError(
                f"temperature is {temperature!r}: at call time give a tensor with one number per "
                "row; one temperature for all is an argument of the objective"
            )
        if temperature.shape != (own,) or not bool((temperature > 0).all()):
            raise ValueError(
                f"temperature has shape {tuple(temperature.shape)} for {own} rows of z: give one "
                "number above 0 per row"
            )
        scale = temperature.to(batch.z).reciprocal()
        return scale if rows is None else scale[rows - batch.own.start]

    def _attraction(self, comparison: Comparison) -> Tensor:
        """Minus the sum over this rank's rows of what attracts."""
        queries, scale = comparison.queries, comparison.scale
        divisor = scale if self.divide else 1.0
        if self.positives == "sum" and self._kernel == "dot":
            products = queries * comparison.positive_sums
            if not isinstance(scale, Tensor):
                return products.sum() * -(scale / divisor)
            return -(products.sum(dim=1) * (scale / divisor)).sum()
        degrees = comparison.degrees
        alike = degrees > 0
        safe = torch.where(alike, degrees, 1.0)
        if self.positives == "average":
            logits = scale * self._similarities(queries, comparison.positive_sums / safe[:, None])
        elif self.positives == "log-mean":
            logits = row_logsumexp(
                queries,
                comparison.keys,
                scale=scale,
                kernel=self._kernel,
                weights=comparison.positive_weights,
                precision=self.precision,
            )
            logits = torch.where(alike, logits, 0.0) - safe.log()
        else:
            if self._kernel == "dot":
                logits = scale * (queries * comparison.positive_sums).sum(dim=1)
            else:
                logits = row_kernel_sum(
                    queries,
                    comparison.keys,
                    scale=scale,
                    kernel=self._kernel,
                    weights=comparison.positive_weights,
                    precision=self.precision,
                )
            logits = logits / safe
        return -(torch.where(alike, logits, 0.0) * self._share(comparison) / divisor).sum()

    def _repulsion(self, comparison: Comparison) -> Tensor:
        """The sum over this rank's rows of what repels."""
        scale, keys = comparison.scale, comparison.keys
        if comparison.negatives is not None:
            keys = torch.cat([keys, comparison.negatives])
        candidates = self._candidates(comparison.batch, comparison.rows, comparison.columns)
        cosine = self.similarity == "cosine" and not isinstance(scale, Tensor)
        logs = row_logsumexp(
            comparison.queries,
            keys,
            scale=scale,
            kernel=self._kernel,
            weights=candidates.simplest(len(keys)),
            precision=self.precision,
            bound=scale if cosine else None,  # type: ignore[arg-type]
        )
        # Nobody to attract, or nobody to repel: the row contributes nothing.
        logs = logs.masked_fill(logs == -torch.inf, 0.0)
        if self.divide:
            logs = logs / scale
        return self._share(comparison).dot(logs)

    def _candidates(
        self, batch: Batch, rows: Tensor | None = None, columns: Tensor | None = None
    ) -> DenominatorWeights:
        """Who stands in the denominator."""
        known = None
        if self.unknown == "ignore":
            known = batch.graph.known().pairs(batch.target_views, self_pairs=True)
        return DenominatorWeights(
            batch.pairs,
            known,
            self.denominator,
            rows=rows,
            columns=columns,
            in_batch=self.batch_negatives,
        )

    def _share(self, comparison: Comparison) -> Tensor:
        """How much a row weighs: as its positives, or once if it has any, in this view a part."""
        degrees = comparison.degrees
        if self.positives == "sum":
            return degrees
        total = degrees if comparison.all_degrees is None else comparison.all_degrees
        return degrees / torch.where(total > 0, total, 1.0)

    @property
    def _kernel(self) -> Literal["dot", "distance", "squared-distance"]:
        return "dot" if self.similarity == "cosine" else self.similarity

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
