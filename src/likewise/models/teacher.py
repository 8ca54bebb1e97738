"""A slow copy of the student: the momentum teacher of MoCo and BYOL."""

from __future__ import annotations

import copy
import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from likewise.objectives.base import one_of


class MomentumTeacher(nn.Module):
    r"""A copy of a module whose parameters follow it slowly.

    .. math:: \theta_\text{teacher} \leftarrow m\, \theta_\text{teacher}
        + (1 - m)\, \theta_\text{student}

    (MoCo eq. 2, BYOL eq. 1.) No gradient flows: parameters have ``requires_grad = False`` and
    the forward runs without gradients.

    Args:
        student: the module to copy, as it is when the teacher is made.
        buffers: "own" (MoCo, BYOL): running statistics come from the teacher's own forward passes,
            which run in train mode and normalise by their own batch, so call ``train()`` on both.
            "copy": they are copied from the student at every update, for a teacher that is used
            in eval mode.

    >>> student = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.zeros_(student.weight)
    >>> teacher = MomentumTeacher(student)
    >>> _ = nn.init.ones_(student.weight)
    >>> teacher.update(student, momentum=0.75)
    >>> teacher(torch.ones(1, 2))
    tensor([[0.5000]])
    """

    def __init__(self, student: nn.Module, *, buffers: Literal["own", "copy"] = "own") -> None:
        super().__init__()
        self.buffer_rule = one_of("buffers", buffers, ("own", "copy"))
        self.module = copy.deepcopy(student)
        self.module.requires_grad_(False)
        self.module.zero_grad(set_to_none=True)

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the copied module gives, without gradients."""
        return self.module(*args, **kwargs)

    @torch.no_grad()
    def update(self, student: nn.Module, momentum: float) -> None:
        """Move towards `student`, whose parameters are matched by name.

        Args:
            student: the module that was copied, not its DDP or compiled wrapper.
            momentum: the share that the teacher keeps: 1 changes nothing, 0 copies.
        """
        if not 0 <= momentum <= 1:  # NaN is refused, too
            raise ValueError(
                f"momentum is {momentum!r}: give a number from 0 to 1 (BYOL starts at 0.996)"
            )
        own, other = _matched(
            dict(self.module.named_parameters()), dict(student.named_parameters())
        )
        if own:
            torch._foreach_lerp_(own, other, 1 - momentum)
        if self.buffer_rule == "copy":
            own, other = _matched(dict(self.module.named_buffers()), dict(student.named_buffers()))
            if own:
                torch._foreach_copy_(own, other)


def _matched(
    teacher: dict[str, Tensor], student: dict[str, Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors of both, in one order."""
    if teacher.keys() != student.keys():
        odd = sorted(teacher.keys() ^ student.keys())
        wrapped = any(name.startswith(("module.", "_orig_mod.")) for name in student)
        raise ValueError(
            f"student does not match the teacher: {len(odd)} names are in one of them only, such "
            f"as {odd[0]!r}: "
            + (
                "give the module inside the wrapper (student.module, student._orig_mod)"
                if wrapped
                else "give the module that the teacher was copied from"
            )
        )
    for name, tensor in teacher.items():
        if tensor.shape != student[name].shape:
            raise ValueError(
                f"student does not match the teacher: {name!r} has shape "
                f"{tuple(student[name].shape)}, the teacher's {tuple(tensor.shape)}: "
                "give the module that the teacher was copied from"
            )
    return list(teacher.values()), [student[name] for name in teacher]


def momentum_schedule(step: int, steps: int, start: float = 0.996, end: float = 1.0) -> float:
    r"""The teacher's momentum, rising from `start` to `end` along half a cosine.

    .. math:: m_k = m_\text{end} - (m_\text{end} - m_\text{start})\,
        \frac{\cos(\pi k / K) + 1}{2}

    BYOL section 3.1 (with end = 1). Beyond the last step it stays at `end`.

    Args:
        step: how many steps have been taken, k.
        steps: how many there are, K.
        start: the momentum at step 0.
        end: the momentum at the last step.

    >>> [round(momentum_schedule(k, 100), 4) for k in (0, 50, 100)]
    [0.996, 0.998, 1.0]
    """
    if steps < 1:
        raise ValueError(f"steps is {steps!r}: give the number of steps of the run, at least 1")
    if step < 0:
        raise ValueError(f"step is {step!r}: count from 0")
    for name, value in (("start", start), ("end", end)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value!r}: give a momentum from 0 to 1")
    done = min(step / steps, 1.0)
    return end - (end - start) * (math.cos(math.pi * done) + 1) / 2
