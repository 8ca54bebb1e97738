"""This process among those of a training: whether it is the first, and which device is its own.

Lightning and torchrun say so in the environment, before anything of a training is there.
"""

from __future__ import annotations

import os

import torch

from likewise.training.machine import Machine


def is_first_process() -> bool:
    """Whether it is this process that speaks and writes: the first of all, on all machines."""
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", 0))) == 0


def own_device(machine: Machine) -> torch.device:
    """The device that this process computes on.

    >>> own_device(Machine(device="cpu"))
    device(type='cpu')
    """
    if machine.device == "cpu":
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
