"""Sums of squared entries of a product A^T B, through the smaller of its two Gram forms.

    |A^T B|_F^2 = <A A^T, B B^T>

A covariance of d columns over n < d rows needs no d x d matrix, and similarities of n rows in
d < n dimensions no n x n matrix. The gradient reuses the matrix that the value was read from.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.information.precision import without_autocast


def product_energy(a: Tensor, b: Tensor | None = None, *, diagonal: bool = True) -> Tensor:
    r""":math:`\sum_{kl} (A^\top B)_{kl}^2`, or the sum over :math:`k \ne l` alone.

    Args:
        a: (m, p).
        b: (m, p); default: `a` itself (half the work).
        diagonal: whether k = l counts.

    >>> a = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    >>> product_energy(a), product_energy(a, diagonal=False)
    (tensor(34.), tensor(8.))
    """
    energy: Tensor = _ProductEnergy.apply(a, b, diagonal)
    return energy


class _ProductEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor | None, diagonal: bool) -> Tensor:
        rows, columns = a.shape
        other = a if b is None else b
        ctx.diagonal = diagonal
        # Multiplications forwards and backwards: 2 m p (m or p) from one matrix, 4 m^2 p against
        # 3 m p^2 from two.
        ctx.outer = rows < columns if b is None else 4 * rows < 3 * columns
        if not ctx.outer:
            product = a.T @ other
            if not diagonal:
                product.fill_diagonal_(0)
            ctx.save_for_backward(a, b, product)
            return product.square().sum()
        left = a @ a.T
        right = left if b is None else b @ b.T
        energy = left.square().sum() if b is None else (left * right).sum()
        own = None
        if not diagonal:
            own = (a * other).sum(dim=0)
            energy = energy - own.square().sum()
        ctx.save_for_backward(a, b, left, right, own)
        return energy

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *gradients: Any) -> Any:
        a, b, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Asked for a second derivative: what was kept is no function of the input any more.
            return *_plain_gradients(a, b, ctx.diagonal, gradients[0]), None
        scale = (4 if b is None else 2) * gradients[0]
        needs_a, needs_b = ctx.needs_input_grad[:2]
        other = a if b is None else b
        # The scale goes into the smaller matrix.
        if not ctx.outer:
            product = kept[0] * scale
            da = _times(other, product.T) if needs_a else None
            db = _times(a, product) if needs_b else None
            return da, db, None
        left, right, own = kept
        da = _transposed_times(a, right * scale) if needs_a else None
        db = _transposed_times(b, left * scale) if needs_b else None
        if own is not None:
            own = own * scale
            if da is not None:
                da.addcmul_(other, own, value=-1)
            if db is not None:
                db.addcmul_(a, own, value=-1)
        return da, db, None


def _times(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, laid out in memory as `a` is: the gradient of z.T is added to others of z."""
    return a @ b if a.stride(1) == 1 else (b.T @ a.T).T


def _transposed_times(a: Tensor, symmetric: Tensor) -> Tensor:
    """symmetric @ a, laid out in memory as `a` is."""
    return symmetric @ a if a.stride(1) == 1 else (a.T @ symmetric).T


def _plain_gradients(
    a: Tensor, b: Tensor | None, diagonal: bool, gradient: Tensor
) -> tuple[Tensor, Tensor | None]:
    other = a if b is None else b
    product = a.T @ other
    if not diagonal:
        product = product - torch.diag(product.diagonal())
    scale = (4 if b is None else 2) * gradient
    return scale * (other @ product.T), None if b is None else scale * (a @ product)
