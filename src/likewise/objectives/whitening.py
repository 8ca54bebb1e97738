"""W-MSE: alike rows together after whitening."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.information.precision import wide
from likewise.objectives.base import Objective, Reduction, positive
from likewise.objectives.batch import Batch, unit_rows
from likewise.objectives.similarity import mean_distance


class WhiteningMSE(Objective):
    r"""The mean squared distance of alike rows after whitening (W-MSE; Ermolov et al. 2021):

    .. math::
        \frac{\sum_{ij} A_{ij} |\tilde w_i - \tilde w_j|^2}{\sum_{ij} |A_{ij}|}, \qquad
        w = L^{-1} (z - \bar z), \quad L L^\top = (1 - \epsilon) C + \epsilon I, \quad
        \tilde w = w / |w|

    The mean and the covariance C (with 1/(m - 1)) are those of a slice: m samples of one view. The
    samples are cut at random into slices, the same for all views, at every iteration anew, and
    iterations are averaged. Each slice has at least `slice_size` samples. A target is whitened in
    the same slices by its own covariance. Whitened rows have the identity as their covariance, so
    that they cannot collapse; nothing else keeps them apart. A slice is whitened in float64.

    Args:
        slice_size: samples of a slice; None takes the whole batch, and draws nothing. More than
            the dimensions of z; the paper takes twice as many.
        iterations: how often the samples are cut into slices.
        epsilon: the share of the identity in the covariance, between 0 and 1. Needed where a
            slice has no more samples than dimensions.
        margin: the distance at which rows that are different (-1) stop repelling; after whitening
            and normalisation, orthogonal rows are :math:`\sqrt 2` apart.
        reduction: "mean", or "sum" for the sum over ordered pairs, in place of their mean.

    >>> import torch
    >>> from likewise import Graph
    >>> views = torch.tensor([[3.0, 1.0], [-1.0, 2.0], [1.0, -1.0], [-3.0, -2.0]])
    >>> z = torch.stack([views, 5 * views + 1], dim=1).reshape(8, 2)  # a view and its affine copy
    >>> WhiteningMSE()(z, Graph.identity(4).views(2)).item() < 1e-6
    True
    """

    def __init__(
        self,
        slice_size: int | None = None,
        iterations: int = 1,
        *,
        epsilon: float = 0.0,
        margin: float = 1.0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if slice_size is not None and (not isinstance(slice_size, int) or slice_size < 2):
            raise ValueError(
                f"slice_size is {slice_size!r}: give at least 2 samples, or None for the batch"
            )
        if not isinstance(iterations, int) or iterations < 1:
            raise ValueError(f"iterations is {iterations!r}: give a whole number of at least 1")
        if positive("epsilon", epsilon, zero=True) > 1:
            raise ValueError(f"epsilon is {epsilon!r}: it is a share, give a number from 0 to 1")
        self.slice_size = slice_size
        self.iterations = iterations
        self.epsilon = float(epsilon)
        self.margin = positive("margin", margin)

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        n = batch.n_samples
        n_slices = 1 if self.slice_size is None else max(1, n // self.slice_size)
        smallest = n // n_slices
        if smallest < 2 or (smallest <= batch.dim and self.epsilon == 0):
            raise ValueError(
                f"a slice holds {smallest} of {n} samples, too few for a covariance of "
                f"{batch.dim} dimensions: give slices of more than {batch.dim} samples, "
                "or epsilon above 0"
                if smallest >= 2
                else f"a slice holds {smallest} sample: whitening needs at least 2 samples a view"
            )
        # Whitening does not see the order of samples: one slice is the same at every iteration.
        iterations = self.iterations if n_slices > 1 else 1
        total = batch.z.new_zeros(())
        for _ in range(iterations):
            slices = self._slices(batch, n_slices)
            z = self._whitened(batch.z, slices)
            target = self._whitened(batch.target, slices) if batch.has_teacher else z
            total = total + mean_distance(batch, z, target, self.margin, self.reduction)
        return {"distance": total / iterations}

    def _slices(self, batch: Batch, n_slices: int) -> list[Tensor]:
        """The numbers of the samples of every slice."""
        if n_slices == 1:
            return [torch.arange(batch.n_samples, device=batch.z.device)]
        if batch.generator is None:
            raise ValueError(
                "WhiteningMSE cuts the batch into random slices: give a generator (with the same "
                "state on all ranks), or slice_size=None for the whole batch"
            )
        order = torch.randperm(
            batch.n_samples, generator=batch.generator, device=batch.generator.device
        )
        return list(order.to(batch.z.device).tensor_split(n_slices))

    def _whitened(self, rows: Tensor, slices: list[Tensor]) -> Tensor:
        """Unit rows of every slice and view, whitened on their own."""
        n, dim = sum(len(members) for members in slices), rows.shape[1]
        grouped = rows.reshape(n, -1, dim).transpose(0, 1)
        whitened, order = [], []
        for size in {len(members) for members in slices}:  # at most two sizes: two batches
            members = torch.stack([part for part in slices if len(part) == size])
            values = self._whiten(grouped[:, members].flatten(0, 1))
            whitened.append(values.reshape(len(grouped), -1, dim))
            order.append(members.reshape(-1))
        back = torch.argsort(torch.cat(order))
        return unit_rows(torch.cat(whitened, dim=1)[:, back].transpose(0, 1).reshape(rows.shape))

    def _whiten(self, rows: Tensor) -> Tensor:
        """(slices, samples, d), each slice with its own mean and covariance."""
        values = wide(rows)
        values = values - values.mean(dim=1, keepdim=True)
        dim = values.shape[2]
        ridge = self.epsilon
        if self.epsilon == 0:
            # Then the scale does not matter: at mean variance 1, round-off is known. It is added
            # to the diagonal, so that a direction without variance is no division by 0.
            variance = values.square().mean(dim=(1, 2), keepdim=True)
            values = values / torch.where(variance > 0, variance, 1.0).sqrt()
            ridge = 8 * dim * torch.finfo(values.dtype).eps
        covariance = values.transpose(1, 2) @ values / (values.shape[1] - 1)
        shrunk = (1 - self.epsilon) * covariance + ridge * torch.eye(
            dim, dtype=values.dtype, device=values.device
        )
        factor = torch.linalg.cholesky(shrunk)
        whitened = torch.linalg.solve_triangular(factor, values.transpose(1, 2), upper=False)
        return whitened.transpose(1, 2).to(rows.dtype)
