"""The Lie generator of an augmentation, and how much of it the projector kills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from likewise.diagnostics.displacement import kernel_of, killed_share
from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import one_of, pair_of, wide_chunks
from likewise.diagnostics.moments import exp_entropy
from likewise.graph.arrays import Array, as_tensor, in_kind, is_numpy
from likewise.information.precision import rounding


@dataclass(frozen=True)
class LieGenerator(Figures):
    """What :func:`lie_generator` found.

    Attributes:
        generator: G (d_enc, d_enc) with h2 = exp(epsilon G) h1, as far as that fits.
        explained: 1 - sum |h2 - h1 - epsilon G m|^2 / sum |h2 - h1|^2.
        effective_rank: of G G^T.
        killed: |(I - P) G|_F^2 / |G|_F^2, 1 where W^T G = 0: the projector is then invariant to
            the whole group.
        killed_on_data: the same for the moves G m that data really make.
        chance: 1 - rank(W) / d_enc, what a projector kills of a random generator.
    """

    generator: Any
    explained: float
    effective_rank: float
    killed: float
    killed_on_data: float
    chance: float


@torch.no_grad()
def lie_generator(
    h1: Array,
    h2: Array,
    strength: Array | float | None = None,
    *,
    weight: Array | None = None,
    ridge: float = 0.0,
    method: Literal["midpoint", "forward"] = "midpoint",
) -> LieGenerator:
    r"""The generator of an augmentation in the encoder's space, by least squares.

    .. math:: h_i^{(2)} = \exp(\epsilon_i G)\, h_i^{(1)}, \qquad
        G = \arg\min_G \sum_i |h_i^{(2)} - h_i^{(1)} - \epsilon_i G m_i|^2

    m is h1 in the "forward" form, the linearisation of appendix B, which is off by O(epsilon), or
    (h1 + h2) / 2 in the "midpoint" form, which is off by O(epsilon^2).

    Paper: geometry, equation 7, equation 12 and proposition 4.3. Errata: W^T G = 0 suffices for an
    invariant projector (for every strength, without conditions on powers of G), and is not
    necessary.

    Args:
        h1, h2: encoder outputs before and after (n, d_enc); n >= d_enc for a unique answer.
        strength: epsilon_i (n,), or one number; default 1 for all, which gives the mean generator.
        weight: (d_proj, d_enc) of a linear projector; without it what is killed is undefined.
        ridge: added to the second moment of epsilon m, as a share of its mean eigenvalue.
        method: "midpoint" or "forward".

    >>> h = torch.eye(2, dtype=torch.float64)
    >>> turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    >>> moved = h @ torch.linalg.matrix_exp(0.01 * turn).T
    >>> found = lie_generator(h, moved, 0.01)
    >>> (found.generator - turn).abs().max() < 1e-4
    tensor(True)
    """
    one, two = pair_of(h1, h2, "h1", "h2")
    one_of("method", method, ("midpoint", "forward"))
    if ridge < 0:
        raise ValueError(f"ridge is {ridge}: give a number from 0")
    n, dim = one.shape
    steps, notes = _strengths(strength, n, one.device), []
    if strength is None:
        notes.append("no strength is given: the generator is that of the mean strength, 1")
    if n < dim:
        notes.append(f"{n} samples in {dim} dimensions: the smallest of many generators is given")
    cross = torch.zeros(dim, dim, dtype=torch.float64, device=one.device)
    gram = torch.zeros_like(cross)
    energy = 0.0
    for (start, a), (_, b) in zip(wide_chunks(one), wide_chunks(two), strict=True):
        move = b - a
        step = steps[start : start + len(a), None]
        middle = step * ((a + b) / 2 if method == "midpoint" else a)
        cross.addmm_(move.T, middle)
        gram.addmm_(middle.T, middle)
        energy += float(move.square().sum())
    if energy == 0:
        raise ValueError("h1 and h2 are equal: nothing moves, so that there is no generator")
    if float(gram.trace()) == 0:
        raise ValueError("strength is 0 everywhere: give the strengths that were drawn")
    gram.diagonal().add_(ridge * float(gram.trace()) / dim)
    floor = max(n, dim) * rounding(torch.float64)
    inverse = torch.linalg.pinv(gram, hermitian=True, rtol=floor)
    generator = cross @ inverse
    fitted = 2 * float((generator * cross).sum()) - float(((generator @ gram) * generator).sum())
    square = generator @ generator.T
    killed = on_data = chance = UNDEFINED
    if weight is None:
        notes.append("no weight is given: what the projector kills is undefined")
    else:
        kernel = kernel_of(weight, dim, one.device)
        killed = killed_share(square, kernel)
        on_data = killed_share(generator @ gram @ generator.T, kernel)
        chance = kernel.shape[1] / dim
    return LieGenerator(
        tuple(notes),
        in_kind(generator, is_numpy(h1)),
        fitted / energy,
        exp_entropy(torch.linalg.svdvals(generator).square()),
        killed,
        on_data,
        chance,
    )


def _strengths(strength: Array | float | None, n: int, device: torch.device) -> Tensor:
    if strength is None:
        return torch.ones(n, dtype=torch.float64, device=device)
    steps = as_tensor(strength).detach().to(device, torch.float64)
    if steps.ndim == 0:
        steps = steps.expand(n)
    if steps.shape != (n,) or not bool(torch.isfinite(steps).all()):
        raise ValueError(
            f"strength has shape {tuple(steps.shape)} for {n} samples: give one finite number per "
            "sample, or a single one"
        )
    return steps
