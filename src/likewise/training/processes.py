"""This process among those of a training: whether it is the first, and which device is its own.

torchrun, Lightning and Slurm say so in the environment, before anything of a training is there. A
process that trains alone does not ask: a cluster's shell has such names, too.
"""

from __future__ import annotations

import os

import torch

from likewise.training.machine import Machine


def is_first_process(processes: int) -> bool:
    """Whether it is this process that speaks and writes: the first of all, on all machines.

    processes: how many train together.

    torchrun gives a rank among all; where Lightning starts the processes, the machine (`NODE_RANK`)
    and the process on it are numbered apart; Slurm numbers its tasks.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"NODE_RANK": "1", "LOCAL_RANK": "0"}):
    ...     is_first_process(2), is_first_process(1)
    (False, True)
    """
    if processes == 1:
        return True
    if "RANK" in os.environ:
        return _number("RANK") == 0
    return not any(_number(name) for name in ("NODE_RANK", "LOCAL_RANK", "SLURM_PROCID"))


def own_device(machine: Machine) -> torch.device:
    """The device that this process computes on.

    >>> own_device(Machine(device="cpu"))
    device(type='cpu')
    """
    if machine.device == "cpu":
        return torch.device("cpu")
    if machine.processes == 1:
        return torch.device("cuda", 0)
    return torch.device("cuda", _number("LOCAL_RANK") or _number("SLURM_LOCALID"))


def _number(name: str) -> int:
    return int(os.environ.get(name, 0))
