"""The learning rate: from the batch size, and over the steps of a run."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from likewise.objectives.base import one_of, positive


def scaled_lr(
    base: float,
    batch_size: int,
    *,
    rule: Literal["linear", "sqrt"] = "linear",
    reference: int = 256,
) -> float:
    r"""The learning rate for a batch size, from the one for a batch of 256.

    .. math:: \text{base} \cdot \frac{B}{256} \quad\text{or}\quad
        \text{base} \cdot \sqrt{\frac{B}{256}}

    Linear: Goyal et al. (2017), and SimCLR, BYOL, VICReg. Square root: SimCLR appendix B.1,
    whose 0.075 sqrt(B) is ``scaled_lr(1.2, B, rule="sqrt")``.

    Args:
        base: the learning rate at `reference` samples.
        batch_size: samples (not views) in a step, over all ranks.
        rule: "linear" or "sqrt".
        reference: the batch size that `base` is for.

    >>> scaled_lr(0.3, 4096)
    4.8
    >>> scaled_lr(1.2, 1024, rule="sqrt")
    2.4
    """
    positive("base", base)
    positive("batch_size", batch_size)
    positive("reference", reference)
    one_of("rule", rule, ("linear", "sqrt"))
    ratio = batch_size / reference
    return base * (ratio if rule == "linear" else math.sqrt(ratio))


def warmup_cosine(
    step: int, steps: int, *, warmup: int = 0, start: float = 0.0, end: float = 0.0
) -> float:
    r"""The factor of the learning rate after `step` steps: a line up to 1, half a cosine down.

    .. math::
        f(k) = \begin{cases}
            s + (1 - s)\, k / w & k < w \\
            e + (1 - e)\, \frac12 \big(1 + \cos \pi \frac{k - w}{K - w}\big) & k \ge w
        \end{cases}

    With s = `start`, e = `end`, w = `warmup`, K = `steps`. Beyond the last step it stays at `end`.

    Args:
        step: how many steps have been taken, k.
        steps: how many there are, K.
        warmup: how many of them rise, w.
        start: the factor at step 0, where there is a warm-up.
        end: the factor at the last step.

    >>> [warmup_cosine(k, 110, warmup=10) for k in (0, 5, 10, 60, 110)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    _check_schedule(steps, warmup, start, end)
    if step < 0:
        raise ValueError(f"step is {step!r}: count from 0")
    if step < warmup:
        return start + (1 - start) * step / warmup
    if step >= steps:
        return end
    return end + (1 - end) * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def warmup_cosine_schedule(
    optimizer: Optimizer, steps: int, *, warmup: int = 0, start: float = 0.0, end: float = 0.0
) -> LambdaLR:
    """A scheduler that gives every group its learning rate times :func:`warmup_cosine`.

    Call ``scheduler.step()`` after every optimizer step. The arguments are those of
    :func:`warmup_cosine`.

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    >>> scheduler = warmup_cosine_schedule(optimizer, steps=10, warmup=2)
    >>> scheduler.get_last_lr()
    [0.0]
    >>> optimizer.step(), scheduler.step(), scheduler.get_last_lr()
    (None, None, [1.0])
    """
    _check_schedule(steps, warmup, start, end)
    factor = partial(warmup_cosine, steps=steps, warmup=warmup, start=start, end=end)
    return LambdaLR(optimizer, factor)


def _check_schedule(steps: int, warmup: int, start: float, end: float) -> None:
    if steps < 1:
        raise ValueError(f"steps is {steps!r}: give the number of steps of the run, at least 1")
    if not 0 <= warmup <= steps:
        raise ValueError(
            f"warmup is {warmup!r}: give a number of steps from 0 to the {steps} of the run"
        )
    for name, value in (("start", start), ("end", end)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value!r}: give a factor from 0 to 1")
