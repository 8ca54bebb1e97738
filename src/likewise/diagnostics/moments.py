"""Mean and covariance of a million rows: float64 sums over chunks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.diagnostics.given import wide_chunks
from likewise.information.precision import rounding


@dataclass(frozen=True)
class Moments:
    """Sums over rows, in float64.

    Attributes:
        count: how many rows n.
        mean: (d,).
        covariance: (1/n) sum (z - mean)(z - mean)^T, (d, d).
        zero_rows: how many rows are all zeros.
    """

    count: int
    mean: Tensor
    covariance: Tensor
    zero_rows: int

    @property
    def second_moment(self) -> Tensor:
        """(1/n) sum z z^T, uncentred."""
        return self.covariance + torch.outer(self.mean, self.mean)


def moments(rows: Tensor, *, unit: bool = False) -> Moments:
    """Mean and covariance in one pass over chunks of rows; of unit rows where `unit`.

    Each chunk is centred on its own mean, and chunks are merged by their means (Chan, Golub and
    LeVeque 1983): E[zz^T] - mm^T would lose the digits of a covariance that is small beside the
    mean.

    >>> moments(torch.tensor([[1.0, 0.0], [3.0, 0.0]])).covariance
    tensor([[1., 0.],
            [0., 0.]], dtype=torch.float64)
    """
    n, dim = rows.shape
    mean = torch.zeros(dim, dtype=torch.float64, device=rows.device)
    gram = torch.zeros(dim, dim, dtype=torch.float64, device=rows.device)
    seen = zero = 0
    for _, chunk in wide_chunks(rows, unit=unit):
        size = len(chunk)
        zero += int((chunk == 0).all(dim=1).sum())
        middle = chunk.mean(dim=0)
        chunk = chunk - middle
        step = middle - mean
        gram.addmm_(chunk.T, chunk).addr_(step, step, alpha=seen * size / (seen + size))
        seen += size
        mean += step * (size / seen)
    return Moments(n, mean, (gram + gram.T) / (2 * n), zero)


def eigenvalues(matrix: Tensor) -> Tensor:
    """Eigenvalues of a positive semi-definite float64 matrix, largest first; round-off is 0."""
    values = torch.linalg.eigvalsh(matrix).flip(0)
    floor = rounding(torch.float64) * torch.linalg.vector_norm(values)
    return torch.where(values > floor, values, 0.0)


def exp_entropy(weights: Tensor) -> float:
    """exp H(p) with p = w / sum(w), w >= 0: how many weights are in use; NaN for all zeros.

    >>> round(exp_entropy(torch.tensor([1.0, 1.0, 0.0])), 6)
    2.0
    """
    total = weights.sum()
    if not bool(total > 0):
        return float("nan")
    return float(torch.special.entr(weights.double() / total).sum().exp())
