"""An optimizer by name, with the groups that self-supervised training wants."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import nn
from torch.nn import Parameter
from torch.optim import Optimizer

from likewise.objectives.base import positive
from likewise.optimizers.lars import LARS

OptimizerName = Literal["sgd", "lars", "adamw"]
OPTIMIZERS = ("sgd", "lars", "adamw")


def build_optimizer(
    name: OptimizerName,
    parameters: nn.Module | Iterable[nn.Module] | Iterable[tuple[str, Parameter]],
    *,
    lr: float,
    weight_decay: float = 0.0,
    momentum: float = 0.9,
    nesterov: bool = False,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float | None = None,
    trust_coefficient: float = 0.001,
    exclude_from_decay: bool = True,
) -> Optimizer:
    """An optimizer by name over all parameters that learn.

    On a GPU, SGD and AdamW are the fused ones (one kernel for many tensors). Their state dict
    restores them exactly.

    Args:
        name: "sgd", "lars" or "adamw".
        parameters: a module, several, or pairs (name, parameter). Frozen parameters are left out,
            and one that appears twice is taken once.
        lr: the learning rate.
        weight_decay: of every parameter that is not excluded.
        momentum: of SGD and LARS.
        nesterov: of SGD and LARS.
        betas: of AdamW.
        eps: of LARS (1e-8) and AdamW (1e-8).
        trust_coefficient: of LARS.
        exclude_from_decay: biases and parameters of one dimension (those of norms) get no weight
            decay and, under LARS, no adaptation; False treats all parameters alike.

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    >>> optimizer = build_optimizer("lars", model, lr=0.2, weight_decay=1e-6)
    >>> [(len(g["params"]), g["weight_decay"], g["adapt"]) for g in optimizer.param_groups]
    [(1, 1e-06, True), (3, 0.0, False)]
    """
    if name not in OPTIMIZERS:
        near = difflib.get_close_matches(str(name).lower(), OPTIMIZERS, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"optimizer is {name!r}: give 'sgd', 'lars' or 'adamw'{hint}")
    positive("lr", lr)
    positive("weight_decay", weight_decay, zero=True)
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum is {momentum!r}: give a number from 0 to below 1")
    if nesterov and not momentum:
        raise ValueError("nesterov is True and momentum is 0: give a momentum, such as 0.9")
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas is {betas!r}: give two numbers from 0 to below 1")
    eps = 1e-8 if eps is None else positive("eps", eps, zero=True)
    groups = _groups(parameters, weight_decay, exclude_from_decay)
    if name == "lars":
        return LARS(
            groups,
            lr,
            momentum=momentum,
            nesterov=nesterov,
            trust_coefficient=trust_coefficient,
            eps=eps,
        )
    for group in groups:
        del group["adapt"]
    fused = all(p.is_cuda for group in groups for p in group["params"]) or None
    if name == "sgd":
        return torch.optim.SGD(groups, lr, momentum=momentum, nesterov=nesterov, fused=fused)
    return torch.optim.AdamW(groups, lr, betas=betas, eps=eps, fused=fused)


def _groups(parameters: Any, weight_decay: float, exclude: bool) -> list[dict[str, Any]]:
    """Parameters that decay, and those that do not; empty groups are left out."""
    decayed: list[Parameter] = []
    free: list[Parameter] = []
    seen: set[int] = set()
    for name, parameter in _named(parameters):
        if not parameter.requires_grad or id(parameter) in seen:
            continue
        seen.add(id(parameter))
        is_free = exclude and (parameter.ndim <= 1 or name.split(".")[-1] == "bias")
        (free if is_free else decayed).append(parameter)
    if not seen:
        raise ValueError("parameters has none that learns: give a module with requires_grad=True")
    groups = [
        {"params": decayed, "weight_decay": weight_decay, "adapt": True},
        {"params": free, "weight_decay": 0.0, "adapt": False},
    ]
    return [group for group in groups if group["params"]]


def _named(parameters: Any) -> Iterable[tuple[str, Parameter]]:
    if isinstance(parameters, nn.Module):
        yield from parameters.named_parameters()
        return
    for item in parameters:
        if isinstance(item, nn.Module):
            yield from item.named_parameters()
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], nn.Parameter):
            yield item
        else:
            raise ValueError(
                f"parameters holds a {type(item).__name__}: give modules, or pairs "
                "(name, parameter) as of model.named_parameters()"
            )
