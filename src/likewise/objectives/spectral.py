"""Objectives on inner products of rows: VIC2 and the spectral contrastive loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.graph import Pairs
from likewise.information.precision import without_autocast
from likewise.objectives.base import Objective, Reduction
from likewise.objectives.batch import Batch, unit_rows
from likewise.objectives.grams import product_energy
from likewise.objectives.similarity import pair_mean


class VIC2(Objective):
    r"""The rows' inner products should be the graph (``pal`` theorem 1):

    .. math::
        \frac{1}{N^2} |Z Z^\top - G|_F^2
        = \frac{1}{N^2} \big(|Z^\top Z|_F^2 - 2 \operatorname{Tr} Z^\top G Z + |G|_F^2\big)

    With a target, :math:`|Z T^\top - A|_F^2 / (N M)` over all pairs of N rows with M target rows.
    Computed in the factored form on the right: a graph of labels costs O(N d^2), whatever its N^2
    pairs. The graph keeps its diagonal (a row is alike to itself). Pairs that are different (-1)
    are targets of -1, unknown pairs targets of 0. For G = YY^T the minimisers are {YR}
    (theorem 2).

    Errata: ``pal`` eq. 5 and the listing in C.1 agree with this up to their factors; eq. 9-10 are
    another loss (see :class:`likewise.objectives.pairwise_vic2.PairwiseVIC2`).

    Args:
        normalize: whether rows are first divided by their norms (``pal`` C.1; then rows of
            different classes want to be orthogonal, which takes as many dimensions as classes).
        reduction: "mean" divides by N^2, "sum" does not.

    >>> import torch
    >>> from likewise import Graph
    >>> labels = torch.tensor([0, 1, 1])
    >>> VIC2()(torch.nn.functional.one_hot(labels).float(), Graph.from_labels(labels))
    tensor(0.)
    """

    self_pairs = True

    def __init__(self, *, normalize: bool = False, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        self.normalize = normalize

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        z, target = batch.z, batch.target if batch.has_teacher else None
        if self.normalize:
            z, target = unit_rows(z), None if target is None else unit_rows(target)
        pairs = batch.pairs
        views = pairs.views * pairs.target_views
        scale = 1.0 if self.reduction == "sum" else 1.0 / (len(batch.z) * len(batch.target))
        return {
            "alignment": (-2 * scale) * graph_form(pairs, z, target),
            "covariance": scale * product_energy(z.T, None if target is None else target.T),
            "graph": z.new_tensor(scale * views * pairs.samples.norm_squared()),
        }


class SpectralContrastive(Objective):
    r"""Alike rows have a large inner product, other rows have none (HaoChen et al. 2021; ``pal``
    eq. 5 over n):

    .. math::
        -2\, \frac{\sum_{ij} A_{ij} z_i^\top t_j}{\sum_{ij} |A_{ij}|}
        + \frac{1}{n^2} \sum_{i \ne j} \langle z^{(u)}_i, z^{(v)}_j \rangle^2

    The second term runs over pairs of different samples in different views, and is averaged over
    the pairs of views :math:`u \ne v`; with one view, over pairs of different rows. Where d < n it
    comes from d x d matrices. A are the pairs of the graph without those of a row with itself:
    pairs that are different (-1) are pushed to a negative inner product.

    Errata: eq. 5 prints n times this; HaoChen et al. divide by n(n - 1) where eq. 5 has n^2.

    Args:
        same_view: whether the second term also runs over pairs of different samples in the same
            view (as the graph form of ``pal`` B.1.1 does).
        unbiased: divide by the number n(n - 1) of pairs (HaoChen et al.) in place of n^2.
        reduction: "mean", or "sum" for :math:`-2 \sum A_{ij} z_i^\top t_j + \sum (\cdot)^2`, both
            over ordered pairs of rows.

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.eye(3).repeat_interleave(2, dim=0)
    >>> SpectralContrastive()(z, Graph.identity(3).views(2))
    tensor(-2.)
    """

    def __init__(
        self, *, same_view: bool = False, unbiased: bool = False, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        self.same_view = same_view
        self.unbiased = unbiased

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        alignment = graph_form(batch.pairs, batch.z, batch.target if batch.has_teacher else None)
        squares, view_pairs = self._squares(batch)
        if self.reduction == "mean":
            n = batch.n_samples
            # One sample has no pair of different ones.
            count = max(1, n - 1) * n if self.unbiased else n * n
            squares = squares / (count * view_pairs)
        return {
            "alignment": -2 * pair_mean(batch, alignment, self.reduction),
            "repulsion": squares,
        }

    def _squares(self, batch: Batch) -> tuple[Tensor, int]:
        """The sum over different samples and ordered pairs of views, and the number of those."""
        total, count = batch.z.new_zeros(()), 0
        single = batch.views == batch.target_views == 1
        for u in range(batch.views):
            for v in range(batch.target_views):
                if u == v and not (self.same_view or single):
                    continue
                count += 1
                left, right = batch.view(u).T, batch.target_view(v).T
                if batch.has_teacher:
                    total = total + product_energy(left, right, diagonal=False)
                elif u == v:
                    total = total + product_energy(left, diagonal=False)
                elif u < v:
                    # (v, u) is the transpose of (u, v).
                    total = total + 2 * product_energy(left, right, diagonal=False)
        return total, count


def graph_form(pairs: Pairs, z: Tensor, target: Tensor | None = None) -> Tensor:
    r""":math:`\operatorname{Tr} Z^\top A T = \sum_{ij} A_{ij} z_i^\top t_j`; target: z itself."""
    if target is not None:
        return (z * (pairs @ target)).sum()
    form: Tensor = _QuadraticForm.apply(z, pairs)
    return form


class _QuadraticForm(torch.autograd.Function):
    """Tr Z^T A Z of a symmetric A, whose gradient 2 A Z is at hand once the value is known."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, pairs: Pairs) -> Tensor:
        product = pairs @ z
        ctx.pairs = pairs
        ctx.save_for_backward(z, product)
        return (z * product).sum()

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Any) -> Any:
        z, product = ctx.saved_tensors
        if torch.is_grad_enabled():
            product = ctx.pairs @ z
        return 2 * gradients[0] * product, None
