"""LARS: a step whose length follows the length of the weights, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from likewise.objectives.base import positive


class LARS(Optimizer):
    r"""Layer-wise adaptive rate scaling (You, Gitman, Ginsburg, 2017).

    For the weights w of a layer with gradient g, weight decay b, momentum m and learning rate a:

    .. math::
        \lambda = \eta\, \frac{\|w\|}{\|g\| + \beta \|w\| + \epsilon}, \quad
        v \leftarrow m v + \lambda\, (g + \beta w), \quad w \leftarrow w - \alpha v

    The paper (algorithm 1) has the learning rate inside the velocity, and so differs while the
    rate changes; here it is outside, as in :class:`torch.optim.SGD` and in the code of SimCLR,
    BYOL, Barlow Twins and VICReg. Those methods leave biases and norm parameters without
    adaptation and without weight decay: a group with ``adapt=False`` is plain SGD
    (:func:`likewise.optimizers.build_optimizer` makes the groups). Where ``w`` or ``g`` is zero,
    :math:`\lambda = 1`.

    Args:
        params: parameters, or groups of them.
        lr: the learning rate.
        momentum: m, from 0 to below 1.
        weight_decay: the coefficient of w in the step.
        trust_coefficient: :math:`\eta`.
        eps: keeps the ratio finite.
        nesterov: look ahead along the velocity: the step is :math:`\lambda (g + \beta w) + m v`.
        adapt: whether :math:`\lambda` is used, per group.

    >>> w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> optimizer = LARS([w], lr=1.0, momentum=0.0, trust_coefficient=0.1)
    >>> w.grad = torch.tensor([0.0, 2.0])
    >>> optimizer.step()  # |w| = 5, |g| = 2: a step of length 0.1 * 5
    >>> w.detach()
    tensor([3.0000, 3.5000])
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        *,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust_coefficient: float = 0.001,
        eps: float = 1e-8,
        nesterov: bool = False,
        adapt: bool = True,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "trust_coefficient": trust_coefficient,
            "eps": eps,
            "nesterov": nesterov,
            "adapt": adapt,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            _check(group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; `closure` computes the loss again, where given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            with_gradient = [p for p in group["params"] if p.grad is not None]
            if any(p.grad.is_sparse for p in with_gradient):
                raise ValueError("a gradient is sparse: LARS takes dense gradients only")
            for same_kind in _by_kind(with_gradient):
                self._step(group, same_kind)
        return loss

    def _step(self, group: dict[str, Any], weights: list[Tensor]) -> None:
        """One step for tensors of one device and type."""
        decay, momentum = group["weight_decay"], group["momentum"]
        gradients = [cast(Tensor, p.grad) for p in weights]
        ratios = _trust_ratios(weights, gradients, group) if group["adapt"] else None
        updates = list(torch._foreach_add(gradients, weights, alpha=decay)) if decay else gradients
        if ratios is not None:
            updates = list(torch._foreach_mul(updates, ratios))
        if momentum:
            fresh = [p for p in weights if "momentum_buffer" not in self.state[p]]
            for p in fresh:
                self.state[p]["momentum_buffer"] = torch.zeros_like(p)
            velocities = [self.state[p]["momentum_buffer"] for p in weights]
            torch._foreach_mul_(velocities, momentum)
            torch._foreach_add_(velocities, updates)
            if group["nesterov"]:
                updates = list(torch._foreach_add(updates, velocities, alpha=momentum))
            else:
                updates = velocities
        torch._foreach_add_(weights, updates, alpha=-group["lr"])


def _trust_ratios(
    weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]
) -> list[Tensor]:
    """Lambda of every layer, on the device: nothing is read back."""
    w = torch.stack(torch._foreach_norm(weights))
    g = torch.stack(torch._foreach_norm(gradients))
    ratio = group["trust_coefficient"] * w / (g + group["weight_decay"] * w + group["eps"])
    return list(torch.where((w > 0) & (g > 0), ratio, torch.ones_like(ratio)).unbind())


def _by_kind(parameters: list[Tensor]) -> list[list[Tensor]]:
    """Parameters of one device and type together: what a foreach operation is quick for."""
    kinds: dict[Any, list[Tensor]] = {}
    for p in parameters:
        kinds.setdefault((p.device, p.dtype), []).append(p)
    return list(kinds.values())


def _check(group: dict[str, Any]) -> None:
    positive("lr", group["lr"], zero=True)
    positive("weight_decay", group["weight_decay"], zero=True)
    positive("trust_coefficient", group["trust_coefficient"])
    positive("eps", group["eps"], zero=True)
    if not 0 <= group["momentum"] < 1:
        raise ValueError(f"momentum is {group['momentum']!r}: give a number from 0 to below 1")
    if group["nesterov"] and not group["momentum"]:
        raise ValueError("nesterov is True and momentum is 0: give a momentum, such as 0.9")
