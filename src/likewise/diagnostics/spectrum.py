"""How many dimensions are in use: singular values, effective ranks, matrix entropy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import one_of, pair_of, positive, rows_of, unit_rows, weight_of
from likewise.diagnostics.moments import eigenvalues, exp_entropy, moments
from likewise.graph.arrays import Array, as_tensor, in_kind, is_numpy
from likewise.information import matrix_cross_entropy, matrix_kl
from likewise.information.precision import rounding

RankKind = Literal["relative", "absolute", "variance"]


@dataclass(frozen=True)
class Spectrum(Figures):
    """What :func:`spectrum` and :func:`weight_spectrum` found.

    With the singular values s of Z (n, d) and the eigenvalues s^2 / n of Z^T Z / n:

    Attributes:
        rows: n.
        dim: d.
        singular_values: of Z, largest first.
        centered_singular_values: of Z less its mean.
        rank_me: exp H(s / sum s), RankMe (Garrido et al. 2023).
        centered_rank_me: the same of the centred rows.
        effective_rank: exp H(s^2 / sum s^2), that of Z^T Z / n (matrix-ssl eq. 12).
        centered_effective_rank: the same of the covariance.
        matrix_entropy: ME(A / tr A), A = Z^T Z / n; log effective_rank + 1 (proposition 3.6).
        matrix_kl: MKL(A / tr A || I / d) = log d - log effective_rank; 0 is uniform.
        mean_square: tr A, the mean squared length of a row.
        variance: the trace of the covariance.
        floor: singular values up to here are round-off of the rows' own type and count as 0.
    """

    rows: int
    dim: int
    singular_values: Any
    centered_singular_values: Any
    rank_me: float
    centered_rank_me: float
    effective_rank: float
    centered_effective_rank: float
    matrix_entropy: float
    matrix_kl: float
    mean_square: float
    variance: float
    floor: float


@torch.no_grad()
def spectrum(z: Array, *, normalize: bool = False) -> Spectrum:
    r"""Singular values, effective ranks and matrix entropy of embeddings.

    .. math:: \mathrm{erank}(A) = \exp H(\lambda / \textstyle\sum_k \lambda_k),
        \qquad A = \tfrac1n Z^\top Z

    Paper: matrix-ssl, equation 12 and proposition 3.6; geometry, figure 4; RankMe on the singular
    values themselves. Errata: proposition 3.6 needs unit trace, so that A / tr A is taken (for
    unit rows the trace is 1 already). Sums are made in float64, chunk by chunk: a million rows of
    512 numbers cost their own memory and some tens of MiB. Singular values up to `floor`, 8 eps of
    the rows' type times |Z|_F, are round-off and count as 0 (float64 rows: 4e-8 of |Z|_F, what
    the square root of a Gram matrix leaves).

    Args:
        z: embeddings (n, d).
        normalize: whether to take rows of length 1 first, as matrix-ssl does.

    Returns:
        The figures; ranks of all-zero (or, centred, all-equal) rows are undefined.

    >>> found = spectrum(torch.eye(4)[[0, 1, 2, 2]])
    >>> round(found.effective_rank, 3), found.singular_values.round(decimals=3).tolist()
    (2.828, [1.414, 1.0, 1.0, 0.0])
    """
    rows = rows_of(z, "z")
    n, dim = rows.shape
    if n < dim:  # few rows: their own singular values cost less than a d x d matrix
        wide = unit_rows(rows.double()) if normalize else rows.double()
        zero_rows = int((wide == 0).all(dim=1).sum())
        values = torch.linalg.svdvals(wide)
        around = torch.linalg.svdvals(wide - wide.mean(dim=0))
    else:
        of = moments(rows, unit=normalize)
        zero_rows = of.zero_rows
        values = eigenvalues(of.second_moment).mul(n).sqrt()
        around = eigenvalues(of.covariance).mul(n).sqrt()
    # Rounding of the rows, not of the float64 sums, decides which singular values are noise.
    size = float(torch.linalg.vector_norm(values))
    floor = rounding(rows.dtype) * size
    values, around = (torch.where(s > floor, s, 0.0) for s in (values, around))
    notes = []
    if size == 0:
        notes.append("every row is zero: there is no direction to count")
    elif not bool((around > 0).any()):
        notes.append("all rows are equal: centred, there is no direction to count")
    if normalize and zero_rows:
        notes.append(f"{zero_rows} rows are zero and have no direction; they stay zero")
    if n < dim:
        notes.append(f"{n} rows of {dim} numbers: no rank can be above {n}")
    rank, numpy = exp_entropy(values.square()), is_numpy(z)
    return Spectrum(
        notes=tuple(notes),
        rows=n,
        dim=dim,
        singular_values=in_kind(values, numpy),
        centered_singular_values=in_kind(around, numpy),
        rank_me=exp_entropy(values),
        centered_rank_me=exp_entropy(around),
        effective_rank=rank,
        centered_effective_rank=exp_entropy(around.square()),
        matrix_entropy=UNDEFINED if math.isnan(rank) else math.log(rank) + 1,
        matrix_kl=UNDEFINED if math.isnan(rank) else math.log(dim) - math.log(rank),
        mean_square=float(values.square().sum()) / n,
        variance=float(around.square().sum()) / n,
        floor=floor,
    )


@torch.no_grad()
def weight_spectrum(weight: Array) -> Any:
    """Singular values of a weight matrix, largest first, in float64; round-off counts as 0.

    Paper: geometry, figure 1 (the projector's weights).

    Args:
        weight: (d_out, d_in), as nn.Linear holds it; the paper's W is its transpose.

    >>> weight_spectrum(torch.tensor([[3.0, 0.0], [0.0, 0.0]]))
    tensor([3., 0.], dtype=torch.float64)
    """
    matrix = weight_of(weight)
    values = torch.linalg.svdvals(matrix)
    given = as_tensor(weight).dtype
    floor = rounding(given if given.is_floating_point else torch.float64)
    values = torch.where(values > floor * torch.linalg.vector_norm(values), values, 0.0)
    return in_kind(values, is_numpy(weight))


def rank_tau(singular_values: Array, tau: float = 1e-3, *, kind: RankKind = "relative") -> int:
    r"""How many singular values count.

    ===========  ==========================================================================
    absolute     :math:`\#\{k : \sigma_k \ge \tau\}`, as printed
    relative     :math:`\#\{k : \sigma_k \ge \tau \sigma_{\max}\}`
    variance     the least r with :math:`\sum_{k \le r} \sigma_k^2 \ge \tau \sum_k \sigma_k^2`
    ===========  ==========================================================================

    Paper: geometry, equation 2. Errata: the printed threshold is absolute, which is neither
    independent of scale nor a share of the variance; the other two are. A value of 0 (below
    round-off in a :class:`Spectrum`) never counts.

    Args:
        singular_values: none negative, in any order.
        tau: the threshold; for "variance" a share in (0, 1].
        kind: which of the three.

    >>> values = torch.tensor([10.0, 1.0, 0.1, 0.0])
    >>> [rank_tau(values, 0.05, kind=kind) for kind in ("absolute", "relative")]
    [3, 2]
    >>> rank_tau(values, 0.95, kind="variance")
    1
    """
    one_of("kind", kind, ("relative", "absolute", "variance"))
    tau = positive("tau", tau, "1e-3, or a share of variance such as 0.95")
    values = as_tensor(singular_values).detach().double()
    if values.ndim != 1 or not bool(torch.isfinite(values).all()) or bool((values < 0).any()):
        raise ValueError(
            "singular_values have to be a list of finite numbers that are not negative: take "
            "them from spectrum(z) or weight_spectrum(weight)"
        )
    values = values.sort(descending=True).values
    if not bool((values > 0).any()):
        return 0
    if kind == "variance":
        if tau > 1:
            raise ValueError(f"tau is {tau}: a share of variance is at most 1 (0.95, say)")
        share = values.square().cumsum(0)
        return min(int((share < tau * share[-1]).sum()) + 1, int((values > 0).sum()))
    least = tau * float(values[0]) if kind == "relative" else tau
    return int(((values >= least) & (values > 0)).sum())


@dataclass(frozen=True)
class BatchCrossEntropy(Figures):
    """Means over batches of what :func:`cross_entropy_by_batches` compares.

    Attributes:
        cross_entropy: MCE(P, Q).
        divergence: MKL(P || Q).
        batches: how many batches there were.
    """

    cross_entropy: float
    divergence: float
    batches: int


@torch.no_grad()
def cross_entropy_by_batches(
    z1: Array, z2: Array, *, batch_size: int = 512, ridge: float = 1e-4, seed: int = 0
) -> BatchCrossEntropy:
    r"""Matrix cross-entropy between the two views' second moments, averaged over batches.

    .. math:: \mathrm{MCE}(P, Q) = \mathrm{tr}(-P \log Q + Q), \qquad
        P = \tfrac1B Z_1^\top Z_1 + \epsilon I, \quad Q = \tfrac1B Z_2^\top Z_2 + \epsilon I

    with unit rows, shuffled into batches; a last batch that is not full is left out unless it is
    the only one.

    Paper: matrix-ssl, equation 11 and appendix F.2 (batches of 512). Errata: a ridge stands for
    the printed log(0) := 0, with which a singular Q would be rewarded.

    Args:
        z1: one view of every sample (n, d).
        z2: another view of the same samples.
        batch_size: B.
        ridge: epsilon.
        seed: of the shuffle.

    >>> z = torch.eye(4)
    >>> found = cross_entropy_by_batches(z, z, ridge=1e-6)
    >>> round(found.cross_entropy, 3), found.divergence  # log 4 + 1, and 0
    (2.386, 0.0)
    """
    first, second = pair_of(z1, z2, "z1", "z2")
    positive("ridge", ridge, "1e-4")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"batch_size is {batch_size!r}: give an integer of at least 1 (512)")
    order = torch.randperm(len(first), generator=torch.Generator().manual_seed(seed))
    batches = [b for b in order.split(batch_size) if len(b) == batch_size] or [order]
    entropies, divergences = [], []
    for batch in batches:
        p, q = (_second_moment(rows[batch.to(rows.device)]) for rows in (first, second))
        entropies.append(float(matrix_cross_entropy(p, q, ridge=ridge)))
        divergences.append(float(matrix_kl(p, q, ridge=ridge)))
    left = len(first) - sum(map(len, batches))
    notes = (f"{left} rows that fill no batch are left out",) if left else ()
    count = len(batches)
    return BatchCrossEntropy(notes, sum(entropies) / count, sum(divergences) / count, count)


def _second_moment(rows: Tensor) -> Tensor:
    rows = unit_rows(rows.double())
    return rows.T @ rows / len(rows)
