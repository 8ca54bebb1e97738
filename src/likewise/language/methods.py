"""Three ways to -x^T log(Q) x: exact, the Taylor polynomial of the paper, Lanczos quadrature."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from likewise.information.derivatives import log_divided_differences
from likewise.language.density import Density, FullVocabulary, TopTokens
from likewise.language.krylov import Krylov
from likewise.language.quadrature import Estimate, estimate

Method = Literal["lanczos", "taylor", "exact"]


@dataclass(frozen=True)
class Accuracy:
    """How a logarithm is taken, and how much work it may cost."""

    method: Method = "lanczos"
    order: int = 4
    products: int = 10
    max_products: int = 40
    tolerance: float = 1e-3

    def rounds(self, cheap: bool) -> list[int]:
        """Numbers of products after which the error is looked at.

        Where products are `cheap` (few tokens), looking is dearer than multiplying, and happens
        less often.
        """
        if self.method != "lanczos":
            return [self.order if self.method == "taylor" else 1]
        if self.tolerance <= 0 or self.max_products <= 1:
            return [self.products]
        counts = [self.products] if cheap else [math.ceil(self.products / 2), self.products]
        while counts[-1] < self.max_products:
            counts.append(min((4 if cheap else 2) * counts[-1], self.max_products))
        return counts


@dataclass
class Result:
    """What was found at some positions: an estimate over a basis and the basis' images."""

    index: Tensor
    """Which positions of the chunk, (r,)."""
    found: Estimate
    projected: Tensor
    """X = sqrt(q) o (E V), (k, r, m)."""
    vectors: Tensor
    """V in the density's representation, (k, r, s), or in R^d where `embedded`."""
    density: Density
    embedded: bool = False
    short: Tensor | None = None
    """Which positions will come again, after more products, (r,); None for none."""

    def directions(self) -> Tensor:
        """V in R^d, (k, r, d)."""
        return self.vectors if self.embedded else self.density.embedded(self.vectors)


def evaluate(
    density: Density, start: Tensor, log_share: Tensor | None, accuracy: Accuracy, limit: int
) -> Iterator[Result]:
    """-x^T log(Q) x from the vectors `start` (c, s); what comes later for a position counts.

    Args:
        density: Q at c positions.
        start: x, (c, s); for a token up to a positive factor.
        log_share: log q_t of the target, or None where x is no token.
        accuracy: the method and its effort.
        limit: the most numbers that images of the basis may take up at a time.
    """
    index = torch.arange(len(start), device=start.device)
    if accuracy.method == "exact":
        yield from _exact(density, start, index, log_share, limit)
        return
    if accuracy.method == "taylor":
        yield _taylor(density, start, index, log_share, accuracy.order)
        return
    rounds = accuracy.rounds(isinstance(density, TopTokens))
    basis = Krylov.begin(density, start, rounds[0])
    yield from _lanczos(basis, index, log_share, accuracy, rounds, limit)


def _lanczos(
    basis: Krylov,
    index: Tensor,
    log_share: Tensor | None,
    accuracy: Accuracy,
    rounds: list[int],
    limit: int,
) -> Iterator[Result]:
    """Grow the basis in rounds, and go on only with the positions that are not there yet."""
    basis.grow(rounds[0])
    known = log_share is not None
    found = estimate(
        basis.gram(), basis.compressed(without_target=known), basis.residual, log_share
    )
    if len(rounds) == 1:
        yield _result(basis, index, found, None)
        return
    short = found.error > accuracy.tolerance * (1 + found.value)
    yield _result(basis, index, found, short)
    waiting = torch.nonzero(short)[:, 0]  # the only place where the host waits for the device
    room = max(1, limit // (rounds[1] * basis.projected.shape[2]))
    for piece in waiting.split(room) if len(waiting) else ():
        part = basis.rows(piece, rounds[1])
        share = None if log_share is None else log_share[piece]
        yield from _lanczos(part, index[piece], share, accuracy, rounds[1:], limit)


def _result(basis: Krylov, index: Tensor, found: Estimate, short: Tensor | None) -> Result:
    k = basis.size
    projected, vectors = basis.projected[:k], basis.vectors[:k]
    return Result(index, found, projected, vectors, basis.density, short=short)


def _taylor(
    density: Density, start: Tensor, index: Tensor, log_share: Tensor | None, order: int
) -> Result:
    """-log Q by sum_i (I - Q)^i / i: the polynomial of order m about the identity.

    With w_a = (I - Q)^a x the derivative is -sum over a + b < m of w_a^T dQ w_b / (a + b + 1).
    """
    if log_share is not None:  # a token's embedding has unit length
        start = start / (start * density.dual(start)).sum(-1).sqrt()[:, None]
    basis = Krylov.begin(density, start, order)
    vector = start
    for a in range(order):
        basis.vectors[a] = vector
        if basis.duals is not basis.vectors:
            basis.duals[a] = density.dual(vector)
        x = density.project(vector, basis.duals[a], basis.projected[a])
        basis.size = a + 1
        vector = vector - density.combine(x)
    own = (basis.duals * start).sum(-1).double()  # x^T (I - Q)^a x, (order, c)
    last = (density.dual(start) * vector).sum(-1).double()
    power = torch.arange(1, order + 1, device=start.device, dtype=torch.float64)
    value = (torch.cat([own[1:], last[None]]) / power[:, None]).sum(0)
    total = power[:, None] + power[None] - 1  # a + b + 1, from 0
    middle = torch.where(total <= order, 1 / total, 0.0)
    signed, axes = torch.linalg.eigh(middle)
    found = Estimate(
        value,
        value,
        value,
        torch.zeros_like(value),
        (axes * signed.abs().sqrt()).expand(len(start), -1, -1),
        torch.einsum("ac,ab,bc->c", own, middle, own),
        # log(Q) x = -sum_i w_i / i, with w_m behind the basis of the derivative.
        torch.cat([torch.zeros_like(power[:1]), -1 / power]).expand(len(start), -1),
        signed.sign(),
    )
    vectors = torch.cat([basis.vectors, vector[None]])
    return Result(index, found, basis.projected, vectors, density)


def _exact(
    density: Density, start: Tensor, index: Tensor, log_share: Tensor | None, limit: int
) -> Iterator[Result]:
    """By singular values of diag(sqrt q) E in float64."""
    for piece in index.split(max(1, limit // (density.root.shape[1] * density.width))):
        part = density.rows(piece)
        x = start[piece]
        share = None if log_share is None else log_share[piece].double()
        yield _exact_piece(part, x, piece, share)


def _exact_piece(
    density: Density, start: Tensor, index: Tensor, log_share: Tensor | None
) -> Result:
    if isinstance(density, TopTokens):
        tokens = density.tokens
    else:
        assert isinstance(density, FullVocabulary)
        tokens = torch.arange(density.root.shape[1], device=start.device).expand_as(density.root)
    embedding = density.embedding
    E = embedding.weight.double()[tokens] * embedding.inverse_norm.double()[tokens][..., None]
    x = density.embedded(start[None])[0].double()
    root = density.root.double()
    if log_share is not None:
        x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        root = root.scatter(1, density.target[:, None], (log_share[:, None] / 2).exp())
    _, singular, vectors = torch.linalg.svd(root[..., None] * E, full_matrices=False)
    kept = singular > 1e-15 * singular[:, :1]
    values = torch.where(kept, singular.square(), 1.0)
    first = torch.where(kept, torch.einsum("crd,cd->cr", vectors, x), 0.0)
    middle = log_divided_differences(values) * first[:, :, None] * first[:, None, :]
    value = -(first.square() * values.log()).sum(-1)
    projected = root[..., None] * (E @ vectors.mT)
    weights, axes = torch.linalg.eigh(middle)
    found = Estimate(
        value,
        value,
        value,
        torch.zeros_like(value),
        axes * weights.clamp_min(0).sqrt()[:, None],
        torch.einsum("ci,cij,cj->c", first, middle, first),
        first * values.log(),
    )
    return Result(index, found, projected.permute(2, 0, 1), vectors.transpose(0, 1), density, True)
