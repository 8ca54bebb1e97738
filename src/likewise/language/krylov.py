"""An orthogonal basis of span{e, Q e, Q^2 e, ...}, grown one product with Q at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.language.density import Density

FEW = 1024
"""Up to so many tokens, float64 for all of them costs next to nothing."""


@dataclass
class Krylov:
    """k basis vectors at each of c positions, with their images under B^T.

    Lanczos with full reorthogonalisation. The vectors may be rounded (to bfloat16 for fast
    products) and so be orthogonal to 8 bits only: what is computed from them is the Rayleigh
    quotient over their span, with their own Gram matrix, to which that rounding is exact.
    """

    density: Density
    vectors: Tensor
    """(capacity, c, s)."""
    duals: Tensor
    """The same object as `vectors` where inner products are plain."""
    projected: Tensor
    """X_a = sqrt(q) o (E v_a), (capacity, c, m)."""
    scale: Tensor
    """1 / |v_a|^2, (c, capacity, 1); 1 for those that were scaled to unit length."""
    size: int
    following: Tensor
    """The next vector, (c, s), not yet multiplied; zero where the space is exhausted."""
    following_dual: Tensor
    residual: Tensor
    """Its length before it was scaled: the next off-diagonal entry of the Lanczos matrix, (c,)."""

    @staticmethod
    def begin(density: Density, start: Tensor, capacity: int) -> Krylov:
        """An empty basis that will begin with `start`."""
        positions, tokens = density.root.shape
        vectors = start.new_empty(capacity, positions, density.width)
        dual = density.dual(start)
        scale = start.new_ones(positions, capacity, 1)
        square = _dot(start, dual)
        # A start of length zero has no direction, and nothing to be orthogonal to.
        scale[:, 0] = torch.where(square > 0, square, 1.0).reciprocal()
        return Krylov(
            density,
            vectors,
            vectors if dual is start else torch.empty_like(vectors),
            density.root.new_empty(capacity, positions, tokens),
            scale,
            0,
            start,
            dual,
            start.new_zeros(positions),
        )

    def grow(self, count: int) -> None:
        """Multiply until there are `count` vectors."""
        for _ in range(count - self.size):
            self._step()

    def _step(self) -> None:
        density, k = self.density, self.size
        self.vectors[k] = self.following
        if self.duals is not self.vectors:
            self.duals[k] = self.following_dual
        x = density.project(self.following, self.following_dual, self.projected[k])
        self.size = k + 1
        following = density.combine(x)[:, None]
        vectors, duals = (y[: k + 1].transpose(0, 1) for y in (self.vectors, self.duals))
        for _ in range(2):  # once is not enough where the new direction is short
            overlap = torch.bmm(duals, following.mT) * self.scale[:, : k + 1]
            following = torch.baddbmm(following, overlap.mT, vectors, alpha=-1)
        following = following[:, 0]
        dual = density.dual(following)
        length = _dot(following, dual).clamp_min_(0).sqrt_()
        # |Q v| <= |B^T v|: below round-off of that, the space is invariant and the answer exact.
        epsilon = torch.finfo(x.dtype).eps
        noise = torch.linalg.vector_norm(x, dim=1, keepdim=True) * (16 * epsilon)
        if self.duals is not self.vectors:
            # Coefficients that cancel out (more tokens than dimensions) leave the round-off of G.
            spread = torch.linalg.vector_norm(following, 1, dim=1, keepdim=True)
            noise = torch.maximum(noise, spread * (2 * epsilon**0.5))
        inverse = torch.where(length > noise, length, torch.inf).reciprocal_()
        self.residual = (length * (inverse > 0))[:, 0]
        self.following = density.rounded(following * inverse)
        plain = self.duals is self.vectors
        self.following_dual = self.following if plain else dual * inverse

    def rows(self, index: Tensor, capacity: int) -> Krylov:
        """The same at some of the positions, with room for `capacity` vectors."""
        part = Krylov.begin(self.density.rows(index), self.following[index], capacity)
        part.size, part.residual = self.size, self.residual[index]
        part.scale[:, 0] = self.scale[index, 0]
        part.following_dual = self.following_dual[index]
        part.vectors[: self.size] = self.vectors[: self.size, index]
        if part.duals is not part.vectors:
            part.duals[: self.size] = self.duals[: self.size, index]
        part.projected[: self.size] = self.projected[: self.size, index]
        return part

    def gram(self) -> Tensor:
        """V^T V in float64, (c, k, k)."""
        vectors, duals = (x[: self.size].transpose(0, 1) for x in (self.vectors, self.duals))
        return torch.bmm(vectors, duals.mT).double()

    def compressed(self, *, without_target: bool) -> Tensor:
        """V^T Q V in float64, (c, k, k), with or without the target's own term.

        A few tokens carry nearly all of q, and the eigenvalues that matter lie far below theirs:
        the most probable tokens are added up in float64 and leave float32 to the rest, whose
        round-off is relative to what is left of q.
        """
        x = self.projected[: self.size].transpose(0, 1)
        head, target = self.density.head, self.density.target
        if x.dtype == torch.float64 or x.shape[2] <= FEW:
            return _products(x.double(), target if without_target else None)
        index = torch.cat([head, target[:, None]], 1)
        spread = index[:, None].expand(-1, self.size, -1)
        kept = x.gather(2, spread)
        # The target may stand among the first ones too, and counts once.
        twice = (head == target[:, None])[:, None]
        wide = kept.double()
        wide[..., :-1].masked_fill_(twice, 0.0)
        if without_target:
            wide[..., -1] = 0.0
        x.scatter_(2, spread, 0.0)
        total = torch.bmm(x, x.mT).double() + torch.bmm(wide, wide.mT)
        x.scatter_(2, spread, kept)
        return total


def _products(x: Tensor, without: Tensor | None) -> Tensor:
    """X^T X, (c, k, k), with or without one token a position; `x` (c, k, m) is left as it was."""
    if without is None:
        return torch.bmm(x, x.mT)
    column = without[:, None, None].expand(-1, x.shape[1], 1)
    own = x.gather(2, column)
    x.scatter_(2, column, 0.0)
    total = torch.bmm(x, x.mT)
    x.scatter_(2, column, own)
    return total


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Inner products of rows, (c, 1)."""
    return torch.bmm(left[:, None], right[:, :, None])[:, :, 0]
