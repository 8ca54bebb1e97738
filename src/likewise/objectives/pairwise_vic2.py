"""VIC2 as sums over pairs, of which a part may stand for all."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from likewise.graph.edges import edge_energy
from likewise.objectives.base import Objective, Reduction, one_of
from likewise.objectives.batch import Batch
from likewise.objectives.grams import product_energy

PairList = tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]


class PairwiseVIC2(Objective):
    r"""VIC2 without its constant, as sums over pairs that may be drawn (``pal`` eq. 9-10):

    .. math::
        \frac{1}{|I|} \sum_{(i,j) \in I} G_{ij} |z_i - z_j|^2
        + \frac{1}{|J|} \sum_{(i,j) \in J}
        \Big( (z_i^\top z_j)^2 - \tfrac1N (d_i |z_i|^2 + d_j |z_j|^2) \Big),
        \qquad d_i = \sum_j G_{ij}

    By default I and J are all pairs, and the value is that of VIC2 minus :math:`|G|^2 / N^2`. The
    graph keeps its diagonal; pairs that are different (-1) are targets of -1.

    Three ways to estimate it from a part, each unbiased:

    - ``population=n``: the batch holds samples drawn without replacement from n (with all their
      views), and the graph is that of the batch. Pairs of one sample weigh n/b, pairs of two weigh
      n(n - 1)/(b(b - 1)), also in the degrees.
    - ``disjoint_halves=True``: the squares of pairs of two samples come from the first half of
      the batch against the second.
    - ``objective(z, graph, known_pairs=(i, j), covariance_pairs=(i, j))``: I and J as lists of
      rows, drawn uniformly from all ordered pairs; or (i, j, weight) where they were not, with
      the importance weight (uniform probability over actual probability) of every pair. They are
      equal on all ranks.

    Errata: eq. 10 prints R without d/N, which is VIC2 of the graph G + N I - D; the sums are to be
    scaled by N^2/|I| and N^2/|J|; and the pairs of a batch are biased on the diagonal.

    Args:
        population: how many samples the batch was drawn from; None: it is all there is;
            ``math.inf``: pairs of one sample have no weight.
        disjoint_halves: see above; the order of samples must be random.
        degrees: where :math:`d_i` comes from: the "graph", or the "known_pairs" alone, where the
            graph is known on I and nowhere else.
        reduction: "mean" as above, "sum" for N^2 times as much (N rows of the population).

    >>> import torch
    >>> from likewise import Graph
    >>> from likewise.objectives.spectral import VIC2
    >>> graph = Graph.from_labels(torch.tensor([0, 1, 1]))
    >>> z = torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    >>> print(f"{PairwiseVIC2()(z, graph):.4f} {VIC2()(z, graph) - graph.norm_squared() / 9:.4f}")
    4.2222 4.2222
    """

    self_pairs = True
    accepts_target = False
    extra_arguments = ("known_pairs", "covariance_pairs")

    def __init__(
        self,
        population: float | None = None,
        *,
        disjoint_halves: bool = False,
        degrees: Literal["graph", "known_pairs"] = "graph",
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        whole = population in (None, math.inf) or (
            isinstance(population, int) and not isinstance(population, bool) and population > 0
        )
        if not whole:
            raise ValueError(
                f"population is {population!r}: give the number of samples that batches are drawn "
                "from, math.inf, or None"
            )
        if population == math.inf and reduction == "sum":
            raise ValueError("population is inf, which has no sum: give reduction='mean'")
        self.population = population
        self.disjoint_halves = disjoint_halves
        self.degrees = one_of("degrees", degrees, ("graph", "known_pairs"))

    def _terms(
        self,
        batch: Batch,
        known_pairs: PairList | None = None,
        covariance_pairs: PairList | None = None,
        **extra: Any,
    ) -> dict[str, Tensor]:
        b = batch.n_samples
        population = b if self.population is None else self.population
        if population < b or (b < 2 <= population):
            raise ValueError(
                f"the batch has {b} samples and population is {population}: give a population at "
                "least as large as the batch, and a batch of at least 2 samples"
            )
        known = _listed("known_pairs", batch, known_pairs)
        squares = _listed("covariance_pairs", batch, covariance_pairs)
        # What a pair weighs in the mean over all pairs: of one sample, and of two.
        same = 1 / population / b / batch.views**2
        other = (1 - 1 / population) / max(b * (b - 1), 1) / batch.views**2
        blocks = _Blocks(batch)
        norms = batch.z.square().sum(dim=1)
        attraction = blocks.attraction(same, other) if known is None else _attraction(batch, *known)
        if squares is not None:
            covariance = _mean_square(batch, *squares)
        else:
            covariance = blocks.squares(same, other, self.disjoint_halves)
        if known is not None and self.degrees == "known_pairs":
            i, j, weight = known
            weight = weight * batch.graph._entries(i, j, weight.dtype)
            pull = (weight * (norms[i] + norms[j])).sum()
        elif squares is not None and self.population is None:
            i, j, weight = squares
            degrees = batch.graph._degrees(False, norms.dtype) / batch.n_rows * norms
            pull = (weight * (degrees[i] + degrees[j])).sum()
        else:
            pull = 2 * (blocks.degrees(same, other) * norms).sum()
        scale = 1.0 if self.reduction == "mean" else float(population * batch.views) ** 2
        return {"attraction": scale * attraction, "covariance": scale * (covariance - pull)}


class _Blocks:
    """Sums over all pairs of rows, where pairs of one sample have their own weight."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        n, views = batch.n_samples, batch.views
        self.rows = batch.z.reshape(n, views, -1)
        nodes = torch.arange(batch.n_rows, device=batch.z.device).reshape(n, views)
        first = nodes[:, :, None].expand(n, views, views).reshape(-1)
        second = nodes[:, None, :].expand(n, views, views).reshape(-1)
        entries = batch.graph._entries(first, second, batch.z.dtype)
        self.within = entries.reshape(n, views, views)

    def attraction(self, same: float, other: float) -> Tensor:
        """sum_ij w_ij G_ij |z_i - z_j|^2."""
        energy = other * self.batch.pairs.energy(self.batch.z, self.batch.z)
        if same == other or self.batch.views == 1:
            return energy
        gaps = (self.rows[:, :, None] - self.rows[:, None]).square().sum(dim=3)
        return energy + (same - other) * (self.within * gaps).sum()

    def squares(self, same: float, other: float, disjoint_halves: bool) -> Tensor:
        """sum_ij w_ij (z_i . z_j)^2."""
        own = (self.rows @ self.rows.transpose(1, 2)).square().sum()
        n = len(self.rows)
        if not disjoint_halves:
            return other * product_energy(self.batch.z.T) + (same - other) * own
        # Each ordered pair of two halves stands for b (b - 1) / (b_1 b_2) pairs.
        middle = n // 2
        halves = (part.flatten(0, 1) for part in (self.rows[:middle], self.rows[middle:]))
        first, second = (part.T @ part for part in halves)
        share = n * (n - 1) / (middle * (n - middle)) if middle else 0.0
        return same * own + other * share * (first * second).sum()

    def degrees(self, same: float, other: float) -> Tensor:
        """sum_j w_ij G_ij."""
        degrees = self.batch.graph._degrees(False, self.batch.z.dtype)
        return other * degrees + (same - other) * self.within.sum(dim=2).reshape(-1)


def _listed(
    name: str, batch: Batch, pairs: PairList | None
) -> tuple[Tensor, Tensor, Tensor] | None:
    """The rows of the pairs, and weights that make their sum the mean."""
    if pairs is None:
        return None
    if not isinstance(pairs, tuple | list) or len(pairs) not in (2, 3):
        raise ValueError(f"{name} has no two ends: give (i, j) or (i, j, weight)")
    i, j = (batch.graph._index(f"{name}[{end}]", pairs[end]) for end in (0, 1))
    weight = batch.z.new_ones(len(i)) if len(pairs) == 2 else pairs[2]
    weight = torch.as_tensor(weight, dtype=batch.z.dtype, device=batch.z.device)
    if len(i) == 0 or i.shape != j.shape or i.shape != weight.shape:
        raise ValueError(
            f"{name} has {len(i)} and {len(j)} ends and {weight.numel()} weights: give one j (and "
            "one weight) for every i, at least one pair"
        )
    return i, j, weight / len(i)


def _attraction(batch: Batch, i: Tensor, j: Tensor, weight: Tensor) -> Tensor:
    weight = weight * batch.graph._entries(i, j, weight.dtype)
    return edge_energy(batch.z, batch.z, i, j, weight)


def _mean_square(batch: Batch, i: Tensor, j: Tensor, weight: Tensor) -> Tensor:
    return (weight * (batch.z[i] * batch.z[j]).sum(dim=1).square()).sum()
