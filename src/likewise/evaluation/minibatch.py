"""A linear classifier trained on minibatches of frozen embeddings, as the papers do it."""

from __future__ import annotations

import math
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
    weight = 0.01 * torch.randn(n_classes, rows.shape[1], generator=generator, device=device)
    offset = torch.zeros(n_classes, device=device)
    batch_size = min(batch_size, n)
    highest = learning_rate * batch_size / 256
    descent = _optimizer(optimizer, weight, offset, highest, momentum, weight_decay)
    step, steps = 0, epochs * math.ceil(n / batch_size)
    with matmul_precision(device, "ieee"):
        for _ in range(epochs):
            order = torch.randperm(n, generator=generator, device=device)
            for x, y in zip(
                rows[order].split(batch_size), labels[order].split(batch_size), strict=True
            ):
                residual = torch.addmm(offset, x, weight.T).softmax(dim=1)
                ones = residual.new_ones(1, 1).expand(len(y), 1)
                residual.scatter_add_(1, y[:, None], -ones).div_(len(y))
                weight.grad, offset.grad = residual.T @ x, residual.sum(dim=0)
                for group in descent.param_groups:
                    group["lr"] = highest * (1 + math.cos(math.pi * step / steps)) / 2
                descent.step()
                step += 1
    if not bool(torch.isfinite(weight).all() & torch.isfinite(offset).all()):
        raise ValueError(
            f"learning_rate is {learning_rate}: training has diverged; give a smaller one"
        )
    return weight, offset


def _optimizer(
    name: str, weight: Tensor, offset: Tensor, lr: float, momentum: float, weight_decay: float
) -> torch.optim.Optimizer:
    if name == "sgd":
        return torch.optim.SGD([weight, offset], lr, momentum=momentum, weight_decay=weight_decay)
    from likewise.optimizers import LARS

    # An offset that starts at 0 has no length to follow: it takes plain steps.
    groups = [{"params": [weight]}, {"params": [offset], "adapt": False, "weight_decay": 0.0}]
    return LARS(groups, lr, momentum=momentum, weight_decay=weight_decay)
