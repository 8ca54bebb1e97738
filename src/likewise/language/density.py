"""The predictive density Q = sum_j q_j e_j e_j^T as an operator: Q is d x d and is never formed.

Everything is said through B^T v = sqrt(q) o (E v) and B x = E^T (sqrt(q) o x), so that Q = B B^T:
square roots of probabilities keep twice the range, and H = (B^T V)^T (B^T V) is never negative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from typing_extensions import override

HEAD = 16
"""Tokens whose part of V^T Q V is added up in float64."""


@dataclass
class UnitRows:
    """Token embeddings as they are stored, and what scales each row to unit length.

    The rows are not divided by their norms: in bfloat16 that would round them, and as they are,
    products with them are exact up to the accumulation in float32.
    """

    weight: Tensor
    """(n, d), in the format that products are computed in."""
    inverse_norm: Tensor
    """(n,), in the format that results are kept in: float32 or float64."""
    doubled: Tensor | None = None
    """The rows twice side by side, (n, 2 d), for vectors that are the sum of two terms."""

    @staticmethod
    def of(
        weight: Tensor, compute: torch.dtype, working: torch.dtype, *, doubled: bool = False
    ) -> UnitRows:
        """The rows of `weight` in the format `compute`, with the norms that they have there."""
        rows = weight.detach().to(compute)
        norm = torch.linalg.vector_norm(rows, dim=1, dtype=working)
        twice = torch.cat([rows, rows], 1) if doubled and compute != working else None
        return UnitRows(rows, norm.reciprocal(), twice)

    @property
    def working(self) -> torch.dtype:
        """Format of results."""
        return self.inverse_norm.dtype


class Density(ABC):
    """Q at c positions, over m tokens; a vector of R^d is held in s numbers."""

    root: Tensor
    """sqrt(q), (c, m)."""
    target: Tensor
    """Column of the target among the m tokens, (c,)."""
    head: Tensor
    """Columns of the most probable tokens, (c, HEAD) or fewer."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that hold one vector, s."""

    @abstractmethod
    def start(self) -> Tensor:
        """The target's embedding up to a factor, (c, s)."""

    @abstractmethod
    def probe(self, signs: Tensor) -> Tensor:
        """sum_j signs_j e_j / sqrt(m), whose outer product averages to that of the tokens."""

    @abstractmethod
    def dual(self, vectors: Tensor) -> Tensor:
        """What a vector is multiplied with in an inner product, (c, s)."""

    @abstractmethod
    def rounded(self, vectors: Tensor) -> Tensor:
        """The nearest vectors that products are exact for."""

    @abstractmethod
    def project(self, vectors: Tensor, dual: Tensor, out: Tensor) -> Tensor:
        """sqrt(q) o (E v), (c, m), into `out`."""

    @abstractmethod
    def combine(self, x: Tensor) -> Tensor:
        """E^T (sqrt(q) o x), (c, s)."""

    @abstractmethod
    def rows(self, index: Tensor) -> Density:
        """The same at some of the positions."""

    @abstractmethod
    def embedded(self, vectors: Tensor) -> Tensor:
        """Vectors (k, c, s) of this representation in R^d, (k, c, d)."""


class FullVocabulary(Density):
    """All n tokens; a vector is its d coordinates. A product with Q is two large products."""

    def __init__(self, embedding: UnitRows, log_q: Tensor, target: Tensor) -> None:
        self.embedding, self.target = embedding, target
        self.root = (log_q / 2).exp_()
        self.head = largest(self.root, HEAD)
        self._scaled = self.root * embedding.inverse_norm

    @property
    @override
    def width(self) -> int:
        return self.embedding.weight.shape[1]

    @override
    def start(self) -> Tensor:
        v = self.embedding.weight[self.target].to(self.embedding.working)
        # A power of two: the row stays exact in bfloat16 and comes close to unit length.
        exponent = self.embedding.inverse_norm[self.target].log2().round()
        return v * exponent.exp2()[:, None]

    @override
    def probe(self, signs: Tensor) -> Tensor:
        scaled = signs * (self.embedding.inverse_norm / signs.shape[1] ** 0.5)
        return product(scaled, self.embedding.weight, self.embedding.working)

    @override
    def dual(self, vectors: Tensor) -> Tensor:
        return vectors

    @override
    def rounded(self, vectors: Tensor) -> Tensor:
        return sum(_parts(vectors, self.embedding.weight.dtype), torch.zeros_like(vectors))

    @override
    def project(self, vectors: Tensor, dual: Tensor, out: Tensor) -> Tensor:
        parts = _parts(vectors, self.embedding.weight.dtype)
        right = self.embedding.weight
        if len(parts) == 2:
            twice = self.embedding.doubled
            right = torch.cat([right, right], 1) if twice is None else twice
        ev = product(torch.cat(parts, 1), right.mT, self.embedding.working)
        return torch.mul(ev, self._scaled, out=out)

    @override
    def combine(self, x: Tensor) -> Tensor:
        weight = self.embedding.weight
        scaled = torch.mul(x, self._scaled, out=torch.empty_like(x, dtype=weight.dtype))
        return product(scaled, weight, self.embedding.working)

    @override
    def rows(self, index: Tensor) -> FullVocabulary:
        part = object.__new__(FullVocabulary)
        part.embedding, part.target = self.embedding, self.target[index]
        part.root, part._scaled = self.root[index], self._scaled[index]
        part.head = self.head[index]
        return part

    @override
    def embedded(self, vectors: Tensor) -> Tensor:
        return vectors


class TopTokens(Density):
    """Some m tokens a position; a vector is its m coefficients over their unit embeddings.

    Inner products go through the Gram matrix G = E_m E_m^T, (c, m, m): once it is there, a step
    costs m^2 and does not see d.
    """

    def __init__(
        self, embedding: UnitRows, tokens: Tensor, log_q: Tensor, target: Tensor, memory: int
    ) -> None:
        self.embedding, self.tokens, self.target = embedding, tokens, target
        self.root = (log_q / 2).exp_()
        self.head = largest(self.root, HEAD)
        m, weight = tokens.shape[1], embedding.weight
        self.gram = log_q.new_empty(len(tokens), m, m)
        # The embeddings of all tokens of all positions at once would be the largest array of all.
        size = max(1, memory // (4 * m * weight.shape[1] * weight.element_size()))
        for part, out in zip(tokens.split(size), self.gram.split(size), strict=True):
            gathered = weight[part]
            out.copy_(batched_product(gathered, gathered.mT, embedding.working))
        scale = embedding.inverse_norm[tokens]
        self.gram.mul_(scale[:, :, None]).mul_(scale[:, None, :])

    @property
    @override
    def width(self) -> int:
        return self.tokens.shape[1]

    @override
    def start(self) -> Tensor:
        unit = torch.zeros_like(self.root)
        return unit.scatter_(1, self.target[:, None], 1.0)

    @override
    def probe(self, signs: Tensor) -> Tensor:
        return signs / signs.shape[1] ** 0.5

    @override
    def dual(self, vectors: Tensor) -> Tensor:
        return torch.bmm(self.gram, vectors[:, :, None])[:, :, 0]

    @override
    def rounded(self, vectors: Tensor) -> Tensor:
        return vectors

    @override
    def project(self, vectors: Tensor, dual: Tensor, out: Tensor) -> Tensor:
        return torch.mul(self.root, dual, out=out)

    @override
    def combine(self, x: Tensor) -> Tensor:
        return self.root * x

    @override
    def rows(self, index: Tensor) -> TopTokens:
        part = object.__new__(TopTokens)
        part.embedding, part.tokens = self.embedding, self.tokens[index]
        part.target, part.root = self.target[index], self.root[index]
        part.gram, part.head = self.gram[index], self.head[index]
        return part

    @override
    def embedded(self, vectors: Tensor) -> Tensor:
        gathered = self.embedding.weight[self.tokens].to(self.embedding.working)
        scaled = vectors.transpose(0, 1) * self.embedding.inverse_norm[self.tokens][:, None]
        return torch.bmm(scaled, gathered).transpose(0, 1)


def largest(x: Tensor, k: int) -> Tensor:
    """Columns of the k largest entries of every row, (c, k) or (c, m) if there are fewer.

    On CUDA, `topk` sorts whole rows when there are many. No row has one of its k largest entries
    outside of the k blocks with the largest maxima, so only these are sorted.
    """
    c, m = x.shape
    block = 32
    if m <= 4 * k * block:
        return x.topk(min(k, m), sorted=False).indices
    full = m // block * block
    blocks = x[:, :full].view(c, -1, block)
    chosen = blocks.amax(-1).topk(k, sorted=False).indices
    inside = torch.arange(block, device=x.device)
    columns = (chosen[..., None] * block + inside).view(c, -1)
    rest = torch.arange(full, m, device=x.device).expand(c, -1)
    columns = torch.cat([columns, rest], 1)
    return columns.gather(1, x.gather(1, columns).topk(k, sorted=False).indices)


def _parts(vectors: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """The vectors as a sum of terms in `dtype`: two where that is narrower, 16 bits in bfloat16.

    With 8 bits the directions of small eigenvalues, which the next vectors are made of, would
    drown in the round-off of the large ones.
    """
    if dtype == vectors.dtype:
        return [vectors]
    high = vectors.to(dtype)
    return [high, (vectors - high).to(dtype)]


def product(left: Tensor, right: Tensor, working: torch.dtype) -> Tensor:
    """left @ right, multiplied in the format of `right` and added up in `working`."""
    left = left.to(right.dtype)
    if right.dtype == working:
        return left @ right
    if _widening(right.device.type):
        return torch.mm(left, right, out_dtype=working)
    return left.to(working) @ right.to(working)


def product_into(left: Tensor, right: Tensor, out: Tensor) -> None:
    """The same into `out`, in whose format it is added up."""
    if _widening(right.device.type):
        torch.mm(left, right, out_dtype=out.dtype, out=out)
    else:
        torch.mm(left.to(out.dtype), right.to(out.dtype), out=out)


def batched_product(left: Tensor, right: Tensor, working: torch.dtype) -> Tensor:
    """The same for a batch of matrices."""
    if right.dtype == working:
        return torch.bmm(left, right)
    if _widening(right.device.type):
        return torch.bmm(left, right, out_dtype=working)
    return torch.bmm(left.to(working), right.to(working))


@lru_cache
def _widening(device_type: str) -> bool:
    """Whether half-precision factors can give a float32 product here (CUDA, PyTorch >= 2.8)."""
    if device_type != "cuda":
        return False
    try:
        x = torch.ones(16, 16, dtype=torch.bfloat16, device=device_type)
        wide = torch.mm(x, x, out_dtype=torch.float32)
        torch.mm(x, x, out_dtype=torch.float32, out=wide)
        torch.bmm(x[None], x[None], out_dtype=torch.float32)
    except (TypeError, RuntimeError, NotImplementedError):
        return False
    return True
