"""An orthogonal basis of span{e, Q e, Q^2 e, ...}, grown one product with Q at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.language.density import Density

HEAD = 16
"""Tokens whose part of H is added up in float64."""


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
    """1 / |v_a|^2, and 0 for a vector that is zero, (capacity, c)."""
    size: int
    following: Tensor
    """The next vector, (c, s), not yet multiplied; zero where the space is exhausted."""
    residual: Tensor
    """Its length before it was scaled: the next off-diagonal entry of the Lanczos matrix, (c,)."""

    @staticmethod
    def begin(density: Density, start: Tensor, capacity: int) -> Krylov:
        """An empty basis that will begin with `start`."""
        positions, tokens = density.root.shape
        vectors = start.new_empty(capacity, positions, density.width)
        plain = density.dual(start) is start
        return Krylov(
            density,
            vectors,
            vectors if plain else torch.empty_like(vectors),
            density.root.new_empty(capacity, positions, tokens),
            start.new_empty(capacity, positions),
            0,
            start,
            start.new_zeros(positions),
        )

    def grow(self, count: int) -> None:
        """Multiply until there are `count` vectors."""
        for _ in range(count - self.size):
            self._step()

    def _step(self) -> None:
        density, k = self.density, self.size
        vector = self.following
        self.vectors[k] = vector
        if self.duals is not self.vectors:
            self.duals[k] = density.dual(vector)
        x = density.project(vector, self.duals[k], self.projected[k])
        self.size = k + 1
        following = density.combine(x)
        vectors, duals, scale = (y[: k + 1] for y in (self.vectors, self.duals, self.scale))
        square = (vector * duals[k]).sum(-1)
        torch.reciprocal(torch.where(square > 0, square, torch.inf), out=scale[k])
        for _ in range(2):  # once is not enough where the new direction is short
            overlap = torch.einsum("kcs,cs->kc", duals, following) * scale
            following = following - torch.einsum("kc,kcs->cs", overlap, vectors)
        length = (following * density.dual(following)).sum(-1).clamp_min(0).sqrt()
        # |Q v| <= |B^T v|: below round-off of that, the space is invariant and the answer exact.
        noise = 16 * torch.finfo(x.dtype).eps * torch.linalg.vector_norm(x, dim=-1)
        self.residual = torch.where(length > noise, length, 0.0)
        inverse = torch.where(length > noise, length, torch.inf).reciprocal()
        self.following = density.rounded(following * inverse[:, None])

    def rows(self, index: Tensor, capacity: int) -> Krylov:
        """The same at some of the positions, with room for `capacity` vectors."""
        part = Krylov.begin(self.density.rows(index), self.following[index], capacity)
        part.size, part.residual = self.size, self.residual[index]
        part.scale[: self.size] = self.scale[: self.size, index]
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
        root, target = self.density.root, self.density.target
        if x.dtype == torch.float64:
            return _products(x, target if without_target else None)
        head = root.topk(min(HEAD, root.shape[1]), sorted=False).indices
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
    total = torch.bmm(x, x.mT)
    if without is None:
        return total
    own = x.gather(2, without[:, None, None].expand(-1, x.shape[1], 1))
    x.scatter_(2, without[:, None, None].expand_as(own), 0.0)
    total = torch.bmm(x, x.mT)
    x.scatter_(2, without[:, None, None].expand_as(own), own)
    return total
