"""What a training sets for the whole process, and puts back."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from lightning.fabric.utilities import rank_zero as fabric_ranks
from lightning.pytorch.utilities import rank_zero as pytorch_ranks

from likewise.training.machine import Machine
from likewise.training.processes import own_device

_LIGHTNING = ("lightning.pytorch", "lightning.fabric")


@contextmanager
def training_settings(machine: Machine) -> Iterator[None]:
    """Precision of products, determinism, random numbers, and Lightning's advice, which is for
    those who write a Trainer by hand: whoever called finds them as they were.

    >>> before = torch.get_rng_state()
    >>> with training_settings(Machine()):
    ...     _ = torch.manual_seed(0)
    ...     torch.use_deterministic_algorithms(True)
    >>> torch.equal(before, torch.get_rng_state()), torch.are_deterministic_algorithms_enabled()
    (True, False)
    """
    device = own_device(machine)
    with ExitStack() as kept:
        kept.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
        kept.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", module="lightning")
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*")
        for name in _LIGHTNING:
            logger = logging.getLogger(name)
            kept.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        kept.callback(
            torch.use_deterministic_algorithms,
            torch.are_deterministic_algorithms_enabled(),
            warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        if machine.processes == 1:
            # Lightning has read a rank from the environment of a cluster's shell when it was
            # imported; who trains alone writes all logs.
            for ranks in (fabric_ranks, pytorch_ranks):
                _set(kept, ranks.rank_zero_only, "rank", 0)
        if machine.device == "cuda":
            _set(kept, torch.backends.cudnn, "benchmark", not machine.deterministic)
            # A process that has chosen by PyTorch's newer names may not read the older one.
            with _as_chosen_by_newer_names():
                products = torch.get_float32_matmul_precision()
                torch.set_float32_matmul_precision("high")
                kept.callback(torch.set_float32_matmul_precision, products)
        yield


def _set(kept: ExitStack, owner: Any, name: str, value: object) -> None:
    kept.callback(setattr, owner, name, getattr(owner, name, None))
    setattr(owner, name, value)


@contextmanager
def _as_chosen_by_newer_names() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if "fp32_precision" not in str(error) and "legacy" not in str(error):
            raise
