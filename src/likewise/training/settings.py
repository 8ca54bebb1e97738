"""What a training sets for the whole process, and puts back."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

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
    products = torch.get_float32_matmul_precision()
    benchmark = torch.backends.cudnn.benchmark
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    loggers = [logging.getLogger(name) for name in _LIGHTNING]
    levels = [logger.level for logger in loggers]
    device = own_device(machine)
    drawn_on = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=drawn_on), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        if machine.device == "cuda":
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.benchmark = not machine.deterministic
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(products)
            torch.backends.cudnn.benchmark = benchmark
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
