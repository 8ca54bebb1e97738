"""Eigenvalues that know their round-off, and gradients that survive repeated eigenvalues.

The convention of the whole room: an eigenvalue of size at most `floor` = rounding(dtype) |A|_F is
zero to working precision. Below -floor the matrix is not positive semi-definite and an error is
raised. Where a gradient would be infinite at a zero eigenvalue, the eigenvalue is replaced by
`floor` in the gradient only. Backward passes are written out, so that they run in full precision
also when `backward()` is called under autocast; asking for a second derivative raises.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.information.precision import rounding, without_autocast


class Spectrum(NamedTuple):
    """A = vectors diag(values) vectors^T, ascending, without a gradient."""

    values: Tensor  # (..., d), not negative, ridge included
    vectors: Tensor  # (..., d, d), in columns
    floor: Tensor  # (..., 1), what counts as zero; with a ridge, smaller than every eigenvalue

    @property
    def kernel(self) -> Tensor:
        """Which eigenvalues are zero to working precision, (..., d)."""
        return self.values <= self.floor

    @property
    def floored(self) -> Tensor:
        """The eigenvalues, none below `floor`: what gradients use."""
        tiny = torch.finfo(self.values.dtype).tiny
        return torch.maximum(self.values, self.floor).clamp_min(tiny)

    def compose(self, values: Tensor) -> Tensor:
        """Return vectors diag(values) vectors^T."""
        return (self.vectors * values[..., None, :]) @ self.vectors.mT


def round_off(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return what counts as zero among eigenvalues or singular values (..., d), as (..., 1)."""
    norm: Tensor = torch.linalg.vector_norm(values.detach(), dim=-1, keepdim=True)
    return rounding(dtype) * norm


def check_semidefinite(values: Tensor, floor: Tensor, name: str, ridge: float = 0.0) -> None:
    """Raise if an eigenvalue lies below round-off and the ridge does not lift it above."""
    if bool(((values < -floor) & (values + ridge <= floor)).any()):
        given = f" (ridge={ridge:g} is too small)" if ridge else ""
        raise ValueError(
            f"{name} must be positive semi-definite, got the eigenvalue "
            f"{float(values.min()):.3g}{given}; centre the rows before forming a "
            f"covariance, form it in {values.dtype} rather than casting it, or add a ridge above "
            f"{-float(values.min()):.3g} to {name}."
        )


def decompose(a: Tensor, name: str, dtype: torch.dtype, ridge: float = 0.0) -> Spectrum:
    """Eigen-decompose the symmetric A + ridge I, or raise if it is not positive semi-definite.

    The ridge is added to the eigenvalues, after round-off below zero has been cut off, so that
    it is not lost in the last digit of a large matrix.
    """
    values, vectors = torch.linalg.eigh(a.detach())
    floor = round_off(values, dtype)
    check_semidefinite(values, floor, name, ridge)
    values = torch.where(values.abs() <= floor, values.clamp_min(0), values) + ridge
    return Spectrum(values, vectors, torch.zeros_like(floor) if ridge else floor)


def log_divided_differences(values: Tensor) -> Tensor:
    """L_ij = (log l_i - log l_j) / (l_i - l_j), and 1 / l_i where the two are equal.

    Near the diagonal it is 2 atanh(x) / x / (l_i + l_j) with x = (l_i - l_j) / (l_i + l_j), which
    has no cancellation.
    """
    left, right = values[..., :, None], values[..., None, :]
    x = (left - right) / (left + right)
    near = x.abs() < 0.5
    small = x.abs() < torch.finfo(values.dtype).eps
    ratio = torch.where(
        small, 1.0, torch.atanh(torch.where(near, x, 0.5)) / torch.where(small, 1.0, x)
    )
    apart = (left.log() - right.log()) / torch.where(near, 1.0, left - right)
    return torch.where(near, 2 * ratio / (left + right), apart)


class _Once(torch.autograd.Function):
    """A gradient that depends on `sources` in a way that is not written out."""

    @staticmethod
    def forward(gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(
            "likewise.information is differentiable once, and a second derivative was asked for; "
            "use method='taylor', or detach the gradient."
        )


def once(gradient: Tensor, *sources: Tensor) -> Tensor:
    """Return `gradient`, marked so that differentiating it raises instead of giving zero."""
    result: Tensor = _Once.apply(gradient, *sources)
    return result


class _SpectralFunction(torch.autograd.Function):
    """V f(l) V^T, with the Daleckii-Krein derivative V [(V^T G V) o L] V^T."""

    @staticmethod
    def forward(a: Tensor, vectors: Tensor, values: Tensor, differences: Tensor) -> Tensor:
        return (vectors * values[..., None, :]) @ vectors.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        a, vectors, _, differences = inputs
        ctx.save_for_backward(a, vectors, differences)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        a, vectors, differences = ctx.saved_tensors
        gradient = daleckii_krein(upstream.detach(), vectors, differences)
        return once(gradient, upstream, a), None, None, None


@without_autocast
def daleckii_krein(direction: Tensor, vectors: Tensor, differences: Tensor) -> Tensor:
    """Derivative of a function of a symmetric matrix along `direction`; it is its own adjoint."""
    inner = vectors.mT @ direction @ vectors
    return vectors @ (inner * differences) @ vectors.mT


def spectral_function(a: Tensor, spectrum: Spectrum, values: Tensor, differences: Tensor) -> Tensor:
    """Return V diag(values) V^T as a function of `a`, given its divided differences."""
    result: Tensor = _SpectralFunction.apply(a, spectrum.vectors, values, differences)
    return result


class _Eigenvalues(torch.autograd.Function):
    """Eigenvalues of a symmetric matrix; V diag(g) V^T does not mind repeated ones."""

    @staticmethod
    def forward(a: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(a)
        return values, vectors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, unused: Tensor) -> Tensor:
        a, vectors = ctx.saved_tensors
        return once(_scaled_product(vectors, upstream.detach(), vectors), upstream, a)


class _SingularValues(torch.autograd.Function):
    """Singular values; U diag(g) V^T does not mind repeated ones."""

    @staticmethod
    def forward(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        left, values, right = torch.linalg.svd(z, full_matrices=False)
        return values, left, right

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs, *output[1:])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *unused: Tensor) -> Tensor:
        z, left, right = ctx.saved_tensors
        return once(_scaled_product(left, upstream.detach(), right.mT), upstream, z)


@without_autocast
def _scaled_product(left: Tensor, values: Tensor, right: Tensor) -> Tensor:
    return (left * values[..., None, :]) @ right.mT


def eigenvalues(a: Tensor) -> Tensor:
    """Eigenvalues (..., d) of symmetric matrices, ascending."""
    result: Tensor = _Eigenvalues.apply(a)[0] if needs_gradient(a) else torch.linalg.eigvalsh(a)
    return result


def singular_values(z: Tensor) -> Tensor:
    """Singular values (..., min(n, d)), descending."""
    tall = z if z.shape[-2] >= z.shape[-1] else z.mT  # less round-off than in a wide matrix
    if needs_gradient(z):
        tall = _SingularValues.apply(tall)[0]
        return tall
    return torch.linalg.svdvals(tall)


def needs_gradient(*tensors: Tensor) -> bool:
    """Whether somebody may ask for a gradient."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


class _KnownGradient(torch.autograd.Function):
    """A value whose gradients are known in closed form."""

    @staticmethod
    def forward(value: Tensor, *inputs_and_gradients: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        count = len(ctx.saved_tensors) // 2
        inputs, gradients = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        scaled = tuple(
            upstream.detach().reshape(upstream.shape + (1,) * (x.ndim - upstream.ndim)) * x
            for x in gradients
        )
        return (None, *(once(x, upstream, *inputs) for x in scaled), *(None for _ in scaled))


def with_gradient(value: Tensor, *pairs: tuple[Tensor, Tensor]) -> Tensor:
    """Return `value` (...) as a function of each input (..., *), given its gradient (..., *)."""
    inputs, gradients = zip(*pairs, strict=True)
    result: Tensor = _KnownGradient.apply(value.detach(), *inputs, *gradients)
    return result
