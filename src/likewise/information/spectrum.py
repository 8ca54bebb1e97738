"""Eigenvalues that know their round-off.

The convention of the whole room: an eigenvalue of size at most `floor` = rounding(dtype) |A|_F is
zero to working precision. Below -floor the matrix is not positive semi-definite and an error is
raised. Where a gradient would be infinite at a zero eigenvalue, the eigenvalue is replaced by
`floor` in the gradient only.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from likewise.information.precision import rounding, wide


class Spectrum(NamedTuple):
    """A = vectors diag(values) vectors^T, ascending, without a gradient."""

    values: Tensor  # (..., d), none negative, ridge included
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
    norm = torch.linalg.vector_norm(wide(values.detach()), dim=-1, keepdim=True)
    return rounding(dtype) * norm.to(values.dtype)


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
