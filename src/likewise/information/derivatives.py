"""Gradients written out: right at repeated eigenvalues, and in full precision.

Autograd's own backward of `eigh` divides by differences of eigenvalues, which is NaN at I / d, and
its matrix products fall to half precision when `backward()` is called under autocast. The rules
below do neither. They are differentiable once; asking for a second derivative raises.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.information.precision import without_autocast


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


def spectral_function(a: Tensor, vectors: Tensor, values: Tensor, differences: Tensor) -> Tensor:
    """Return V diag(values) V^T as a function of `a`, given its divided differences."""
    result: Tensor = _SpectralFunction.apply(a, vectors, values, differences)
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
        saved = ctx.saved_tensors  # read once: under checkpointing it cannot be read again
        inputs, gradients = saved[: len(saved) // 2], saved[len(saved) // 2 :]
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
