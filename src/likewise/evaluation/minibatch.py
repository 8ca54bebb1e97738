"""A linear classifier trained on minibatches of frozen embeddings, as the papers do it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from likewise.pairwise.products import matmul_precision


def train_linear(
    rows: Tensor,
    labels: Tensor,
    n_classes: int,
    *,
    optimizer: Literal["sgd", "lars"],
    epochs: int,
    learning_rate: float,
    batch_size: int,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """Minimise the cross-entropy by SGD or LARS with momentum and a cosine schedule to 0.

    The step size is learning_rate * batch_size / 256. Weights start from a normal distribution of
    deviation 0.01. The gradient is written out, and nothing is read back from the device until
    the end.

    Returns:
        weight (n_classes, d) and offset (n_classes,).

    >>> rows = torch.tensor([[-1.0], [-0.5], [0.5], [1.0]])
    >>> weight, _ = train_linear(
    ...     rows,
    ...     torch.tensor([0, 0, 1, 1]),
    ...     2,
    ...     optimizer="sgd",
    ...     epochs=20,
    ...     learning_rate=0.1,
    ...     batch_size=2,
    ... )
    >>> bool(weight[1] > weight[0])
    True
    """
    n, device = len(rows), rows.device
    generator = torch.Generator(device).manual_seed(seed)
    start = 0.01 * torch.randn(n_classes, rows.shape[1], generator=generator, device=device)
    # The offset is the weight of a column of ones.
    weight = torch.cat([start, start.new_zeros(n_classes, 1)], dim=1)
    rows = torch.cat([rows, rows.new_ones(n, 1)], dim=1)
    batch_size = min(batch_size, n)
    descend = (_sgd if optimizer == "sgd" else _lars)(weight, momentum, weight_decay)
    minus_one = -rows.new_ones(batch_size, 1)
    step, steps = 0, epochs * math.ceil(n / batch_size)
    with matmul_precision(device, "ieee"):
        for _ in range(epochs):
            order = torch.randperm(n, generator=generator, device=device)
            xs, ys = rows[order].split(batch_size), labels[order][:, None].split(batch_size)
            for x, y in zip(xs, ys, strict=True):
                cosine = (1 + math.cos(math.pi * step / steps)) / 2
                residual = (x @ weight.T).softmax(dim=1).scatter_add_(1, y, minus_one[: len(y)])
                descend(residual, x, cosine * learning_rate * batch_size / 256)
                step += 1
    if not bool(torch.isfinite(weight).all()):
        raise ValueError(
            f"learning_rate is {learning_rate}: training has diverged; give a smaller one"
        )
    return weight[:, :-1], weight[:, -1]


Descent = Callable[[Tensor, Tensor, float], None]
"""Takes a step, given what the probabilities are beside the labels, the rows, and its size."""


def _sgd(weight: Tensor, momentum: float, weight_decay: float) -> Descent:
    """As torch.optim.SGD, in two operations: most of its time would be spent in between."""
    velocity = torch.zeros_like(weight)

    def descend(residual: Tensor, x: Tensor, rate: float) -> None:
        velocity.addmm_(residual.T, x, beta=momentum, alpha=1 / len(x))
        if weight_decay:
            velocity.add_(weight, alpha=weight_decay)
        weight.add_(velocity, alpha=-rate)

    return descend


def _lars(weight: Tensor, momentum: float, weight_decay: float) -> Descent:
    from likewise.optimizers import LARS

    slopes, offset = weight[:, :-1], weight[:, -1]
    # An offset that starts at 0 has no length to follow: it takes plain steps.
    groups = [{"params": [slopes]}, {"params": [offset], "adapt": False, "weight_decay": 0.0}]
    optimizer = LARS(groups, lr=0.0, momentum=momentum, weight_decay=weight_decay)

    def descend(residual: Tensor, x: Tensor, rate: float) -> None:
        gradient = residual.T @ x / len(x)
        slopes.grad, offset.grad = gradient[:, :-1], gradient[:, -1]
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()

    return descend
